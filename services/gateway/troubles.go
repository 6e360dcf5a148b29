package gateway

import (
	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

// Services implements api.Backend.
func (g *Gateway) Services() health.Report { return g.fleet.Report() }

// Healthy implements api.Backend.
func (g *Gateway) Healthy() error { return g.Health.Ready() }

// showTroubles lets each queue show which services it lacks, or that they are starting. Who watches a queue hears of it only if they are others than before:
// the sentences grow older all the time.
func (g *Gateway) showTroubles() {
	byQueue := map[string][]view.ServiceTrouble{}
	for _, t := range append(g.fleet.Starting(), g.fleet.Report().Missing...) {
		for _, name := range t.Queues {
			byQueue[name] = append(byQueue[name], view.ServiceTrouble{Service: t.Service, Since: t.Since, Sentence: t.Sentence})
		}
	}
	for name, q := range g.queues {
		q.mu.Lock()
		if q.state.View.SetServiceTroubles(byQueue[name]) {
			close(q.changed)
			q.changed = make(chan struct{})
		}
		q.mu.Unlock()
	}
}
