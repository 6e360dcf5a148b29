package builder

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// endingLog writes nothing: the context of the writer ends first, or not.
type endingLog struct {
	journal.Log
	end   func()
	tries int
}

func (l *endingLog) ID() string        { return "log" }
func (l *endingLog) Partitions() int32 { return 1 }

func (l *endingLog) Append(ctx context.Context, _ string, _ int32, _ ...events.Envelope) ([]int64, error) {
	if l.tries++; l.tries == 2 {
		l.end()
		return nil, ctx.Err()
	}
	return nil, errors.New("no leader")
}

// TestAWriteThatIsGivenUpIsNotSaidToBeTriedAgain: when a build is aborted, the write of its preparation is given up.
func TestAWriteThatIsGivenUpIsNotSaidToBeTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	l := &endingLog{end: cancel}
	b := &Builder{Options: Options{Log: l, Logger: slog.New(slog.NewTextHandler(&said, nil))}}
	if _, err := b.publishAt(ctx, "main", "a", "", &eventsv1.BuildPrepared{Build: "b1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if n := strings.Count(said.String(), "is tried again"); l.tries != 2 || n != 1 || !strings.Contains(said.String(), "no leader") {
		t.Errorf("%d tries, said %q", l.tries, said.String())
	}
}
