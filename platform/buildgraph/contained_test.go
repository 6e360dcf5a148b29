package buildgraph_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"landfall.build/platform/buildgraph"
)

func TestContainedEndsPanicsAndLoopsAndTellsThemFromFailures(t *testing.T) {
	failure := errors.New("no disk")
	if _, err := buildgraph.Contain(t.Context(), time.Hour, func(context.Context) (int, error) { return 0, failure }); !errors.Is(err, failure) || errors.Is(err, buildgraph.ErrContained) {
		t.Errorf("a failure: %v", err)
	}
	if n, err := buildgraph.Contain(t.Context(), time.Hour, func(context.Context) (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("a success: %d, %v", n, err)
	}
	if _, err := buildgraph.Contain(t.Context(), time.Hour, func(context.Context) (int, error) { panic("poison") }); !errors.Is(err, buildgraph.ErrContained) {
		t.Errorf("a panic: %v", err)
	}
	release := make(chan struct{})
	defer close(release)
	if _, err := buildgraph.Contain(t.Context(), time.Millisecond, func(context.Context) (int, error) { <-release; return 0, nil }); !errors.Is(err, buildgraph.ErrContained) {
		t.Errorf("a loop that ignores its context: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := buildgraph.Contain(ctx, time.Hour, func(ctx context.Context) (int, error) { return 0, ctx.Err() }); errors.Is(err, buildgraph.ErrContained) {
		t.Errorf("a service that ends speaks against a change: %v", err)
	}
}
