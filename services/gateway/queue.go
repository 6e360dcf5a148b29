package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/past"
	"landfall.build/services/gateway/pinning"
	"landfall.build/services/gateway/state"
)

// queue is what a gateway holds of one queue.
type queue struct {
	gateway  *Gateway
	settings configuration.Queue

	// reading has mu for those who ask for the view.
	reading *rested
	mu      sync.Mutex
	state   *state.Queue
	// waiting for the answer to a request, by its id.
	waiting map[string][]*waiter
	// consequences holds who waits for what a record does to the lineup, by the id of the record.
	consequences map[string]chan lineup.Consequence
	// changed is closed, and replaced, with every record.
	changed chan struct{}
	// waits has how long each pending change has waited for what, of those that were admitted since the gateway is ready.
	waits map[string]*waits
	// causes is the number of pending changes by what they waited for when they were looked at last.
	causes map[string]int

	// inbox has the requests that were read, far those about which the remote must be asked, and room a place for each.
	inbox, far *inbox
	room       chan struct{}
	// settling is held while answers are decided and read back.
	settling sync.Mutex
	opening  sync.Mutex
	pinner   *pinning.Pinner
	// repository is the mirror that the pinner has.
	repository *gitrepo.Repo

	past *past.Past
}

func newQueue(g *Gateway, settings configuration.Queue) *queue {
	folded := state.New(settings.Name, g.View)
	if settings.Shadow == configuration.On {
		folded.View.SetShadow()
	}
	q := &queue{
		gateway: g, settings: settings, state: folded,
		waiting: map[string][]*waiter{}, consequences: map[string]chan lineup.Consequence{},
		past:    g.newPast(settings.Name),
		changed: make(chan struct{}), waits: map[string]*waits{}, inbox: newInbox(), far: newInbox(), room: make(chan struct{}, maxWaiting),
	}
	q.reading = newRested(&q.mu)
	return q
}

func (q *queue) limits() admission.Limits {
	l := q.settings.Limits
	return admission.Limits{Pending: l.Pending, Stack: l.Stack, Requires: l.Requires}
}

// mirror opens the queue's repository at first use.
func (q *queue) mirror(ctx context.Context) (*pinning.Pinner, error) {
	q.opening.Lock()
	defer q.opening.Unlock()
	if q.pinner == nil {
		repository, err := q.gateway.Mirrors(ctx, q.settings.Repository)
		if err != nil {
			return nil, err
		}
		q.repository = repository
		q.pinner = pinning.New(repository, q.settings.Branch, q.settings.Strategy)
	}
	return q.pinner, nil
}

// fold folds a counted record of any topic.
func (q *queue) fold(e journal.Entry) {
	if !q.mu.TryLock() {
		q.reading.heldUp.Store(true)
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	consequence, request, answer := q.state.Fold(e, func(r *eventsv1.RequestRefused) string { return q.gateway.deliveryOf(r, e.ID) })
	q.measure(e, consequence)
	if request != "" {
		q.answer(request, answer)
	}
	if waiter := q.consequences[e.ID]; waiter != nil {
		delete(q.consequences, e.ID)
		waiter <- consequence
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// answer gives an answer to those who wait for it.
func (q *queue) answer(request string, a state.Given) {
	kept := q.waiting[request][:0]
	for _, w := range q.waiting[request] {
		if a.Delivery == "" || a.Delivery == w.delivery {
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
	// delivery is that of the request; "" until the log has confirmed it.
	delivery string
}

func (w *waiter) take(a api.Answer) {
	select {
	case w.answer <- a:
	default: // it has one
	}
}

// await registers for the answer to a request. The function that it returns ends the wait.
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

// delivered sets the delivery of a request that a waiter waits for, which may have been answered already.
func (q *queue) delivered(r *eventsv1.LandRequest, w *waiter, delivery string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w.delivery = delivery
	if a, known := q.state.Answers.Get(r.RequestId); known && a.Delivery == delivery {
		w.take(a.Answer)
	} else if q.state.Answers.HasRefused(delivery) {
		if before, known := q.before(admission.Request{ID: r.RequestId, Land: r}); known {
			w.take(before)
		}
	}
}

// before returns the answer to a request whose id is answered, or that the id is another change's; false if it is to be decided.
// The lock must be held.
func (q *queue) before(r admission.Request) (api.Answer, bool) {
	change := cmp.Or(r.Land.Change, admission.DefaultID(r.Land.Entries))
	before, known := q.state.Answers.Earlier(r.ID, change)
	if known && change != "" && before.Change() != change {
		return api.Answer{Refused: admission.Again(q.state.Known(), r, before)}, true
	}
	return before, known
}

// earlier is before, for one who does not hold the lock.
func (q *queue) earlier(r *eventsv1.LandRequest) (api.Answer, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.before(admission.Request{ID: r.RequestId, Land: r})
}

// again returns the record that answers a request under an id that is answered.
func (q *queue) again(r admission.Request) proto.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, _ := q.state.Answers.Earlier(r.ID, r.Land.Change)
	return admission.Again(q.state.Known(), r, before)
}

// tellAnswered answers those who wait for a delivery that needs no answer any more.
func (q *queue) tellAnswered(a *asked) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before, known := q.before(a.Request); known {
		q.answer(a.ID, state.Given{Answer: before, Delivery: a.delivery})
	}
}

// standing returns what is to be done about a request.
func (q *queue) standing(a *asked) state.Standing {
	q.mu.Lock()
	defer q.mu.Unlock()
	place := state.PlaceOf(a.Place)
	// Its publisher's key may have been taken away since it was answered.
	if a.own != a.ID && q.state.Answers.Standing(a.own, a.Land.Change, q.gateway.delivery(a.own, a.Place.GetPartition(), a.Place.GetOffset()), place) == state.Answered {
		return state.Answered
	}
	return q.state.Answers.Standing(a.ID, a.Land.Change, a.delivery, place)
}

// decide returns the answer to a request from the lineup as it is folded now. admitted is how many requests of the same
// round the caller has admitted.
func (q *queue) decide(r admission.Request, pinned admission.Pinned, admitted int) proto.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	limits := q.limits()
	limits.Pending -= admitted
	before := q.state.View.Admission(r.Land.Change)
	if !q.mayRevise(r.Land, before) {
		return admission.Refused(r, &admission.Refusal{Code: admission.Forbidden, Message: "The change is somebody else's; land yours under another id, or ask somebody with the role lander."})
	}
	if most := mostOfContributor(q.limits().Pending); q.state.View.Lineup().Pending(r.Land.Change) == nil && q.askedByContributor(r.Land.Actor, most) >= most {
		return admission.Refused(r, &admission.Refusal{Code: admission.QueueFull,
			Message: fmt.Sprintf("You have asked for %d changes that are in the queue, as many as one contributor may have; ask again when some have landed.", most)})
	}
	showRefs(pinned.Entries, before)
	return admission.Decide(q.state.Known(), limits, r, pinned)
}

// mostPendingOfContributor bounds the pending changes of a contributor: services remember each two that conflict. 500 of one file take
// about a gigabyte in all of them together.
const mostPendingOfContributor = 500

// mostOfContributor returns how many of a queue's pending changes one contributor may have.
func mostOfContributor(pending int) int { return min(pending/2, mostPendingOfContributor) }

// askedByContributor returns how many of the pending changes a contributor has asked for, 0 for everybody else. It looks only if there may be
// most of them.
func (q *queue) askedByContributor(actor *eventsv1.Actor, most int) (n int) {
	pending := q.state.View.Lineup().Order()
	if actor.GetRole() != access.Contributor.String() || len(pending) < most {
		return 0
	}
	for _, c := range pending {
		if a := q.state.View.Admission(c.ID()).GetActor(); a.GetIssuer() == actor.Issuer && a.GetSubject() == actor.Subject {
			n++
		}
	}
	return n
}

func (q *queue) head() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state.View.Lineup().Head
}

// showRefs gives entries that name commits alone the refs under which the change had these commits before, for people.
func showRefs(entries []*eventsv1.Entry, before *eventsv1.Admission) {
	for i, e := range entries {
		if known := before.GetEntries(); e.Ref == "" && i < len(known) && known[i].Commit == e.Commit {
			e.Ref = known[i].Ref
		}
	}
}
