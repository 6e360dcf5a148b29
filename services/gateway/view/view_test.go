package view_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

const main = "main"

// transcript tells a story and writes down what people would see after each chapter.
type transcript struct {
	t *testing.T
	*apitest.Backend
	text strings.Builder
	seen uint64
}

func newTranscript(t *testing.T) *transcript { return &transcript{t: t, Backend: apitest.New(main)} }

func (s *transcript) land(change string, requires ...string) {
	s.t.Helper()
	answer, err := s.Land(context.Background(), &eventsv1.LandRequest{Queue: main, Change: change, Requires: requires, Entries: []*eventsv1.Entry{{Ref: change}}})
	if err != nil || answer.Admitted == nil {
		s.t.Fatalf("land %s: %v %v", change, answer, err)
	}
}

func (s *transcript) see(chapter string) {
	fmt.Fprintf(&s.text, "## %s\n", chapter)
	s.Read(main, func(q *view.Queue) {
		for _, c := range append(q.Pending(), q.Finished(100)...) {
			fmt.Fprintf(&s.text, "%2d %-8s %-9s %d/%d  %s\n", c.Position, c.Change, c.State, c.StepsDone, c.StepsTotal, c.Why)
			if e := c.ETA; e != nil && e.Unknown == "" {
				fmt.Fprintf(&s.text, "   decided at %s, %s to %s, %s to %s, lands %g\n", e.Median.Format(time.TimeOnly), e.From50.Format(time.TimeOnly), e.To50.Format(time.TimeOnly), e.From90.Format(time.TimeOnly), e.To90.Format(time.TimeOnly), e.Lands)
			} else if e != nil {
				fmt.Fprintf(&s.text, "   no estimate: %s\n", e.Unknown)
			}
		}
		o := q.Overview()
		fmt.Fprintf(&s.text, "   %d pending: %d waiting, %d testing, %d passed; %d of %d builds; red %v\n\n", o.Pending, o.Waiting, o.Testing, o.Passed, o.Running, o.Workers, o.MainlineRed)
	})
}

func (s *transcript) explain(change string) {
	s.Read(main, func(q *view.Queue) {
		e, _ := q.Explain(change)
		text, _ := json.MarshalIndent(e, "", " ")
		fmt.Fprintf(&s.text, "explain %s: %s\n\n", change, text)
	})
}

func (s *transcript) compare(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(path, []byte(s.text.String()), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := s.text.String(); got != string(want) {
		s.t.Errorf("the transcript differs from %s (rewrite it with -update and read the difference):\n%s", path, got)
	}
}

func node(change string, position int64, members ...*eventsv1.Ahead) *eventsv1.Node {
	n := &eventsv1.Node{Change: apitest.Ref(change), Position: position, Analyzed: true, Ahead: members}
	class := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//" + change}}}
	for i := range members {
		class.Members = append(class.Members, uint32(i))
	}
	n.Classes = []*eventsv1.Class{class}
	return n
}

func outcome(n *eventsv1.Node, state eventsv1.OutcomeState, target string) *eventsv1.Node {
	n.Classes[0].Outcomes = []*eventsv1.Outcome{{State: state, Version: &eventsv1.TargetVersion{Target: target}}}
	return n
}

func meets(change string, targets ...string) *eventsv1.Ahead {
	return &eventsv1.Ahead{Change: apitest.Ref(change), Conflicts: true, Targets: targets}
}

// tell is the story that the tests below look at in different ways.
func tell(s *transcript) {
	s.Fold(main, events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	s.Graph(main, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Repository: "repo", Branch: "main", Strategy: "squash", Workers: 2}, Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true}})
	s.land("a")
	s.land("b")
	s.land("c", "a")
	s.see("admitted, and nobody is analysed yet")
	for _, id := range []string{"a", "b", "c"} {
		s.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref(id), Base: apitest.Commit("main"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//" + id}}}})
	}
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node("a", 1), node("b", 2, meets("a", "//lib/x", "//lib/y")), node("c", 3, meets("a", "//c"))}})
	s.Fold(main, events.TopicPriorities, &eventsv1.Priority{Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{{Change: apitest.Ref("a")}, {Change: apitest.Ref("b"), Assumed: []*eventsv1.ChangeRef{apitest.Ref("a")}}, {Change: apitest.Ref("c")}}}})
	s.see("analysed: a alone, b and c behind it")
	s.Schedule(main, "build-a", "a", nil, "//a", "//lib/x")
	s.Schedule(main, "build-b", "b", []string{"a"}, "//b", "//lib/x")
	s.Prepare(main, "build-a", "a", "//a", "//lib/x")
	s.Finish(main, "build-a", "//a", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok\n", "a.log")
	s.Estimate(main, "a", "", 5, 6, 7, 9, 12)
	s.Estimate(main, "b", "what it waits for has no estimate")
	s.see("two builds run, and no worker is left for c")
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre", Why: "incident 7", StampUs: 1_700_000_000_000_000})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeHeld{Change: "b", Hold: "manual", Who: "bob", Why: "wait for docs"})
	s.see("paused by the sre, b held by bob")
	s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "sre"})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeReleased{Change: "b", Hold: "manual", Who: "bob"})
	s.Finish(main, "build-a", "//lib/x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok\n", "x.log")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("a", 1), eventsv1.OutcomeState_OUTCOME_STATE_GREEN, "//a")}, Builds: []*eventsv1.BuildProgress{{Build: "build-a", State: eventsv1.BuildState_BUILD_STATE_FINISHED}}})
	s.see("a passed")
	s.LandIt(main, "a", "build-a", []string{"b"}, "//a", "//lib/x")
	s.Graph(main, &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: apitest.Ref("a"), How: eventsv1.GoneHow_GONE_HOW_LANDED}}, Nodes: []*eventsv1.Node{node("b", 2), node("c", 3)}})
	s.Prepare(main, "build-b", "b", "//b", "//lib/x")
	s.Finish(main, "build-b", "//b", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "--- FAIL: TestB\n", "b1.log")
	s.Finish(main, "build-b", "//b", 2, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "--- FAIL: TestB\nagain\n", "b2.log")
	s.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{outcome(node("c", 3), eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, "//shared"),
		{Change: apitest.Ref("mainline"), Mainline: true, Analyzed: true, Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{{State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Version: &eventsv1.TargetVersion{Target: "//shared"}}}}}}}})
	s.see("a landed, b failed twice, the mainline is red in //shared")
	s.Reject(main, "b", "build-b", "//b", 2)
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeMoved{Change: "c", Who: "ada", Why: "hotfix"})
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeCancelled{Change: "c", Who: "ada", Why: "not needed any more"})
	s.see("b rejected, c cancelled")
}

func TestTheQueueTellsItsStory(t *testing.T) {
	s := newTranscript(t)
	tell(s)
	s.explain("a")
	s.explain("b")
	s.compare("story.txt")
}

// Topics are read side by side: only the order within a topic is given.
func TestTheAnswersDoNotDependOnHowTopicsInterleave(t *testing.T) {
	s := newTranscript(t)
	tell(s)
	random := seedtest.Random(t)
	want := answers(s.Folded(main))
	for range 300 {
		byTopic := map[string][]journal.Entry{}
		var topics []string
		for _, e := range s.Folded(main) {
			if byTopic[e.Topic] == nil {
				topics = append(topics, e.Topic)
			}
			byTopic[e.Topic] = append(byTopic[e.Topic], e)
		}
		var order []journal.Entry
		for len(topics) > 0 {
			i := random.IntN(len(topics))
			order = append(order, byTopic[topics[i]][0])
			if byTopic[topics[i]] = byTopic[topics[i]][1:]; len(byTopic[topics[i]]) == 0 {
				topics = append(topics[:i], topics[i+1:]...)
			}
		}
		if got := answers(order); got != want {
			t.Fatalf("in another order the answers are\n%s\ninstead of\n%s", got, want)
		}
	}
}

// inFull is the full explanation, with what the entries tell of the past.
func inFull(q *view.Queue, change string, entries []journal.Entry) *view.Full {
	i, _ := q.Inquire(change)
	ask := func(f func(*view.Queue)) { f(q) }
	i.ExplainNow(ask)
	for _, e := range entries {
		if m, is := e.Message.(*eventsv1.Profile); is && i.WantsLog() && e.Offset >= i.Offset {
			i.ExplainThen(m, ask)
		}
	}
	i.EndOfLog()
	return i.Answer
}

func answers(entries []journal.Entry) string {
	q := view.New(main, view.DefaultLimits())
	for _, e := range entries {
		q.Fold(e)
	}
	var b strings.Builder
	for _, id := range []string{"a", "b", "c"} {
		c, _ := q.Change(id)
		text, _ := json.MarshalIndent(c, "", " ")
		b.Write(text)
		list, _ := q.Attempts(id, 0)
		fmt.Fprintf(&b, "\n%+v\n", list)
		text, _ = json.MarshalIndent(inFull(q, id, entries), "", " ")
		b.Write(text)
	}
	text, _ := json.Marshal(q.Overview())
	b.Write(text)
	return b.String()
}

func TestMemoryIsBoundedHoweverMuchHappens(t *testing.T) {
	limits := view.Limits{Finished: 10, Builds: 20, Attempts: 30, TailBytes: 1000}
	q := view.New(main, limits)
	for i := range 200 {
		id, build := fmt.Sprint("c", i), fmt.Sprint("b", i)
		ref, admission := refOf(id), admissionOf(id)
		admission.Description = strings.Repeat("x", 60_000)
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admission})
		put(q, events.TopicDecisions, scheduled(build, id))
		put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: build, Change: ref, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: id}}})
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: id, Attempt: 1, Build: build, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, OutputTail: make([]byte, 100)})
		put(q, events.TopicChanges, &eventsv1.ChangeRejected{Change: ref, Reason: &eventsv1.Reason{Message: "no"}})
	}
	if got := len(q.Finished(1000)); got != limits.Finished {
		t.Errorf("%d finished changes are kept, the limit is %d", got, limits.Finished)
	}
	tails := 0
	for i := range 200 {
		c, known := q.Change(fmt.Sprint("c", i))
		if known != (i >= 190) {
			t.Errorf("c%d is known: %v", i, known)
		}
		if len(c.Description) > 10_000 {
			t.Errorf("c%d keeps a description of %d bytes", i, len(c.Description))
		}
		list, _ := q.Attempts(fmt.Sprint("c", i), 0)
		for _, a := range list {
			tails += len(a.Tail)
		}
	}
	if tails == 0 || tails > limits.TailBytes {
		t.Errorf("%d bytes of output are kept, the limit is %d", tails, limits.TailBytes)
	}
}

var offsets int64

func put(q *view.Queue, topic string, m proto.Message) {
	e := journal.Entry{Topic: topic, Offset: offsets}
	e.Message = m
	offsets++
	q.Fold(e)
}

func refOf(change string) *eventsv1.ChangeRef { return apitest.Ref(change) }

func admissionOf(change string) *eventsv1.Admission {
	return &eventsv1.Admission{
		Queue: main, Change: change, Revision: 1, RequestId: change, Entries: []*eventsv1.Entry{{Commit: apitest.Commit(change)}},
		LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(change)}},
	}
}

func scheduled(build, change string) *eventsv1.Decision {
	s := &eventsv1.BuildScheduled{Build: build, Change: &eventsv1.AssumedChange{Change: refOf(change)}}
	return &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}}
}

// TestTheFirstLogIsNotOfARunThatSaysNothing: a run that was ended, or could not run, is behind the one that passed after it.
func TestTheFirstLogIsNotOfARunThatSaysNothing(t *testing.T) {
	for _, outcome := range []eventsv1.StepOutcome{eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED} {
		q := view.New(main, view.DefaultLimits())
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
		put(q, events.TopicDecisions, scheduled("b", "a"))
		put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b", Change: refOf("a"), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{{Target: "//t", Hash: "h"}}})
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 1, Build: "b", Outcome: outcome})
		if list, _ := q.Attempts("a", 0); len(list) != 1 || list[0].Number != 1 {
			t.Errorf("%v: before it passes the log is %+v", outcome, list)
		}
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 2, Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
		if list, _ := q.Attempts("a", 0); len(list) != 2 || list[0].Number != 2 {
			t.Errorf("%v: once it has passed the first log is %+v", outcome, list)
		}
	}
}
