package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

func read(t *testing.T, tr trace.Trace) (list []*trace.Change) {
	t.Helper()
	for {
		c, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
}

// What a queue went through, told by its log, is the trace that it went through.
func TestTheTraceOfAHistoryIsTheTraceThatMadeIt(t *testing.T) {
	p := trace.PinnedPaper()
	p.Changes, p.Potential, p.Failure = 60, 0.2, 0.2
	k, err := policy.Named("oracle")
	if err != nil {
		t.Fatal(err)
	}
	f, err := forecast.New(forecast.Flat, 1, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	log := memory.New(memory.Options{Partitions: 1})
	term, err := log.Append(t.Context(), events.TopicSpeculations, 0, events.Envelope{
		ID: "claim", Source: events.ServiceEnumerator, Time: time.Now(), Term: -1, Message: &eventsv1.Claim{Instance: "i"}})
	if err != nil {
		t.Fatal(err)
	}
	record := func(queue string) func(*eventsv1.Speculation) {
		return func(s *eventsv1.Speculation) {
			if _, err := log.Append(t.Context(), events.TopicSpeculations, 0, events.Envelope{
				ID: "x", Source: events.ServiceEnumerator, Queue: queue, Time: time.Now(), Term: term[0], Message: s}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, queue := range []string{"main", "other"} {
		if _, err := course.Run(context.Background(), course.Options{
			Trace: p.Start(), Forecast: f, Kind: k, Workers: 50, Bypass: 2, Round: time.Second, Record: record(queue),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(t.Context(), log, "mian"); err == nil || !strings.Contains(err.Error(), `nothing of a queue "mian"`) {
		t.Errorf("a queue that the log does not know: %v", err)
	}
	h, err := Read(t.Context(), log, "main")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	left, err := h.Write(&b)
	if err != nil || left.Undecided != 0 {
		t.Fatalf("%+v, %v", left, err)
	}
	rates, n, err := trace.Survey(bytes.NewReader(b.Bytes()))
	if err != nil || n != p.Changes {
		t.Fatalf("%d changes: %v", n, err)
	}
	was, is := p.Start(), trace.NewFile(bytes.NewReader(b.Bytes()), rates)
	a, c := read(t, was), read(t, is)
	var truth, told trace.Truth
	met := 0
	for i := range a {
		if c[i].ID != a[i].ID || math.Abs(float64(c[i].Duration-a[i].Duration)) > 1 || math.Abs(float64(c[i].Arrival-c[0].Arrival-a[i].Arrival+a[0].Arrival)) > 3e6 {
			t.Errorf("%s arrived at %d and took %d; the history has %s at %d and %d", a[i].ID, a[i].Arrival, a[i].Duration, c[i].ID, c[i].Arrival, c[i].Duration)
		}
		if truth.Take(a[i]) != told.Take(c[i]) {
			t.Errorf("%s: the history has another outcome", a[i].ID)
		}
		for j := range i {
			// The log knows only of those that were still pending.
			if is.Meet(c[j], c[i]) {
				if met++; !was.Meet(a[j], a[i]) {
					t.Errorf("%s does not meet %s", a[i].ID, a[j].ID)
				}
			}
		}
	}
	if met < 100 {
		t.Errorf("%d pairs meet; the test shows nothing", met)
	}
}

func TestWhoIsBlamedInTheLogIsBlamedInTheTrace(t *testing.T) {
	ref := func(id string, r uint64) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: r} }
	admit := func(id string) *eventsv1.Fact {
		return &eventsv1.Fact{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1}}}}
	}
	h := New()
	h.Fold(&eventsv1.Speculation{StampUs: 5e6, Facts: []*eventsv1.Fact{admit("a"), admit("b"), admit("gone")}, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{
		{Change: ref("b", 1), Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: ref("a", 1), Conflicts: true}}},
	}}})
	h.Fold(&eventsv1.Speculation{StampUs: 9e6, Facts: []*eventsv1.Fact{
		{Fact: &eventsv1.Fact_ChangeRevised{ChangeRevised: &eventsv1.ChangeRevised{Admission: &eventsv1.Admission{Change: "gone", Revision: 2}}}},
		{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{Change: ref("a", 1)}}},
		{Fact: &eventsv1.Fact_ChangeRejected{ChangeRejected: &eventsv1.ChangeRejected{Change: ref("b", 1), Reason: &eventsv1.Reason{Other: "a"}}}},
		{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{Change: ref("gone", 2)}}},
	}})
	var b strings.Builder
	left, err := h.Write(&b)
	if err != nil || left.Undecided != 1 {
		t.Fatalf("%+v, %v", left, err)
	}
	got := read(t, trace.NewFile(strings.NewReader(b.String()), trace.Rates{}))
	if len(got) != 3 || !got[1].Green || !slices.Equal(got[1].Breaks, []int{0}) || got[2].ID != "gone revision 2" || got[2].Arrival != 4e6 {
		t.Errorf("%s", b.String())
	}
	if _, err := New().Write(io.Discard); err == nil {
		t.Error("a queue without history has a trace")
	}
}

// The targets of a change and what their steps took are those of the trace that a pool of workers ran.
func TestAHistoryHasTheStepsThatItsWorkersRan(t *testing.T) {
	p := trace.PinnedPaper()
	p.Changes, p.Rate, p.Failure, p.True = 60, 300, 0.15, 0.05
	p.Median, p.P95, p.Shortest, p.Longest = 15*time.Second, time.Minute, time.Second, 10*time.Minute
	m := trace.PinnedMonorepo(p)
	m.Targets, m.Affected, m.Affected975 = 300, 8, 60
	k, err := policy.Named("landfall")
	if err != nil {
		t.Fatal(err)
	}
	f, err := forecast.New(forecast.Calibrated, 1, m.Start)
	if err != nil {
		t.Fatal(err)
	}
	h := New()
	if _, err := course.Run(t.Context(), course.Options{
		Trace: m.Start(), Forecast: f, Kind: k, Workers: 12, Threshold: k.Threshold, Bypass: k.Bypass, Round: time.Second, Pool: &course.Pool{}, Record: h.Fold,
	}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	left, err := h.WriteInSteps(&b)
	if err != nil || left.Stepless != 0 {
		t.Fatalf("%+v, %v", left, err)
	}
	rates, n, err := trace.SurveyInSteps(bytes.NewReader(b.Bytes()))
	if err != nil || n < m.Changes-3 { // the last ones are decided when nobody records any more
		t.Fatalf("%d changes, %v", n, err)
	}
	was, is := map[string]*trace.Change{}, read(t, trace.NewFile(bytes.NewReader(b.Bytes()), rates).InSteps())
	for _, c := range read(t, m.Start()) {
		was[c.ID] = c
	}
	var truth, again trace.Truth
	lands := map[string]bool{}
	for _, c := range read(t, m.Start()) {
		lands[c.ID] = truth.Take(c)
	}
	for _, c := range is {
		of := was[c.ID]
		if len(c.Targets) != len(of.Targets) {
			t.Errorf("%s has %d targets, had %d", c.ID, len(c.Targets), len(of.Targets))
		}
		// What another change proved first, or what nobody ran as it had failed, is not its own.
		if d := math.Abs(float64(c.Duration - of.Duration)); lands[c.ID] && d > 0.25*float64(of.Duration) {
			t.Errorf("the steps of %s take %d, took %d", c.ID, c.Duration, of.Duration)
		}
		if again.Take(c) != lands[c.ID] {
			t.Errorf("%s lands: %v", c.ID, !lands[c.ID])
		}
	}
}

// TestTheNewestPartOfALogIsReadAlone: it counts under the claim before it and under those within it, and the newest changes are kept.
func TestTheNewestPartOfALogIsReadAlone(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	put := func(term int64, m proto.Message) int64 {
		t.Helper()
		offsets, err := log.Append(t.Context(), events.TopicSpeculations, 0, events.Envelope{ID: "x", Source: events.ServiceEnumerator, Queue: "main", Time: time.Now(), Term: term, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		return offsets[0]
	}
	went := func(id string, at int64) *eventsv1.Speculation {
		ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
		return &eventsv1.Speculation{StampUs: at * 1e6, Facts: []*eventsv1.Fact{
			{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1}}}},
			{Fact: &eventsv1.Fact_BuildPrepared{BuildPrepared: &eventsv1.BuildPrepared{Build: "of " + id, Change: ref}}},
			{Fact: &eventsv1.Fact_StepFinished{StepFinished: &eventsv1.StepFinished{Build: "of " + id, Target: "//t", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, FinishedUs: 1e6}}},
			{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{Change: ref}}},
		}}
	}
	claim := &eventsv1.Claim{Instance: "i"}
	first := put(-1, claim)
	put(first, went("a", 1))
	second := put(-1, claim)
	put(second, went("b", 2))
	put(first, went("late", 3)) // of an owner that was replaced
	put(second, went("c", 4))
	third := put(-1, claim)
	put(second, went("late too", 5))
	put(third, went("d", 6))
	for records, want := range map[int64]string{100: "a b c d", 7: "b c d", 6: "b c d", 4: "c d", 3: "d"} {
		calls := int64(0)
		h, err := ReadNewest(t.Context(), log, "main", records, 9, func(read, of int64) error {
			if calls++; read != calls || of != min(records, 9) {
				t.Errorf("of %d records it tells %d of %d at the call %d", records, read, of, calls)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range h.order {
			got = append(got, d.id())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of the newest %d records it reads %v, want %s", records, got, want)
		}
		n, from, to := h.Keep(2)
		if wanted := min(2, len(got)); n != wanted || len(h.order) != wanted || h.order[n-1].id() != "d" || to.Unix() != 6 || from.After(to) {
			t.Errorf("of %v it keeps %d, from %v to %v", got, n, from, to)
		}
	}
	why := errors.New("enough")
	if _, err := ReadNewest(t.Context(), log, "main", 100, 9, func(int64, int64) error { return why }); !errors.Is(err, why) {
		t.Error(err)
	}
}

// TestOfOlderChangesNoTargetsAreKept, but of those that are pending.
func TestOfOlderChangesNoTargetsAreKept(t *testing.T) {
	h := New()
	for i, name := range []string{"old", "pending", "new", "newest"} {
		ref := &eventsv1.ChangeRef{Change: name, Revision: 1}
		facts := []*eventsv1.Fact{
			{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: name, Revision: 1}}}},
			{Fact: &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: &eventsv1.ChangeAnalyzed{Change: ref, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//a", Hash: "1"}, {Target: "//a", Hash: "2"}, {Target: "//b", Hash: "1"}}}}}},
			{Fact: &eventsv1.Fact_ChangeLanded{ChangeLanded: &eventsv1.ChangeLanded{Change: ref}}},
		}
		if name == "pending" {
			facts = facts[:2]
		}
		h.Fold(&eventsv1.Speculation{StampUs: int64(i), Facts: facts})
	}
	if err := h.forget(2); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 2, 2, 2} {
		if d := h.order[i]; len(d.affected) != want {
			t.Errorf("of %s %d targets are kept, want %d", d.id(), len(d.affected), want)
		}
	}
	h.order[1].affected = make([]string, mostTargets)
	if err := h.forget(2); !errors.Is(err, ErrTooManyTargets) {
		t.Errorf("with too many the error is %v", err)
	}
}
