package builder

import (
	"context"
	"time"

	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
)

// urgentPatience is how long an urgent step waits for a worker to come free before another step is ended for it (M35).
const urgentPatience = 2 * time.Second

// makeRoom ends steps of a queue for its urgent ones once these have waited for urgentPatience. It returns the time after which
// to call it again. It is called while all workers are busy, with shared.mu held.
func (s *session) makeRoom(ctx context.Context, queue string, q *steps.Queue, now time.Time) time.Duration {
	fits := func(claims *eventsv1.StepClaims) bool { fits, _ := s.fits(ctx, claims, now); return fits }
	waiting := 0
	for _, step := range q.Next(now.UnixMicro(), len(s.workers), s.taken(queue), fits) {
		if step.Rank.Urgent && step.Rank.Ready {
			waiting++
		}
	}
	if waiting == 0 {
		delete(s.urgentSince, queue)
		return time.Hour
	}
	if s.urgentSince[queue].IsZero() {
		s.urgentSince[queue] = now
	}
	if left := urgentPatience - now.Sub(s.urgentSince[queue]); left > 0 {
		return left
	}
	var running []steps.Running
	for key, j := range s.jobs {
		switch {
		case key.Version != j.step.Version: // a companion
		case j.preempted:
			waiting-- // its worker is about to come free
		case key.queue == queue && j.held:
			if list, _ := j.wanted(q); len(list) > 0 {
				running = append(running, steps.Running{Versions: list, SinceUs: j.began.UnixMicro()})
			}
		}
	}
	for _, r := range q.Preemptible(now.UnixMicro(), running) {
		if waiting <= 0 {
			break
		}
		waiting--
		j := s.jobs[stepKey{queue, r.Versions[0]}]
		j.preempted = true
		j.cancel(errPreempted)
		s.Logger.Info("step ended for a change that was moved to the front", "queue", queue, "target", r.Versions[0].Target)
	}
	return time.Second
}
