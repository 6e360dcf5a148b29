package enumerator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/rights/rightstest"
	"landfall.build/platform/runner"
)

func options(log journal.Log) Options {
	return Options{Options: runner.Options{Log: log, Instance: "test", Version: "test", Logger: slog.New(slog.DiscardHandler)}}
}

// put appends one record of another service.
func put(t *testing.T, log journal.Log, topic, source, queue string, m proto.Message) {
	t.Helper()
	if _, err := log.Append(t.Context(), topic, 0, events.Envelope{Source: source, Queue: queue, Term: -1, Message: m}); err != nil {
		t.Fatal(err)
	}
}

func admit(t *testing.T, log journal.Log, change string) {
	t.Helper()
	put(t, log, events.TopicChanges, events.ServiceGateway, "q", &eventsv1.ChangeAdmitted{
		Admission: &eventsv1.Admission{Change: change, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}},
	})
}

func finish(t *testing.T, log journal.Log, target string) {
	t.Helper()
	put(t, log, events.TopicBuilds, events.ServiceBuilder, "q", &eventsv1.StepFinished{Target: target, OutputTail: []byte("much")})
}

func promote(t *testing.T, log journal.Log, bytes int) {
	t.Helper()
	put(t, log, events.TopicModels, events.ServiceTrainer, "q", &eventsv1.ModelPromoted{Model: &eventsv1.Model{Predictor: make([]byte, bytes)}})
}

// all is what a topic's partition holds.
func all(t *testing.T, log journal.Log, topic string) (entries []journal.Entry) {
	t.Helper()
	c, err := log.Follow(t.Context(), topic, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		e, ok, err := c.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return entries
		}
		entries = append(entries, e)
	}
}

// written are the records of the enumerator that count.
func written(t *testing.T, log journal.Log) (list []*eventsv1.Speculation) {
	t.Helper()
	terms := journal.NewTerms(events.TopicSpeculations)
	for _, e := range all(t, log, events.TopicSpeculations) {
		if terms.Counts(e) {
			list = append(list, e.Message.(*eventsv1.Speculation))
		}
	}
	return list
}

// name says which fact it is, shortly.
func name(f *eventsv1.Fact) string {
	switch {
	case f.GetSettings() != nil:
		return "settings " + f.GetSettings().Hash
	case f.GetTick() != nil:
		return "tick"
	case f.GetChangeAdmitted() != nil:
		return f.GetChangeAdmitted().Admission.Change
	case f.GetStepFinished() != nil:
		return f.GetStepFinished().Target
	case f.GetModelPromoted() != nil:
		return "model"
	}
	return fmt.Sprint(f)
}

func names(list []*eventsv1.Speculation) (records [][]string) {
	for _, s := range list {
		var facts []string
		for _, f := range s.Facts {
			facts = append(facts, name(f))
		}
		records = append(records, facts)
	}
	return records
}

func same(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal) }

// take claims the partition for an owner that the test steps.
func take(t *testing.T, o Options) *runner.Owner {
	t.Helper()
	l, err := runner.Take(t.Context(), o.Options, Service(o, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	for !l.Live() {
		if did, err := l.Step(t.Context()); err != nil || !did {
			t.Fatalf("the partition is not folded: %v", err)
		}
	}
	return l
}

func step(t *testing.T, l *runner.Owner) {
	t.Helper()
	for {
		did, err := l.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !did {
			return
		}
	}
}

// TestThreeSourcesBecomeOneOrder: each record names where all three are to be read on, a model stands alone, and the
// next owner neither repeats nor leaves out anything.
func TestThreeSourcesBecomeOneOrder(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	first := take(t, options(log))
	finish(t, log, "//a")
	promote(t, log, 10)
	admit(t, log, "c1")
	admit(t, log, "c2")
	step(t, first)
	want := [][]string{{"c1", "c2", "//a"}, {"model"}}
	if got := names(written(t, log)); !same(got, want) {
		t.Fatalf("the records hold %v, want %v", got, want)
	}
	// What comes after its last record is the next owner's.
	admit(t, log, "c3")
	finish(t, log, "//b")
	second := take(t, options(log))
	step(t, second)
	step(t, second)
	want = append(want, []string{"c3", "//b"})
	list := written(t, log)
	if got := names(list); !same(got, want) {
		t.Fatalf("with the next owner the records hold %v, want %v", got, want)
	}
	for i, positions := range [][3]int64{{2, 1, 0}, {2, 1, 1}, {3, 2, 1}} {
		p := list[i].Positions
		if got := [3]int64{p.Changes, p.Builds, p.Models}; got != positions {
			t.Errorf("record %d: the sources are to be read on at %v, want %v", i, got, positions)
		}
		if i > 0 && list[i].StampUs < list[i-1].StampUs {
			t.Errorf("record %d is stamped before the one in front of it", i)
		}
	}
	if tail := list[0].Facts[2].GetStepFinished().OutputTail; tail != nil {
		t.Errorf("the step's output is handed on: %q", tail)
	}
	if err := first.Check(); !errors.Is(err, runner.ErrSuperseded) {
		t.Errorf("the first owner, after the second's claim: %v", err)
	}
}

// TestAModelThatIsTooLargeIsADeadLetter, once, and holds nothing up.
func TestAModelThatIsTooLargeIsADeadLetter(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	o := options(log)
	o.Log = rightstest.As(t, log, events.ServiceEnumerator)
	l := take(t, o)
	promote(t, log, 10)
	promote(t, log, events.MaxModelBytes)
	promote(t, log, 20)
	large := all(t, log, events.TopicModels)[1].Offset
	step(t, l)
	list := written(t, log)
	if got, want := names(list), [][]string{{"model"}, {"model"}}; !same(got, want) {
		t.Fatalf("the records hold %v, want %v", got, want)
	}
	if n := len(list[1].Facts[0].GetModelPromoted().Model.Predictor); n != 20 {
		t.Errorf("the second model has %d bytes, want that of 20", n)
	}
	letters := all(t, log, events.TopicDeadLetters)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters, want one", len(letters))
	}
	d := letters[0].Message.(*eventsv1.DeadLetter)
	if d.Topic != events.TopicModels || d.Offset != large || d.Service != events.ServiceEnumerator || d.Reason == "" {
		t.Errorf("the dead letter is %v, and the model is at %d", d, large)
	}
	// It is behind the positions of what was written after it: the next owner does not report it again.
	step(t, take(t, o))
	if n := len(all(t, log, events.TopicDeadLetters)); n != 1 {
		t.Errorf("%d dead letters with the next owner, want one", n)
	}
}

// TestSettingsAreWrittenWhereTheyDiffer from those in the log, by the owner of the queue's partition alone.
func TestSettingsAreWrittenWhereTheyDiffer(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	o := options(log)
	o.Settings = map[string]*eventsv1.QueueSettings{"q": {Hash: "1"}, "p": {Hash: "2"}}
	step(t, take(t, o))
	want := [][]string{{"settings 2"}, {"settings 1"}} // by the queues' names
	if got := names(written(t, log)); !same(got, want) {
		t.Fatalf("the first owner wrote %v, want %v", got, want)
	}
	step(t, take(t, o))
	if got := names(written(t, log)); !same(got, want) {
		t.Fatalf("an owner with the same settings left %v, want %v", got, want)
	}
	o.Settings = map[string]*eventsv1.QueueSettings{"q": {Hash: "3"}, "p": {Hash: "2"}}
	step(t, take(t, o))
	if got, want := names(written(t, log)), append(want, []string{"settings 3"}); !same(got, want) {
		t.Fatalf("an owner with other settings of one queue left %v, want %v", got, want)
	}

	parted := memory.New(memory.Options{Partitions: 2})
	o = options(parted)
	queues := map[int32]string{}
	for i := 0; len(queues) < 2; i++ {
		q := fmt.Sprint("q", i)
		queues[events.PartitionOf(q, 2)] = q
	}
	o.Settings = map[string]*eventsv1.QueueSettings{queues[0]: {Hash: "here"}, queues[1]: {Hash: "elsewhere"}}
	step(t, take(t, o))
	if got, want := names(written(t, parted)), [][]string{{"settings here"}}; !same(got, want) {
		t.Errorf("the owner of one partition of two wrote %v, want %v", got, want)
	}
}

// TestAFailedWriteEndsTheOwnership: nothing is written after it, and the next owner makes up for it.
func TestAFailedWriteEndsTheOwnership(t *testing.T) {
	for what, verdict := range map[string]memory.Verdict{"not written": memory.FailBefore, "written all the same": memory.FailAfter} {
		t.Run(what, func(t *testing.T) {
			fail := true
			log := memory.New(memory.Options{Partitions: 1, Fault: func(topic string, _ int32, e events.Envelope) memory.Verdict {
				if s, is := e.Message.(*eventsv1.Speculation); is && fail && name(s.Facts[0]) == "c2" {
					fail = false
					return verdict
				}
				return memory.Deliver
			}})
			admit(t, log, "c1")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			o := options(log)
			o.TickEvery = time.Hour // no write comes after the failed one
			done := make(chan error, 1)
			go func() { done <- Run(ctx, o, 0) }()
			for len(written(t, log)) == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			admit(t, log, "c2")
			if err := <-done; !errors.Is(err, journal.ErrAppend) {
				t.Fatalf("the ownership ended with %v, want a failed append", err)
			}
			admit(t, log, "c3")
			next := take(t, options(log))
			step(t, next)
			var facts []string
			for _, record := range names(written(t, log)) {
				facts = append(facts, record...)
			}
			if want := []string{"c1", "c2", "c3"}; !slices.Equal(facts, want) {
				t.Errorf("the log holds %v, want %v", facts, want)
			}
		})
	}
}

// TestTicksGrowRarerWhileNothingHappens: after 1, 2, 4 … seconds, then each minute, and anew after a fact. A queue
// with nothing pending gets none.
func TestTicksGrowRarerWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New(memory.Options{Partitions: 1})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, options(log), 0) }()
		put(t, log, events.TopicModels, events.ServiceTrainer, "idle", &eventsv1.ModelPromoted{Model: &eventsv1.Model{}})
		time.Sleep(time.Hour)
		if got, want := names(written(t, log)), [][]string{{"model"}}; !same(got, want) {
			t.Fatalf("with nothing pending %v were written, want %v", got, want)
		}
		ticks := func(since time.Time) (after []time.Duration) {
			for _, s := range written(t, log) {
				if at := time.UnixMicro(s.StampUs); name(s.Facts[0]) == "tick" && at.After(since) {
					after = append(after, at.Sub(since).Round(time.Second))
				}
			}
			return after
		}
		want := func(seconds ...int) (list []time.Duration) {
			for _, s := range seconds {
				list = append(list, time.Duration(s)*time.Second)
			}
			return list
		}
		for _, change := range []string{"c1", "c2"} {
			began := time.Now()
			admit(t, log, change)
			time.Sleep(250 * time.Second)
			if got, want := ticks(began), want(1, 3, 7, 15, 31, 63, 123, 183, 243); !slices.Equal(got, want) {
				t.Errorf("ticks came %v after %s, want %v", got, change, want)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestFactsThatArriveTogetherFitIntoTheirRecords: analyses of very many targets that wait for the enumerator, more than one record can hold.
func TestFactsThatArriveTogetherFitIntoTheirRecords(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	l := take(t, options(log))
	const changes, each = 6, 12 << 20
	for i := range changes {
		admit(t, log, fmt.Sprint("c", i))
		put(t, log, events.TopicChanges, events.ServiceAnalyzer, "q", &eventsv1.ChangeAnalyzed{
			Change: &eventsv1.ChangeRef{Change: fmt.Sprint("c", i), Revision: 1}, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
			Affected: &eventsv1.Affected{Leaves: []string{strings.Repeat("x", each)}},
		})
	}
	step(t, l)
	facts := 0
	for _, s := range written(t, log) {
		facts += len(s.Facts)
	}
	if facts != 2*changes {
		t.Errorf("%d facts are written, want %d", facts, 2*changes)
	}
}

// TestAGraphThatIsMoreThanARecordHoldsIsWrittenInParts: a push past the queue changes the nodes of all changes, of 4 MB each.
func TestAGraphThatIsMoreThanARecordHoldsIsWrittenInParts(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	l := take(t, options(log))
	const changes, each = 8, 20_000
	claimed, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{Source: events.ServiceLander, Message: &eventsv1.Claim{}})
	if err != nil {
		t.Fatal(err)
	}
	lander := func(m proto.Message) {
		if _, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{Source: events.ServiceLander, Queue: "q", Term: claimed[0], Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	lander(&eventsv1.MainlineMoved{To: "m0", Initial: true})
	targets := make([]*eventsv1.TargetVersion, each)
	for i := range targets {
		targets[i] = &eventsv1.TargetVersion{Target: fmt.Sprintf("//%0200d", i), Hash: "h", Part: 1}
	}
	for i := range changes {
		admit(t, log, fmt.Sprint("c", i))
		put(t, log, events.TopicChanges, events.ServiceAnalyzer, "q", &eventsv1.ChangeAnalyzed{
			Change: &eventsv1.ChangeRef{Change: fmt.Sprint("c", i), Revision: 1}, Base: "m0", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
			Affected: &eventsv1.Affected{Targets: targets},
		})
	}
	step(t, l)
	lander(&eventsv1.MainlineMoved{From: "m0", To: "m1"})
	put(t, log, events.TopicChanges, events.ServiceAnalyzer, "q", &eventsv1.MainlineAnalyzed{From: "m0", To: "m1", Affected: &eventsv1.Affected{Targets: targets[:1]}})
	before := len(written(t, log))
	step(t, l)
	parts, nodes := written(t, log)[before:], map[string]bool{}
	for _, s := range parts {
		for _, n := range s.Delta.GetNodes() {
			nodes[n.Change.Change] = true
		}
	}
	if last := parts[len(parts)-1]; len(parts) < 2 || last.Delta.More || len(nodes) != changes+1 {
		t.Errorf("%d nodes are written in %d records, and the last says that there are more: %v", len(nodes), len(parts), last.Delta.More)
	}
}
