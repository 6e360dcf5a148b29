package steps

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. The lines of "records" are records of the log, one after the other:
//
//	at SECOND                              the clock of those that follow, 0 at first
//	schedule BUILD CHANGE VALUE [failed=N] the selector schedules a build; "-" is the mainline itself
//	abort BUILD [for BUILD]                it aborts one, in favour of another
//	prepared BUILD TARGET@HASH ...         the versions of its tree; "prepared BUILD unmergeable" has none
//	leased TARGET@HASH LEASE SECONDS       a worker claims the next attempt at a version, or extends its claim
//	finished TARGET@HASH OUTCOME SECONDS   the attempt ends; it took that long
//	admitted CHANGE, cancelled CHANGE
//	rejected CHANGE TARGET@HASH            and what spoke against the version is withdrawn
//	forgotten TARGET@HASH
//
// The output is what is to be prepared, what is to be run, in this order, and who runs what. "forgettable" lists the versions
// that may be forgotten.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{t: t, queue: New()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.at = d.Pos
			switch d.Cmd {
			case "records":
				for _, line := range strings.Split(d.Input, "\n") {
					if words := strings.Fields(line); words[0] == "at" {
						s.clock = s.seconds(words[1])
					} else {
						s.queue.Apply(s.record(words), Origin{})
					}
				}
				return s.shown()
			case "forgettable":
				keep := 0
				d.MaybeScanArgs(t, "keep", &keep)
				var names []string
				for _, v := range s.queue.Forgettable(keep) {
					names = append(names, nameOf(v))
				}
				return fmt.Sprintf("%s, of %d\n", strings.Join(names, " "), s.queue.Remembered())
			}
			s.fail("no such command: %s", d.Cmd)
			return ""
		})
	})
}

// script makes records of lines.
type script struct {
	t     *testing.T
	at    string
	queue *Queue
	clock int64
}

func (s *script) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf(s.at+": "+format, args...)
}

func (s *script) seconds(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.fail("%v", err)
	}
	return n * 1_000_000
}

func (s *script) version(name string) Version {
	target, hash, ok := strings.Cut(name, "@")
	if !ok {
		s.fail("%s is no version", name)
	}
	return Version{Target: target, Hash: hash}
}

func nameOf(v Version) string { return v.Target + "@" + v.Hash }

func (s *script) record(words []string) proto.Message {
	first := words[1]
	ref := &eventsv1.ChangeRef{Change: first, Revision: 1}
	switch words[0] {
	case "schedule":
		b := &eventsv1.BuildScheduled{Build: first, Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{}}, Steps: &eventsv1.StepPolicy{}}
		if words[2] != "-" {
			b.Change.Change = &eventsv1.ChangeRef{Change: words[2], Revision: 1}
		}
		b.Value, _ = strconv.ParseFloat(words[3], 64)
		if len(words) > 4 {
			n, _ := strconv.Atoi(strings.TrimPrefix(words[4], "failed="))
			b.Steps.FailedRetries = uint32(n)
		}
		return &eventsv1.Decision{StampUs: s.clock, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: b}}}}
	case "abort":
		return &eventsv1.Decision{StampUs: s.clock, Items: []*eventsv1.DecisionItem{aborted(first, strings.Join(words[min(3, len(words)):], ""))}}
	case "prepared":
		p := &eventsv1.BuildPrepared{Build: first, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		if b := s.queue.live[first]; b != nil {
			p.Change = b.change()
		}
		if words[2] == "unmergeable" {
			p.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE
			return p
		}
		for _, name := range words[2:] {
			v := s.version(name)
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash, Part: 1})
		}
		return p
	case "leased":
		v := s.version(first)
		return &eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: s.queue.ledger.NextAttempt(v), Lease: words[2],
			StampUs: s.clock, UntilUs: s.clock + s.seconds(words[3])}
	case "finished":
		v := s.version(first)
		o := eventsv1.StepOutcome_value["STEP_OUTCOME_"+strings.ToUpper(strings.ReplaceAll(words[2], "-", "_"))]
		if o == 0 {
			s.fail("nothing ends as %s", words[2])
		}
		return &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: s.queue.ledger.NextAttempt(v), Outcome: eventsv1.StepOutcome(o),
			StartedUs: s.clock, FinishedUs: s.clock + s.seconds(words[3])}
	case "admitted":
		return &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: first, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}
	case "cancelled":
		return &eventsv1.ChangeCancelled{Change: first}
	case "rejected":
		v := s.version(words[2])
		return &eventsv1.ChangeRejected{Change: ref, Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{
			Version: &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash}, Attempt: s.queue.ledger.NextAttempt(v) - 1}}}}
	case "forgotten":
		return evidence.ForgottenRecord([]Version{s.version(first)})
	}
	s.fail("no such record: %s", words[0])
	return nil
}

func (s *script) shown() string {
	var out strings.Builder
	line := func(what string, list []string) {
		if len(list) > 0 {
			fmt.Fprintf(&out, "%-8s %s\n", what, strings.Join(list, "  "))
		}
	}
	var prepare, run, held []string
	for _, p := range s.queue.Preparations(s.clock) {
		prepare = append(prepare, p.Build.Build)
	}
	for _, step := range s.queue.Next(s.clock, 100, nil, nil) {
		run = append(run, fmt.Sprintf("%s#%d for %s", nameOf(step.Version), step.Attempt, step.Build.Build))
	}
	for _, l := range s.queue.Leases() {
		state := ""
		if !s.queue.Wants(l.Version) {
			state = ", unwanted"
		}
		held = append(held, fmt.Sprintf("%s#%d by %s until %d%s", nameOf(l.Version), l.Attempt, l.ID, l.UntilUs/1_000_000, state))
	}
	line("prepare", prepare)
	line("run", run)
	line("leased", held)
	if s.queue.Idle() {
		out.WriteString("idle\n")
	}
	return out.String()
}
