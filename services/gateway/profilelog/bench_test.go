package profilelog_test

import (
	"fmt"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/profilelog"
	"landfall.build/services/gateway/view"
)

// BenchmarkAnswer is one full explanation that reads 10,000 profiles, each of which replaces a node with 16 ahead and predicts anew.
func BenchmarkAnswer(b *testing.B) {
	const profiles, pending = 10_000, 500
	w := newWorld(b)
	w.claim()
	for i := range pending {
		w.admit(fmt.Sprint("c", i))
	}
	for i := range int64(profiles) {
		at := int(i) % pending
		var ahead []string
		p := &eventsv1.Profile{Position: i + 1, StampUs: i * 100_000, Delta: &eventsv1.GraphDelta{}}
		if i == 0 {
			p.Delta.Settings, p.Delta.Mainline = &eventsv1.QueueSettings{Threshold: 0.1}, &eventsv1.Mainline{Analyzed: true}
		}
		id := fmt.Sprint("c", at)
		for j := max(0, at-16); j < at; j++ {
			ahead = append(ahead, fmt.Sprint("c", j))
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: ref(id), Ahead: ref(ahead[len(ahead)-1]), Conflict: 0.05, Source: "conflict-0123456789ab", Features: make([]float32, 40)})
		}
		p.Delta.Nodes = []*eventsv1.Node{nodeOf(id, int64(at+1), ahead...)}
		p.Predictions = []*eventsv1.Prediction{predicted(id, 0.9, "success-0123456789ab", 80)}
		w.profile(w.term, p)
	}
	term := w.write(events.TopicDecisions, events.ServiceSelector, -1, &eventsv1.Claim{Service: events.ServiceSelector})
	w.write(events.TopicDecisions, events.ServiceSelector, term, &eventsv1.Decision{Position: profiles, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
		BuildScheduled: &eventsv1.BuildScheduled{Build: "b", Change: &eventsv1.AssumedChange{Change: ref("c499")}}}}}})
	for _, topic := range []string{events.TopicChanges, events.TopicProfiles, events.TopicDecisions} {
		w.read(topic)
	}
	for b.Loop() {
		i, _ := w.view.Inquire("c499")
		if err := (profilelog.Reader{Log: w.log}).Answer(b.Context(), queue, i, func(f func(*view.Queue)) { f(w.view) }); err != nil {
			b.Fatal(err)
		}
		if i.Answer.Builds[0].Then == nil || i.Answer.Omitted != "" {
			b.Fatalf("%+v", i.Answer)
		}
	}
	b.ReportMetric(profiles*float64(b.N)/b.Elapsed().Seconds(), "profiles/s")
}
