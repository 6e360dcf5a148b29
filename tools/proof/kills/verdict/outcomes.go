package verdict

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/tools/demo/tally"
)

// Outcomes compares the landings in landfall.changes with those that a reader of landfall.outcomes handles, by the rule of the
// integrator's guide. It waits until the outcomes have them all, or for so long, and returns what is otherwise.
func Outcomes(ctx context.Context, log journal.Log, patience time.Duration) (problems []string, err error) {
	for until := time.Now().Add(patience); ; {
		if problems, err = compareOutcomes(ctx, log); err != nil || len(problems) == 0 || time.Now().After(until) {
			return problems, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func compareOutcomes(ctx context.Context, log journal.Log) (problems []string, err error) {
	landed, handled := map[string]int{}, map[string]int{}
	for partition := range log.Partitions() {
		queues := map[string]*lineup.Queue{}
		err := tally.Records(ctx, log, events.TopicChanges, partition, func(e journal.Entry, counts bool) {
			if !counts || e.Queue == "" {
				return
			}
			if queues[e.Queue] == nil {
				queues[e.Queue] = lineup.New()
			}
			if c := queues[e.Queue].Apply(e.Message, e.Offset); c.As == lineup.Landed {
				landed[e.Queue+"/"+c.Left.ID()]++
			}
		})
		if err != nil {
			return nil, err
		}
		highest := map[string]int64{}
		err = tally.Records(ctx, log, events.TopicOutcomes, partition, func(e journal.Entry, _ bool) {
			m, is := e.Message.(*eventsv1.ChangeOutcome)
			if !is {
				return
			}
			key := m.Queue + "/" + m.Subject
			if last, known := highest[key]; known && m.Sequence <= last {
				return
			}
			highest[key] = m.Sequence
			if m.State == "landed" {
				handled[key]++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(landed)) {
		if landed[key] != handled[key] {
			problems = append(problems, fmt.Sprintf("%s landed %d times, and a reader of the outcomes handles %d landings", key, landed[key], handled[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(handled)) {
		if landed[key] == 0 {
			problems = append(problems, fmt.Sprintf("%s did not land, and a reader of the outcomes handles that it did", key))
		}
	}
	return problems, nil
}
