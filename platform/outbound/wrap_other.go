//go:build !linux

package outbound

import (
	"os/exec"

	"landfall.build/platform/sandbox"
)

// Wrap fails, as [sandbox.Spec.Wrap] does.
func Wrap(s sandbox.Spec, cmd *exec.Cmd) (end func(), err error) { return nil, s.Wrap(cmd) }

// MaybeCarry does nothing here.
func MaybeCarry() {}
