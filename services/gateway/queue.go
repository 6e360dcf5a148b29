package gateway

import (
	"context"
	"crypto/sha256"
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
	waiting map[string][]chan api.Answer
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
		answers: newAnswers(), waiting: map[string][]chan api.Answer{}, effects: map[string]chan lineup.Effect{},
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
		q.answerWith(a.RequestId, api.Answer{Admitted: a})
	}
	if refused, is := e.Message.(*eventsv1.RequestRefused); is {
		q.answerWith(refused.RequestId, api.Answer{Refused: refused})
	}
	if waiter := q.effects[e.ID]; waiter != nil {
		delete(q.effects, e.ID)
		waiter <- effect
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// answerWith keeps the first answer of a request: an admission that took its place in the queue, or a
// refusal. An admission that another gateway's record has made void answers nothing.
func (q *queue) answerWith(request string, a api.Answer) {
	if request == "" || !q.answers.put(request, a) {
		return
	}
	for _, waiter := range q.waiting[request] {
		waiter <- a
	}
	delete(q.waiting, request)
}

// await registers for the answer to a request. The channel gets one value at most.
func (q *queue) await(request string) (<-chan api.Answer, func()) {
	waiter := make(chan api.Answer, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[request] = append(q.waiting[request], waiter)
	return waiter, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		kept := q.waiting[request][:0]
		for _, w := range q.waiting[request] {
			if w != waiter {
				kept = append(kept, w)
			}
		}
		if q.waiting[request] = kept; len(kept) == 0 {
			delete(q.waiting, request)
		}
	}
}

// tellAnswered answers those who wait for a request that was answered before.
func (q *queue) tellAnswered(request string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a, known := q.answers.get(request)
	if !known {
		a = api.Answer{Refused: &eventsv1.RequestRefused{RequestId: request, Code: string(admission.Unchanged),
			Message: "This request was answered long ago; ask for the change."}}
	}
	for _, waiter := range q.waiting[request] {
		waiter <- a
	}
	delete(q.waiting, request)
}

func (q *queue) answered(request string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.answers.has(request)
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

// answers remembers which requests were answered: all of them by a fingerprint (16 bytes each), since a
// request that is found in the topic again must never be decided twice; the newest with the answer.
type answers struct {
	all   map[[16]byte]struct{}
	kept  map[string]api.Answer
	order []string
}

func newAnswers() answers {
	return answers{all: map[[16]byte]struct{}{}, kept: map[string]api.Answer{}}
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

func (a *answers) get(request string) (api.Answer, bool) {
	answer, known := a.kept[request]
	return answer, known
}

// put says false if the request was answered before.
func (a *answers) put(request string, answer api.Answer) bool {
	f := fingerprint(request)
	if _, has := a.all[f]; has {
		return false
	}
	a.all[f] = struct{}{}
	a.kept[request] = answer
	if a.order = append(a.order, request); len(a.order) > keptAnswers {
		delete(a.kept, a.order[0])
		a.order = a.order[1:]
	}
	return true
}
