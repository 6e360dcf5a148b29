package gateway

import (
	"context"
	"crypto/sha256"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/configuration"
	"landfall.build/services/gateway/admission"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/pinning"
	"landfall.build/services/gateway/view"
	"landfall.build/services/journal"
	"landfall.build/services/landing"
	"landfall.build/services/lineup"
)

// queue is what one gateway knows of one queue. Everything but the inbox is guarded by mu.
type queue struct {
	gateway  *Gateway
	settings configuration.Queue

	mu      sync.Mutex
	view    *view.Queue
	heads   map[string]admission.Heads
	answers answers
	// waiting for the answer to a request, by its id.
	waiting map[string][]*waiter
	// effects are awaited by the id of the record that they are of.
	effects map[string]chan lineup.Effect
	// changed is closed, and replaced, with every record.
	changed chan struct{}

	inbox  inbox
	pinner *pinning.Pinner
}

func newQueue(g *Gateway, settings configuration.Queue) *queue {
	return &queue{
		gateway: g, settings: settings, view: view.New(settings.Name, g.View), heads: map[string]admission.Heads{},
		answers: newAnswers(), waiting: map[string][]*waiter{}, effects: map[string]chan lineup.Effect{},
		changed: make(chan struct{}), inbox: newInbox(),
	}
}

func (q *queue) limits() admission.Limits {
	l := q.settings.Limits
	return admission.Limits{Pending: l.Pending, Stack: l.Stack, Requires: l.Requires}
}

// mirror opens the queue's repository at first use; only answerRequests calls it.
func (q *queue) mirror(ctx context.Context) (*pinning.Pinner, error) {
	if q.pinner == nil {
		repository, err := q.gateway.Mirrors(ctx, q.settings.Repository)
		if err != nil {
			return nil, err
		}
		q.pinner = pinning.New(repository, q.settings.Branch, landing.Strategy(q.settings.Strategy))
	}
	return q.pinner, nil
}

// fold takes a counted record of any topic.
func (q *queue) fold(e journal.Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	effect := q.view.Fold(e)
	if effect.Entered != nil {
		a := effect.Entered.Admission
		q.heads[a.Change] = admission.HeadsOf(a.Entries)
		q.answerWith(a.RequestId, given{Answer: api.Answer{Admitted: a}})
	}
	if refused, is := e.Message.(*eventsv1.RequestRefused); is {
		q.answerWith(refused.RequestId, given{Answer: api.Answer{Refused: refused}, delivery: q.gateway.deliveryOf(refused, e.ID)})
	}
	if waiter := q.effects[e.ID]; waiter != nil {
		delete(q.effects, e.ID)
		waiter <- effect
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// answerWith keeps the first answer of a request: an admission that took its place in the queue, or a
// refusal. An admission that another gateway's record has made void answers nothing. A refusal of the moment
// answers one delivery of the request; another one, of somebody who asks again, is still to be decided.
func (q *queue) answerWith(request string, a given) {
	if request == "" || !q.answers.put(request, a) {
		return
	}
	q.tell(request, a)
}

// tell answers those who wait for it.
func (q *queue) tell(request string, a given) {
	kept := q.waiting[request][:0]
	for _, w := range q.waiting[request] {
		if a.delivery == "" || a.delivery == w.delivery {
			w.take(a.Answer)
		} else {
			kept = append(kept, w)
		}
	}
	if q.waiting[request] = kept; len(kept) == 0 {
		delete(q.waiting, request)
	}
}

// waiter waits for the answer to a request. The channel gets one value at most.
type waiter struct {
	answer chan api.Answer
	// delivery of the request that it waits for; "" as long as the log has not said where that is.
	delivery string
}

func (w *waiter) take(a api.Answer) {
	select {
	case w.answer <- a:
	default: // it has one
	}
}

// await registers for the answer to a request.
func (q *queue) await(request string) (*waiter, func()) {
	mine := &waiter{answer: make(chan api.Answer, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[request] = append(q.waiting[request], mine)
	return mine, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		kept := slices.DeleteFunc(q.waiting[request], func(w *waiter) bool { return w == mine })
		if q.waiting[request] = kept; len(kept) == 0 {
			delete(q.waiting, request)
		}
	}
}

// delivered says where the request is that somebody waits for. It may have been refused by now.
func (q *queue) delivered(request string, w *waiter, delivery string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.delivery = delivery
	if a, known := q.answers.get(request); known && a.delivery == delivery {
		w.take(a.Answer)
	}
}

// usedFor is the answer that was given to another change's request of the same id; false if there is none.
func (q *queue) usedFor(request, change string) (api.Answer, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a, known := q.answers.get(request)
	was := a.Refused.GetChange() + a.Admitted.GetChange()
	return a.Answer, known && was != "" && was != change
}

// tellAnswered answers those who wait for a request that was answered before, for good.
func (q *queue) tellAnswered(request string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.answers.has(request) {
		return
	}
	a, known := q.answers.get(request)
	if !known {
		a.Refused = &eventsv1.RequestRefused{RequestId: request, Code: string(admission.Unchanged),
			Message: "This request was answered long ago; ask for the change."}
	}
	q.tell(request, a)
}

// answered says whether a request needs no decision: it has one for good, or this delivery of it was refused.
func (q *queue) answered(a *asked) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answers.has(a.ID) || q.answers.hasRefused(a.delivery)
}

// decide answers a request from the lineup as it is folded now. admitted is how many more the caller
// has admitted in the same breath.
func (q *queue) decide(r admission.Request, pinned admission.Pinned, admitted int) proto.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	limits := q.limits()
	limits.Pending -= admitted
	return admission.Decide(admission.Known{Lineup: q.view.Lineup(), Heads: q.heads}, limits, r, pinned)
}

func (q *queue) head() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.view.Lineup().Head
}

// keptAnswers is how many answers are kept whole, for clients that ask again.
const keptAnswers = 10_000

// given is an answer.
type given struct {
	api.Answer
	// delivery that it is for, if it is a refusal of the moment.
	delivery string
}

// answers remembers which requests were answered: all of them by a fingerprint (16 bytes each), since a
// request that is found in the topic again must never be decided twice; the newest with the answer.
type answers struct {
	all map[[16]byte]struct{}
	// refused are deliveries that were refused for the moment.
	refused map[[16]byte]struct{}
	kept    map[string]given
	order   []string
}

func newAnswers() answers {
	return answers{all: map[[16]byte]struct{}{}, refused: map[[16]byte]struct{}{}, kept: map[string]given{}}
}

func fingerprint(request string) (f [16]byte) {
	sum := sha256.Sum256([]byte(request))
	copy(f[:], sum[:])
	return f
}

func (a *answers) has(request string) bool {
	_, has := a.all[fingerprint(request)]
	return has
}

func (a *answers) hasRefused(delivery string) bool {
	_, has := a.refused[fingerprint(delivery)]
	return has
}

func (a *answers) get(request string) (given, bool) {
	answer, known := a.kept[request]
	return answer, known
}

// put says false if the request was answered before.
func (a *answers) put(request string, answer given) bool {
	if a.has(request) {
		return false
	}
	if answer.delivery == "" {
		a.all[fingerprint(request)] = struct{}{}
	} else {
		a.refused[fingerprint(answer.delivery)] = struct{}{}
	}
	if _, known := a.kept[request]; !known {
		a.order = append(a.order, request)
	}
	a.kept[request] = answer
	if len(a.order) > keptAnswers {
		delete(a.kept, a.order[0])
		a.order = a.order[1:]
	}
	return true
}
