package builder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
)

// othersPatience is how long a step that this builder can never run is left to other builders. Then, if no living builder of the
// pool can run it, this one ends it, so that the change shows why it waits.
const othersPatience = 5 * time.Minute

// askAgain is how long it holds whether another builder can run a step.
const askAgain = time.Minute

// unfit is what is known of steps that this builder can never run and that take the same.
type unfit struct {
	// since is when the first of them was seen, asked when the board was last looked at for somebody who can run them, and
	// somebody whether there was one.
	since, asked time.Time
	somebody     bool
	asking       bool
}

// unfitKey names what a step takes of a machine.
func unfitKey(claims *eventsv1.StepClaims) string {
	key := fmt.Sprintf("%q", claims.GetLabels())
	for _, a := range claims.GetResources() {
		key += fmt.Sprintf(" %q %d", a.GetName(), a.GetAmount())
	}
	return key
}

// fits reports whether a step that takes so much may start now, besides the steps that run. If this builder can never run it,
// later is the time after which to ask again; else it is an hour.
func (s *session) fits(ctx context.Context, claims *eventsv1.StepClaims, now time.Time) (fits bool, later time.Duration) {
	if lacking := s.lacking(claims); lacking != "" {
		return s.nobodyRuns(ctx, claims, lacking, now)
	}
	for _, a := range claims.GetResources() {
		used := int64(0)
		for key, j := range s.jobs {
			if key.Version != j.step.Version {
				continue // a companion, which takes nothing
			}
			for _, taken := range j.step.Claims.GetResources() {
				if taken.GetName() == a.GetName() {
					used += taken.GetAmount()
				}
			}
		}
		if used+a.GetAmount() > int64(s.Configuration.Builder.Resources[a.GetName()]) {
			return false, time.Hour
		}
	}
	return true, time.Hour
}

// nobodyRuns reports whether a step that this builder can never run was left to others for long enough, and none of them can run
// it: then this builder takes it, and says why it is not run. later is the time after which to ask again.
func (s *session) nobodyRuns(ctx context.Context, claims *eventsv1.StepClaims, lacking string, now time.Time) (nobody bool, later time.Duration) {
	key := unfitKey(claims)
	u := s.unfit[key]
	if u == nil {
		u = &unfit{since: now}
		s.unfit[key] = u
		s.Logger.Warn("a step is left to other builders", "reason", lacking)
	}
	if left := u.since.Add(s.othersPatience).Sub(now); left > 0 {
		return false, left
	}
	if u.asking {
		return false, time.Hour // the end of the task wakes the dispatcher
	}
	if left := u.asked.Add(askAgain).Sub(now); left > 0 {
		return !u.somebody, left
	}
	u.asking = true
	s.task(func() func() {
		ctx, cancel := context.WithTimeout(ctx, askAgain)
		defer cancel()
		peers, err := s.Health.Peers(ctx)
		can := slices.ContainsFunc(peers, func(b health.Beat) bool { return canRun(b.Can, s.Configuration.Builder.Pool, claims) })
		return func() {
			u.asking, u.asked, u.somebody = false, time.Now(), can || err != nil
		}
	})
	return false, time.Hour
}

// canRun reports whether a builder, as it tells of itself, may run a step of a pool.
func canRun(c health.Capacity, pool string, claims *eventsv1.StepClaims) bool {
	if c.Pool != pool {
		return false
	}
	lacksLabel := func(label string) bool { return !slices.Contains(c.Labels, label) }
	lacksAmount := func(a *eventsv1.ResourceAmount) bool { return a.GetAmount() > int64(c.Resources[a.GetName()]) }
	return c.Untold || !slices.ContainsFunc(claims.GetLabels(), lacksLabel) && !slices.ContainsFunc(claims.GetResources(), lacksAmount)
}

// lacking returns a sentence about what this builder never has of what a step takes, "" if it can have all of it.
func (b *Builder) lacking(claims *eventsv1.StepClaims) string {
	builder := b.Configuration.Builder
	lacksLabel := func(label string) bool { return !slices.Contains(builder.Labels, label) }
	if slices.ContainsFunc(claims.GetLabels(), lacksLabel) {
		return fmt.Sprintf("The step runs on machines with the labels %s, and no builder of the pool has them in builder.labels.", strings.Join(claims.GetLabels(), ", "))
	}
	for _, a := range claims.GetResources() {
		if has := builder.Resources[a.GetName()]; a.GetAmount() > int64(has) {
			return fmt.Sprintf("The step takes %d of %s, and this builder has %d in builder.resources.", a.GetAmount(), a.GetName(), has)
		}
	}
	return ""
}
