// Package state is what a gateway holds of one queue of the log: what people see of it, what its changes were admitted
// with, and what was answered. It is pure: the same records in the same order give the same, in every gateway.
package state

import (
	"fmt"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/admission"
	"landfall.build/services/gateway/view"
	"landfall.build/services/journal"
	"landfall.build/services/lineup"
	"landfall.build/services/snapshot"
)

// Queue is the state of one queue. It is for one goroutine at a time.
type Queue struct {
	View    *view.Queue
	Heads   map[string]admission.Heads
	Answers Answers
}

// New is a queue of which nothing is known.
func New(name string, limits view.Limits) *Queue {
	return &Queue{View: view.New(name, limits), Heads: map[string]admission.Heads{}, Answers: newAnswers()}
}

// Known is what admission decides on; it must not be changed.
func (q *Queue) Known() admission.Known {
	return admission.Known{Lineup: q.View.Lineup(), Heads: q.Heads, Dropped: q.View.Dropped}
}

// Fold takes a counted record of any topic. It gives the request that the record answers first, if there is one: an
// admission that took its place in the queue, or a refusal. An admission that another gateway's record has made void
// answers nothing. A refusal of the moment answers one delivery of the request, which delivery names; another one, of
// somebody who asks again, is still to be decided.
func (q *Queue) Fold(e journal.Entry, delivery func(*eventsv1.RequestRefused) string) (effect lineup.Effect, request string, answer Given) {
	effect = q.View.Fold(e)
	if effect.Entered != nil {
		a := effect.Entered.Admission
		q.Heads[a.Change] = admission.HeadsOf(a.Entries)
		request, answer = a.RequestId, Given{Answer: admission.Answer{Admitted: a}}
	}
	if refused, is := e.Message.(*eventsv1.RequestRefused); is {
		request, answer = refused.RequestId, Given{Answer: admission.Answer{Refused: refused}, Delivery: delivery(refused)}
	}
	if request == "" || !q.Answers.put(request, answer) {
		request = ""
	}
	return effect, request, answer
}

// Freeze writes down what has been folded.
func (q *Queue) Freeze() ([]byte, error) {
	state, err := snapshot.Freeze(q)
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceGateway, err)
	}
	return state, nil
}

// Thaw gives what was frozen of a queue of that name, folded under those limits.
func Thaw(state []byte, name string, limits view.Limits) (*Queue, error) {
	q := New(name, limits)
	if err := snapshot.Thaw(state, q); err != nil {
		return nil, err
	}
	return q, nil
}
