package builder

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

// TestWhatNobodyAsksForAnyMoreIsForgotten: results of a change that has left go out of memory, by a record for all who
// have them; what is pending stays, and a version that is asked for again is run again, under a new number.
func TestWhatNobodyAsksForAnyMoreIsForgotten(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true", "b": "true", "c": "true", "d": "true"}))
	of := func(build, id, folder string) *eventsv1.BuildScheduled {
		b := s.scheduled(build, base, asked("//"+folder+":t")...)
		b.Change = change(id, pick(base, s.commit(base, map[string]string{folder + "/check.sh": "echo " + id})))
		return b
	}
	builds := map[string]*eventsv1.BuildScheduled{}
	s.config.Builder.Remember = 1
	s.start("a")
	versions := map[string]string{}
	finish := func(build, id, folder string) {
		t.Helper()
		builds[id] = of(build, id, folder)
		s.admit(id)
		s.restOnLog() // the builder is to know who is pending when it reads what is built
		s.decide(builds[id])
		versions[id] = s.prepared(build).Versions[0].Hash
		if f := s.finished("//" + folder + ":t"); f.Hash != versions[id] {
			t.Fatalf("%v", f)
		}
	}
	lander := s.claimLander()
	left := func(id string) {
		s.append("landfall.changes", "lander", lander, &eventsv1.ChangeRejected{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}})
	}
	finish("b0", "c1", "a")
	left("c1")
	finish("b1", "left later", "d")
	left("left later")
	finish("b2", "c2", "b")
	finish("b3", "c3", "c")
	all := drained[*eventsv1.EvidenceForgotten](s)
	if len(all) == 0 { // it need not be written before the last step ends
		all = append(all, await(s, func(*eventsv1.EvidenceForgotten) bool { return true }))
	}
	forgotten := all[0]
	if len(forgotten.Versions) != 1 || forgotten.Versions[0].Hash != versions["c1"] {
		t.Fatalf("forgotten is %v, want c1's version %s", forgotten, versions["c1"])
	}
	again := func(build, id string) {
		t.Helper()
		b := builds[id]
		b.Build = build
		s.decide(b)
		s.prepared(build)
	}
	again("b4", "c2") // known: nothing is run
	// What c1 was is submitted once more.
	builds["c4"] = builds["c1"]
	builds["c4"].Change.Change.Change = "c4"
	s.admit("c4")
	s.restOnLog()
	again("b5", "c4")
	if f := s.finished("//a:t"); f.Attempt < 2 || f.Hash != versions["c1"] {
		t.Errorf("%v, want another attempt at %s", f, versions["c1"])
	}
	runs := 0
	for _, f := range drained[*eventsv1.StepFinished](s) {
		if f.Target == "//b:t" {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("c2, which is pending, was run %d times", runs)
	}
}
