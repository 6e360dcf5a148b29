package verdict

import (
	"context"
	"fmt"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/tools/demo/tally"
)

// Log is what the log tells of a round.
type Log struct {
	// Records of all topics, Stale those of them that do not count because their owner had been replaced.
	Records, Stale int
	// Claims counts how often a service took, or took back, a partition; ClaimsOf, by service and version, how often each version did.
	Claims   int
	ClaimsOf map[string]map[string]int
	// Refusals are the land guard's that count.
	Refusals int
}

// ReadLog reads every topic to its present end.
func ReadLog(ctx context.Context, log journal.Log) (Log, error) {
	out := Log{ClaimsOf: map[string]map[string]int{}}
	for _, topic := range events.Topics() {
		for partition := range log.Partitions() {
			err := tally.Records(ctx, log, topic.Name, partition, func(e journal.Entry, counts bool) {
				out.Records++
				switch m := e.Message.(type) {
				case *eventsv1.Claim:
					out.Claims++
					if out.ClaimsOf[m.Service] == nil {
						out.ClaimsOf[m.Service] = map[string]int{}
					}
					out.ClaimsOf[m.Service][m.Version]++
				case *eventsv1.Refused:
					if counts {
						out.Refusals++
					}
				}
				if _, isClaim := e.Message.(*eventsv1.Claim); !counts && !isClaim && e.Err == nil {
					out.Stale++
				}
			})
			if err != nil {
				return out, fmt.Errorf("reading %s/%d: %w", topic.Name, partition, err)
			}
		}
	}
	return out, nil
}
