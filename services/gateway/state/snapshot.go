package state

import (
	"errors"
	"fmt"

	"landfall.build/engine/admission"
	"landfall.build/engine/snapshotv1"
	"landfall.build/services/gateway/view"
)

// Snapshot returns the state of the queue of a name as a message. It shares the messages of events, which nobody changes.
func (q *Queue) Snapshot(name string) *snapshotv1.GatewayQueue {
	m := &snapshotv1.GatewayQueue{Name: name, View: q.View.Snapshot(), Answers: q.snapshotAnswers()}
	m.Changes, m.Heads = make([]string, 0, len(q.Heads)), make([]byte, 0, len(q.Heads)*len(admission.Heads{}))
	for change, heads := range q.Heads {
		m.Changes, m.Heads = append(m.Changes, change), append(m.Heads, heads[:]...)
	}
	return m
}

// Restore returns the state that a message was made of, under the limits that it was folded under.
func Restore(m *snapshotv1.GatewayQueue, limits view.Limits) (*Queue, error) {
	q := New(m.GetName(), limits)
	var err error
	if q.View, err = view.Restore(m.GetView(), m.GetName(), limits); err != nil {
		return nil, fmt.Errorf("queue %s: %w", m.GetName(), err)
	}
	const size = len(admission.Heads{})
	if len(m.GetHeads()) != size*len(m.GetChanges()) {
		return nil, fmt.Errorf("queue %s: heads of %d changes take %d bytes", m.GetName(), len(m.GetChanges()), len(m.GetHeads()))
	}
	q.Heads = make(map[string]admission.Heads, len(m.GetChanges()))
	for i, change := range m.GetChanges() {
		q.Heads[change] = admission.Heads(m.Heads[i*size:])
	}
	if err := q.restoreAnswers(m.GetAnswers()); err != nil {
		return nil, fmt.Errorf("queue %s: %w", m.GetName(), err)
	}
	return q, nil
}

// snapshotAnswers leaves out the admissions that the view holds.
func (q *Queue) snapshotAnswers() *snapshotv1.GatewayAnswers {
	a := &q.Answers
	m := &snapshotv1.GatewayAnswers{Refused: make([]byte, 0, len(a.refused)*len(fingerprint{}))}
	for f := range a.refused {
		m.Refused = append(m.Refused, f[:]...)
	}
	m.Answered, m.Given = make([]byte, 0, len(a.answered)*len(fingerprint{})), make([]byte, 0, len(a.answered)*digestBytes)
	for f, d := range a.answered {
		m.Answered, m.Given = append(m.Answered, f[:]...), append(m.Given, d.bytes()...)
	}
	for _, request := range a.order {
		given := a.kept[request]
		answer := &snapshotv1.GatewayAnswer{Request: request, Delivery: given.Delivery, Refused: given.Refused, Admitted: given.Admitted}
		if admitted := given.Admitted; admitted != nil && q.View.Admission(admitted.Change) == admitted {
			answer.Admitted, answer.Change = nil, admitted.Change
		}
		m.Kept = append(m.Kept, answer)
	}
	return m
}

func (q *Queue) restoreAnswers(m *snapshotv1.GatewayAnswers) error {
	a := &q.Answers
	answered, err := split(m.GetAnswered())
	if err != nil {
		return err
	}
	given := m.GetGiven()
	if n := len(answered) * digestBytes; len(given) != n && len(given) > 0 {
		return fmt.Errorf("%d answers take %d bytes", len(answered), len(given))
	}
	a.answered = make(map[fingerprint]digest, len(answered))
	for i, f := range answered {
		if a.answered[f] = (digest{}); len(given) > 0 {
			a.answered[f] = digestFrom(given[i*digestBytes:])
		}
	}
	refused, err := split(m.GetRefused())
	if err != nil {
		return err
	}
	for _, f := range refused {
		a.refused[f] = struct{}{}
	}
	for _, answer := range m.GetKept() {
		given := Given{Answer: admission.Answer{Refused: answer.Refused, Admitted: answer.Admitted}, Delivery: answer.Delivery}
		if answer.Change != "" {
			given.Admitted = q.View.Admission(answer.Change)
		}
		if given.Refused == nil && given.Admitted == nil {
			return fmt.Errorf("the answer to request %s is missing", answer.Request)
		}
		a.kept[answer.Request] = given
		a.order = append(a.order, answer.Request)
		if len(m.GetGiven()) == 0 { // of an earlier version
			a.answered[fingerprintOf(answer.Request)] = digestOf(given)
		}
	}
	return nil
}

func split(list []byte) ([]fingerprint, error) {
	const size = len(fingerprint{})
	if len(list)%size != 0 {
		return nil, errors.New("the list of fingerprints is cut off")
	}
	out := make([]fingerprint, 0, len(list)/size)
	for ; len(list) > 0; list = list[size:] {
		out = append(out, fingerprint(list))
	}
	return out, nil
}
