//go:build unix && !linux

package execution

import (
	"context"
	"errors"
)

// Session cannot be had here: only Linux has a sandbox.
type Session struct{}

// Open fails.
func Open(Request) (*Session, error) { return nil, errors.New("sessions are available on Linux only") }

// Alive reports false.
func (*Session) Alive() bool { return false }

// End does nothing.
func (*Session) End() (leftovers int) { return 0 }

// Run fails.
func (*Session) Run(context.Context, Request) Result {
	return Result{Outcome: CouldNotRun, Reason: "Sessions are available on Linux only."}
}
