package main

import (
	"fmt"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// work has the workers of the pool linux run steps of the queue tools in the last ten minutes: of builds of changes that are long gone, and of
// the mainline.
func work(b *apitest.Backend) {
	at := func(second int) int64 { return now.UnixMicro() - 600_000_000 + int64(second)*1_000_000 }
	build := func(change string, scheduled, prepared, aborted int, targets ...string) {
		s := &eventsv1.BuildScheduled{Build: "of " + change, Change: &eventsv1.AssumedChange{Change: apitest.Ref(change)}}
		if change == "" {
			s.Change = nil
		}
		b.Fold("tools", events.TopicDecisions, &eventsv1.Decision{StampUs: at(scheduled), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}})
		p := &eventsv1.BuildPrepared{Build: s.Build, Change: s.Change.GetChange(), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, StartedUs: at(scheduled), FinishedUs: at(prepared)}
		for i, t := range targets {
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: apitest.VersionOf(change, t), Part: 1})
			if t == "//render:gpu" {
				p.Claims = append(p.Claims, &eventsv1.StepClaims{Version: uint32(i), Labels: []string{"gpu"}})
			}
		}
		b.Fold("tools", events.TopicBuilds, p)
		if aborted > 0 {
			b.Fold("tools", events.TopicDecisions, &eventsv1.Decision{StampUs: at(aborted), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: s.Build}}}}})
		}
	}
	attempts := map[string]uint32{}
	step := func(worker int, change, target string, from, to int, outcome eventsv1.StepOutcome, reason string) {
		version := apitest.VersionOf(change, target)
		attempts[version]++
		name := fmt.Sprintf("linux-1/%d", worker)
		b.Fold("tools", events.TopicBuilds, &eventsv1.StepLeased{Target: target, Hash: version, Attempt: attempts[version], Lease: version, Worker: name, Build: "of " + change, StampUs: at(from), UntilUs: at(from + 700)})
		if to == 0 {
			return
		}
		b.Fold("tools", events.TopicBuilds, &eventsv1.StepFinished{Target: target, Hash: version, Attempt: attempts[version], Worker: name, Build: "of " + change, Outcome: outcome, Reason: reason, StartedUs: at(from) + 400_000, FinishedUs: at(to)})
	}
	const aborted = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED
	build("menu-wide", 4, 20, 0, "//menu:menu", "//menu:keys", "//theme:theme", "//render:render")
	build("faster-start", 60, 74, 330, "//start:start", "//menu:menu", "//render:gpu")
	build("theme-dark", 250, 262, 0, "//theme:theme", "//theme:contrast", "//render:render", "//docs:docs")
	build("icons", 480, 500, 0, "//icons:icons", "//theme:theme")
	build("", 385, 400, 0, "//lint:lint")

	step(1, "menu-wide", "//menu:menu", 20, 112, passed, "")
	step(2, "menu-wide", "//menu:keys", 20, 64, failed, "Command \"test\" ended with exit code 1.")
	step(3, "menu-wide", "//theme:theme", 20, 64, aborted, "The step was ended: no build needs its result any more.")
	step(2, "faster-start", "//start:start", 74, 250, passed, "")
	step(3, "faster-start", "//menu:menu", 74, 205, aborted, "The step was ended, and is run again: a change that was moved to the front needs its worker.")
	step(4, "faster-start", "//menu:menu", 206, 300, passed, "")
	step(1, "theme-dark", "//theme:theme", 262, 310, passed, "")
	step(3, "theme-dark", "//theme:contrast", 262, 270, passed, "")
	step(3, "theme-dark", "//docs:docs", 270, 283, passed, "")
	step(2, "theme-dark", "//render:render", 262, 470, passed, "")
	step(4, "", "//lint:lint", 400, 452, passed, "")
	step(1, "icons", "//theme:theme", 500, 548, passed, "")
	step(2, "icons", "//icons:icons", 500, 0, 0, "")
}
