package stage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// SaysLive is what a service's log says of a partition once it has folded what was there at its start.
const SaysLive = "live"

// ErrSuperseded is returned once another instance has claimed the partition: what this one would write
// counts no more.
var ErrSuperseded = errors.New("another instance has claimed the partition")

// Options of a stage's loop.
type Options struct {
	Log      journal.Log
	Instance string
	Version  string
	Logger   *slog.Logger
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
}

// Run owns one partition until the context ends, the ownership is lost, or a write fails; whoever owns it
// next starts from the log.
func Run(ctx context.Context, o Options, s Stage, partition int32) error {
	term, err := Claim(ctx, o.Log, s.Service, o.Instance, o.Version, s.Output, partition, time.Now())
	if err != nil {
		return err
	}
	r := &runner{o: o, stage: s, partition: partition, term: term, keeping: NewKeeping(o, s.Service, partition)}
	if kept, ok := r.keeping.Last(term); ok {
		err := r.from(ctx, kept)
		if err == nil {
			err = r.run(ctx)
		}
		if !errors.Is(err, ErrStale) {
			return err
		}
		r.keeping.Drop(err)
	}
	if err := r.open(ctx, NewPartition(s), 0, 0); err != nil {
		return err
	}
	return r.run(ctx)
}

// runner is a stage on one partition under one term.
type runner struct {
	o         Options
	stage     Stage
	partition int32
	term      int64
	keeping   *Keeping
	p         *Partition
	own, in   journal.Cursor
	// taken counts inputs since the keeping was last told.
	taken int
}

// from opens what a snapshot holds; ErrStale if it is none of this log.
func (r *runner) from(ctx context.Context, kept Kept) error {
	p, err := Thaw(r.stage, kept)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	end, err := r.o.Log.End(ctx, r.stage.Input, r.partition)
	if err != nil {
		return err
	}
	if p.inputNext > end {
		return fmt.Errorf("%w: %s has %d records, and it has taken %d", ErrStale, r.stage.Input, end, p.inputNext)
	}
	return r.open(ctx, p, kept.Own, p.inputNext)
}

func (r *runner) open(ctx context.Context, p *Partition, own, in int64) (err error) {
	r.p = p
	if r.own, err = r.o.Log.Follow(ctx, r.stage.Output, r.partition, own); err != nil {
		return err
	}
	if r.in, err = r.o.Log.Follow(ctx, r.stage.Input, r.partition, in); err != nil {
		r.own.Close()
	}
	return err
}

func (r *runner) run(ctx context.Context) error {
	defer r.own.Close()
	defer r.in.Close()
	w := NewWriter(r.o, r.stage.Service, r.stage.Output, r.partition, r.term)
	p := r.p
	var held *journal.Entry // an input that waits for the own records before it
	for {
		if p.NeedsOwn() {
			e, err := r.own.Next(ctx)
			if err != nil {
				return err
			}
			p.Own(e)
			if p.Stale() {
				return ErrStale
			}
			if e.Offset >= r.term {
				p.Live()
				r.o.Logger.Debug(SaysLive, "service", r.stage.Service, "partition", r.partition, "term", r.term)
			}
			continue
		}
		e, ok, err := journal.Entry{}, held != nil, error(nil)
		if ok {
			e, held = *held, nil
		} else if e, ok, err = r.in.TryNext(); err != nil {
			return err
		}
		if !ok {
			if err := r.keep(w); err != nil {
				return err
			}
			watch := r.own
			if p.Behind() {
				// What stands in the own topic is still to be folded: nobody may read it to look for claims.
				watch = nil
			}
			if err := w.Wait(ctx, watch, r.in.Ready()); err != nil {
				return err
			}
			continue
		}
		if errors.Is(e.Err, events.ErrUndecodable) {
			if r.stage.Reports {
				w.deadLetter(ctx, e)
			}
			continue
		}
		fits, orphans := p.Fits(e)
		if orphans > 0 {
			r.o.Logger.Error("records of the stage's own answer no input; they are left out", "service", r.stage.Service,
				"topic", r.stage.Output, "partition", r.partition, "records", orphans, "before", fmt.Sprintf("%s/%d/%d", r.stage.Input, r.partition, e.Offset))
		}
		if !fits {
			held = &e
			continue
		}
		queue, out := p.Input(e)
		r.taken++
		if out != nil {
			if err := w.Write(ctx, queue, strconv.FormatInt(r.stage.Position(out), 10), e.Trace, out); err != nil {
				return err
			}
			if r.stage.Warnings != nil {
				for _, text := range r.stage.Warnings(out) {
					r.o.Logger.Warn(text, "queue", queue)
				}
			}
		}
		if err := r.keep(w); err != nil {
			return err
		}
	}
}

// keep keeps a snapshot when that is due.
func (r *runner) keep(w *Writer) error {
	if !r.p.live || r.p.Behind() {
		return nil
	}
	r.keeping.Live(w)
	taken := r.taken
	r.taken = 0
	return r.keeping.Offer(taken, r.own, r.p.Freeze)
}

// Writer appends a claimed service's records to one partition without waiting, and stops at the first
// that fails: nothing after it is sent.
type Writer struct {
	o         Options
	service   string
	topic     string
	partition int32
	term      int64
	failed    chan error

	acknowledged acknowledged
	// ownRead is the offset behind what the owner has read of its topic: to its claim before it writes, then by CheckTerm.
	ownRead int64
	// reported are the offsets of this writer's input that are among the dead letters; nil before it has looked.
	reported map[int64]bool
}

// NewWriter writes under a term.
func NewWriter(o Options, service, topic string, partition int32, term int64) *Writer {
	return &Writer{o: o, service: service, topic: topic, partition: partition, term: term, failed: make(chan error, 1), ownRead: term + 1}
}

// Envelope is a record of the writer's under its term; what identifies it goes into its id.
func (w *Writer) Envelope(queue, subject, identity, trace string, m proto.Message) events.Envelope {
	return events.Envelope{
		ID:     events.DeriveID(w.o.Log.ID(), events.TypeOf(m), queue, identity, strconv.FormatInt(w.term, 10)),
		Source: w.service, Instance: w.o.Instance, Queue: queue, Subject: subject,
		Time: time.Now(), Term: w.term, Trace: trace, Message: m,
	}
}

// Write sends one record; its position identifies it.
func (w *Writer) Write(ctx context.Context, queue, position, trace string, m proto.Message) error {
	select {
	case err := <-w.failed:
		return err
	default:
	}
	n := w.acknowledged.sending()
	w.o.Log.AppendAsync(ctx, w.topic, w.partition, w.Envelope(queue, "", position, trace, m), func(offset int64, err error) {
		if err == nil {
			w.acknowledged.got(n, offset)
			return
		}
		select {
		case w.failed <- fmt.Errorf("write to partition %d of %s: %w", w.partition, w.topic, err):
		default:
		}
	})
	return nil
}

// Failed yields the first error of a write.
func (w *Writer) Failed() <-chan error { return w.failed }

// Wait returns when there may be something to read, with an error when the ownership has ended. It reads on
// in the own topic, unless own is nil, to see whether another instance has claimed it.
func (w *Writer) Wait(ctx context.Context, own journal.Cursor, ready <-chan struct{}) error {
	var claims <-chan struct{}
	if own != nil {
		claims = own.Ready()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.failed:
			return err
		case <-ready:
			return nil
		case <-claims:
			if err := w.CheckTerm(own); err != nil {
				return err
			}
		}
	}
}

// CheckTerm reads on in the stage's own topic and says whether another instance has claimed it.
func (w *Writer) CheckTerm(own journal.Cursor) error {
	for {
		e, ok, err := own.TryNext()
		if err != nil || !ok {
			return err
		}
		w.ownRead = e.Offset + 1
		if _, isClaim := e.Message.(*eventsv1.Claim); isClaim && e.Source == w.service && e.Offset > w.term {
			return ErrSuperseded
		}
	}
}
