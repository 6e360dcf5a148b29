package webhooks

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"landfall.build/platform/configuration"
)

// Bounds of reading a secret.
const (
	maxSecret    = 4 << 10
	commandLimit = 30 * time.Second
)

// ReadSecret returns the value at a place. The error has no part of it.
func ReadSecret(ctx context.Context, place configuration.SecretPlace) ([]byte, error) {
	switch {
	case place.File != "":
		file, err := os.Open(place.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return io.ReadAll(io.LimitReader(file, maxSecret))
	case place.Environment != "":
		value, set := os.LookupEnv(place.Environment)
		if !set {
			return nil, fmt.Errorf("the environment has no variable %s", place.Environment)
		}
		return []byte(value), nil
	case len(place.Command) == 0:
		return nil, fmt.Errorf("the configuration names no file, variable or command")
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, place.Command[0], place.Command[1:]...)
	command.WaitDelay = time.Second
	value, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place.Command[0], err) // not what it printed: that may be the secret
	}
	return value[:min(len(value), maxSecret)], nil
}
