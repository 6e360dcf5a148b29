package main

import (
	"fmt"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// busy has a thousand changes pending in the queue shop, and holds and releases them in turn, so many times a second. Why a change is
// held says when that was written, in milliseconds since 1970, so that a reader knows how long it took.
func busy(b *apitest.Backend, perSecond int) {
	const pending = 1000
	ref := func(i int) string { return fmt.Sprintf("n%d", i%pending) }
	for i := range pending {
		b.Fold("shop", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: "shop", Change: ref(i), Revision: 1, RequestId: ref(i), Title: fmt.Sprint("Number ", i), Author: "Ada <ada@example.com>",
			Entries: []*eventsv1.Entry{{Ref: ref(i), Commit: apitest.Commit(ref(i))}}, LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(ref(i))}},
		}})
	}
	go func() {
		for i := 0; ; i++ {
			time.Sleep(time.Second / time.Duration(perSecond))
			if i%2 == 0 {
				b.Fold("shop", events.TopicChanges, &eventsv1.ChangeHeld{Change: ref(i / 2 % 40), Hold: "h", Who: "Ada", Why: fmt.Sprint("written ", time.Now().UnixMilli())})
			} else {
				b.Fold("shop", events.TopicChanges, &eventsv1.ChangeReleased{Change: ref(i / 2 % 40), Hold: "h", Who: "Ada"})
			}
		}
	}()
}
