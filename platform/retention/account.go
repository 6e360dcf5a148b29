package retention

import (
	"maps"
	"slices"
	"sync"

	"landfall.build/platform/telemetry"
)

// Account holds how much is kept, and was deleted, in one process. A nil one takes nothing.
type Account struct {
	mu            sync.Mutex
	kept, deleted map[string]int64 // bytes, by kind
}

// Keep sets how many bytes there are of a kind: logs, mirrors, worktrees.
func (a *Account) Keep(kind string, bytes int64) {
	a.change(func() {
		a.kept[kind] = bytes
		a.deleted[kind] += 0
	})
}

// Delete counts bytes of a kind that were deleted.
func (a *Account) Delete(kind string, bytes int64) {
	a.change(func() { a.deleted[kind] += bytes })
}

func (a *Account) change(what func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept, a.deleted = map[string]int64{}, map[string]int64{}
	}
	what()
}

// Measurements are the account, for Prometheus.
func (a *Account) Measurements() []telemetry.Family {
	kept := telemetry.Family{
		Name: "landfall_retention_kept_bytes", Kind: telemetry.Gauge,
		Help: "Bytes in the data directory when it was last looked at, of logs of steps, mirrors, and worktrees with scratch folders.",
	}
	deleted := telemetry.Family{
		Name: "landfall_retention_deleted_bytes_total", Kind: telemetry.Counter,
		Help: "Bytes that were deleted because they went beyond a bound of the configuration's retention.",
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(a.kept)) {
		kept.Add(float64(a.kept[kind]), "kind", kind)
	}
	for _, kind := range slices.Sorted(maps.Keys(a.deleted)) {
		deleted.Add(float64(a.deleted[kind]), "kind", kind)
	}
	return []telemetry.Family{kept, deleted}
}
