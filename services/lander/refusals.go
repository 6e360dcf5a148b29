package lander

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// pushRefusals is what is known of a change whose pushes the remote refuses.
type pushRefusals struct {
	times   int
	message string
	// concernsQueue: by its words the last refusal concerns whoever pushes, or the branch.
	concernsQueue bool
	// othersLand: another change has landed since it was refused first, and times counts from there. What came before may
	// have been a remote that took nothing.
	othersLand bool
	// passed is how often another change has landed between two refusals; recent counts those after the last landing.
	passed, recent int
	// notBefore is when it is worth trying again; it is this process's own, not part of the fold.
	notBefore time.Time `snapshot:"-"`
}

// Bounds on trying again what the remote refuses to take. A change is ejected after maxPushRefusals refused pushes since
// another one landed. While none lands, it is tried ever more rarely, and ejected after maxLonePushRefusals, which takes about
// two minutes, if no other pending change is refused: then nothing says that the remote takes nothing.
//
// Words that concern the queue pause its landings, unless another change may still tell whose they are by whether it lands. They
// count against a change only once maxPassed others have landed, each between two of its refusals.
const (
	maxPushRefusals     = 3
	maxLonePushRefusals = 8
	maxPassed           = 3
	firstBackoff        = time.Second
	maxBackoff          = time.Minute
)

// backoff returns how long to wait after so many tries.
func backoff(times int) time.Duration { return min(maxBackoff, firstBackoff<<min(max(times-1, 0), 10)) }

// foldPushRefusal counts a refusal, and concludes from it whether the remote refuses every push.
func (q *queue) foldPushRefusal(f *eventsv1.LandVoid) {
	r := q.pushRefused[f.Change.Change]
	if r == nil {
		r = &pushRefusals{}
		// The remote refuses one more change: perhaps it takes nothing again.
		for _, other := range q.pushRefused {
			other.othersLand = false
		}
		q.pushRefused[f.Change.Change] = r
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(q.pushRefused)), func(o *pushRefusals) bool { return o.recent > 0 && sameWords(o.message, f.Reason) }) {
		q.refusedSinceUS = f.StampUs // what was refused before, in other words, tells nothing of these
	}
	r.times++
	r.message, r.recent = f.Reason, r.recent+1
	r.concernsQueue = f.Concern == eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE
	switch {
	case f.Concern == eventsv1.RefusalConcern_REFUSAL_CONCERN_UNSPECIFIED: // of a release that never paused
	case !q.refusesEverybody(f, r):
		q.refusing = nil
	case q.refusing == nil:
		q.refusing = &eventsv1.LandingsPaused{Message: f.Reason, SinceUs: q.refusedSinceUS}
	case !sameWords(q.refusing.Message, f.Reason):
		q.refusing = &eventsv1.LandingsPaused{Message: f.Reason, SinceUs: q.refusing.SinceUs}
	}
}

// refusesEverybody reports whether a refusal shows that the remote refuses every push: by words that concern the queue, and that it
// has said to two changes, or to the only one that may land, again and again if another one has landed past that; or because it has
// refused at least two changes twice each with the same words, and nothing has landed since.
func (q *queue) refusesEverybody(f *eventsv1.LandVoid, r *pushRefusals) bool {
	if r.concernsQueue {
		return r.passed < maxPassed && (!q.refusesOne() || !q.othersMayLand(f.Change.Change) && (r.passed == 0 || r.recent >= maxPushRefusals))
	}
	if q.refusing != nil && sameWords(q.refusing.Message, f.Reason) {
		return true
	}
	changes := 0
	for _, other := range q.pushRefused {
		switch {
		case other.recent == 0 || other.othersLand:
		case other.times < 2 || !sameWords(other.message, f.Reason):
			return false
		default:
			changes++
		}
	}
	return changes >= 2
}

// sameWords reports whether two sentences differ at most in words with digits: ids of commits and requests, times.
func sameWords(a, b string) bool {
	words := func(s string) string {
		var kept []string
		for _, word := range strings.Fields(s) {
			if !strings.ContainsAny(word, "0123456789") {
				kept = append(kept, word)
			}
		}
		return strings.Join(kept, " ")
	}
	return a == b || words(a) == words(b) && words(a) != ""
}

// countLanding restarts the counts of all refused changes: the remote takes something.
func (q *queue) countLanding() {
	q.refusing, q.refusedSinceUS = nil, 0
	for change, r := range q.pushRefused {
		if q.lineup.Pending(change) == nil {
			delete(q.pushRefused, change)
			continue
		}
		if r.recent > 0 {
			r.passed, r.recent = r.passed+1, 0
		}
		r.notBefore = time.Time{} // whether it is refused again tells the most now
		if !r.othersLand {
			r.othersLand, r.times = true, 0
		}
	}
}

// refusesOne reports whether no more than one change tells by its refusals since the last landing that the remote refuses every push.
// What it has not refused tells then whether it takes anything, and is tried at once. A change past which another has landed tells
// nothing before it is refused again and again.
func (q *queue) refusesOne() bool {
	tell := 0
	for _, r := range q.pushRefused {
		if r.recent > 0 && (r.passed == 0 || r.recent >= maxPushRefusals) {
			tell++
		}
	}
	return tell <= 1
}

// othersMayLand reports whether a change beside this one is pending that nobody holds.
func (q *queue) othersMayLand(change string) bool {
	return slices.ContainsFunc(q.lineup.Order(), func(k *lineup.Change) bool { return k.ID() != change && len(k.Holds) == 0 })
}

// admitOther is called with each change that is admitted: where one alone stands for a pause, another may tell now. While an intention
// is open nothing else is tried.
func (q *queue) admitOther() {
	if q.lineup.Intention == nil && q.refusesOne() {
		q.refusing = nil
	}
}

// isUntried reports whether the remote has not refused a change since the last landing.
func (q *queue) isUntried(change string) bool {
	r := q.pushRefused[change]
	return r == nil || r.recent == 0
}

// refusedTooOften reports whether a change is to be ejected because the remote refuses its commits and takes those of others.
func (q *queue) refusedTooOften(change string) bool {
	r := q.pushRefused[change]
	switch {
	case r == nil || q.refusing != nil:
		return false
	case r.concernsQueue:
		return r.passed >= maxPassed
	}
	return r.othersLand && r.times >= maxPushRefusals || len(q.pushRefused) == 1 && r.times >= maxLonePushRefusals
}

// timesRefused returns how often the remote has refused the change of a decision.
func (q *queue) timesRefused(d *decided) int {
	if r := q.pushRefused[d.change.Change]; r != nil {
		return r.times
	}
	return 0
}

// nextBehind returns the change to move in front of one whose pushes the remote goes on refusing: the first behind it that
// can be tried in its place. It returns "" if there is none, or if others land anyway. A green change is expected to land, so
// nothing is built for the case that it stays in the queue: without the move, no change that conflicts with it could land, and
// as long as none lands it is not ejected (pushRefusals.othersLand).
func (q *queue) nextBehind(change string) string {
	c, r := q.lineup.Pending(change), q.pushRefused[change]
	if c == nil || r == nil {
		return ""
	}
	switch {
	case r.concernsQueue && r.times >= maxPushRefusals && q.refusesOne() && !q.triesAhead(c): // the one that tells whose the words are
	case r.concernsQueue && r.times < maxLonePushRefusals: // a move seldom helps
		return ""
	case r.times < maxPushRefusals, r.othersLand && !r.concernsQueue:
		return ""
	}
	for _, k := range q.lineup.Order() {
		if k.Position > c.Position && len(k.Holds) == 0 && q.pushRefused[k.ID()] == nil && !q.lineup.Requires(k, change) {
			return k.ID()
		}
	}
	return ""
}

// triesAhead reports whether a change that nobody holds, and that the remote has not refused since the last landing, is ahead of another.
func (q *queue) triesAhead(c *lineup.Change) bool {
	return slices.ContainsFunc(q.lineup.Order(), func(k *lineup.Change) bool {
		return k.Position < c.Position && len(k.Holds) == 0 && q.isUntried(k.ID())
	})
}

// letPast moves a change that was just admitted past the first one that the remote refuses, whose next try may be a minute away.
func (q *queue) letPast() {
	if !q.refusesOne() {
		return
	}
	for _, c := range q.lineup.Order() {
		if q.isUntried(c.ID()) {
			continue
		}
		if !q.triesAhead(c) {
			q.attempt.aheadOf, q.attempt.moveAhead = c.ID(), q.nextBehind(c.ID())
		}
		return
	}
}

// deferPush puts off the next try of a change whose push was just refused, and that of all if the remote refuses every push.
func (q *queue) deferPush(change string, now time.Time) {
	if r := q.pushRefused[change]; r != nil {
		r.notBefore = now.Add(backoff(r.times + r.passed))
	}
	if q.refusing != nil {
		q.attempt.rest.again(now)
	}
}

// rest is how long this process leaves a remote alone that refuses every push. It is no part of the fold: another owner tries
// at once.
type rest struct {
	tries     int
	notBefore time.Time
	// found is a refusal of every push that is in no LandVoid, because its intention stays open; it is still to be written.
	found *eventsv1.LandingsPaused
}

// again puts off the next try, ever longer.
func (r *rest) again(now time.Time) {
	r.tries++
	r.notBefore = now.Add(backoff(r.tries))
}

// rests reports whether the remote refuses every push, and is not to be tried yet.
func (q *queue) rests(now time.Time) bool { return isAhead(q.attempt.rest.notBefore, now) }

// restsOpen reports whether the push of the open intention is not to be tried yet. One that nobody has pushed was opened to be
// tried.
func (q *queue) restsOpen(now time.Time) bool {
	return q.rests(now) && q.attempt.unpushed != tip(q.lineup.Intention.Fact)
}

// refusedOpen takes a refusal of every push whose intention stays open, since an earlier push of it may still arrive.
func (c *Core) refusedOpen(q *queue, why error) {
	a := &q.attempt
	a.restart()
	if a.trouble.failingSince.IsZero() {
		a.trouble.failingSince = c.now // from now on the lander waits for what may still arrive
	}
	a.rest.again(c.now)
	a.rest.found = &eventsv1.LandingsPaused{Message: sentenceOf(why), SinceUs: a.trouble.failingSince.UnixMicro()}
}

// recordPause returns the record of a pause or its end that the log lacks, nil if it has all.
func (q *queue) recordPause(name string, now time.Time) runner.Effect {
	logged, current := q.lineup.RefusedByRemote, q.refusing
	if found := q.attempt.rest.found; found != nil && q.lineup.Intention != nil {
		current = found
	}
	identity := []string{q.nth(), strconv.FormatInt(now.UnixMicro(), 10)}
	switch {
	case current == nil && logged != nil:
		return q.append(name, "", &eventsv1.LandingsResumed{StampUs: now.UnixMicro()}, identity...)
	case current != nil && (logged == nil || !sameWords(logged.Message, current.Message)):
		return q.append(name, "", &eventsv1.LandingsPaused{Message: current.Message, SinceUs: current.SinceUs, StampUs: now.UnixMicro()}, identity...)
	}
	return nil
}

// pauseWritten is called once the record of a pause or its end is in the log.
func (c *Core) pauseWritten(name string, q *queue) {
	q.attempt.rest.found = nil
	paused := q.lineup.RefusedByRemote
	if paused == nil {
		q.attempt.rest = rest{}
		c.log(slog.LevelInfo, "it is no longer known that the remote refuses every push; landings go on", name)
	} else {
		c.log(slog.LevelWarn, "the remote refuses every push; landings are paused", name, "remote", paused.Message)
	}
	c.notes = append(c.notes, MeasurePause{name, paused != nil})
}

// concernOf returns what a refused push concerns, as far as its words show.
func concernOf(err error) eventsv1.RefusalConcern {
	if refusal, is := errors.AsType[*PushRefusal](err); is && refusal.Everybody {
		return eventsv1.RefusalConcern_REFUSAL_CONCERN_QUEUE
	}
	return eventsv1.RefusalConcern_REFUSAL_CONCERN_CHANGE
}
