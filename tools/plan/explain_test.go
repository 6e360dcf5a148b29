package plan

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// TestTheFactorsMultiplyToWhatTheBuildIsNeededFor: the explanation, which takes the formulas apart member by member,
// is that of the very number that the ranking's search came to.
func TestTheFactorsMultiplyToWhatTheBuildIsNeededFor(t *testing.T) {
	r := seedtest.Random(t)
	factors, bypassed, waits := 0, 0, 0
	for range 1500 {
		w := randomWorld(r)
		q, err := read(strings.NewReader(w.snapshot(r)))
		if err != nil {
			t.Fatal(err)
		}
		how := planner{explained: true, asRun: r.IntN(2) == 0}
		p := how.plan(q)
		for _, b := range p.Builds {
			product, likely := 1.0, 1.0
			for _, f := range b.Factors {
				product *= f.Factor
				likely *= f.Probability
				factors++
				if f.FinishesFirst > 0 {
					bypassed++
				}
				if len(f.Terms) == 0 {
					t.Fatalf("%+v comes from nowhere", f)
				}
			}
			value := b.Benefit * product
			if how.asRun {
				value = b.Benefit * b.Soon * likely
			}
			if math.Abs(product-b.Needed) > 1e-9 || math.Abs(value-b.Value) > 1e-9*max(1, b.Value) || b.Why == "" {
				t.Fatalf("%+v: the factors make %g and %g, as run: %v\n%s", b, product, value, how.asRun, w.snapshot(r))
			}
		}
		for i, d := range p.Decisions {
			if d.Why == "" {
				t.Fatalf("%+v has no reason", d)
			}
			want := 0
			w.eachPath(i, func(s uint) {
				if d.Decision == "wait" && !w.over(i, s) {
					want++
				}
			})
			if len(d.WaitsFor) != min(want, 8) {
				t.Fatalf("%+v waits for %d paths", d, want)
			}
			waits += want
		}
		for _, a := range p.Abort {
			if a.Why == "" {
				t.Fatalf("%+v has no reason", a)
			}
		}
		if err := p.write(&bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	if factors < 5000 || bypassed < 1000 || waits < 5000 {
		t.Errorf("only %d factors, %d of them with a bypass, %d paths waited for", factors, bypassed, waits)
	}
}
