package steps

import (
	"cmp"
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// fairness plays processor sharing with the work that workers have done (M33a): all builds that changes need are worked on at once,
// each by its worth. The order of M33 is another one, so a build may wait for longer than it would with sharing.
type fairness struct {
	// givenUs is the work, in microseconds of workers, that sharing would have given a build of worth 1 that was always there.
	givenUs float64
	// gone are the builds that are over, and would not be with sharing, the first to end first.
	gone []goneBuild
}

// goneBuild takes part in the sharing until fairness.givenUs is endUs.
type goneBuild struct{ endUs, worth float64 }

func byEnd(a, b goneBuild) int {
	return cmp.Or(cmp.Compare(a.endUs, b.endUs), cmp.Compare(a.worth, b.worth))
}

// mostGone bounds them; beyond it the last to end are forgotten.
const mostGone = 1024

// share is a build's part in the sharing. A build that takes over from another takes over its share.
type share struct {
	// beganUs is fairness.givenUs when the build was scheduled, at the time sinceUs.
	beganUs float64
	sinceUs int64
	// gotUs is the work that workers have done for the build.
	gotUs int64
	// throughUs is the time at which sharing would have been through with the build, 0 if it would not be yet.
	throughUs int64
}

// tolerance is how many times as long as with sharing a build may take before it comes first.
const tolerance = 2

// lateness is when a build has taken too long, and how many times as long as with sharing it has taken, as a function of time.
type lateness struct {
	fromUs int64
	times  line
}

// shares reports whether a build takes part in the sharing.
func (b *build) shares() bool {
	return b.prepared && b.successor == "" && !b.scheduled.GetIdle() && b.value > 0
}

// shareEndUs returns how large fairness.givenUs is when sharing is through with a build.
func (b *build) shareEndUs() float64 {
	return b.share.beganUs + float64(b.share.gotUs+b.workUs)/b.value
}

// never is the time at which a build becomes late with which sharing is not through.
const never = math.MaxInt64

// latenessOf returns when a build becomes late. No build is through with its work
// before all workers of the pool could have done it.
func (q *Queue) latenessOf(b *build) lateness {
	if b.share.throughUs == 0 || !b.shares() {
		return lateness{fromUs: never}
	}
	us := max(1, b.share.throughUs-b.share.sinceUs, (b.share.gotUs+b.workUs)/int64(max(1, q.Workers)))
	return lateness{b.share.sinceUs + tolerance*us, line{1 / float64(us), float64(b.share.sinceUs) / float64(us)}}
}

// setWorth sets what a build is worth now. What sharing has given it stays.
func (q *Queue) setWorth(b *build, worth float64) {
	if b.value > 0 && worth > 0 {
		b.share.beganUs = q.fair.givenUs - float64((q.fair.givenUs-b.share.beganUs)*b.value)/worth
	}
	b.value = worth
}

// mostWorkUs bounds the work of an attempt, whatever its worker's clock shows.
const mostWorkUs = 24 * 3600 * 1_000_000

// workOf returns how much work an attempt was. One that showed nothing was none.
func workOf(f *eventsv1.StepFinished) int64 {
	switch f.GetOutcome() {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		return min(max(0, f.GetFinishedUs()-f.GetStartedUs()), mostWorkUs)
	}
	return 0
}

// credit counts the work of an attempt for all builds that it was for, and returns how much that is together.
func (q *Queue) credit(v Version, us int64) (sum int64) {
	w := q.wanted[v]
	if w == nil {
		return 0
	}
	for _, b := range w.askers {
		if b.shares() && b.open[b.place] {
			b.share.gotUs += us
			sum += us
		}
	}
	return sum
}

// giveOut has sharing give out so much work, which workers have done between two times.
func (q *Queue) giveOut(us, fromUs, untilUs int64) {
	for left := float64(us); us > 0; {
		worth, nextUs := q.lookAtShares(untilUs - int64(left/float64(us)*float64(untilUs-fromUs)))
		need := float64((nextUs - q.fair.givenUs) * worth)
		switch {
		case left == 0 || worth == 0:
			return
		case need <= left:
			q.fair.givenUs, left = nextUs, left-need
		default:
			q.fair.givenUs, left = q.fair.givenUs+left/worth, 0
		}
	}
}

// lookAtShares notes with which builds sharing is through at a time, and returns what the others are worth together, and how large
// fairness.givenUs is when it is through with the next of them.
func (q *Queue) lookAtShares(nowUs int64) (worth, nextUs float64) {
	f := &q.fair
	f.gone = slices.DeleteFunc(f.gone, func(g goneBuild) bool { return g.endUs <= f.givenUs })
	nextUs = math.Inf(1)
	for _, g := range f.gone {
		worth, nextUs = worth+g.worth, min(nextUs, g.endUs)
	}
	for _, b := range q.order {
		if !b.shares() {
			continue
		}
		endUs := b.shareEndUs()
		through := endUs <= f.givenUs
		if !through {
			worth, nextUs = worth+b.value, min(nextUs, endUs)
		}
		if through != (b.share.throughUs != 0) {
			b.share.throughUs = 0
			if through {
				b.share.throughUs = max(1, nowUs)
			}
			q.changeEntry(b)
		}
	}
	return worth, nextUs
}

// leaveShares has a build that is over go on to take part in the sharing for the work that was done for it.
func (q *Queue) leaveShares(b *build) {
	f := &q.fair
	endUs := b.share.beganUs + float64(b.share.gotUs)/b.value
	switch {
	case len(q.live) == 0:
		*f = fairness{}
	case b.shares() && endUs > f.givenUs:
		at, _ := slices.BinarySearchFunc(f.gone, goneBuild{endUs, b.value}, byEnd)
		f.gone = slices.Insert(f.gone, at, goneBuild{endUs, b.value})
		f.gone = f.gone[:min(len(f.gone), mostGone)]
	}
}
