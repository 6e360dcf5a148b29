package view

import (
	"slices"
	"strings"
	"time"

	"landfall.build/events"
)

// ServiceTrouble is a service that the queue needs and that is not at work.
type ServiceTrouble struct {
	Service string    `json:"service"`
	Since   time.Time `json:"since"`
	// Sentence is for people: what is wrong, for how long, and what follows.
	Sentence string `json:"sentence"`
}

// SetServiceTroubles replaces the services that are not at work, and reports whether the set has changed. It is no part of
// the log.
func (q *Queue) SetServiceTroubles(now []ServiceTrouble) (changed bool) {
	before := q.serviceTroubles
	q.serviceTroubles = now
	return !slices.EqualFunc(before, now, func(a, b ServiceTrouble) bool { return a.Service == b.Service })
}

// SetShadow says that the queue only decides what others land. It is no part of the log.
func (q *Queue) SetShadow() { q.shadow = true }

// serviceReasons returns which services a pending change waits for. One that has passed its steps waits for no builder.
func (q *Queue) serviceReasons(s standing) (out []Reason) {
	for _, t := range q.serviceTroubles {
		if s.state != StatePassed || t.Service != events.ServiceBuilder && t.Service != events.ServiceAnalyzer {
			out = append(out, Reason{Code: ReasonServiceMissing, Sentence: t.Sentence})
		}
	}
	return out
}

// noEstimateWithout returns why there is no estimate while a service is missing, as a clause.
func noEstimateWithout(missing []Reason) string {
	text := strings.TrimSuffix(missing[0].Sentence, ".")
	return strings.ToLower(text[:1]) + text[1:]
}
