package stack_test

import (
	"testing"

	"landfall.build/engine/eta"
	"landfall.build/services/gateway/view"
)

// TestWithoutHistoryThereIsNoEstimate: the first build took less than a second, where the prior says five minutes. Nothing is known of
// how long a target takes that has never run, so no interval of hours is told.
func TestWithoutHistoryThereIsNoEstimate(t *testing.T) {
	together(t)
	r := newRepository(t)
	g := newGate(t)
	r.branch("first", "f0/b.txt", "fine\n")
	r.git("checkout", "-q", "-B", "second", "main")
	r.write("new/landfall.yaml", "targets: [{name: new, kind: test, sources: ['*.txt'], steps: [{name: step, run: [sh, -c, \""+g.await()+"\"]}]}]\n")
	r.write("new/a.txt", "fine\n")
	r.commit("second")
	r.git("push", "-q", "origin", "second")
	_, c := newPeerStack(t, r)
	land(t, c, "first", "first")
	expect(t, c, "first", "landed")
	land(t, c, "second", "second")
	v := until(t, c, "second", func(v view.Change) bool {
		return v.State == view.StateTesting && v.ETA != nil && (v.ETA.Unknown == "" || v.ETA.Unknown == eta.NoDurations)
	})
	if v.ETA.Unknown == "" {
		t.Errorf("an estimate is made of nothing: from %s to %s", v.ETA.From90, v.ETA.To90)
	}
	g.open(t)
	expect(t, c, "second", "landed")
}
