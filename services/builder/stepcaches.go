package builder

import (
	"fmt"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
)

// ranBy returns the changes whose code a step of a build runs, the build's own last; none if it verifies the mainline itself.
func ranBy(b *eventsv1.BuildScheduled) (list []*eventsv1.ChangeRef) {
	for _, c := range b.GetAssumed() {
		list = append(list, c.GetChange())
	}
	if own := b.GetChange().GetChange(); own.GetChange() != "" {
		list = append(list, own)
	}
	return list
}

// giveCaches gives a step its caches. What keeps it from that is one sentence; workerFault is set if another worker may do
// better.
func (w *worker) giveCaches(place *workplace, j *job) (problem string, workerFault bool) {
	place.step.Caches, place.step.Layered = map[string]string{}, map[string]bool{}
	for _, name := range provision.CacheNames(place.step.Queue, place.step.Target) {
		cache, known := place.step.Queue.Steps.Cache(name)
		if !known {
			return fmt.Sprintf("The step asks for the cache %q, which the queue's steps.caches does not have; without settings there are %s.",
				name, strings.Join(configuration.StandardCaches(), ", ")), false
		}
		if !place.step.Sandboxed() && cache.Share == configuration.ShareMainline {
			cache.Share = configuration.ShareQueue // it could write to all layers
		}
		step := caches.Step{Queue: fileName(j.queue), Worker: strconv.Itoa(w.number), By: ranBy(j.step.Build)}
		use, err := w.caches.Acquire(step, name, cache)
		if err != nil {
			return fmt.Sprintf("The worker could not make %v.", err), true
		}
		place.caches = append(place.caches, use)
		place.step.Caches[name], place.step.Layered[name] = use.Dir, use.Overlay != nil
	}
	return "", false
}

// endCaches gives the caches of a step back, unless a server has them.
func (w *worker) endCaches(place *workplace, j *job, result execution.Result) {
	if place.server != nil {
		return
	}
	passed := result.Outcome == execution.Passed && result.Leftovers == 0
	for _, use := range place.caches {
		use.End(passed, ranBy(j.step.Build))
	}
	place.caches = nil
}

// settleCaches lets steps read what landed changes have left in caches. It is the dispatcher's.
func (s *session) settleCaches() {
	if s.settling {
		return
	}
	due := false
	for _, name := range s.shared.names {
		if s.caches.Judge(fileName(name), s.shared.queues[name].Became) {
			due = true
		}
	}
	if !due {
		return
	}
	s.settling = true
	s.task(func() func() {
		s.caches.Settle()
		return func() { s.settling = false }
	})
}
