package main

import (
	"context"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/api/apitest"
)

const (
	passed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
)

// tell has everything happen: in the queue shop changes that landed, were rejected or cancelled, and that are in every state; the queue docs
// is paused, and its mainline red; nothing has been asked of tools.
func tell(b *apitest.Backend) {
	land := func(queue, id, title, author string) {
		team := map[bool]string{true: "payments"}[strings.HasPrefix(author, "Ada") || strings.HasPrefix(author, "Cy")]
		_, _ = b.Land(context.Background(), &eventsv1.LandRequest{Queue: queue, Change: id, Title: title, Author: author, Team: team, Entries: []*eventsv1.Entry{{Ref: id}}}) // it is admitted: its commits exist
	}
	const (
		ada  = "Ada Byron <ada@example.com>"
		bo   = "Bo <bo@example.com>"
		cy   = "Cy Young <cy@example.com>"
		dana = "\u05d3\u05e0\u05d4 <dana@example.com>"
	)
	land("shop", "round-up", "Round prices up", ada)
	land("shop", "tax-table", "New tax table", cy)
	land("shop", "old-idea", "An idea of last year", bo)
	land("shop", "cart-more", "Count returns too", ada)
	land("shop", "prices-more", "Show prices in the currency of the reader, and round them as the law of the country where the reader lives says", bo)
	land("shop", "search-more", "\u05d7\u05d9\u05e4\u05d5\u05e9 (search) 12", dana)
	land("shop", "checkout-more", "Pay by invoice", cy)
	land("shop", "catalog-more", "More of the catalog", bo)

	for _, queue := range []string{"docs", "shop", "tools"} {
		b.Graph(queue, &eventsv1.GraphDelta{
			Settings: &eventsv1.QueueSettings{Repository: "shop", Branch: map[string]string{"shop": "main", "docs": "docs", "tools": "tools"}[queue], Strategy: "merge", Pool: map[bool]string{true: "linux", false: "default"}[queue == "tools"], PoolWorkers: 8, Workers: 4, Threshold: 0.05},
			Mainline: &eventsv1.Mainline{Head: apitest.Commit("main"), Analyzed: true},
		})
	}

	b.Schedule("shop", "round-1", "round-up", nil, "//prices:prices", "//checkout:checkout")
	b.PrepareOwned("shop", "round-1", "round-up", []string{"@shop/pricing"}, "//prices:prices", "//checkout:checkout")
	b.Finish("shop", "round-1", "//prices:prices", 1, failed, "FAIL prices: connection refused\n", "")
	b.Finish("shop", "round-1", "//prices:prices", 2, passed, "ok\n", "")
	b.Finish("shop", "round-1", "//checkout:checkout", 1, passed, "ok\n", "")
	b.LandIt("shop", "round-up", "round-1", nil, "//prices:prices", "//checkout:checkout")

	b.Schedule("shop", "tax-1", "tax-table", nil, "//tax:tax")
	b.Prepare("shop", "tax-1", "tax-table", "//tax:tax")
	b.Finish("shop", "tax-1", "//tax:tax", 1, failed, "checking tax\n\x1b[32mread\x1b[0m tax/a.txt\ntax/b.txt:1:a bug\n\x1b[31mFAIL\x1b[0m tax: there is a bug\n", "")
	b.Reject("shop", "tax-table", "tax-1", "//tax:tax", 1)
	b.Fold("shop", events.TopicChanges, &eventsv1.ChangeCancelled{Change: "old-idea", Who: "Bo", Why: "nobody wants it"})
	b.Fold("shop", events.TopicChanges, &eventsv1.ChangeHeld{Change: "prices-more", Hold: "sale", Who: "Grace", Why: "not before the sale"})

	b.Graph("shop", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{
		{Change: apitest.Ref("cart-more"), Analyzed: true, Classes: classes("cart-1", 0, "//cart:cart", "//checkout:checkout")},
		{Change: apitest.Ref("prices-more"), Analyzed: true, Classes: classes("prices-1", 0, "//prices:prices", "//checkout:checkout")},
		{Change: apitest.Ref("search-more"), Analyzed: true, Classes: classes("search-1", eventsv1.OutcomeState_OUTCOME_STATE_GREEN, "//search:search")},
		{Change: apitest.Ref("checkout-more"), Analyzed: true, Classes: classes("checkout-1", 0, "//checkout:checkout", "//invoice:invoice"), Ahead: []*eventsv1.Ahead{
			{Change: apitest.Ref("cart-more"), Targets: []string{"//checkout:checkout"}}, {Change: apitest.Ref("prices-more"), Targets: []string{"//checkout:checkout"}},
		}},
		{Change: apitest.Ref("catalog-more"), Analyzed: true, Classes: classes("catalog-1", 0, "//catalog:catalog"), Ahead: []*eventsv1.Ahead{{Change: apitest.Ref("search-more"), MergeConflict: true}}},
	}})
	predict(b)
	b.Schedule("shop", "cart-1", "cart-more", nil, "//cart:cart", "//checkout:checkout")
	b.Prepare("shop", "cart-1", "cart-more", "//cart:cart", "//checkout:checkout")
	b.Finish("shop", "cart-1", "//cart:cart", 1, passed, "ok\n", "")
	b.Fold("shop", events.TopicBuilds, &eventsv1.StepLeased{Target: "//checkout:checkout", Hash: apitest.VersionOf("cart-1", "//checkout:checkout"), Attempt: 1, Lease: "cart-1", Worker: "w2", Build: "cart-1", StampUs: at(1), UntilUs: at(-60)})
	for _, assumed := range [][]string{{"cart-more", "prices-more"}, {"cart-more"}, {"prices-more"}} {
		build := "checkout-" + assumed[0] + assumed[len(assumed)-1]
		b.Schedule("shop", build, "checkout-more", assumed, "//checkout:checkout", "//invoice:invoice")
		b.Prepare("shop", build, "checkout-more", "//checkout:checkout", "//invoice:invoice")
	}
	b.Finish("shop", "checkout-cart-moreprices-more", "//invoice:invoice", 1, passed, "ok\n", "")
	b.Finish("shop", "checkout-cart-moreprices-more", "//checkout:checkout", 1, passed, "ok\n", "")
	b.Finish("shop", "checkout-prices-moreprices-more", "//checkout:checkout", 1, failed, "FAIL checkout: 3 returns were not counted\n", "")
	b.Schedule("shop", "search-1", "search-more", nil, "//search:search")
	b.Prepare("shop", "search-1", "search-more", "//search:search")
	b.Finish("shop", "search-1", "//search:search", 1, passed, "ok\n", "")
	b.Estimate("shop", "cart-more", "", 31, 32, 33, 35, 40)
	b.Estimate("shop", "search-more", "", 30, 30, 30, 31, 32)
	b.Estimate("shop", "checkout-more", "", 36, 40, 44, 50, 70)
	until := now.Add(9 * 24 * time.Hour).UnixMicro()
	b.Fold("shop", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//e2e:*", UntilUs: until, Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_OPERATOR, Who: "Grace", Why: "a race in the test server", StampUs: at(60)})
	b.Fold("shop", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//search:search", UntilUs: until, Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION, Why: "slow disks", StampUs: at(60 * 30)})

	land("docs", "guide", "A guide for newcomers", ada)
	_, _ = b.Land(context.Background(), &eventsv1.LandRequest{Queue: "docs", Change: "guide", Title: "A guide for newcomers", Author: ada, Entries: []*eventsv1.Entry{{Ref: "guide-again"}}})
	red := &eventsv1.TargetVersion{Target: "//docs:links", Hash: apitest.VersionOf("docs-0", "//docs:links")}
	b.Fold("docs", events.TopicBuilds, &eventsv1.BuildPrepared{
		Build: "docs-0", Change: &eventsv1.ChangeRef{}, Base: "m", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{red},
	})
	b.Finish("docs", "docs-0", "//docs:links", 1, failed, "FAIL links: https://example.com/guide is away\n", "")
	b.Graph("docs", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{
		Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true, Inherited: []string{"//docs:links"},
		Classes: classes("docs-0", eventsv1.OutcomeState_OUTCOME_STATE_RED, "//docs:links"),
	}}})
	b.Fold("docs", events.TopicChanges, &eventsv1.QueuePaused{Who: "Grace", Why: "incident 7", StampUs: now.Add(-29 * time.Minute).UnixMicro()})
	b.Fold("shop", events.TopicChanges, &eventsv1.QueuePaused{Who: "Cy Young", StampUs: now.Add(-95 * time.Minute).UnixMicro()})
	b.Fold("shop", events.TopicChanges, &eventsv1.QueueResumed{Who: "Cy Young", StampUs: now.Add(-90 * time.Minute).UnixMicro()})
	b.Fold("shop", events.TopicChanges, &eventsv1.QueuePaused{Who: "Grace", Why: "incident 6", StampUs: now.Add(-70 * time.Minute).UnixMicro()})
	b.Fold("shop", events.TopicChanges, &eventsv1.QueueResumed{Who: "Bo", Why: "the provider is back", StampUs: now.Add(-50 * time.Minute).UnixMicro()})

	work(b)

	heard := now.Add(-time.Second)
	instance := func(service, name string, workers, busy int) health.Instance {
		return health.Instance{Service: service, Instance: name, Version: "0.1.0", Alive: true, Started: now.Add(-time.Hour), Heard: heard, Workers: workers, Busy: busy, Capacity: health.Capacity{Pool: map[bool]string{true: "default"}[service == events.ServiceBuilder]}}
	}
	linux := instance(events.ServiceBuilder, "linux-1", 4, 1)
	linux.Pool = "linux"
	silent := instance(events.ServiceBuilder, "build-3", 4, 0)
	silent.Alive, silent.Heard = false, now.Add(-7*time.Minute)
	report := health.Report{
		Instances: []health.Instance{
			instance(events.ServiceGateway, "web-1", 0, 0), instance(events.ServiceLander, "core-1", 0, 0), instance(events.ServiceEnumerator, "core-1", 0, 0),
			instance(events.ServiceBuilder, "build-1", 4, 3), instance(events.ServiceBuilder, "build-2", 4, 4), silent, linux,
		},
		Missing: []health.Missing{},
	}
	for i, queue := range []string{"docs", "shop", "tools"} {
		report.Partitions = append(report.Partitions, health.Ownership{Service: events.ServiceLander, Partition: int32(i), Queues: []string{queue}, Instance: "core-1", Term: int64(i), Since: now.Add(-time.Hour), State: health.StateWorking})
	}
	b.SetServices(report)
}

// predict has a model predict whether three changes of the queue shop pass, and ranks the builds of one of them.
func predict(b *apitest.Backend) {
	const model = "success 5f1d0c7a9b3e"
	p := &eventsv1.Profile{}
	for id, success := range map[string]float64{"cart-more": 0.94, "prices-more": 0.71, "checkout-more": 0.88} {
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: apitest.Ref(id), Success: success, SuccessSource: model, DurationMeanUs: 312e6, DurationStdUs: 44e6, DurationSource: "targets"})
	}
	for id, conflict := range map[string]float64{"cart-more": 0.08, "prices-more": 0.16} {
		p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: apitest.Ref("checkout-more"), Ahead: apitest.Ref(id), Conflict: conflict, Source: "prior"})
	}
	b.Profile("shop", p)
	b.Fold("shop", events.TopicPriorities, &eventsv1.Priority{StampUs: at(1), Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{
		{Change: apitest.Ref("cart-more"), Needed: 1, Value: 1},
		{Change: apitest.Ref("checkout-more"), Assumed: []*eventsv1.ChangeRef{apitest.Ref("cart-more"), apitest.Ref("prices-more")}, Needed: 0.62, Value: 0.36},
	}}})
}

// classes are the targets of a change in one class, as they are in a build; of the state that is known on the mainline, 0 if none is.
func classes(build string, state eventsv1.OutcomeState, targets ...string) []*eventsv1.Class {
	class := &eventsv1.Class{}
	for _, t := range targets {
		v := &eventsv1.TargetVersion{Target: t, Hash: apitest.VersionOf(build, t), Part: 1}
		class.Targets = append(class.Targets, v)
		if state != 0 {
			class.Outcomes = []*eventsv1.Outcome{{State: state, Version: v}}
		}
	}
	return []*eventsv1.Class{class}
}
