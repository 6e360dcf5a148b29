package enumerator

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

func TestAPreparationIsHandedOnWithoutWhatItsVersionsNeed(t *testing.T) {
	p := &eventsv1.BuildPrepared{Build: "b", Tree: "t", Versions: []*eventsv1.TargetVersion{{Target: "//a"}, {Target: "//b"}}}
	want := proto.CloneOf(p)
	p.Needs = []*eventsv1.VersionNeeds{{Versions: []uint32{1}}, {}}
	before := proto.CloneOf(p)
	e := journal.Entry{Topic: events.TopicBuilds, Envelope: events.Envelope{Queue: "q", Message: p}}
	if got := FactOf(e).GetBuildPrepared(); !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !proto.Equal(p, before) {
		t.Errorf("the record itself became %v", p)
	}
}
