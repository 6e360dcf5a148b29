package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

const main = "main"

var limits = view.Limits{Finished: 40, Builds: 20, Attempts: 30, TailBytes: 200}

// answers returns everything that is answered of a queue at a moment; only if whole is set with where steps wait.
func answers(t testing.TB, q *view.Queue, at time.Time, whole bool) string {
	t.Helper()
	all := []any{q.Overview(), q.Pace(at), q.Pending(), q.Finished(1000), q.Graph(), q.Offset()}
	for _, s := range append(q.Pending(), q.Finished(1000)...) {
		c, _ := q.Change(s.Change)
		e, _ := q.Explain(s.Change)
		if whole {
			e.WaitingStep = q.Waiting(s.Change, at)
		}
		all = append(all, c, e)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// served is an answer, and the moment of it.
type served struct {
	at time.Time
	// text has everything, and less all but where steps wait.
	text, less string
}

// record writes a story to a log. A view folds each record as it is written, and what it answered at some of the moments is returned.
// Clocks of writers differ by up to skew.
func record(t testing.TB, random *rand.Rand, log journal.Log, steps int, skew time.Duration) (out []served) {
	t.Helper()
	return recordWith(t, random, log, steps, skew, nil)
}

// recordWith is record of a queue that has other settings at times, if they are given.
func recordWith(t testing.TB, random *rand.Rand, log journal.Log, steps int, skew time.Duration, settings *eventsv1.QueueSettings) (out []served) {
	t.Helper()
	story, live := statetest.New(random, 8), view.New(main, limits)
	terms := map[string]*journal.Terms{}
	put := func(topic string, e events.Envelope) {
		e.Message = proto.Clone(e.Message) // a story goes on with its own
		offsets, err := log.Append(t.Context(), topic, 0, e)
		if err != nil {
			t.Fatal(err)
		}
		if terms[topic] == nil {
			terms[topic] = journal.NewTerms(topic)
		}
		if entry := (journal.Entry{Topic: topic, Offset: offsets[0], Envelope: e}); terms[topic].Counts(entry) && e.Queue == main {
			live.Fold(entry)
		}
	}
	claimed := int64(-1)
	for step := range steps {
		drawn := story.Next()
		now := story.Now()
		if step%97 == 0 { // another lander takes over, and the one before goes on for a while
			put(events.TopicChanges, events.Envelope{ID: fmt.Sprint("claim", step), Source: events.ServiceLander, Time: now, Term: -1, Message: &eventsv1.Claim{Service: events.ServiceLander}})
			end, _ := log.End(t.Context(), events.TopicChanges, 0)
			claimed = end - 1
		}
		if settings != nil && step%10 == 5 {
			put(events.TopicProfiles, events.Envelope{ID: fmt.Sprint("settings", step), Queue: main, Time: now, Term: -1, Message: &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: settings}}})
		}
		if settings != nil && step == 5 { // it runs for long
			put(events.TopicBuilds, events.Envelope{ID: "slow", Queue: main, Time: now, Term: -1, Message: &eventsv1.StepLeased{
				Target: "//slow", Hash: "1", Attempt: 1, Lease: "slow", Worker: "worker-1", StampUs: now.UnixMicro(), UntilUs: now.Add(time.Hour << 10).UnixMicro(),
				Quotas: []*eventsv1.StepQuota{{Kind: eventsv1.QuotaKind_QUOTA_KIND_QUEUE, Limit: 1}},
			}})
		}
		for i, e := range drawn {
			e.Time = now.Add(time.Duration(i) * time.Microsecond)
			if skew > 0 && random.IntN(20) == 0 {
				e.Time = e.Time.Add(-time.Duration(random.Int64N(int64(skew))))
			}
			e.Source, e.Term = "", -1
			if e.Topic == events.TopicChanges && random.IntN(30) == 0 {
				stale := e.Envelope
				stale.Source, stale.Term = events.ServiceLander, claimed-1
				put(e.Topic, stale)
				e.Source, e.Term = events.ServiceLander, claimed
			}
			put(e.Topic, e.Envelope)
			if random.IntN(50) == 0 {
				other := e.Envelope
				other.Queue = "other"
				put(e.Topic, other)
			}
		}
		if at := now.Add(time.Second / 2); random.IntN(steps/60) == 0 {
			out = append(out, served{at, answers(t, live, at, true), answers(t, live, at, false)})
		}
	}
	return out
}

func newLog() *memory.Log { return memory.New(memory.Options{Partitions: 1}) }

func (p *Past) answers(t testing.TB, at time.Time) string {
	t.Helper()
	return p.answer(t, at, true)
}

func (p *Past) answer(t testing.TB, at time.Time, whole bool) (text string) {
	t.Helper()
	if err := p.Read(t.Context(), at, whole, func(q *view.Queue) { text = answers(t, q, at, whole) }); err != nil {
		t.Fatal(err)
	}
	return text
}

// difference returns where two texts begin to differ.
func difference(was, is string) string {
	i := 0
	for i < min(len(was), len(is)) && was[i] == is[i] {
		i++
	}
	clip := func(text string) string { return text[max(0, i-200):min(len(text), i+200)] }
	return fmt.Sprintf("it was\n… %s …\nand is now\n… %s …", clip(was), clip(is))
}

// TestThePastIsWhatWasServed: in whatever order moments are asked for, with checkpoints and without, the answer is what was served then.
func TestThePastIsWhatWasServed(t *testing.T) {
	random, log := seedtest.Random(t), newLog()
	moments := record(t, random, log, 1500, 0)
	if len(moments) < 20 {
		t.Fatalf("only %d moments were recorded", len(moments))
	}
	kept := New(Options{Log: log, Queue: main, Limits: limits, Every: 100, Bytes: 1_500_000})
	check := func(p *Past, m served) {
		t.Helper()
		if got := p.answers(t, m.at); got != m.text {
			t.Fatalf("at %v %s", m.at, difference(m.text, got))
		}
	}
	for range len(moments) {
		check(kept, moments[random.IntN(len(moments))])
	}
	for i, m := range moments { // played forward
		if check(kept, m); i%10 == 0 {
			check(New(Options{Log: log, Queue: main, Limits: limits, Every: 1 << 30}), m) // folded from the beginning
		}
	}
	// Of old moments fewer are kept.
	n := len(kept.checkpoints)
	if n < 3 || kept.bytes > kept.Bytes || kept.checkpoints[n-1].records-kept.checkpoints[n-2].records > kept.checkpoints[1].records-kept.checkpoints[0].records {
		t.Errorf("%d checkpoints of %d bytes are kept", n, kept.bytes)
	}
}

// TestWhatIsKeptChangesNoAnswer: where clocks differ, and a reading begins at a checkpoint or goes on from the last one, the answer is that of a
// fold from the beginning.
func TestWhatIsKeptChangesNoAnswer(t *testing.T) {
	random, log := seedtest.Random(t), newLog()
	moments := record(t, random, log, 900, 3*time.Second)
	kept := New(Options{Log: log, Queue: main, Limits: limits, Every: 100, Bytes: 600_000})
	for range 10 {
		at := moments[random.IntN(len(moments))].at
		whole := New(Options{Log: log, Queue: main, Limits: limits, Every: 1 << 30})
		if got, want := kept.answers(t, at), whole.answers(t, at); got != want {
			t.Fatalf("at %v of a whole fold %s", at, difference(want, got))
		}
	}
}

// TestAMomentBeforeTheLogIsEmpty and one after its end is the present.
func TestAMomentBeforeTheLogIsEmpty(t *testing.T) {
	log := newLog()
	moments := record(t, seedtest.Random(t), log, 600, 0)
	p := New(Options{Log: log, Queue: main, Limits: limits, Every: 100, Bytes: 1 << 20})
	last := moments[len(moments)-1].at
	p.answers(t, last)
	before := time.Unix(0, 0)
	if got, want := p.answers(t, before), answers(t, view.New(main, limits), before, true); got != want {
		t.Errorf("before the first record it is\n%s", got)
	}
}

// TestAReadingThatWasCutOffIsGoneOnWith: a client that does not wait gets an error, and the next one what was served.
func TestAReadingThatWasCutOffIsGoneOnWith(t *testing.T) {
	random, log := seedtest.Random(t), newLog()
	moments := record(t, random, log, 900, 0)
	last := moments[len(moments)-1]
	p := New(Options{Log: log, Queue: main, Limits: limits, Every: 1 << 30})
	cut := 0
	for patience := 100 * time.Microsecond; ; patience *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var got string
		err := p.Read(ctx, last.at, true, func(q *view.Queue) { got = answers(t, q, last.at, true) })
		cancel()
		if err == nil {
			if got != last.text {
				t.Fatal("it goes on from a wrong place: ", difference(last.text, got))
			}
			break
		}
		if !errors.Is(err, ErrReading) {
			t.Fatal(err)
		}
		cut++
	}
	if cut == 0 {
		t.Error("nothing was cut off")
	}
}
