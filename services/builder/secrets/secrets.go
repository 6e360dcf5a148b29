// Package secrets reads the values of secrets from the places that the configuration names, and decides which steps may
// have them. A value is in memory while a step runs, and in no message.
package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

// commandLimit is how long a command may take that prints a secret.
const commandLimit = 30 * time.Second

// Read returns the value of a secret. The error has no part of it.
func Read(ctx context.Context, name string, secret configuration.Secret) ([]byte, error) {
	value, err := read(ctx, secret)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the secret %s cannot be read: %w", name, err)
	case len(bytes.TrimRight(value, "\r\n")) < execution.SecretMinimum:
		return nil, fmt.Errorf("the secret %s has fewer than %d bytes, so it could not be kept out of logs", name, execution.SecretMinimum)
	case len(value) > execution.SecretLimit:
		return nil, fmt.Errorf("the secret %s has more than %d bytes", name, execution.SecretLimit)
	case secret.As == configuration.AsVariable && bytes.ContainsRune(value, 0):
		return nil, fmt.Errorf("the secret %s has a NUL byte, which no variable can have; give it as a file", name)
	}
	return value, nil
}

func read(ctx context.Context, secret configuration.Secret) ([]byte, error) {
	switch {
	case secret.File != "":
		file, err := os.Open(secret.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return io.ReadAll(io.LimitReader(file, execution.SecretLimit+1))
	case secret.Environment != "":
		value, set := os.LookupEnv(secret.Environment)
		if !set {
			return nil, fmt.Errorf("the builder's environment has no variable %s", secret.Environment)
		}
		return []byte(value), nil
	}
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, secret.Command[0], secret.Command[1:]...)
	command.WaitDelay = time.Second
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	value, readErr := io.ReadAll(io.LimitReader(output, execution.SecretLimit+1))
	if len(value) > execution.SecretLimit {
		cancel() // it may be blocked on a full pipe
	}
	err = command.Wait()
	switch {
	case len(value) > execution.SecretLimit:
		return value, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not end within %v", secret.Command[0], commandLimit)
	case err != nil:
		// Not what it printed: that may be the secret.
		return nil, fmt.Errorf("%s: %w", secret.Command[0], err)
	}
	return value, readErr
}

// ErrDenied is wrapped by what Allowed returns: asking again gives the same until the mainline or the configuration changes.
var ErrDenied = errors.New("the step was not run")

// Allowed returns why a step of a target may not have a secret that it names, nil if it may. mainline is the target as the
// mainline of the build defines it, the zero Target if it defines none.
func Allowed(name string, secret configuration.Secret, known bool, target, mainline targets.Target) error {
	switch {
	case !known:
		return fmt.Errorf("the step names the secret %s, which the queue's steps.secrets does not have; %w", name, ErrDenied)
	case secret.For == configuration.ForApproved:
		return fmt.Errorf("the secret %s is only for changes that somebody with the role approved, and nobody can have that role yet; %w", name, ErrDenied)
	case target.Name != mainline.Name || !reflect.DeepEqual(target.Commands, mainline.Commands):
		return fmt.Errorf("the secret %s is only for steps that the mainline defines in the same way (program, arguments, folder, environment, target), and this change alters that; %w", name, ErrDenied)
	}
	return nil
}
