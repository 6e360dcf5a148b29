package replay

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// randomDecision has few values, so that two are often equal in part.
func randomDecision(r *rand.Rand) *eventsv1.Decision {
	d := &eventsv1.Decision{Position: r.Int64N(2), StampUs: r.Int64N(2)}
	if r.IntN(2) == 0 {
		d.Positions = &eventsv1.Positions{Changes: r.Int64N(2), LanderTerm: -r.Int64N(2)}
	}
	ref := func() *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: itoa(r.Int64N(3)), Revision: 1} }
	for range r.IntN(4) {
		item := &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: itoa(r.Int64N(3))}}}
		if r.IntN(2) == 0 {
			item.Item = &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: ref(), Bypasses: []*eventsv1.ChangeRef{ref()}[:r.IntN(2)]}}
		}
		d.Items = append(d.Items, item)
	}
	return d
}

func TestFieldsDifferExactlyWhereMessagesDo(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	equal := 0
	for range 20_000 {
		a, b := randomDecision(r), randomDecision(r)
		fields := Fields(a, b)
		if proto.Equal(a, b) {
			equal++
		}
		if (len(fields) == 0) != proto.Equal(a, b) {
			t.Fatalf("%v and %v: %+v", a, b, fields)
		}
		mirrored := Fields(b, a)
		if len(mirrored) != len(fields) {
			t.Fatalf("%v and %v differ in %+v, the other way round in %+v", a, b, fields, mirrored)
		}
		for i, f := range fields {
			if f.Written == f.Computed || f.Written != mirrored[i].Computed {
				t.Fatalf("%v and %v: %+v, %+v", a, b, f, mirrored[i])
			}
		}
	}
	if equal < 20 {
		t.Errorf("only %d pairs were equal", equal)
	}
}

func TestALongListThatGainsAnElementDiffersInThatAlone(t *testing.T) {
	of := func(ids ...string) *eventsv1.GraphDelta {
		d := &eventsv1.GraphDelta{}
		for _, id := range ids {
			d.Nodes = append(d.Nodes, &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}})
		}
		return d
	}
	fields := Fields(of("a", "b", "c", "d"), of("a", "x", "b", "c", "d"))
	if len(fields) != 1 || fields[0].Path != "nodes[1 x]" || fields[0].Written != "" || !strings.Contains(fields[0].Computed, `"x"`) {
		t.Errorf("%+v", fields)
	}
	labels := Fields(&eventsv1.Admission{Labels: map[string]string{"a": "1", "b": "2"}}, &eventsv1.Admission{Labels: map[string]string{"b": "3", "c": "4"}})
	if len(labels) != 3 {
		t.Errorf("%+v", labels)
	}
}
