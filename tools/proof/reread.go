package proof

import (
	"fmt"
	"strings"
)

// reread draws when the configuration or a tool changes, once or twice: all who read trees start again, and every target has
// another version then. What a target is in truth stays.
func (s *schedule) reread(x *site) {
	if s.readings == nil {
		return
	}
	for i := range 1 + s.readings.IntN(2) {
		name := fmt.Sprintf("reading%d", i)
		if x != s.m.sites[0] {
			name = x.queue + " " + name
		}
		s.ops = append(s.ops, operation{at: s.readings.Int64N(s.span), name: name, do: func() { x.reread() }})
	}
}

func (x *site) reread() {
	x.m.tally[Rereadings]++
	r := x.main.repository
	r.reading = fmt.Sprintf("~%d", len(r.readings))
	r.readings = append(r.readings, r.reading)
	for _, a := range x.m.actors {
		switch a := a.(type) {
		case *analyzerActor:
			if a.x == x {
				a.crash()
			}
		case *builderActor:
			if a.x == x {
				a.crash()
			}
		case *landerActor:
			a.crash()
		}
	}
}

// plain returns the hash without how the tree was read.
func plain(hash string) string {
	before, _, _ := strings.Cut(hash, "~")
	return before
}
