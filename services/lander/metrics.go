package lander

import (
	"maps"
	"slices"
	"strings"
	"sync"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
)

// Troubles are the mainlines that a process cannot work on now, of all its partitions. A nil one takes nothing.
type Troubles struct {
	mu      sync.Mutex
	byQueue map[string]eventsv1.MainlineTrouble
	refused map[string]int
}

// countRefusal counts a push that the remote refused.
func (t *Troubles) countRefusal(queue string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil {
		t.refused = map[string]int{}
	}
	t.refused[queue]++
}

func (t *Troubles) set(queue string, kind eventsv1.MainlineTrouble) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED {
		delete(t.byQueue, queue)
		return
	}
	if t.byQueue == nil {
		t.byQueue = map[string]eventsv1.MainlineTrouble{}
	}
	t.byQueue[queue] = kind
}

// Measurements are what the lander measures, for Prometheus.
func (t *Troubles) Measurements() []telemetry.Family {
	unreachable := telemetry.Family{
		Name: "landfall_lander_mainline_unreachable", Kind: telemetry.Gauge,
		Help: "1 for each queue whose mainline the lander cannot read, push, or make commits for, from its first failed attempt on; absent while it can.",
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(t.byQueue)) {
		kind := strings.ToLower(strings.TrimPrefix(t.byQueue[queue].String(), "MAINLINE_TROUBLE_"))
		unreachable.Add(1, "queue", queue, "trouble", kind)
	}
	refused := telemetry.Family{
		Name: "landfall_lander_pushes_refused_total", Kind: telemetry.Counter,
		Help: "Pushes to each queue's mainline that the remote refused (a hook, a protected branch).",
	}
	for _, queue := range slices.Sorted(maps.Keys(t.refused)) {
		refused.Add(float64(t.refused[queue]), "queue", queue)
	}
	return []telemetry.Family{unreachable, refused}
}
