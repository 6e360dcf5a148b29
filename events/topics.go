package events

import "hash/fnv"

// Names of the topics. Every one is keyed by queue and has the same number of partitions, which never
// changes; retention is unlimited, cleanup.policy=delete.
const (
	TopicLandRequests = "landfall.land-requests"
	TopicChanges      = "landfall.changes"
	TopicBuilds       = "landfall.builds"
	TopicModels       = "landfall.models"
	TopicSpeculations = "landfall.speculations"
	TopicProfiles     = "landfall.profiles"
	TopicPriorities   = "landfall.priorities"
	TopicDecisions    = "landfall.decisions"
	TopicDeadLetters  = "landfall.dead-letters"
	TopicOutcomes     = "landfall.outcomes"
	TopicDeliveries   = "landfall.deliveries"
	TopicAccess       = "landfall.access"
	TopicHosts        = "landfall.hosts"
)

// Names of the services, as in a record's source and on the command line.
const (
	ServiceGateway     = "gateway"
	ServiceAnalyzer    = "analyzer"
	ServiceEnumerator  = "enumerator"
	ServiceProfiler    = "profiler"
	ServicePrioritizer = "prioritizer"
	ServiceSelector    = "selector"
	ServiceBuilder     = "builder"
	ServiceLander      = "lander"
	ServiceOutcomes    = "outcomes"
	ServiceWebhooks    = "webhooks"
	ServiceHosts       = "hosts"
	ServiceHistorian   = "historian"
	ServiceTrainer     = "trainer"
	ServiceTracer      = "tracer"
)

// PreemptedReason is in the reason of an aborted step that its worker ended for a step of another change.
const PreemptedReason = "a change that was moved to the front needs its worker"

// Topic is one row of the table of topics.
type Topic struct {
	Name string
	// Writers are the services that append to it; "clients" stands for programs of others.
	Writers []string
	Readers []string
	// Claimed names the services whose records on it count only under their last claim (terms).
	Claimed []string
	Holds   string
}

// Topics is the one table of topics: who writes, who reads, whose records need a term.
func Topics() []Topic {
	return []Topic{
		{TopicLandRequests, []string{"clients", ServiceGateway, ServiceHosts}, []string{ServiceGateway, ServiceHistorian}, nil,
			"land requests, JSON or Protobuf; the partition is not trusted"},
		{TopicChanges, []string{ServiceGateway, ServiceAnalyzer, ServiceLander, ServiceHosts},
			[]string{ServiceGateway, ServiceAnalyzer, ServiceEnumerator, ServiceBuilder, ServiceLander, ServiceOutcomes, ServiceHistorian, ServiceTracer}, []string{ServiceLander},
			"admissions, cancellations, moves, holds; analyses; intentions, landings, rejections, mainline moves, a mainline that cannot be reached"},
		{TopicBuilds, []string{ServiceBuilder}, []string{ServiceEnumerator, ServiceBuilder, ServiceLander, ServiceOutcomes, ServiceGateway, ServiceHistorian, ServiceTracer}, nil,
			"prepared builds, leases, finished steps; what is forgotten of them"},
		{TopicModels, []string{ServiceGateway, ServiceTrainer}, []string{ServiceGateway, ServiceEnumerator, ServiceTrainer, ServiceHistorian}, nil, "trained models, and which of them predict"},
		{TopicSpeculations, []string{ServiceEnumerator}, []string{ServiceProfiler, ServiceGateway, ServiceHistorian}, []string{ServiceEnumerator},
			"every fact of a queue in one order, stamped, with the speculation graph's delta"},
		{TopicProfiles, []string{ServiceProfiler}, []string{ServicePrioritizer, ServiceGateway, ServiceHistorian}, []string{ServiceProfiler}, "the graph with predictions"},
		{TopicPriorities, []string{ServicePrioritizer}, []string{ServiceSelector, ServiceGateway, ServiceHistorian}, []string{ServicePrioritizer}, "the builds worth most"},
		{TopicDecisions, []string{ServiceSelector}, []string{ServiceBuilder, ServiceLander, ServiceGateway, ServiceHistorian, ServiceTracer}, []string{ServiceSelector},
			"schedules, aborts, landings, rejections, ejections"},
		{TopicDeadLetters, []string{ServiceGateway, ServiceEnumerator, ServiceProfiler, ServiceBuilder},
			[]string{ServiceGateway, ServiceEnumerator, ServiceProfiler, ServiceHistorian}, nil, "what could not be decoded or handled, with reason and position"},
		// Two owners write the same records, so they count whoever wrote them; the claim tells an owner that it is replaced.
		{TopicOutcomes, []string{ServiceOutcomes}, []string{"clients", ServiceWebhooks, ServiceHosts}, []string{ServiceOutcomes},
			"what became of each change and request, JSON or Protobuf; no service decides by it"},
		{TopicDeliveries, []string{ServiceWebhooks}, []string{ServiceWebhooks}, []string{ServiceWebhooks},
			"what became of deliveries to webhooks, and what people have sent again"},
		{TopicAccess, []string{ServiceGateway, ServiceHosts}, []string{ServiceGateway}, nil, "tokens of programs, as hashes; keys with which gateways and hosts sign who asked them"},
		{TopicHosts, []string{ServiceHosts}, []string{ServiceHosts}, []string{ServiceHosts},
			"pull requests at code hosts: that there is news of one, and what was asked and reported there"},
	}
}

// PartitionOf is the partition of a queue among n. Every writer uses it; Kafka's own partitioners differ
// between clients and are not used.
func PartitionOf(queue string, n int32) int32 {
	h := fnv.New32a()
	h.Write([]byte(queue))
	return int32(h.Sum32() % uint32(n))
}
