package events_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
)

var services = []string{
	events.ServiceGateway, events.ServiceAnalyzer, events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer,
	events.ServiceSelector, events.ServiceBuilder, events.ServiceLander, events.ServiceOutcomes, events.ServiceWebhooks, events.ServiceHosts, events.ServiceTracer, events.ServiceHistorian, events.ServiceTrainer,
}

func TestTheTableOfTopicsIsWhole(t *testing.T) {
	names := map[string]bool{}
	active := map[string]bool{}
	for _, topic := range events.Topics() {
		if names[topic.Name] {
			t.Errorf("%s is there twice", topic.Name)
		}
		names[topic.Name] = true
		if !strings.HasPrefix(topic.Name, "landfall.") || topic.Name != strings.ToLower(topic.Name) || strings.ContainsAny(topic.Name, "_ ") {
			t.Errorf("%s is no name for a topic: landfall.words-with-dashes", topic.Name)
		}
		if len(topic.Writers) == 0 || len(topic.Readers) == 0 || topic.Holds == "" {
			t.Errorf("%s lacks writers, readers or a description", topic.Name)
		}
		for _, s := range slices.Concat(topic.Writers, topic.Readers) {
			if !slices.Contains(services, s) && s != "clients" {
				t.Errorf("%s names %s, which is no service", topic.Name, s)
			}
			active[s] = true
		}
		for _, s := range topic.Claimed {
			if !slices.Contains(topic.Writers, s) {
				t.Errorf("%s demands a claim of %s, which does not write it", topic.Name, s)
			}
		}
		for _, list := range [][]string{topic.Writers, topic.Readers, topic.Claimed} {
			if sorted := slices.Sorted(slices.Values(list)); len(slices.Compact(sorted)) != len(list) {
				t.Errorf("%s names a service twice in %v", topic.Name, list)
			}
		}
	}
	for _, constant := range []string{events.TopicLandRequests, events.TopicChanges, events.TopicBuilds, events.TopicModels, events.TopicSpeculations,
		events.TopicProfiles, events.TopicPriorities, events.TopicDecisions, events.TopicDeadLetters, events.TopicOutcomes, events.TopicDeliveries, events.TopicHosts} {
		if !names[constant] {
			t.Errorf("%s is not in the table", constant)
		}
	}
	for _, s := range services {
		if !active[s] {
			t.Errorf("%s neither reads nor writes anything", s)
		}
	}
}

// The stages each write one topic alone, under a term, and whoever reads it reads only theirs.
func TestEveryStageClaimsItsTopic(t *testing.T) {
	stages := map[string]string{
		events.TopicSpeculations: events.ServiceEnumerator, events.TopicProfiles: events.ServiceProfiler,
		events.TopicPriorities: events.ServicePrioritizer, events.TopicDecisions: events.ServiceSelector,
	}
	for _, topic := range events.Topics() {
		if stage, ok := stages[topic.Name]; ok && !(slices.Equal(topic.Writers, []string{stage}) && slices.Equal(topic.Claimed, []string{stage})) {
			t.Errorf("%s is written by %v, claimed by %v, want %s alone", topic.Name, topic.Writers, topic.Claimed, stage)
		}
		if topic.Name == events.TopicChanges && !slices.Equal(topic.Claimed, []string{events.ServiceLander}) {
			t.Errorf("%s is claimed by %v", topic.Name, topic.Claimed)
		}
	}
}

// A queue that moved to another partition would lose its order and its past: these stand for good.
func TestAQueueStaysInItsPartition(t *testing.T) {
	for queue, want := range map[string][3]int32{
		"":                 {0, 1, 5},
		"main":             {0, 0, 8},
		"monorepo/release": {0, 0, 0},
		"größe":            {0, 2, 10},
	} {
		for i, n := range []int32{1, 4, 16} {
			if got := events.PartitionOf(queue, n); got != want[i] {
				t.Errorf("%q of %d partitions is in %d, was in %d", queue, n, got, want[i])
			}
		}
	}
}

func TestQueuesSpreadOverAllPartitions(t *testing.T) {
	used := map[int32]int{}
	for i := range 1000 {
		p := events.PartitionOf(fmt.Sprintf("queue-%d", i), 8)
		if p < 0 || p >= 8 {
			t.Fatalf("partition %d of 8", p)
		}
		used[p]++
	}
	if len(used) != 8 || slices.Min(slices.Collect(maps.Values(used))) < 50 {
		t.Errorf("1000 queues are spread as %v", used)
	}
}
