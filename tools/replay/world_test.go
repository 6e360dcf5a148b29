package replay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/enumerator"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

const testQueue = "main"

// play runs the production loops of the cores on a log while n changes are admitted, analysed, prepared and built,
// and returns when a decision has been written for the last of them.
func play(t *testing.T, log journal.Log, version string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	partition := events.PartitionOf(testQueue, log.Partitions())
	options := runner.Options{Log: log, Instance: "i", Version: version, Logger: slog.New(slog.DiscardHandler)}
	settings := map[string]*eventsv1.QueueSettings{testQueue: {
		Hash: "h", Repository: "r", Branch: "main", Workers: 100, Threshold: 0.01, Best: 8, Steps: &eventsv1.StepPolicy{},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000,
	}}
	wg.Go(func() { enumerator.Run(ctx, enumerator.Options{Options: options, Settings: settings}, partition) })
	for _, s := range []runner.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(log.ID())} {
		wg.Go(func() { runner.Run(ctx, options, s.Service(), partition) })
	}
	say := func(source string, m proto.Message) {
		t.Helper()
		if _, err := log.Append(ctx, events.TopicChanges, partition, events.Envelope{
			ID: "x", Source: source, Queue: testQueue, Time: time.Now(), Term: -1, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	say("world", &eventsv1.MainlineMoved{To: "root", Initial: true})
	decisions, err := log.Follow(ctx, events.TopicDecisions, partition, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer decisions.Close()
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		say(events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: testQueue, Change: id, Revision: 1, Title: "Change " + id, LandingCommits: []*eventsv1.LandingCommit{{Head: id, Base: "root"}}, Mainline: "root"}})
		say(events.ServiceAnalyzer, &eventsv1.ChangeAnalyzed{
			Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Base: "root", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
			Affected: &eventsv1.Affected{Adapter: "manifest", Leaves: []string{id}, Targets: []*eventsv1.TargetVersion{{Target: fmt.Sprintf("//t%d", i%3), Hash: id, Part: 1}}},
		})
		awaitBuild(t, decisions, id)
	}
}

// awaitBuild waits until a build of a change is scheduled.
func awaitBuild(t *testing.T, decisions journal.Cursor, change string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		e, err := decisions.Next(ctx)
		if err != nil {
			t.Fatalf("no build of %s: %v", change, err)
		}
		if d, is := e.Message.(*eventsv1.Decision); is {
			for _, i := range d.Items {
				if i.GetBuildScheduled().GetChange().GetChange().GetChange() == change {
					return
				}
			}
		}
	}
}

// entries are the counted records of a topic.
func entries(t *testing.T, log journal.Log, topic string) (out []journal.Entry) {
	t.Helper()
	partition := events.PartitionOf(testQueue, log.Partitions())
	end, err := log.End(t.Context(), topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	c, err := log.Follow(t.Context(), topic, partition, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	terms := journal.NewTerms(topic)
	for at := int64(0); at < end; {
		e, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at = e.Offset + 1
		if terms.Counts(e) {
			out = append(out, e)
		}
	}
	return out
}
