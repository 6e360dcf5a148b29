// Package state is what a gateway holds of one queue: what people see of it, the commits that its changes were admitted
// with, and which requests were answered. It is pure: the same records in the same order give the same state in every gateway.
package state

import (
	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// Queue is the state of one queue. It is for one goroutine at a time.
type Queue struct {
	View    *view.Queue
	Heads   map[string]admission.Heads
	Answers Answers
}

// New returns a queue of which nothing is known.
func New(name string, limits view.Limits) *Queue {
	return &Queue{View: view.New(name, limits), Heads: map[string]admission.Heads{}, Answers: newAnswers()}
}

// Known returns what admission decides on; it must not be changed.
func (q *Queue) Known() admission.Known {
	return admission.Known{Lineup: q.View.Lineup(), Heads: q.Heads, Dropped: q.View.Dropped}
}

// Fold folds a counted record of any topic. It returns the request that the record is the first answer to, "" if it answers
// none: an admission answers if it took its place in the queue, and not if another gateway's record was ahead of it. A refusal
// of the moment, and the answer to a request under an id that has one, answer one delivery of the request, which delivery returns
// ("" for a refusal for good).
func (q *Queue) Fold(e journal.Entry, delivery func(*eventsv1.RequestRefused) string) (consequence lineup.Consequence, request string, answer Given) {
	consequence = q.View.Fold(e)
	if consequence.Entered != nil {
		a := consequence.Entered.Admission
		q.Heads[a.Change] = admission.HeadsOf(a.Entries)
		request, answer = a.RequestId, Given{Answer: admission.Answer{Admitted: a}}
	}
	if refused, is := e.Message.(*eventsv1.RequestRefused); is {
		request, answer = refused.RequestId, Given{Answer: admission.Answer{Refused: refused}, Delivery: delivery(refused)}
	}
	if request == "" || !q.Answers.put(request, answer) {
		request = ""
	}
	return consequence, request, answer
}
