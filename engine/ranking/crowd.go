package ranking

import (
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// crowd counts the builds of a ranking by whom their steps are counted for (M33b). An author or a team has the share of the K best
// that it may have of the workers: else who has many changes would fill the ranking with builds that wait.
type crowd struct {
	quotas        *quota.Quotas
	best, workers int
	builds        map[quota.Account]int
	of            map[string][]quota.Quota
}

// newCrowd returns nil for a queue without quotas or pool.
func newCrowd(settings *eventsv1.QueueSettings, best int) *crowd {
	q := quota.New(settings.GetQuotas())
	if q == nil || settings.GetPoolWorkers() == 0 {
		return nil
	}
	return &crowd{q, best, int(settings.GetPoolWorkers()), map[quota.Account]int{}, map[string][]quota.Quota{}}
}

func (w *crowd) quotasOf(c *change) []quota.Quota {
	list, known := w.of[c.node.Author]
	if !known {
		list = w.quotas.Of(c.node.Author)
		w.of[c.node.Author] = list
	}
	return list
}

// isFull reports whether a change gets no further build. An urgent one does.
func (w *crowd) isFull(c *change) bool {
	if w == nil || c.node.Urgent {
		return false
	}
	for _, of := range w.quotasOf(c) {
		if of.Kind != eventsv1.QuotaKind_QUOTA_KIND_QUEUE && w.builds[of.Account] >= max(1, w.best*of.Limit/w.workers) {
			return true
		}
	}
	return false
}

func (w *crowd) add(c *change) {
	if w != nil {
		for _, of := range w.quotasOf(c) {
			w.builds[of.Account]++
		}
	}
}
