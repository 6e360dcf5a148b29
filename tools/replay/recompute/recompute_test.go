package recompute_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/tools/replay/recompute"
)

func verify(t *testing.T, log journal.Log, o recompute.Options) *recompute.Report {
	t.Helper()
	o.Log = log
	if o.Version == "" {
		o.Version = "one"
	}
	o.Patience = 10 * time.Millisecond
	r, err := recompute.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Services {
		others := int64(0)
		for _, n := range s.Others {
			others += n
		}
		if s.Records != s.Compared+s.NotCounted+s.Given+others || s.Compared != s.Identical+s.Different {
			t.Errorf("the numbers of the %s make no sum: %+v", s.Service, s)
		}
	}
	return r
}

func seeded(t *testing.T) uint64 {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

func TestWhatTheCoresWroteIsWhatTheySayAgain(t *testing.T) {
	seed := seeded(t)
	w := newWorld(t, seed, "main", "web", "app")
	w.withdrawals = true
	w.run(25)
	told, last := 0, int64(0)
	r := verify(t, w.log, recompute.Options{Progress: func(done, total int64) {
		if done < last || done > total {
			t.Errorf("%d of %d records are read, after %d", done, total, last)
		}
		told, last = told+1, done
	}})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	stale, silent, given := int64(0), int64(0), int64(0)
	for _, s := range r.Services {
		t.Logf("%+v", s)
		if s.Compared < 20 {
			t.Errorf("only %d records of the %s were compared", s.Compared, s.Service)
		}
		stale, silent, given = stale+s.NotCounted, silent+s.Silent, given+s.Given
	}
	if stale == 0 || silent == 0 || given == 0 || told == 0 || len(w.crew["main"].landed) == 0 {
		t.Errorf("the log is too easy: %d records of stale instances, %d silences, told %d times", stale, silent, told)
	}
}

// rewrite copies a log and lets change alter, drop (nil) or repeat records on the way.
func rewrite(t *testing.T, from *world, change func(e journal.Entry, counts bool) []events.Envelope) *memory.Log {
	t.Helper()
	to := memory.New(memory.Options{ID: from.log.ID(), Partitions: from.log.Partitions()})
	for _, topic := range events.Topics() {
		for p := range from.log.Partitions() {
			c, terms := from.follow(topic.Name, p), journal.NewTerms(topic.Name)
			for e, ok := next(c); ok; e, ok = next(c) {
				if _, err := to.Append(t.Context(), topic.Name, p, change(e, terms.Counts(e))...); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return to
}

// TestEveryAlteredRecordIsFoundAndNoOther alters one field of one counted record of a service, anywhere.
func TestEveryAlteredRecordIsFoundAndNoOther(t *testing.T) {
	seed := seeded(t)
	w := newWorld(t, seed, "main", "web")
	w.run(12)
	counted := map[string]int{}
	rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
		if counts {
			counted[e.Topic]++
		}
		return []events.Envelope{e.Envelope}
	})
	r := rand.New(rand.NewPCG(seed, 1))
	for service, topic := range map[string]string{
		events.ServiceEnumerator: events.TopicSpeculations, events.ServiceProfiler: events.TopicProfiles,
		events.ServicePrioritizer: events.TopicPriorities, events.ServiceSelector: events.TopicDecisions,
	} {
		for range 8 {
			n, offset := r.IntN(counted[topic]), int64(-1)
			altered := rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
				if counts && e.Topic == topic {
					if n == 0 {
						e.Message, offset = alter(e.Message), e.Offset
					}
					n--
				}
				return []events.Envelope{e.Envelope}
			})
			found := verify(t, altered, recompute.Options{Kept: 4})
			d := found.First()
			if d == nil {
				t.Fatalf("nobody saw that %s/%d was altered", topic, offset)
			}
			if d.Service != service || d.Offset != offset || d.Written == nil || d.Computed == nil {
				t.Errorf("altered %s/%d, and the first difference is %s", topic, offset, d)
			}
			for _, s := range found.Services {
				if s.Service == service && s.Different != 1 {
					t.Errorf("one record of the %s was altered, and %d differ", service, s.Different)
				}
			}
		}
	}
}

// alter changes what nobody's next record of the same service rests on.
func alter(m proto.Message) proto.Message {
	m = proto.Clone(m)
	switch m := m.(type) {
	case *eventsv1.Speculation:
		// What it says of durations is not asked for again.
		if m.Delta == nil {
			m.Delta = &eventsv1.GraphDelta{}
		} else {
			m.Delta = proto.Clone(m.Delta).(*eventsv1.GraphDelta)
		}
		m.Delta.Durations = append(m.Delta.Durations, &eventsv1.StepDuration{Target: "//nothing"})
	case *eventsv1.Profile:
		m.StampUs++
	case *eventsv1.Priority:
		m.StampUs++
	case *eventsv1.Decision:
		m.StampUs++
	}
	return m
}

// TestAMissingAnswerAndOneTooManyAreFound: a decision that does not count any more, and one in the place of the next.
func TestAMissingAnswerAndOneTooManyAreFound(t *testing.T) {
	w := newWorld(t, seeded(t), "main")
	w.run(10)
	for _, name := range []string{"left out", "repeated"} {
		n := 0
		var third proto.Message
		// Offsets stay as they are: the terms of later records are offsets of claims.
		altered := rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
			if counts && e.Topic == events.TopicDecisions {
				switch n++; {
				case n == 3 && name == "left out":
					e.Term = -1
				case n == 3:
					third = e.Message
				case n == 4 && name == "repeated":
					e.Message = third
				}
			}
			return []events.Envelope{e.Envelope}
		})
		d := verify(t, altered, recompute.Options{}).First()
		switch {
		case d == nil || d.Service != events.ServiceSelector:
			t.Errorf("a decision is %s, and the first difference is %v", name, d)
		case name == "left out" && (d.Offset != -1 || d.Computed == nil || len(d.Causes) != 1):
			t.Errorf("a decision is left out: %+v", d)
		case name == "repeated" && (d.Written == nil || d.Computed != nil || !strings.Contains(d.Reason, "no input")):
			t.Errorf("a decision is repeated: %+v", d)
		}
	}
}

// TestFactsThatAreNotInTheSourcesAreFound: the enumerator merges, it does not invent, lose, or turn back the clock.
func TestFactsThatAreNotInTheSourcesAreFound(t *testing.T) {
	w := newWorld(t, seeded(t), "main")
	w.run(6)
	for name, change := range map[string]func(*eventsv1.Speculation){
		"lost":     func(s *eventsv1.Speculation) { s.Facts = s.Facts[:len(s.Facts)-1] },
		"invented": func(s *eventsv1.Speculation) { s.Facts = append(s.Facts, s.Facts[0]) },
		"position": func(s *eventsv1.Speculation) { s.Positions.Changes++ },
		"stamp":    func(s *eventsv1.Speculation) { s.StampUs = 1 },
	} {
		n := 0
		altered := rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
			if s, is := e.Message.(*eventsv1.Speculation); is && counts && len(s.Facts) > 0 && s.Facts[0].GetTick() == nil && s.Facts[0].GetSettings() == nil {
				if n++; n == 5 {
					m := proto.Clone(s).(*eventsv1.Speculation)
					change(m)
					e.Message = m
				}
			}
			return []events.Envelope{e.Envelope}
		})
		if d := verify(t, altered, recompute.Options{}).First(); d == nil || d.Service != events.ServiceEnumerator {
			t.Errorf("%s: the first difference is %v", name, d)
		}
	}
}

// TestALandingThatTheLogDoesNotBearOutIsFound: each way of landing what nobody decided, or proved.
func TestALandingThatTheLogDoesNotBearOutIsFound(t *testing.T) {
	w := newWorld(t, seeded(t), "main", "web")
	w.run(12)
	for name, change := range map[string]func(m proto.Message) bool{
		"unproven": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Proof[0].Version.Hash = "nobody built this"
			}
			return is
		},
		"proven by another": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Proof[0].Build += "x"
			}
			return is
		},
		"undecided": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Decision = "nobody decided this"
			}
			return is
		},
		"elsewhere": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Base = "another head"
			}
			return is
		},
		"moves a branch": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Heads = append(f.Heads, &eventsv1.ReviewHead{Review: &eventsv1.Review{Branch: "refs/heads/another"}})
			}
			return is
		},
		"deletes another": func(m proto.Message) bool {
			f, is := m.(*eventsv1.ChangeLanded)
			if is {
				f.Deleted = append(f.Deleted, "//another")
			}
			return is
		},
		"never admitted": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandIntended)
			if is {
				f.Change = &eventsv1.ChangeRef{Change: "nobody asked for this", Revision: 1}
			}
			return is
		},
		"another tree": func(m proto.Message) bool {
			f, is := m.(*eventsv1.ChangeLanded)
			if is {
				f.Commits = append(f.Commits, "one more")
			}
			return is
		},
		"void is another": func(m proto.Message) bool {
			f, is := m.(*eventsv1.LandVoid)
			if is {
				f.Commit = "another"
			}
			return is
		},
	} {
		found := false
		altered := rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
			if counts && !found && e.Source == events.ServiceLander && e.Offset > 10 {
				m := proto.Clone(e.Message)
				if found = change(m); found {
					e.Message = m
				}
			}
			return []events.Envelope{e.Envelope}
		})
		if !found {
			continue // there is not always a void intention
		}
		r, lander := verify(t, altered, recompute.Options{}), recompute.Service{}
		for _, s := range r.Services {
			if s.Service == events.ServiceLander {
				lander = s
			}
		}
		if lander.Different == 0 || lander.Compared < 20 {
			t.Errorf("%s: %+v", name, lander)
		}
	}
}

// TestALandingOnWhatWasForgottenAndProvenAgainIsNoDifference: between the decision and the landing, as far as this
// lander had read, and the next one had not.
func TestALandingOnWhatWasForgottenAndProvenAgainIsNoDifference(t *testing.T) {
	w := &world{t: t, clock: 1_700_000_000_000_000, version: "one", log: memory.New(memory.Options{ID: "world", Partitions: 1})}
	say := func(topic, source string, term int64, m proto.Message) { w.append(topic, 0, source, "main", term, m) }
	version := func(change string) *eventsv1.TargetVersion {
		return &eventsv1.TargetVersion{Target: "//" + change, Hash: digest(change), Part: 1}
	}
	passed := func(change, build string, attempt uint32) {
		say(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.StepFinished{
			Target: "//" + change, Hash: digest(change), Attempt: attempt, Build: build, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
		})
	}
	say(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.MainlineMoved{To: "root", Initial: true})
	passed("a", "first", 1)
	passed("b", "first", 1)
	selector := w.claim(events.TopicDecisions, 0, events.ServiceSelector)
	for _, id := range []string{"a", "b"} {
		say(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: "main", Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}},
		}})
		say(events.TopicDecisions, events.ServiceSelector, selector, &eventsv1.Decision{StampUs: w.clock, Positions: &eventsv1.Positions{Builds: 2}, Items: []*eventsv1.DecisionItem{
			{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Decision: "land " + id}}},
		}})
	}
	say(events.TopicBuilds, events.ServiceBuilder, -1, &eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{version("a"), version("b")}})
	passed("a", "second", 2)
	head := "root"
	for _, x := range []struct {
		change, build string
		attempt       uint32
	}{{"a", "second", 2}, {"b", "first", 1}} {
		lander := w.claim(events.TopicChanges, 0, events.ServiceLander)
		i := &eventsv1.LandIntended{
			Change: &eventsv1.ChangeRef{Change: x.change, Revision: 1}, Decision: "land " + x.change, Base: head, Commits: []string{"tip " + x.change}, StampUs: w.clock,
			Proof: []*eventsv1.Proof{{Version: version(x.change), Build: x.build, Attempt: x.attempt}},
		}
		say(events.TopicChanges, events.ServiceLander, lander, i)
		say(events.TopicChanges, events.ServiceLander, lander, &eventsv1.ChangeLanded{Change: i.Change, Decision: i.Decision, Base: i.Base, Commits: i.Commits, Proof: i.Proof, StampUs: w.clock})
		head = "tip " + x.change
	}
	for _, s := range verify(t, w.log, recompute.Options{}).Services {
		if s.Service == events.ServiceLander && (s.Compared != 4 || s.Different != 0) {
			t.Errorf("%+v", s)
		}
	}
}

func TestRecordsOfOtherVersionsAreCountedAndNamedAndNotCompared(t *testing.T) {
	w := newWorld(t, seeded(t), "main", "web")
	w.run(6)
	w.version = "two"
	for _, x := range w.writers {
		x.replace()
	}
	w.run(6)
	altered := rewrite(t, w, func(e journal.Entry, counts bool) []events.Envelope {
		if p, is := e.Message.(*eventsv1.Profile); is && counts && p.Position < 20 {
			m := proto.Clone(p).(*eventsv1.Profile)
			m.StampUs++
			e.Message = m
		}
		return []events.Envelope{e.Envelope}
	})
	of := func(version string, all bool) *recompute.Report {
		return verify(t, altered, recompute.Options{Version: version, AllVersions: all})
	}
	first, second, neither, all := of("one", false), of("two", false), of("three", false), of("three", true)
	if first.Differences() == 0 || first.Others()["two"] != second.Compared() || second.Others()["one"] != first.Compared() {
		t.Errorf("one: %d compared, others %v; two: %d compared, others %v", first.Compared(), first.Others(), second.Compared(), second.Others())
	}
	if err := second.Err(); err != nil {
		t.Errorf("what version one wrote is held against version two: %v", err)
	}
	if neither.Compared() != 0 || neither.Others()["one"] != first.Compared() || neither.Err() != nil {
		t.Errorf("three wrote nothing: %d compared", neither.Compared())
	}
	if all.Compared() != first.Compared()+second.Compared() || all.Differences() != first.Differences() || len(all.Others()) != 0 {
		t.Errorf("all versions: %d compared, %d differ", all.Compared(), all.Differences())
	}
}

// TestALogThatIsStillWrittenIsVerifiedAsFarAsItGoes: what has no answer yet is no difference, torn ends neither.
func TestALogThatIsStillWrittenIsVerifiedAsFarAsItGoes(t *testing.T) {
	w := newWorld(t, seeded(t), "main")
	w.run(5)
	w.crew["main"].arrive()
	for _, x := range w.writers {
		if e, is := x.(*enumeratorWriter); is {
			e.step()
		}
	}
	tearing := memory.New(memory.Options{ID: w.log.ID(), Partitions: 2, Fault: func(topic string, _ int32, e events.Envelope) memory.Verdict {
		if e.ID == "torn" {
			return memory.Torn
		}
		return memory.Deliver
	}})
	for _, topic := range events.Topics() {
		for p := range w.log.Partitions() {
			c := w.follow(topic.Name, p)
			for e, ok := next(c); ok; e, ok = next(c) {
				if _, err := tearing.Append(t.Context(), topic.Name, p, e.Envelope); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	partition := w.crew["main"].partition
	_, err := tearing.Append(t.Context(), events.TopicChanges, partition, events.Envelope{ID: "torn", Source: events.ServiceGateway, Queue: "main", Term: -1,
		Message: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Description: strings.Repeat("x", 2*events.MaxRecordBytes)}}})
	if err == nil {
		t.Fatal("the append was not torn")
	}
	// The enumerator passes the torn record by: its next record is behind it.
	r := verify(t, tearing, recompute.Options{})
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	unanswered := false
	for _, s := range r.Services {
		unanswered = unanswered || s.Unanswered
	}
	if !unanswered {
		t.Error("everything was answered")
	}
}

func TestARecordThatNobodyWritesThereIsAnError(t *testing.T) {
	w := newWorld(t, seeded(t), "main")
	w.run(2)
	partition := w.crew["main"].partition
	w.append(events.TopicSpeculations, partition, "intruder", "main", -1, &eventsv1.Speculation{})
	if _, err := recompute.Verify(t.Context(), recompute.Options{Log: w.log, Version: "one"}); err == nil || !strings.Contains(err.Error(), "intruder") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b, 1, "main", "web", "app")
	w.run(60)
	var total int64
	for b.Loop() {
		r, err := recompute.Verify(b.Context(), recompute.Options{Log: w.log, Version: "one", Workers: 1})
		if err != nil || r.Err() != nil {
			b.Fatal(err, r.Err())
		}
		total += r.Compared()
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "records/s")
}
