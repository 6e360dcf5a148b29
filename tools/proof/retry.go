package proof

import (
	"fmt"

	"landfall.build/engine/evidence"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// maxRetries bounds how often people retry what is blocked on a queue: a mainline that is red in truth stays so.
const maxRetries = 6

// retry draws when people hope that the mainline is red by chance.
func (s *schedule) retry(x *site) {
	if s.hopes == nil {
		return
	}
	of := ""
	if x != s.m.sites[0] {
		of = x.queue + " "
	}
	for i := range 1 + s.hopes.IntN(4) {
		s.ops = append(s.ops, operation{at: s.hopes.Int64N(s.span + 3000), name: fmt.Sprintf("%sretry%d", of, i), do: func() {
			if !x.retryBlocked() {
				x.retryMainline()
			}
		}})
	}
}

// retryBlocked retries all changes that are blocked, as the gateway sees them. It says whether there were any.
func (x *site) retryBlocked() (any bool) {
	x.lineup.read()
	if x.retries == maxRetries || len(x.lineup.queue.Order()) == 0 {
		return false
	}
	v := x.view()
	for _, c := range x.lineup.queue.Order() {
		block := v.BlockOf(c.ID())
		if !block.OnMainline {
			continue
		}
		x.steer(fmt.Sprintf("retry%d %s", x.retries, c.ID()), &eventsv1.ChangeRetried{Change: c.Ref(), Failed: block.Failed, Who: "author"})
		any = true
	}
	if any {
		x.retries++
	}
	return any
}

// retryMainline retries what fails on the mainline itself, as the gateway sees it.
func (x *site) retryMainline() {
	if x.retries == maxRetries {
		return
	}
	if failed, _ := x.view().MainlineFailed(); len(failed) > 0 {
		x.steer(fmt.Sprintf("retry%d of the mainline", x.retries), &eventsv1.ChangeRetried{Change: &eventsv1.ChangeRef{}, Failed: failed, Who: "operator"})
		x.retries++
	}
}

// view folds the log as a gateway does that begins now.
func (x *site) view() *view.Queue {
	v := view.New(x.queue, view.DefaultLimits())
	for _, topic := range []string{events.TopicChanges, events.TopicBuilds, events.TopicDecisions, events.TopicProfiles, events.TopicPriorities} {
		x.counted(topic, func(e journal.Entry) { v.Fold(e) })
	}
	return v
}

// retried notes which attempts no longer count for anybody who has read that.
func (k *checker) retried(f *eventsv1.ChangeRetried, offset int64) {
	k.tally[Retries]++
	for _, p := range f.Failed {
		v := evidence.VersionOf(p)
		k.retriedAt[v] = append(k.retriedAt[v], retriedAttempt{p.Attempt, offset})
	}
}

// retriedAttempt is the last attempt that a retry takes back, and where that stands.
type retriedAttempt struct {
	number uint32
	offset int64
}

// hadEffect reports whether an attempt was taken back so long ago that whoever rests on it should have read it.
func (k *checker) hadEffect(p *eventsv1.Proof, offset int64) bool {
	for _, r := range k.retriedAt[evidence.VersionOf(p)] {
		if p.Attempt <= r.number && r.offset < offset-lenience {
			return true
		}
	}
	return false
}
