//go:build !linux

package sandbox

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// Attributes does nothing here.
func (s Spec) Attributes(*syscall.SysProcAttr) {}

// Enter fails: only Linux has what it takes.
func (s Spec) Enter() error {
	return fmt.Errorf("%w: there are no namespaces on %s", ErrUnavailable, runtime.GOOS)
}

// Restrict does nothing here.
func Restrict() error { return nil }

// Wrap fails, as Enter does.
func (s Spec) Wrap(*exec.Cmd) error { return s.Enter() }

// MaybeEnter does nothing here.
func MaybeEnter() {}
