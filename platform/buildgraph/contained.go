package buildgraph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// ErrContained says that what was computed of a tree exceeded its time limit or panicked; trying again would end the same way.
var ErrContained = errors.New("the analysis was ended")

// abandonAfter is how long a computation whose time is over may take to notice.
const abandonAfter = 2 * time.Second

// Panic is a panic within what is contained, with its stack.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Recovered turns a panic into an error that wraps ErrContained and a *Panic. It is to be deferred itself.
func Recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("%w: %w", ErrContained, &Panic{value, debug.Stack()})
	}
}

// Contain runs f within a time limit, in a goroutine of its own, so that neither a panic nor a loop that ignores its context
// takes more than this one call. Both end in ErrContained. A loop goes on in its goroutine: Go cannot end it.
func Contain[T any](ctx context.Context, limit time.Duration, f func(ctx context.Context) (T, error)) (T, error) {
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %v", limit))
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { done <- o }()
		defer Recovered(&o.err)
		o.value, o.err = f(within)
	}()
	var o outcome
	select {
	case o = <-done:
	case <-within.Done():
		grace := time.NewTimer(abandonAfter)
		defer grace.Stop()
		select {
		case o = <-done:
		case <-grace.C:
			o.err = context.Cause(within)
		}
	}
	if o.err != nil && within.Err() != nil && ctx.Err() == nil {
		o.err = fmt.Errorf("%w: it %w", ErrContained, context.Cause(within))
	}
	return o.value, o.err
}
