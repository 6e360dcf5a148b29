package enumerator

import (
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
)

// SettingsOf is a configured queue as a fact.
func SettingsOf(q configuration.Queue) *eventsv1.QueueSettings {
	s := &eventsv1.QueueSettings{
		Hash: q.Hash().String(), Repository: q.Repository, Branch: q.Branch, Strategy: string(q.Strategy),
		Workers: uint32(q.Workers), Threshold: q.Speculation.Threshold, Best: uint32(q.Speculation.Candidates),
		Steps: &eventsv1.StepPolicy{
			TimeoutUs: q.Steps.Timeout.Microseconds(), LogLimitBytes: int64(q.Steps.LogLimit),
			FailedRetries: uint32(q.Retries.Failed), TimedOutRetries: uint32(q.Retries.TimedOut),
			InfrastructureRetries: uint32(q.Retries.Infrastructure),
		},
		PriorSuccess: q.Priors.Success,
		// The configuration states the joint probability c(j,k); the models of a pair give r (M6).
		PriorConflict:       min(1, q.Priors.Conflict/q.Priors.Success),
		PriorDurationMeanUs: q.Priors.Duration.Mean.Microseconds(), PriorDurationStdUs: q.Priors.Duration.Std.Microseconds(),
	}
	s.Hubs = q.Analysis.Hubs
	s.Pool, s.PoolWorkers = q.Pool, uint32(q.PoolWorkers)
	s.Quotas = q.Quotas.Fact()
	s.ProveWhenNeeded = q.Base.Prove == configuration.ProveWhenNeeded
	s.AbortThreshold = q.Speculation.AbortThreshold
	if t := q.Speculation.BypassThreshold; t != nil {
		s.BypassThreshold = proto.Float64(*t)
	}
	return s
}
