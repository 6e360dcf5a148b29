// Package hosts lets people land pull requests where they are: it takes what they ask for by labels and comments at a code host, answers
// there, and has what landed closed as merged.
package hosts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/runner"
)

// Repository is the repository of a queue at a code host.
type Repository struct {
	Settings
	Host Host
}

// Options of the service.
type Options struct {
	runner.Options
	// Repositories by queue.
	Repositories map[string]Repository
	// Rules decide who may do what.
	Rules *access.Rules
	// Poll is the time between two lists of the open pull requests.
	Poll time.Duration
	// Places returns the places of a queue's changes by change. It may be nil.
	Places func(ctx context.Context, queue string) (map[string]Place, error)
	// TickEvery is the time between two looks at what has ended and what is due; 50 ms if 0.
	TickEvery time.Duration
}

const (
	// batch is how many records of a topic are folded between two effects.
	batch = 1024
	// tellPause is the time between two tries to write a fact.
	tellPause = 500 * time.Millisecond
)

// Run owns one partition until the context ends, the ownership is lost, or a write fails.
func Run(ctx context.Context, o Options, partition int32) error {
	return runner.Run(ctx, o.Options, Service(o, partition), partition)
}

// Service returns the service of a partition as the runner takes it.
func Service(o Options, partition int32) runner.Service {
	settings := map[string]Settings{}
	for queue, r := range o.Repositories {
		if events.PartitionOf(queue, o.Log.Partitions()) == partition {
			r.Settings.Log = o.Log.ID()
			settings[queue] = r.Settings
		}
	}
	w := newWorker(o)
	if o.TickEvery == 0 {
		o.TickEvery = 50 * time.Millisecond
	}
	fresh := func() *Core { return newCore(settings, o.Rules, o.Poll) }
	return runner.Service{
		Name: events.ServiceHosts, Output: events.TopicHosts, Sources: []string{events.TopicHosts, events.TopicOutcomes}, ReadsBack: true,
		Batch: batch, TickEvery: o.TickEvery,
		New:     func() runner.Core { return fresh() },
		Restore: func(state []byte, _ int64) (runner.Core, error) { return restore(fresh(), state) },
		Perform: w.perform,
		Close:   w.close,
	}
}

// worker asks the hosts, several things at a time, and writes to the topics of others.
type worker struct {
	Options
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	// key is the name of the key with which land requests are signed, "" before it is in the log.
	key     string
	private ed25519.PrivateKey

	mu   sync.Mutex
	done Results
}

func newWorker(o Options) *worker {
	w := &worker{Options: o}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// close ends all that is under way and waits for it.
func (w *worker) close() {
	w.cancel()
	w.wg.Wait()
}

func (w *worker) perform(ctx context.Context, e runner.Effect) any {
	switch e := e.(type) {
	case Tell:
		w.tell(ctx, e)
	case Collect:
		w.mu.Lock()
		defer w.mu.Unlock()
		if done := w.done; len(done) > 0 {
			w.done = nil
			return done
		}
	case List:
		w.begin(func() any {
			pulls, err := w.Repositories[e.Queue].Host.List(w.ctx, e.SinceUS)
			return Listing{e, pulls, err}
		})
	case Look:
		w.begin(func() any {
			pull, err := w.Repositories[e.Key.queue].Host.Look(w.ctx, e.Key.number, e.After, e.Commit)
			return Looked{e.Key, pull, err}
		})
	case Places:
		w.begin(func() any {
			if w.Options.Places == nil {
				return Placed{Queue: e.Queue}
			}
			places, err := w.Options.Places(w.ctx, e.Queue)
			return Placed{e.Queue, places, err}
		})
	case Report:
		w.begin(func() any { return w.report(e) })
	}
	return nil
}

// begin does something in the background.
func (w *worker) begin(work func() any) {
	w.wg.Go(func() {
		result := work()
		if w.ctx.Err() != nil {
			return // what was ended by us says nothing
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.done = append(w.done, result)
	})
}

// report shows what is to be shown, the most important first.
func (w *worker) report(r Report) Reported {
	out := Reported{Report: r, Comment: r.Comment}
	host := w.Repositories[r.key.queue].Host
	if r.Merged != "" {
		if out.Err = host.MarkMerged(w.ctx, r.key.number, r.Merged); out.Err == nil {
			out.Done.Merged = r.Merged
		}
	}
	if r.Status != nil {
		if err := host.SetStatus(w.ctx, r.Commit, *r.Status); err != nil {
			out.Err = err
		} else {
			out.Done.Status = r.Status
		}
	}
	if r.Text != "" {
		id, err := host.SetComment(w.ctx, r.key.number, r.Comment, r.Text)
		if err != nil {
			out.Err = err
		} else {
			out.Done.Text, out.Comment = r.Text, id
		}
	}
	if r.Unlabel {
		if err := host.RemoveLabel(w.ctx, r.key.number); err != nil {
			out.Err = err
		} else {
			out.Done.Unlabel = true
		}
	}
	return out
}

// tell writes a fact, and does not give up: what is kept of the pull request says that it is written.
func (w *worker) tell(ctx context.Context, t Tell) {
	for ctx.Err() == nil {
		err := w.tryTell(ctx, t)
		if err == nil {
			return
		}
		w.Logger.Warn("a fact could not be written; trying again", "topic", t.Topic, "queue", t.Queue, "change", t.Subject, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(tellPause):
		}
	}
}

func (w *worker) tryTell(ctx context.Context, t Tell) error {
	if r, is := t.Message.(*eventsv1.LandRequest); is {
		if err := w.announceKey(ctx); err != nil {
			return err
		}
		access.SignRequest(w.Log.ID(), w.key, w.private, r)
	}
	return w.append(ctx, t.Topic, t.Queue, t.Subject, events.DeriveID(w.Log.ID(), append([]string{events.ServiceHosts}, t.Identity...)...), t)
}

func (w *worker) append(ctx context.Context, topic, queue, subject, id string, t Tell) error {
	_, err := w.Log.Append(ctx, topic, events.PartitionOf(queue, w.Log.Partitions()), events.Envelope{
		ID: id, Source: events.ServiceHosts, Instance: w.Instance, Queue: queue, Subject: subject, Time: w.Now(), Term: -1, Message: t.Message,
	})
	return err
}

// announceKey writes the key with which this owner signs who asks, once.
func (w *worker) announceKey(ctx context.Context) error {
	if w.key != "" {
		return nil
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	name := rand.Text()
	if err := w.append(ctx, events.TopicAccess, "", "", events.DeriveID(w.Log.ID(), "access", rand.Text()), Tell{
		Message: &eventsv1.GatewayKey{Key: name, Public: public, Instance: w.Instance, StampUs: w.Now().UnixMicro()},
	}); err != nil {
		return err
	}
	w.key, w.private = name, private
	return nil
}
