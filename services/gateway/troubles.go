package gateway

import (
	"bytes"
	"encoding/json"
	"time"

	"landfall.build/platform/health"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// Services implements api.Backend.
func (g *Gateway) Services() health.Report { return g.fleet.Report() }

// Healthy implements api.Backend.
func (g *Gateway) Healthy() error { return g.Health.Ready() }

// showServices tells those who watch the list of services, and each queue, what the board shows. It is for one goroutine.
func (g *Gateway) showServices() {
	report := g.fleet.Report()
	for i := range report.Instances {
		if report.Instances[i].Alive {
			report.Instances[i].Heard = time.Time{} // it is another each time
		}
	}
	if text, err := json.Marshal(report); err == nil && !bytes.Equal(text, g.shownServices) {
		g.shownServices = text
		g.lists.Changed(api.PartServices, "")
	}
	g.showTroubles(append(g.fleet.Starting(), report.Missing...))
}

// showTroubles lets each queue show which services it lacks, or that they are starting. Those who watch a queue are told only if these are
// others than before: the sentences grow older all the time.
func (g *Gateway) showTroubles(missing []health.Missing) {
	byQueue := map[string][]view.ServiceTrouble{}
	for _, t := range missing {
		for _, name := range t.Queues {
			byQueue[name] = append(byQueue[name], view.ServiceTrouble{Service: t.Service, Since: t.Since, Sentence: t.For([]string{name}).Sentence})
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
