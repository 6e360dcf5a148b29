package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"landfall.build/platform/health"
	"landfall.build/services/gateway/state"
)

// emptyBoard is a board on which nobody has posted.
type emptyBoard struct{ health.Board }

func (emptyBoard) Read(context.Context) ([]health.Beat, error) { return nil, nil }

// TestWhatAQueueLacksNamesNoOtherQueue that is on the same partition: whoever reads one may not read all.
func TestWhatAQueueLacksNamesNoOtherQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{fleet: health.NewFleet([]string{"main", "tools"}, 1), queues: map[string]*queue{}}
		for _, name := range []string{"main", "tools"} {
			g.queues[name] = &queue{state: state.New(name, g.View), changed: make(chan struct{})}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g.fleet.Watch(ctx, emptyBoard{}, g.showServices)
		for name, q := range g.queues {
			var all string
			for _, trouble := range q.state.View.Overview().ServiceTroubles {
				all += trouble.Sentence + "\n"
			}
			if !strings.Contains(all, "No lander has owned partition 0 (queue "+name+") for") || strings.Contains(all, "queues") {
				t.Errorf("%s: %s", name, all)
			}
		}
	})
}
