package main

import (
	"fmt"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
)

// busy has a thousand changes pending in the queue shop, and holds and releases them in turn, so many times a second. Why a change is
// held says when that was written, in milliseconds since 1970, so that a reader knows how long it took. These meet no other change; the rest
// do in twenty groups.
func busy(b *apitest.Backend, perSecond int) {
	const pending, held = 1000, 40
	ref := func(i int) string { return fmt.Sprintf("n%d", i%pending) }
	for i := range pending {
		b.Fold("shop", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: "shop", Change: ref(i), Revision: 1, RequestId: ref(i), Title: fmt.Sprint("Number ", i), Author: "Ada <ada@example.com>",
			Entries: []*eventsv1.Entry{{Ref: ref(i), Commit: apitest.Commit(ref(i))}}, LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(ref(i))}},
		}})
	}
	var nodes []*eventsv1.Node
	for i := range pending {
		n := &eventsv1.Node{Change: apitest.Ref(ref(i)), Analyzed: true, Classes: classes(ref(i), 0, fmt.Sprintf("//g%d:g", i%20))}
		for ahead := i - 20; ahead >= held && ahead >= i-80; ahead -= 20 {
			n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: apitest.Ref(ref(ahead)), Conflicts: true, Targets: []string{fmt.Sprintf("//g%d:g", i%20)}})
		}
		nodes = append(nodes, n)
		if i < 2*held {
			b.Schedule("shop", "of "+ref(i), ref(i), nil, "//x:x")
			b.Prepare("shop", "of "+ref(i), ref(i), "//x:x")
		}
	}
	b.Graph("shop", &eventsv1.GraphDelta{Nodes: nodes})
	go func() {
		for i := 0; ; i++ {
			time.Sleep(time.Second / time.Duration(perSecond))
			if i%2 == 0 {
				b.Fold("shop", events.TopicChanges, &eventsv1.ChangeHeld{Change: ref(i / 2 % held), Hold: "h", Who: "Ada", Why: fmt.Sprint("written ", time.Now().UnixMilli())})
			} else {
				b.Fold("shop", events.TopicChanges, &eventsv1.ChangeReleased{Change: ref(i / 2 % held), Hold: "h", Who: "Ada"})
			}
		}
	}()
}
