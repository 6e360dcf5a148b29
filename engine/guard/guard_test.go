package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
)

const (
	passed      = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed      = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	timedOut    = eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT
	couldNotRun = eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
	aborted     = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED
)

// attempts folds the finished attempts at //t@h, numbered from 1, each of a build of its own.
func attempts(l *evidence.Ledger, outcomes ...eventsv1.StepOutcome) {
	attemptsAt(l, "//t", "h", outcomes...)
}

func attemptsAt(l *evidence.Ledger, target, hash string, outcomes ...eventsv1.StepOutcome) {
	for _, o := range outcomes {
		n := l.NextAttempt(evidence.Version{Target: target, Hash: hash})
		l.Apply(&eventsv1.StepFinished{Target: target, Hash: hash, Attempt: n, Outcome: o,
			Build: fmt.Sprint("b", n), Reason: fmt.Sprintf("%s, attempt %d", target, n)})
	}
}

// push moves the mainline past the queue, from m0 to m1. affected is what the analysis found, nil if there is none yet.
func push(p *directpush.Pushes, affected *eventsv1.Affected) {
	p.Moved(&eventsv1.MainlineMoved{From: "m0", To: "m1"}, 1)
	if affected != nil {
		p.Analyzed(&eventsv1.MainlineAnalyzed{From: "m0", To: "m1", Affected: affected})
	}
}

func targets(versions ...*eventsv1.TargetVersion) *eventsv1.Affected {
	return &eventsv1.Affected{Targets: versions}
}

// TestExamine: what each state of the evidence makes of one version //t@h, under a policy that retries each kind of
// failure once.
func TestExamine(t *testing.T) {
	policy := &eventsv1.StepPolicy{FailedRetries: 1, TimedOutRetries: 1, InfrastructureRetries: 1}
	for _, c := range []struct {
		name    string
		version *eventsv1.TargetVersion
		known   func(l *evidence.Ledger, p *directpush.Pushes)
		// want lists what the version is, with the attempt that made it so.
		want string
	}{
		{"nothing is known of it", nil, nil, "missing"},
		{"it passed", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, passed) }, "proven by b1#1"},
		{"another hash of its target passed", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attemptsAt(l, "//t", "other", passed) }, "missing"},
		{"another target with its hash passed", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attemptsAt(l, "//other", "h", passed) }, "missing"},
		{"the tree lacks the target", &eventsv1.TargetVersion{Target: "//t", Absent: true}, nil, "proven by nothing"},
		{"no command verifies it", &eventsv1.TargetVersion{Target: "//t", Hash: "h", Trivial: true}, nil, "proven by nothing"},
		{"no command verifies it, as an earlier record said", nil, func(l *evidence.Ledger, _ *directpush.Pushes) {
			l.MarkTrivial(evidence.Version{Target: "//t", Hash: "h"})
		}, "proven by nothing"},
		{"it has no hash, yet is not absent", &eventsv1.TargetVersion{Target: "//t"}, nil, "missing"},

		{"it failed, and is retried", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, failed) }, "missing"},
		{"it failed once too often", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, failed, failed) }, "missing, red by b2#2: //t, attempt 2"},
		{"it is a flake that passed within its retries", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, failed, passed) }, "proven by b2#2"},
		{"it passed once it was red", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, failed, failed, passed) }, "missing, red by b2#2: //t, attempt 2"},
		{"it failed once it was green", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, passed, failed, failed) }, "proven by b1#1"},
		{"its failures were withdrawn", nil, func(l *evidence.Ledger, _ *directpush.Pushes) {
			attempts(l, failed, failed)
			l.Withdraw(evidence.Version{Target: "//t", Hash: "h"}, 2)
		}, "missing"},
		{"it timed out, and is retried", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, timedOut) }, "missing"},
		{"it timed out once too often", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, timedOut, timedOut) }, "missing, exhausted by b2#2: //t, attempt 2"},
		{"it could not run once too often", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, couldNotRun, couldNotRun) }, "missing, exhausted by b2#2: //t, attempt 2"},
		{"each kind of failure has its own retries", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, failed, timedOut, couldNotRun) }, "missing"},
		{"it was aborted, which is no result", nil, func(l *evidence.Ledger, _ *directpush.Pushes) { attempts(l, aborted, aborted, aborted) }, "missing"},

		{"M23a: red, while a push is not analysed", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			push(p, nil)
		}, "missing"},
		{"M23a: red, and a push left its target red", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			attemptsAt(l, "//t", "pushed", failed, failed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//t", Hash: "pushed"}))
		}, "missing"},
		{"M23a: red, and what a push made of its target is not verified", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//t", Hash: "pushed"}))
		}, "missing"},
		{"M23a: red, and a push left the whole repository unverified", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			push(p, &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: "//:repository", Hash: "pushed"}}})
		}, "missing"},
		{"red, and what a push made of its target is green", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			attemptsAt(l, "//t", "pushed", passed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//t", Hash: "pushed"}))
		}, "missing, red by b2#2: //t, attempt 2"},
		{"red, and a push left another target red", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//other", Hash: "pushed"}))
		}, "missing, red by b2#2: //t, attempt 2"},
		{"red, and a landing has replaced what a push left red", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, failed, failed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//t", Hash: "pushed"}))
			p.Landed(&eventsv1.ChangeLanded{Commits: []string{"m2"}, Proof: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//t"}}}}, 2)
		}, "missing, red by b2#2: //t, attempt 2"},
		{"green, whatever a push left red", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, passed)
			push(p, targets(&eventsv1.TargetVersion{Target: "//t", Hash: "pushed"}))
		}, "proven by b1#1"},
		{"exhausted, whatever a push left red", nil, func(l *evidence.Ledger, p *directpush.Pushes) {
			attempts(l, timedOut, timedOut)
			push(p, nil)
		}, "missing, exhausted by b2#2: //t, attempt 2"},
	} {
		l, p := evidence.NewLedger(), directpush.New()
		if c.known != nil {
			c.known(l, p)
		}
		version := c.version
		if version == nil {
			version = &eventsv1.TargetVersion{Target: "//t", Hash: "h"}
		}
		f := guard.Examine(guard.Candidate{Versions: []*eventsv1.TargetVersion{version}}, guard.Evidence{Ledger: l, Policy: policy, Pushes: p})
		if got := describe(f); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}

// describe lists what each version of a finding is.
func describe(f guard.Finding) string {
	var list []string
	for _, p := range f.Proof {
		list = append(list, "proven by "+step(p))
	}
	for range f.Missing {
		list = append(list, "missing")
	}
	for _, p := range f.Red {
		list = append(list, fmt.Sprintf("red by %s: %s", step(p), f.RedReason))
	}
	for _, p := range f.Exhausted {
		list = append(list, fmt.Sprintf("exhausted by %s: %s", step(p), f.ExhaustedReason))
	}
	return strings.Join(list, ", ")
}

func step(p *eventsv1.Proof) string {
	if p.Build == "" && p.Attempt == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%s#%d", p.Build, p.Attempt)
}

// TestExamineKeepsTheOrderOfTheVersions, leaves none out, and gives the reasons of what is red and of what is exhausted apart.
func TestExamineKeepsTheOrderOfTheVersions(t *testing.T) {
	l := evidence.NewLedger()
	attemptsAt(l, "//exhausted", "h", timedOut)
	attemptsAt(l, "//exhausted2", "h", timedOut)
	attemptsAt(l, "//red", "h", failed)
	attemptsAt(l, "//red2", "h", failed)
	attemptsAt(l, "//green", "h", passed)
	attemptsAt(l, "//green2", "h", passed)
	examine := func(names ...string) guard.Finding {
		var c guard.Candidate
		for _, name := range names {
			c.Versions = append(c.Versions, &eventsv1.TargetVersion{Target: "//" + name, Hash: "h"})
		}
		f := guard.Examine(c, guard.Evidence{Ledger: l, Policy: &eventsv1.StepPolicy{}, Pushes: directpush.New()})
		var proven, missing []string
		for _, p := range f.Proof {
			proven = append(proven, p.Version.Target)
		}
		for _, v := range f.Missing {
			missing = append(missing, v.Target)
		}
		var want [2][]string
		for _, name := range names {
			if strings.HasPrefix(name, "green") {
				want[0] = append(want[0], "//"+name)
			} else {
				want[1] = append(want[1], "//"+name)
			}
		}
		if !slices.Equal(proven, want[0]) || !slices.Equal(missing, want[1]) {
			t.Errorf("%v: proven %v, missing %v", names, proven, missing)
		}
		return f
	}
	for _, c := range []struct{ versions, red, exhausted string }{
		{"green2 green", "", ""},
		{"green exhausted unknown exhausted2", "", "//exhausted, attempt 1"},
		{"exhausted red green2 red2 exhausted2", "//red2, attempt 1", "//exhausted, attempt 1"},
		{"red2 red", "//red, attempt 1", ""},
	} {
		if f := examine(strings.Fields(c.versions)...); f.RedReason != c.red || f.ExhaustedReason != c.exhausted {
			t.Errorf("%s: red for %q and exhausted for %q, want %q and %q", c.versions, f.RedReason, f.ExhaustedReason, c.red, c.exhausted)
		}
	}
}

// The parts of the rows below.
var (
	version  = &eventsv1.TargetVersion{Target: "//t", Hash: "h"}
	whole    = []*eventsv1.TargetVersion{{Target: "//green", Hash: "h"}, version}
	unmerged = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, Message: "cmd/main.go was changed by both"}
	invalid  = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INVALID, Message: "landfall.yaml:3: no such step"}
	proposed = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Message: "as proposed", Other: "early"}

	green     = guard.Finding{Proof: []*eventsv1.Proof{{Version: version, Build: "b", Attempt: 1}}}
	missing   = guard.Finding{Missing: []*eventsv1.TargetVersion{version}}
	red       = guard.Finding{Missing: missing.Missing, Red: []*eventsv1.Proof{{Version: version, Build: "b", Attempt: 2}}, RedReason: "exit status 1"}
	exhausted = guard.Finding{Missing: missing.Missing, Exhausted: []*eventsv1.Proof{{Version: version, Build: "b", Attempt: 3}}, ExhaustedReason: "after 10 minutes"}
)

// TestM21MayLand: a landing takes effect if nothing stands in T's way and every version of δ(M, T) is green.
func TestM21MayLand(t *testing.T) {
	for _, c := range []struct {
		name     string
		obstacle *eventsv1.Reason
		finding  guard.Finding
		want     *eventsv1.Refused
	}{
		{"every version is green", nil, green, nil},
		{"nothing is altered", nil, guard.Finding{}, nil},
		{"it does not merge", unmerged, green, &eventsv1.Refused{Class: unmerged.Class, Message: unmerged.Message, Disproved: true}},
		{"its targets are invalid", invalid, guard.Finding{}, &eventsv1.Refused{Class: invalid.Class, Message: invalid.Message, Disproved: true}},
		{"a version is not proven", nil, missing, notProven},
		{"a version is red", nil, red, notProven},
		{"a version has used up its retries", nil, exhausted, notProven},
	} {
		got := guard.MayLand(guard.Candidate{Obstacle: c.obstacle, Versions: whole}, c.finding)
		if !proto.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

var notProven = &eventsv1.Refused{Versions: whole, Missing: missing.Missing, Disproved: true,
	Message: "1 target versions of the tree that would land are not proven, //t among them"}

// TestM21MayReject: a rejection takes effect if T does not merge, defines no valid targets, or has a version that is red
// and not by a direct push; or if a requirement can no longer land.
func TestM21MayReject(t *testing.T) {
	refused := func(missing ...*eventsv1.TargetVersion) *eventsv1.Refused {
		return &eventsv1.Refused{Versions: whole, Missing: missing, Disproved: true, Message: "no target version of the tree that would land is proven red"}
	}
	noRequirement := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT, Other: "early", Message: "it requires early, which will not land"}
	for _, c := range []struct {
		name        string
		obstacle    *eventsv1.Reason
		finding     guard.Finding
		requirement string
		reason      *eventsv1.Reason
		refused     *eventsv1.Refused
	}{
		{"a version is red", nil, red, "", &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "exit status 1", Failed: red.Red, Other: "early"}, nil},
		{"it does not merge", unmerged, green, "", unmerged, nil},
		{"its targets are invalid", invalid, red, "", invalid, nil},
		{"a requirement can no longer land", nil, green, "early", noRequirement, nil},
		{"a requirement can no longer land, and it does not merge", unmerged, red, "early", noRequirement, nil},
		{"every version is green", nil, green, "", nil, refused()},
		{"a version is not proven, or blocked by a direct push", nil, missing, "", nil, refused(version)},
		{"a version has used up its retries", nil, exhausted, "", nil, refused(version)},
	} {
		reason, refused := guard.MayReject(guard.Candidate{Obstacle: c.obstacle, Versions: whole}, c.finding, proposed, c.requirement)
		if !proto.Equal(reason, c.reason) || !proto.Equal(refused, c.refused) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, reason, refused, c.reason, c.refused)
		}
	}
}

// TestM21MayEject: an ejection takes effect if some version has used up its retries, or none could even be tried.
func TestM21MayEject(t *testing.T) {
	refused := func(missing ...*eventsv1.TargetVersion) *eventsv1.Refused {
		return &eventsv1.Refused{Versions: whole, Missing: missing, Disproved: true, Message: "no target version of the tree that would land has used up its retries"}
	}
	usedUp := &eventsv1.Reason{Class: proposed.Class, Message: "after 10 minutes", Failed: exhausted.Exhausted}
	for _, c := range []struct {
		name       string
		obstacle   *eventsv1.Reason
		finding    guard.Finding
		unprepared bool
		reason     *eventsv1.Reason
		refused    *eventsv1.Refused
	}{
		{"a version has used up its retries", nil, exhausted, false, usedUp, nil},
		{"a version has used up its retries, and trees could not be made", nil, exhausted, true, usedUp, nil},
		{"a version is red, and another has used up its retries", nil, guard.Finding{Missing: missing.Missing, Red: red.Red, RedReason: red.RedReason, Exhausted: exhausted.Exhausted, ExhaustedReason: exhausted.ExhaustedReason}, false, usedUp, nil},
		{"trees could not be made", nil, missing, true, &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, Message: "as proposed"}, nil},
		{"trees could not be made, yet every version is green", nil, green, true, nil, refused()},
		{"a version is not proven", nil, missing, false, nil, refused(version)},
		{"a version is red", nil, red, false, nil, refused(version)},
		{"it does not merge", unmerged, exhausted, true, nil, &eventsv1.Refused{Class: unmerged.Class, Message: unmerged.Message, Disproved: true}},
	} {
		reason, refused := guard.MayEject(guard.Candidate{Obstacle: c.obstacle, Versions: whole}, c.finding, proposed, c.unprepared)
		if !proto.Equal(reason, c.reason) || !proto.Equal(refused, c.refused) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, reason, refused, c.reason, c.refused)
		}
	}
}
