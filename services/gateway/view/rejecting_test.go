package view_test

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// TestWhatRejectedChangesIsListedWithItsOwners: the target that rejected most first, and no change that came again.
func TestWhatRejectedChangesIsListedWithItsOwners(t *testing.T) {
	s := begin(t)
	list := func() (text []string) {
		s.Read(main, func(q *view.Queue) {
			for _, r := range q.Rejecting() {
				text = append(text, fmt.Sprint(r.Target, r.Owners, r.Changes, r.LastChange, r.LastTitle))
			}
		})
		return text
	}
	if got := fmt.Sprint(list()); got != "[]" {
		t.Errorf("before anything: %s", got)
	}
	for i, target := range []string{"//x", "//tax", "//tax"} {
		id := fmt.Sprint("c", i)
		s.land(id)
		s.Schedule(main, "build-"+id, id, nil, target)
		s.PrepareOwned(main, "build-"+id, id, []string{"@shop/" + target[2:]}, target)
		s.Finish(main, "build-"+id, target, 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "no\n", "")
		s.Reject(main, id, "build-"+id, target, 1)
	}
	if got := fmt.Sprint(list()); got != "[//tax[@shop/tax] 2c2Change c2 //x[@shop/x] 1c0Change c0]" {
		t.Errorf("after three rejections: %s", got)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.ChangeRevised{Admission: &eventsv1.Admission{Queue: main, Change: "c2", Revision: 2, RequestId: "again", Entries: []*eventsv1.Entry{{Commit: apitest.Commit("c2-2")}}, LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit("c2-2")}}}})
	if got := fmt.Sprint(list()); got != "[//tax[@shop/tax] 1c1Change c1 //x[@shop/x] 1c0Change c0]" {
		t.Errorf("once one has come again: %s", got)
	}
}

// TestWhoPausedTheQueueIsKnownOnceItIsResumed, also after a restart.
func TestWhoPausedTheQueueIsKnownOnceItIsResumed(t *testing.T) {
	s := begin(t)
	last := func() *view.PauseOver {
		var p *view.PauseOver
		s.Read(main, func(q *view.Queue) {
			kept, err := view.Restore(q.Snapshot(), main, view.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			p = kept.Overview().LastPause
		})
		return p
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "bob"})
	s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: "sre", Why: "incident 7", StampUs: at.UnixMicro()})
	if p := last(); p != nil {
		t.Errorf("while it is paused: %+v", p)
	}
	s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "ada", Why: "it is over", StampUs: at.Add(time.Hour).UnixMicro()})
	want := view.PauseOver{Pause: view.Pause{Who: "sre", Why: "incident 7", Since: at}, Until: at.Add(time.Hour), ResumedBy: "ada", ResumedWhy: "it is over"}
	if p := last(); p == nil || *p != want {
		t.Errorf("once it is resumed: %+v", p)
	}

	// Those before it are known too, the newest first, and not without end.
	for i := range 12 {
		s.Fold(main, events.TopicChanges, &eventsv1.QueuePaused{Who: fmt.Sprint("sre ", i), StampUs: at.AddDate(0, 0, i+1).UnixMicro()})
		s.Fold(main, events.TopicChanges, &eventsv1.QueueResumed{Who: "ada", StampUs: at.AddDate(0, 0, i+1).Add(time.Hour).UnixMicro()})
	}
	s.Read(main, func(q *view.Queue) {
		kept, err := view.Restore(q.Snapshot(), main, view.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		o := kept.Overview()
		if o.LastPause.Who != "sre 11" || len(o.EarlierPauses) != 9 || o.EarlierPauses[0].Who != "sre 10" || o.EarlierPauses[8].Who != "sre 2" || !o.EarlierPauses[8].Since.Equal(at.AddDate(0, 0, 3)) {
			t.Errorf("after thirteen pauses: %+v, and before it %+v", o.LastPause, o.EarlierPauses)
		}
	})
}
