package profilelog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/profilelog"
	"landfall.build/services/gateway/view"
)

const queue = "main"

// world is a log with a view that has read it.
type world struct {
	t    testing.TB
	log  *memory.Log
	view *view.Queue
	term int64
	next map[string]int64
}

func newWorld(t testing.TB) *world {
	return &world{t: t, log: memory.New(memory.Options{Partitions: 1}), view: view.New(queue, view.DefaultLimits()), next: map[string]int64{}, term: -1}
}

func (w *world) write(topic, source string, term int64, m proto.Message) int64 {
	w.t.Helper()
	offsets, err := w.log.Append(context.Background(), topic, 0, events.Envelope{ID: fmt.Sprint(topic, w.next[topic], term, w.t.Name()), Source: source, Queue: queue, Term: term, Message: m})
	if err != nil {
		w.t.Fatal(err)
	}
	return offsets[0]
}

// claim makes another instance the profiler.
func (w *world) claim() {
	w.term = w.write(events.TopicProfiles, events.ServiceProfiler, -1, &eventsv1.Claim{Service: events.ServiceProfiler})
}

// profile is written under a term and, if that is in force, read.
func (w *world) profile(term int64, p *eventsv1.Profile) {
	w.t.Helper()
	w.write(events.TopicProfiles, events.ServiceProfiler, term, p)
}

// read folds what counts of a topic.
func (w *world) read(topic string) {
	w.t.Helper()
	c, err := w.log.Follow(context.Background(), topic, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	terms := journal.NewTerms(topic)
	for e, ok, err := c.TryNext(); ok; e, ok, err = c.TryNext() {
		if err != nil {
			w.t.Fatal(err)
		}
		if terms.Counts(e) {
			w.view.Fold(e)
		}
	}
}

func ref(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }

func (w *world) admit(id string) {
	w.write(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: queue, Change: id, Revision: 1, RequestId: id, Entries: []*eventsv1.Entry{{Commit: strings.Repeat("a", 40)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: strings.Repeat("a", 40)}}}})
}

func predicted(id string, success float64, source string, features int) *eventsv1.Prediction {
	return &eventsv1.Prediction{Change: ref(id), Success: success, SuccessSource: source, Features: make([]float32, features)}
}

func nodeOf(id string, position int64, members ...string) *eventsv1.Node {
	n := &eventsv1.Node{Change: ref(id), Position: position, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}}}
	for i, m := range members {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: ref(m), Conflicts: true})
		n.Classes[0].Members = append(n.Classes[0].Members, uint32(i))
	}
	return n
}

func (w *world) tell(limited context.Context, log journal.Log, id string) *view.Full {
	w.t.Helper()
	i, known := w.view.Inquire(id)
	if !known || !i.WantsLog() {
		w.t.Fatalf("%s is not known, or nothing is wanted of it: %+v", id, i)
	}
	if err := (profilelog.Reader{Log: log}).Answer(limited, queue, i, func(f func(*view.Queue)) { f(w.view) }); err != nil {
		w.t.Fatal(err)
	}
	return i.Answer
}

// TestThePastIsWhatCountedThen: the records of an instance that had been replaced say nothing, what an older instance wrote
// before counts, a record in parts is one, and what has left before is not asked for.
func TestThePastIsWhatCountedThen(t *testing.T) {
	w := newWorld(t)
	w.admit("old")
	w.admit("a")
	w.admit("b")
	w.claim()
	first := w.term
	settings := &eventsv1.QueueSettings{Threshold: 0.25, Best: 10}
	w.profile(first, &eventsv1.Profile{Position: 1, Delta: &eventsv1.GraphDelta{Settings: settings, Mainline: &eventsv1.Mainline{Analyzed: true}, Nodes: []*eventsv1.Node{nodeOf("old", 1)}}})
	w.profile(first, &eventsv1.Profile{Position: 2, Delta: &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: ref("old"), How: eventsv1.GoneHow_GONE_HOW_LANDED}}}})
	// The record that first names a is in parts: its vector is larger than a record may be.
	w.profile(first, &eventsv1.Profile{Position: 3, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{nodeOf("a", 2)}}, Predictions: []*eventsv1.Prediction{predicted("a", 0.5, "prior", 200_000)}})
	w.claim()
	second := w.term
	w.profile(first, &eventsv1.Profile{Position: 4, Delta: &eventsv1.GraphDelta{}, Predictions: []*eventsv1.Prediction{predicted("a", 0.1, "nobody", 1)}})
	w.profile(second, &eventsv1.Profile{Position: 4, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{nodeOf("b", 3, "a")}},
		Predictions: []*eventsv1.Prediction{predicted("a", 0.75, "success-1", 1), predicted("b", 0.5, "prior", 1)}, Pairs: []*eventsv1.PairPrediction{{Behind: ref("b"), Ahead: ref("a"), Conflict: 0.2}}})
	w.profile(first, &eventsv1.Profile{Position: 5, Delta: &eventsv1.GraphDelta{}, Predictions: []*eventsv1.Prediction{predicted("a", 0.2, "nobody", 1)}})
	w.profile(second, &eventsv1.Profile{Position: 5, Delta: &eventsv1.GraphDelta{}, Predictions: []*eventsv1.Prediction{predicted("a", 0.9, "success-2", 1)}})
	term := w.write(events.TopicDecisions, events.ServiceSelector, -1, &eventsv1.Claim{Service: events.ServiceSelector})
	for position, build := range map[int64]string{4: "early", 5: "late"} {
		w.write(events.TopicDecisions, events.ServiceSelector, term, &eventsv1.Decision{Position: position, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
			Build: build, Change: &eventsv1.AssumedChange{Change: ref("b")}, Assumed: []*eventsv1.AssumedChange{{Change: ref("a")}}}}}}})
	}
	for _, topic := range []string{events.TopicDecisions, events.TopicProfiles, events.TopicChanges} {
		w.read(topic)
	}
	f := w.tell(t.Context(), w.log, "b")
	if len(f.Builds) != 2 || f.Omitted != "" {
		t.Fatalf("b is explained by %+v", f)
	}
	for _, b := range f.Builds {
		want, from := 0.75, "success-1"
		if b.Build == "late" {
			want, from = 0.9, "success-2"
		}
		if b.Then == nil || b.Then.Needed != want || b.Then.Threshold != 0.25 || b.Then.Factors[0].Terms[0].From != from {
			t.Errorf("build %s was scheduled on %+v", b.Build, b.Then)
		}
	}
	if f.Ranked == nil || f.Verdict.Open != 2 || f.Prediction.SuccessFrom != "prior" {
		t.Errorf("now b is explained by %+v", f)
	}
}

// silent is a log that says it has more than it gives.
type silent struct{ *memory.Log }

func (silent) End(context.Context, string, int32) (int64, error) { return 1000, nil }

// TestAPastThatCannotBeReadInTimeIsLeftOutAndSaysSo.
func TestAPastThatCannotBeReadInTimeIsLeftOutAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.admit("a")
	w.claim()
	w.profile(w.term, &eventsv1.Profile{Position: 1, Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{}, Nodes: []*eventsv1.Node{nodeOf("a", 1)}}})
	w.write(events.TopicProfiles, "nobody", -1, &eventsv1.Claim{Service: "nobody"})
	term := w.write(events.TopicDecisions, events.ServiceSelector, -1, &eventsv1.Claim{Service: events.ServiceSelector})
	w.write(events.TopicDecisions, events.ServiceSelector, term, &eventsv1.Decision{Position: 7, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
		Build: "b", Change: &eventsv1.AssumedChange{Change: ref("a")}}}}}})
	for _, topic := range []string{events.TopicChanges, events.TopicProfiles, events.TopicDecisions} {
		w.read(topic)
	}
	if f := w.tell(t.Context(), w.log, "a"); f.Builds[0].Then != nil || !strings.Contains(f.Omitted, "does not hold everything") {
		t.Errorf("what no profile answered is explained by %+v", f)
	}
	limited, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if f := w.tell(limited, silent{w.log}, "a"); !strings.Contains(f.Omitted, "could not be read in time") || !strings.Contains(f.Omitted, "landfall replay") {
		t.Errorf("what cannot be read is explained by %+v", f)
	}
}
