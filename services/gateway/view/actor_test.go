package view_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

func TestTheStoryOfAChangeNamesWhoHadEachThingDone(t *testing.T) {
	q := view.New("main", view.DefaultLimits())
	fold := func(offset int64, m proto.Message) {
		e := journal.Entry{Topic: events.TopicChanges, Offset: offset}
		e.Message = m
		q.Fold(e)
	}
	fold(0, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: "c", Revision: 1, Entries: []*eventsv1.Entry{{Commit: "a"}}, LandingCommits: []*eventsv1.LandingCommit{{Head: "a", Base: "b"}},
		Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: "0b1f", Name: `Ada, as "admin"`, Role: "contributor", Client: "landfall"},
	}})
	fold(1, &eventsv1.ChangeHeld{Change: "c", Hold: "manual", Who: "bot", Actor: &eventsv1.Actor{Issuer: "landfall", Subject: "abc", Name: "ci", Token: "abc", Role: "operator"}})
	fold(2, &eventsv1.ChangeHeld{Change: "c", Hold: "other", Who: "bo", Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: "bo", Name: "bo", Role: "operator"}})
	fold(3, &eventsv1.ChangeReleased{Change: "c", Hold: "manual", Who: "eve", Actor: &eventsv1.Actor{Issuer: "open", Subject: "eve"}})
	fold(4, &eventsv1.ChangeMoved{Change: "c", Who: "old"})
	kept, err := view.Restore(q.Snapshot(), "main", view.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*view.Queue{"folded": q, "restored": kept} {
		c, _ := q.Change("c")
		want := []string{`"Ada, as \"admin\"" (0b1f at https://id.example.com), as contributor, with landfall`, `"ci" (token abc), as operator`, "bo at https://id.example.com, as operator", "", ""}
		if len(c.Timeline) != len(want) {
			t.Fatalf("%s: %+v", name, c.Timeline)
		}
		for i, e := range c.Timeline {
			if e.By != want[i] {
				t.Errorf("%s: %s was had done by %q, want %q", name, e.Text, e.By, want[i])
			}
		}
	}
}
