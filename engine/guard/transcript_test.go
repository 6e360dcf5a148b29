package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
)

// TestTranscripts plays testdata/*.txt. The commands are:
//
//	policy [failed=N] [timed-out=N] [could-not-run=N]   how often each kind of end is retried; 0 by default
//	steps                                               finished steps, one a line: TARGET@HASH OUTCOME
//	push                                                a direct push, with the versions that it gives the mainline
//	push-unanalyzed                                     a direct push that nobody has analysed yet
//	examine [obstacle=TEXT] [requirement=CHANGE] [unprepared] [base=(VERSION,...)]
//	                                                    a tree that would land, by the versions of δ(M, T), and those that M
//	                                                    has: what the guard finds, and its answer to each of the three decisions
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		ledger, pushes, policy := evidence.NewLedger(), directpush.New(), &eventsv1.StepPolicy{}
		moves := uint64(0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "policy":
				policy = &eventsv1.StepPolicy{}
				d.MaybeScanArgs(t, "failed", &policy.FailedRetries)
				d.MaybeScanArgs(t, "timed-out", &policy.TimedOutRetries)
				d.MaybeScanArgs(t, "could-not-run", &policy.InfrastructureRetries)
				return ""
			case "steps":
				var out strings.Builder
				for _, line := range strings.Split(d.Input, "\n") {
					name, outcome, _ := strings.Cut(line, " ")
					v := versionOf(t, name)
					attemptsAt(ledger, v.Target, v.Hash, outcomeOf(t, strings.TrimSpace(outcome)))
					fmt.Fprintf(&out, "%s is %v\n", name, ledger.State(evidence.Version{Target: v.Target, Hash: v.Hash}, policy))
				}
				return out.String()
			case "push", "push-unanalyzed":
				moves++
				from, to := fmt.Sprint("p", moves-1), fmt.Sprint("p", moves)
				pushes.Moved(&eventsv1.MainlineMoved{From: from, To: to}, moves)
				if d.Cmd == "push" {
					pushes.Analyzed(&eventsv1.MainlineAnalyzed{From: from, To: to, Affected: targets(versionsOf(t, d.Input)...)})
				}
				return ""
			case "examine":
				return examined(t, d, guard.Evidence{Ledger: ledger, Policy: policy, Pushes: pushes})
			}
			t.Fatalf("%s: no such command", d.Pos)
			return ""
		})
	})
}

func examined(t *testing.T, d *datadriven.TestData, e guard.Evidence) string {
	c := guard.Candidate{Versions: versionsOf(t, d.Input)}
	if d.HasArg("base") {
		c.Base = map[string]*eventsv1.TargetVersion{}
		for _, a := range d.CmdArgs {
			if a.Key == "base" {
				for _, v := range versionsOf(t, strings.Join(a.Vals, "\n")) {
					c.Base[v.Target] = v
				}
			}
		}
	}
	obstacle, requirement := "", ""
	d.MaybeScanArgs(t, "obstacle", &obstacle)
	d.MaybeScanArgs(t, "requirement", &requirement)
	if obstacle != "" {
		c.Obstacle = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, Message: strings.ReplaceAll(obstacle, "-", " ")}
	}
	f := guard.Examine(c, e)
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	for _, p := range f.Proof {
		line("  %-10s %s by %s", "proven", p.Version.Target, step(p))
	}
	for _, v := range f.Missing {
		line("  %-10s %s", "missing", v.Target)
	}
	for _, p := range f.Red {
		line("  %-10s %s by %s", "red", p.Version.Target, step(p))
	}
	for _, p := range f.Exhausted {
		line("  %-10s %s by %s", "exhausted", p.Version.Target, step(p))
	}
	for _, v := range f.BaseUnproven {
		line("  %-10s %s@%s on the mainline", "unproven", v.Target, v.Hash)
	}
	answer := func(decision string, reason *eventsv1.Reason, refused *eventsv1.Refused) {
		switch {
		case refused != nil:
			line("%-7s refused: %s", decision, refused.Message)
		case reason != nil:
			line("%-7s takes effect: %s %q", decision, strings.ToLower(strings.TrimPrefix(reason.Class.String(), "REASON_CLASS_")), reason.Message)
		default:
			line("%-7s takes effect", decision)
		}
	}
	answer("land", nil, guard.MayLand(c, f))
	reason, refused := guard.MayReject(c, f, nil, requirement)
	answer("reject", reason, refused)
	proposed := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Message: "as proposed"}
	reason, refused = guard.MayEject(c, f, proposed, d.HasArg("unprepared"))
	answer("eject", reason, refused)
	return out.String()
}

// versionsOf reads one version a line: TARGET@HASH, TARGET@HASH trivial, or TARGET absent.
func versionsOf(t *testing.T, input string) (list []*eventsv1.TargetVersion) {
	for _, line := range strings.Split(input, "\n") {
		if line != "" {
			list = append(list, versionOf(t, line))
		}
	}
	return list
}

func versionOf(t *testing.T, line string) *eventsv1.TargetVersion {
	name, what, _ := strings.Cut(line, " ")
	target, hash, hashed := strings.Cut(name, "@")
	if hashed == (what == "absent") {
		t.Fatalf("%q is no version", line)
	}
	return &eventsv1.TargetVersion{Target: target, Hash: hash, Trivial: what == "trivial", Absent: what == "absent"}
}

func outcomeOf(t *testing.T, name string) eventsv1.StepOutcome {
	o, known := eventsv1.StepOutcome_value["STEP_OUTCOME_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))]
	if !known {
		t.Fatalf("%q is no outcome", name)
	}
	return eventsv1.StepOutcome(o)
}
