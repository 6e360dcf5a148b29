// Package apitest is a backend for the API without a log: facts are folded as they are given. It is for
// tests of the API and of its clients; admissions, the lineup and the view are the real ones.
package apitest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// Start is when the first fact happens; each further one is a second later.
var Start = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// Backend serves queues. In their repositories every commit exists.
type Backend struct {
	mu     sync.Mutex
	queues map[string]*queue
	offset int64
	// position is that of the last profile.
	position int64
	unready  bool
	silent   bool
	// deaf: the log confirms nothing.
	deaf bool
	// sick is why the gateway cannot work, and report what Services returns.
	sick   error
	report health.Report
}

type queue struct {
	view    *view.Queue
	heads   map[string]admission.Heads
	changed chan struct{}
	folded  []journal.Entry
}

// New serves the queues of these names.
func New(names ...string) *Backend {
	b := &Backend{queues: map[string]*queue{}}
	for _, name := range names {
		b.queues[name] = &queue{view: view.New(name, view.DefaultLimits()), heads: map[string]admission.Heads{}, changed: make(chan struct{})}
	}
	return b
}

// SetReady makes Ready return nil, or an error.
func (b *Backend) SetReady(ready bool) { b.mu.Lock(); b.unready = !ready; b.mu.Unlock() }

// SetSilent makes every land request run out of time unanswered.
func (b *Backend) SetSilent(silent bool) { b.mu.Lock(); b.silent = silent; b.mu.Unlock() }

// SetDeaf keeps the log from confirming anything that is asked for; nothing of it is written.
func (b *Backend) SetDeaf(deaf bool) { b.mu.Lock(); b.deaf = deaf; b.mu.Unlock() }

// SetHealthy sets what Healthy returns.
func (b *Backend) SetHealthy(err error) { b.mu.Lock(); b.sick = err; b.mu.Unlock() }

// SetServices sets what Services returns, and lets each queue show what it lacks.
func (b *Backend) SetServices(r health.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = r
	for name, q := range b.queues {
		var missing []view.ServiceTrouble
		for _, m := range r.Missing {
			if slices.Contains(m.Queues, name) {
				missing = append(missing, view.ServiceTrouble{Service: m.Service, Since: m.Since, Sentence: m.For([]string{name}).Sentence})
			}
		}
		q.view.SetServiceTroubles(missing)
	}
}

// Healthy implements api.Backend.
func (b *Backend) Healthy() error { b.mu.Lock(); defer b.mu.Unlock(); return b.sick }

// Services implements api.Backend.
func (b *Backend) Services() health.Report { b.mu.Lock(); defer b.mu.Unlock(); return b.report }

// OwnersAt implements api.Backend: what Services returns has been claimed when it says.
func (b *Backend) OwnersAt(_ context.Context, queues []string, at time.Time) (owners []health.Ownership, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.report.Partitions {
		o.Queues = slices.DeleteFunc(slices.Clone(o.Queues), func(name string) bool { return !slices.Contains(queues, name) })
		if o.Term < 0 || len(o.Queues) == 0 {
			continue
		}
		o.State, o.BehindRecords = health.StateClaimed, 0
		if o.Since.After(at) {
			o.Instance, o.Term, o.Since, o.State = "", health.NoTerm, time.Time{}, health.StateUnowned
		}
		owners = append(owners, o)
	}
	return owners, nil
}

// Fold takes the next fact of a topic. One of landfall.changes that carries no time gets the next second.
func (b *Backend) Fold(name, topic string, m proto.Message) lineup.Consequence {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fold(name, topic, m)
}

func (b *Backend) fold(name, topic string, m proto.Message) lineup.Consequence {
	q := b.queues[name]
	e := journal.Entry{Topic: topic, Offset: b.offset}
	e.Time, e.Message, e.Queue = Start.Add(time.Duration(b.offset)*time.Second), m, name
	b.offset++
	q.folded = append(q.folded, e)
	consequence := q.view.Fold(e)
	if consequence.Entered != nil {
		q.heads[consequence.Entered.ID()] = admission.HeadsOf(consequence.Entered.Admission.Entries)
	}
	close(q.changed)
	q.changed = make(chan struct{})
	return consequence
}

// Folded lists everything that was folded into a queue, in order.
func (b *Backend) Folded(name string) []journal.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.queues[name].folded)
}

// Answer implements api.Backend: what was folded is its log.
func (b *Backend) Answer(_ context.Context, name string, i *view.Inquiry) error {
	ask := func(f func(*view.Queue)) { b.Read(name, f) }
	i.ExplainNow(ask)
	for _, e := range b.Folded(name) {
		if m, is := e.Message.(*eventsv1.Profile); is && i.WantsLog() && e.Offset >= i.Offset {
			i.ExplainThen(m, ask)
		}
	}
	i.EndOfLog()
	return nil
}

// Queues implements api.Backend.
func (b *Backend) Queues() []string {
	var names []string
	for name := range b.queues {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Ready implements api.Backend.
func (b *Backend) Ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unready {
		return api.ErrNotReady
	}
	return nil
}

// Land implements api.Backend. A ref stands at a commit made of its name.
func (b *Backend) Land(ctx context.Context, r *eventsv1.LandRequest) (api.Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[r.Queue]
	switch {
	case q == nil:
		return api.Answer{}, api.ErrUnknownQueue
	case b.unready:
		return api.Answer{}, api.ErrNotReady
	}
	if r.RequestId == "" {
		r.RequestId = fmt.Sprintf("request-%d", b.offset)
	}
	if b.deaf {
		return api.Answer{}, api.ErrUnconfirmed
	}
	if b.silent {
		return api.Answer{}, api.ErrUnanswered
	}
	limits := admission.Limits{Pending: 100, Stack: 50, Requires: 50}
	request := admission.Request{ID: r.RequestId, Land: r, ReceivedUS: Start.Add(time.Duration(b.offset) * time.Second).UnixMicro()}
	if problem := admission.Complete(r, limits); problem != nil {
		return api.Answer{Refused: admission.Refused(request, problem)}, nil
	}
	pinned := admission.Pinned{Mainline: Commit("main"), Author: "Ada <ada@example.org>", Title: "Change " + r.Change}
	for _, e := range r.Entries {
		commit := e.Commit
		if commit == "" {
			commit = Commit(e.Ref)
		}
		if e.Ref == "nowhere" {
			problem := &admission.Refusal{Code: admission.NoSuchRef, Message: `The repository has no branch or ref "nowhere"; push it first.`}
			return api.Answer{Refused: admission.Refused(request, problem)}, nil
		}
		pinned.Entries = append(pinned.Entries, &eventsv1.Entry{Ref: e.Ref, Commit: commit})
		pinned.LandingCommits = append(pinned.LandingCommits, &eventsv1.LandingCommit{Head: commit, Base: pinned.Mainline})
	}
	m := admission.Decide(admission.Known{Lineup: q.view.Lineup(), Heads: q.heads, Dropped: q.view.Dropped}, limits, request, pinned)
	if refused, is := m.(*eventsv1.RequestRefused); is {
		return api.Answer{Refused: refused}, nil
	}
	return api.Answer{Admitted: b.fold(r.Queue, events.TopicChanges, m).Entered.Admission}, nil
}

// Commit is the commit at which a ref stands.
func Commit(ref string) string {
	f := events.DeriveID("apitest", ref)
	return f + f[:8]
}

// Steer implements api.Backend.
func (b *Backend) Steer(ctx context.Context, name, subject string, fact proto.Message) (lineup.Consequence, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues[name] == nil {
		return lineup.Consequence{}, api.ErrUnknownQueue
	}
	if b.deaf {
		return lineup.Consequence{}, api.ErrUnconfirmed
	}
	return b.fold(name, events.TopicChanges, fact), nil
}

// Read implements api.Backend.
func (b *Backend) Read(name string, f func(*view.Queue)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q != nil {
		f(q.view)
	}
	return q != nil
}

// ReadAt implements api.Backend: what was folded is its log.
func (b *Backend) ReadAt(_ context.Context, name string, at time.Time, _ bool, f func(*view.Queue)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[name]
	if q == nil {
		return api.ErrUnknownQueue
	}
	then := view.New(name, view.DefaultLimits())
	for _, e := range q.folded {
		if !e.Time.After(at) {
			then.Fold(e)
		}
	}
	f(then)
	return nil
}

// Changed implements api.Backend.
func (b *Backend) Changed(name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queues[name].changed
}
