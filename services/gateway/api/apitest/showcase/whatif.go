package main

import (
	"context"
	"time"

	"landfall.build/services/gateway/whatif"
)

// simulated has a simulation of the queue shop. One of another queue comes to 42 % and goes no further.
func simulated() *whatif.Runner {
	ended := make(chan struct{}, 1)
	r := whatif.New(func(ctx context.Context, q whatif.Question, progress func(float64)) (whatif.Outcome, error) {
		if q.Queue != "shop" {
			progress(0.42)
			<-ctx.Done()
			return whatif.Outcome{}, ctx.Err()
		}
		return whatif.Outcome{
			Present: whatif.SettingFigures{WaitP50: 540, WaitP95: 2460, Slowdown: 3.12, WorkerHours: 11.04}, Chosen: whatif.SettingFigures{WaitP50: 178, WaitP95: 1130, Slowdown: 1.54, WorkerHours: 11.31},
			Changes: 421, From: now.Add(-26 * 24 * time.Hour), To: now.Add(-20 * time.Minute),
		}, nil
	}, func(queue string) {
		lists.Changed("what-if", queue)
		if queue == "shop" {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	})
	present := whatif.Setting{Workers: 8, Threshold: 0.05, BypassThreshold: 2}
	chosen := present
	chosen.Workers = 16
	_ = r.Start(whatif.Question{Queue: "shop", Present: present, Chosen: chosen, Changes: 500}, "Ada Byron") // nothing else runs
	for is, _ := r.Of("shop"); is.State == whatif.Running; is, _ = r.Of("shop") {
		<-ended
	}
	return r
}
