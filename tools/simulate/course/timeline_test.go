package course

import "testing"

func TestATimelineIsBoundedAndInOrder(t *testing.T) {
	c := &course{machines: newMachines()}
	for range 20_000 {
		c.clock += firstInterval
		c.timeline.look(c)
	}
	m := c.timeline.moments
	if len(m) < maxMoments/4 || len(m) >= maxMoments {
		t.Fatalf("%d moments", len(m))
	}
	for i := 1; i < len(m); i++ {
		if m[i].At <= m[i-1].At {
			t.Fatalf("moment %d is at %v, the one before at %v", i, m[i].At, m[i-1].At)
		}
	}
	if last := float64(c.clock) / 1e6; m[len(m)-1].At < 0.98*last {
		t.Errorf("it ends at %v of %v", m[len(m)-1].At, last)
	}
}
