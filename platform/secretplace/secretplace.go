// Package secretplace reads values that the configuration names a place of: a file, a variable, or a command that prints it.
package secretplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"landfall.build/platform/configuration"
)

// commandLimit is how long a command may take that prints a value.
const commandLimit = 30 * time.Second

// Read returns the value at a place, of so many bytes at most. The error has no part of it.
func Read(ctx context.Context, place configuration.SecretPlace, most int) ([]byte, error) {
	switch {
	case place.File != "":
		file, err := os.Open(place.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		value, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
		return bounded(value, most, err)
	case place.Environment != "":
		value, set := os.LookupEnv(place.Environment)
		if !set {
			return nil, fmt.Errorf("the service's environment has no variable %s", place.Environment)
		}
		return bounded([]byte(value), most, nil)
	case len(place.Command) > 0:
		return ask(ctx, place.Command, most)
	}
	return nil, errors.New("the configuration names no file, variable or command")
}

// ask returns what a command prints.
func ask(ctx context.Context, argv []string, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.WaitDelay = time.Second
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	value, readErr := io.ReadAll(io.LimitReader(output, int64(most)+1))
	if len(value) > most {
		cancel() // it may be blocked on a full pipe
	}
	err = command.Wait()
	switch {
	case len(value) > most:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end within %v", argv[0], commandLimit)
	case err != nil:
		// Not what it printed: that may be the value.
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	return bounded(value, most, readErr)
}

func bounded(value []byte, most int, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, err
	case len(value) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return value, nil
}
