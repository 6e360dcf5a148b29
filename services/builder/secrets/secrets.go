// Package secrets reads the values of secrets from the places that the configuration names, and decides which steps may
// have them. A value is in memory while a step runs, and in no message.
package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
	"landfall.build/services/builder/execution"
)

// Read returns the value of a secret. The error has no part of it.
func Read(ctx context.Context, name string, secret configuration.Secret) ([]byte, error) {
	value, err := secretplace.Read(ctx, configuration.SecretPlace{File: secret.File, Environment: secret.Environment, Command: secret.Command}, execution.SecretLimit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the secret %s cannot be read: %w", name, err)
	case len(bytes.TrimRight(value, "\r\n")) < execution.SecretMinimum:
		return nil, fmt.Errorf("the secret %s has fewer than %d bytes, so it could not be kept out of logs", name, execution.SecretMinimum)
	case secret.As == configuration.AsVariable && bytes.ContainsRune(value, 0):
		return nil, fmt.Errorf("the secret %s has a NUL byte, which no variable can have; give it as a file", name)
	}
	return value, nil
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
		return fmt.Errorf("the secret %s is only for steps that the mainline defines in the same way (program, arguments, folder, environment, target), and this change adds or alters it: somebody who may push past the queue has to push the step's definition to the mainline, then land the change again; %w", name, ErrDenied)
	}
	return nil
}
