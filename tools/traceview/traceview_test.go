package traceview

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/tracer/spans"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files")

// began is when the log of a test begins.
var began = time.Date(2026, 1, 31, 14, 5, 0, 0, time.UTC)

// script writes a log, with times in milliseconds after its beginning.
type script struct {
	t   *testing.T
	log *memory.Log
}

func newScript(t *testing.T) *script {
	return &script{t, memory.New(memory.Options{Partitions: 1, ID: "log"})}
}

func us(ms int64) int64 { return began.UnixMicro() + ms*1000 }

func (s *script) write(ms int64, topic, source string, m proto.Message) int64 {
	s.t.Helper()
	e := events.Envelope{ID: fmt.Sprint(ms, m), Source: source, Instance: "i", Queue: "shop", Time: began.Add(time.Duration(ms) * time.Millisecond), Term: -1, Message: m}
	if (source == events.ServiceLander || source == events.ServiceSelector) && !isClaim(m) {
		e.Term = 0
	}
	offsets, err := s.log.Append(s.t.Context(), topic, 0, e)
	if err != nil {
		s.t.Fatal(err)
	}
	return offsets[0]
}

func isClaim(m proto.Message) bool { _, is := m.(*eventsv1.Claim); return is }

func (s *script) changes(ms int64, m proto.Message) {
	source := events.ServiceLander
	switch m.(type) {
	case *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised, *eventsv1.ChangeHeld, *eventsv1.ChangeReleased, *eventsv1.ChangeCancelled:
		source = events.ServiceGateway
	case *eventsv1.ChangeAnalyzed:
		source = events.ServiceAnalyzer
	}
	s.write(ms, events.TopicChanges, source, m)
}

func (s *script) builds(ms int64, m proto.Message) {
	s.write(ms, events.TopicBuilds, events.ServiceBuilder, m)
}

func (s *script) decide(stamp, ms int64, items ...*eventsv1.DecisionItem) {
	s.write(ms, events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{StampUs: us(stamp), Items: items})
}

func at(change string, revision uint64) *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: change, Revision: revision}
}

func (s *script) admit(ms int64, change, traceparent string) {
	s.changes(ms, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "shop", Change: change, Revision: 1, RequestId: "r-" + change, Mainline: "aaaaaaaaaaaaaaaa", ReceivedUs: us(ms - 40), Title: "Sell more",
		Entries: []*eventsv1.Entry{{Ref: change, Commit: "cccccccccccccccc"}}, LandingCommits: []*eventsv1.LandingCommit{{Head: "cccccccccccccccc"}},
		Place: &eventsv1.RequestPlace{Offset: 3}, Trace: traceparent,
	}})
}

func scheduled(build, change string, assumed ...string) *eventsv1.DecisionItem {
	b := &eventsv1.BuildScheduled{Build: build, Change: &eventsv1.AssumedChange{Change: at(change, 1)}, Base: "aaaaaaaaaaaaaaaa", Repository: "shop", Branch: "main", Needed: .8, Value: 2}
	for _, a := range assumed {
		b.Assumed = append(b.Assumed, &eventsv1.AssumedChange{Change: at(a, 1)})
	}
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: b}}
}

func aborted(build, why string) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: build, Why: why}}}
}

func landing(change, decision string) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: at(change, 1), Decision: decision, Why: "all is green"}}}
}

func (s *script) prepared(from, ms int64, build, change string, versions ...string) {
	p := &eventsv1.BuildPrepared{Build: build, Change: at(change, 1), Base: "aaaaaaaaaaaaaaaa", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Worker: "b/1", StartedUs: us(from), FinishedUs: us(ms)}
	for _, v := range versions {
		target, hash, _ := strings.Cut(v, "=")
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: target, Hash: hash})
	}
	s.builds(ms, p)
}

func (s *script) step(from, ms int64, build, version string, attempt uint32, outcome eventsv1.StepOutcome, reason string) {
	target, hash, _ := strings.Cut(version, "=")
	s.builds(ms, &eventsv1.StepFinished{Target: target, Hash: hash, Attempt: attempt, Outcome: outcome, Build: build, Worker: "b/1", Reason: reason, StartedUs: us(from), FinishedUs: us(ms)})
}

const (
	passed  = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed  = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	given   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	another = "00-aaaabbbbccccddddaaaabbbbccccdddd-00f067aa0ba902b8-01"
)

// story writes what becomes of four changes: one that lands, one that shares a step with it, is held and lands, one whose name and output
// mean harm and that is rejected, and one that is pending.
func story(t *testing.T) *script {
	s := newScript(t)
	s.write(0, events.TopicChanges, events.ServiceLander, &eventsv1.Claim{Service: events.ServiceLander})
	s.write(0, events.TopicDecisions, events.ServiceSelector, &eventsv1.Claim{Service: events.ServiceSelector})
	s.admit(50, "feature/x", given)
	s.admit(60, "feature/y", another)
	s.admit(70, harmful, "")
	s.changes(90, &eventsv1.ChangeAnalyzed{Change: at("feature/x", 1), Base: "aaaaaaaaaaaaaaaa", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, StartedUs: us(55), FinishedUs: us(90)})
	s.changes(95, &eventsv1.ChangeHeld{Change: "feature/y", Hold: "release", Who: "ada", Why: "after the release"})
	s.decide(100, 110, scheduled("bx", "feature/x"), scheduled("by", "feature/y", "feature/x"), scheduled("by0", "feature/y"), scheduled("bh", harmful))
	s.prepared(120, 150, "bx", "feature/x", "//a=1", "//b=1")
	s.prepared(125, 160, "by", "feature/y", "//a=1", "//c=1")
	s.prepared(130, 170, "by0", "feature/y", "//a=1", "//c=0")
	s.prepared(130, 175, "bh", harmful, "//h=1")
	s.step(180, 1180, "bx", "//a=1", 1, failed, "exit code 1")
	s.step(1200, 2200, "bx", "//a=1", 2, passed, "")
	s.step(200, 900, "bx", "//b=1", 1, passed, "")
	s.step(200, 1900, "bh", "//h=1", 1, failed, "\x1b[2Jgone\nand more <b>")
	s.decide(2210, 2220, landing("feature/x", "dx"), aborted("by0", "feature/x lands"),
		&eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{Change: at(harmful, 1), Decision: "dh"}}})
	s.changes(2260, &eventsv1.LandIntended{Change: at("feature/x", 1), Decision: "dx", Base: "aaaaaaaaaaaaaaaa", Commits: []string{"dddddddddddddddd"}})
	s.changes(2400, &eventsv1.ChangeLanded{Change: at("feature/x", 1), Decision: "dx", Base: "aaaaaaaaaaaaaaaa", Commits: []string{"dddddddddddddddd"}})
	s.changes(2450, &eventsv1.ChangeRejected{Change: at(harmful, 1), Decision: "dh", Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "//h failed: \x1b[2Jgone"}})
	s.changes(2480, &eventsv1.ChangeReleased{Change: "feature/y", Hold: "release", Who: "ada"})
	s.step(2230, 2600, "by", "//c=1", 1, passed, "")
	s.decide(2605, 2610, landing("feature/y", "dy1"))
	s.changes(2650, &eventsv1.Refused{Change: at("feature/y", 1), Decision: "dy1", Message: "//d is not proven"})
	s.decide(2700, 2710, landing("feature/y", "dy2"))
	s.changes(2750, &eventsv1.LandIntended{Change: at("feature/y", 1), Decision: "dy2", Base: "dddddddddddddddd", Commits: []string{"eeeeeeeeeeeeeeee"}})
	s.changes(2900, &eventsv1.LandVoid{Change: at("feature/y", 1), Decision: "dy2", Commit: "eeeeeeeeeeeeeeee", Reason: "the mainline moved"})
	s.decide(2910, 2920, landing("feature/y", "dy3"))
	s.changes(2950, &eventsv1.LandIntended{Change: at("feature/y", 1), Decision: "dy3", Base: "ffffffffffffffff", Commits: []string{"1111111111111111"}})
	s.changes(3100, &eventsv1.ChangeLanded{Change: at("feature/y", 1), Decision: "dy3", Base: "ffffffffffffffff", Commits: []string{"1111111111111111"}})
	s.admit(3200, "feature/z", "")
	s.decide(3210, 3220, scheduled("bz", "feature/z"))
	return s
}

const harmful = "\x1b]0;owned\x07</text><script>"

// TestTheTraceOfAChangeAsAPicture is the golden transcript.
func TestTheTraceOfAChangeAsAPicture(t *testing.T) {
	s := story(t)
	var out strings.Builder
	for _, change := range []string{"feature/x", "feature/y", harmful, "feature/z"} {
		found, err := Find(t.Context(), s.log, Wanted{Change: change}, began.Add(4*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(Text(*found) + "\n")
		picture := SVG(*found)
		for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, picture)
			}
		}
		for _, text := range []string{picture, Text(*found)} {
			if strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }) || strings.Contains(picture, "<script") {
				t.Errorf("%q", text)
			}
		}
	}
	file := filepath.Join("testdata", "pictures.txt")
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s(-rewrite writes it)", out.String(), want)
	}
}

// TestTheSharedStepLinksToTheTraceThatItRanFor, in OTLP's JSON, whose ids are hexadecimal.
func TestTheSharedStepLinksToTheTraceThatItRanFor(t *testing.T) {
	s := story(t)
	found, err := Find(t.Context(), s.log, Wanted{Queue: "shop", Change: "feature/y"}, began)
	if err != nil {
		t.Fatal(err)
	}
	body, err := spans.JSON(spans.OTLP("v", *found))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, Name string
					Kind                                int
					Links                               []struct{ TraceID, SpanID string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	shared := 0
	for _, of := range m.ResourceSpans {
		for _, span := range of.ScopeSpans[0].Spans {
			switch {
			case span.TraceID != "aaaabbbbccccddddaaaabbbbccccdddd":
				t.Errorf("%+v", span)
			case span.Name == "RUN shop" && (span.ParentSpanID != "00f067aa0ba902b8" || span.Kind != 2):
				t.Errorf("the root is %+v", span)
			case span.Name == "//a":
				if shared++; len(span.Links) != 1 || span.Links[0].TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" {
					t.Errorf("the shared step is %+v", span)
				}
			case span.Name == "//c" && len(span.Links) > 0:
				t.Errorf("its own step is %+v", span)
			}
		}
	}
	if shared != 2 {
		t.Errorf("%d attempts at the shared step:\n%s", shared, body)
	}
}

// TestTheOrderInWhichTopicsAreReadChangesNothing: topic after topic, in every order, gives the spans that the order of time gives.
func TestTheOrderInWhichTopicsAreReadChangesNothing(t *testing.T) {
	s := story(t)
	all := map[string][]journal.Entry{}
	for _, topic := range spans.Topics() {
		c, err := s.log.Follow(t.Context(), topic, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, ok, err := c.TryNext()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			all[topic] = append(all[topic], e)
		}
		c.Close()
	}
	changes, decisions, builds := events.TopicChanges, events.TopicDecisions, events.TopicBuilds
	var want []string
	// Preparations name their change, so builds may be read before or after the decisions; a step belongs to preparations before it.
	for i, order := range [][]string{{changes, decisions, builds}, {changes, builds, decisions}, {decisions, builds, changes}, {builds, changes, decisions}} {
		f := spans.New(s.log.ID(), false, func(spans.Head) bool { return true })
		for _, topic := range order {
			for _, e := range all[topic] {
				f.Apply(e)
			}
		}
		var got []string
		for _, trace := range f.Take(f.Ended()) {
			for _, s := range trace.Spans {
				got = append(got, fmt.Sprint(trace.Change, s.ID, s.Parent, s.Name, s.Start, s.End, s.Result))
			}
		}
		slices.Sort(got)
		if i == 0 {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v:\n%s\nwant\n%s", order, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestATraceIsBounded, and says what it leaves out.
func TestATraceIsBounded(t *testing.T) {
	s := newScript(t)
	s.write(0, events.TopicChanges, events.ServiceLander, &eventsv1.Claim{Service: events.ServiceLander})
	s.write(0, events.TopicDecisions, events.ServiceSelector, &eventsv1.Claim{Service: events.ServiceSelector})
	s.admit(50, "c", "")
	for i := range 300 {
		build := fmt.Sprint("b", i)
		s.decide(60, 61, scheduled(build, "c"))
		s.prepared(62, 63, build, "c", fmt.Sprintf("//%s=%d", strings.Repeat("t", 1_000), i))
		for n := range uint32(4) {
			s.step(64, 65, build, fmt.Sprintf("//%s=%d", strings.Repeat("t", 1_000), i), n, failed, strings.Repeat("ü", 1_000))
		}
	}
	found, err := Find(t.Context(), s.log, Wanted{Change: "c"}, began.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found.Spans); n > 1+1+200*3+700 || found.Left != 200 {
		t.Errorf("%d spans, %d left out", n, found.Left)
	}
	if size := proto.Size(spans.OTLP("v", *found)); size > 4<<20 {
		t.Errorf("%d bytes", size)
	}
}

func TestJSONIsNotAskedForInTwoPlaces(t *testing.T) {
	c := Command("v", nil)
	c.SetArgs([]string{"feature/x", "--json", "--otlp", filepath.Join(t.TempDir(), "trace.json")})
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "[json otlp]") {
		t.Errorf("the file is not written, and the error is %v", err)
	}
}

func TestAnUnknownChangeIsSaidSo(t *testing.T) {
	s := story(t)
	for _, w := range []Wanted{{Change: "nobody"}, {Change: "feature/x", Revision: 2}, {Queue: "other", Change: "feature/x"}} {
		if _, err := Find(t.Context(), s.log, w, began); err == nil || !strings.Contains(err.Error(), "the log has no change") {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
