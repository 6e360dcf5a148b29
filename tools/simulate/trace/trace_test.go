package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func all(t *testing.T, tr Trace) (list []*Change) {
	t.Helper()
	for {
		c, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
}

func TestThePaperWorkloadHasThePinnedRates(t *testing.T) {
	p := PinnedPaper()
	p.Changes = 8000
	tr := p.Start()
	changes := all(t, tr)
	var green, near, met, broken int
	var durations []float64
	for i, c := range changes {
		durations = append(durations, float64(c.Duration)/60e6)
		if c.Green {
			green++
		}
		for _, k := range changes[max(0, i-400):i] {
			if tr.Meet(k, c) {
				met++
				if c.Arrival-k.Arrival <= p.Near.Microseconds() {
					near++
				}
			}
		}
		broken += len(c.Breaks)
		for _, b := range c.Breaks {
			if !tr.Meet(changes[b], c) || c.Arrival-changes[b].Arrival > p.Near.Microseconds() {
				t.Fatalf("%s breaks with %s, which it does not meet, or which is far", c.ID, changes[b].ID)
			}
		}
	}
	slices.Sort(durations)
	hours := float64(changes[len(changes)-1].Arrival) / 3.6e9
	for _, x := range []struct {
		what              string
		is, should, close float64
	}{
		{"changes per hour", float64(len(changes)) / hours, 500, 20},
		{"green", float64(green) / 8000, 0.94, 0.01},
		{"potential conflicts", float64(met) / (400 * 7800), 0.05, 0.001},
		{"true conflicts of those near", float64(broken) / float64(near), 0.005, 0.0015},
		{"median duration", durations[4000], 32, 0.6},
		{"P95 of the durations", durations[7600], 60, 2},
	} {
		if math.Abs(x.is-x.should) > x.close {
			t.Errorf("%s: %.4f, should be %.4f ± %.4f", x.what, x.is, x.should, x.close)
		}
	}
	if durations[0] < 10 || durations[len(durations)-1] > 90 {
		t.Errorf("durations from %.1f to %.1f min", durations[0], durations[len(durations)-1])
	}
	if r := tr.Rates(); math.Abs(r.Mean/60e6-34.3) > 0.7 {
		t.Errorf("the mean duration is said to be %.1f min", r.Mean/60e6)
	}
}

func TestATraceIsAMatterOfItsSeed(t *testing.T) {
	p := PinnedPaper()
	p.Changes = 300
	other := p
	other.Seed = 2
	a, b, c := all(t, p.Start()), all(t, p.Start()), all(t, other.Start())
	same := 0
	for i := range a {
		if fmt.Sprint(*a[i]) != fmt.Sprint(*b[i]) {
			t.Fatalf("change %d differs: %v and %v", i, *a[i], *b[i])
		}
		if a[i].Duration == c[i].Duration {
			same++
		}
	}
	if same > 3 {
		t.Errorf("%d of %d changes are the same under another seed", same, len(a))
	}
}

func TestImpossibleWorkloadsAreRefusedAsAWhole(t *testing.T) {
	p := PinnedPaper()
	p.Changes, p.Rate, p.Failure, p.Shortest = 0, -1, math.NaN(), 2*time.Hour
	err := p.Validate()
	for _, part := range []string{"0 changes", "rate of -1", "failure of NaN", "shortest 2h"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
	if err := PinnedPaper().Validate(); err != nil {
		t.Error(err)
	}
	p = PinnedPaper()
	p.Rate = 1e-12
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "2000 changes at 1e-12 per hour") {
		t.Errorf("a trace of more years than microseconds can count: %v", err)
	}
	p.Failure, p.Potential, p.True = 2, 2, 2
	for range 20 {
		if err := p.Validate().Error(); strings.Index(err, "of failure") > strings.Index(err, "potential") || strings.Index(err, "potential") > strings.Index(err, "true") {
			t.Fatalf("what is wrong is not said in one order: %s", err)
		}
	}
}

// What lands belongs to the trace (decision 0021).
func TestAChangeLandsIfNothingThatItBreaksWithHasLanded(t *testing.T) {
	var truth Truth
	for _, x := range []struct {
		c     Change
		lands bool
	}{
		{Change{Number: 0, Green: true}, true},
		{Change{Number: 1, Green: true, Breaks: []int{0}}, false},
		{Change{Number: 2, Green: true, Breaks: []int{1}}, true},
		{Change{Number: 3, Green: false}, false},
		{Change{Number: 100, Green: true, Breaks: []int{3}}, true},
		{Change{Number: 101, Green: true, Breaks: []int{3, 100}}, false},
	} {
		if lands := truth.Take(&x.c); lands != x.lands || truth.Lands(x.c.Number) != x.lands {
			t.Errorf("change %d lands: %v", x.c.Number, lands)
		}
	}
	if truth.Lands(50) || truth.Lands(1000) || truth.Lands(-1) {
		t.Error("a change that was not taken lands")
	}
}

func TestAFileIsReadAsItIsWritten(t *testing.T) {
	text := `{"id":"a","arrival_s":0,"duration_s":1800,"green":true}

{"id":"b","arrival_s":7.5,"duration_s":600,"green":false,"meets":["a"]}
{"id":"c","arrival_s":7.5,"duration_s":60,"green":true,"meets_last":2,"breaks":["a"]}
`
	rates, n, err := Survey(strings.NewReader(text))
	if err != nil || n != 3 || math.Abs(rates.Green-2.0/3) > 1e-9 || math.Abs(rates.Conflict-1.0/3) > 1e-9 || rates.Near != 7_500_000 || rates.Mean != 820e6 {
		t.Fatalf("%d changes, %+v, %v", n, rates, err)
	}
	f := NewFile(strings.NewReader(text), rates)
	c := all(t, f)
	if len(c) != 3 || c[1].Arrival != 7_500_000 || c[1].Green || !slices.Equal(c[2].Breaks, []int{0}) {
		t.Fatalf("%v", c)
	}
	if !f.Meet(c[0], c[1]) || !f.Meet(c[1], c[2]) || !f.Meet(c[0], c[2]) {
		t.Error("who meets whom is not as in the file")
	}
}

// A file may have every change meet all of the last 100,000: what is kept of each does not grow with that.
func TestWhoMeetsTheLastIsNotListedOneByOne(t *testing.T) {
	const n = 300
	var last, named strings.Builder
	ids := []string{}
	for i := range n {
		most := min(i, i%7*20)
		fmt.Fprintf(&last, `{"id":"c%d","arrival_s":%d,"duration_s":60,"green":true,"meets_last":%d}`+"\n", i, i, most)
		list, err := json.Marshal(ids[i-most:])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&named, `{"id":"c%d","arrival_s":%d,"duration_s":60,"green":true,"meets":%s}`+"\n", i, i, list)
		ids = append(ids, fmt.Sprintf("c%d", i))
	}
	rates, _, err := Survey(strings.NewReader(last.String()))
	if err != nil {
		t.Fatal(err)
	}
	if other, _, err := Survey(strings.NewReader(named.String())); err != nil || other != rates {
		t.Fatalf("%+v, named one by one %+v: %v", rates, other, err)
	}
	a, b := NewFile(strings.NewReader(last.String()), rates), NewFile(strings.NewReader(named.String()), rates)
	list, twin := all(t, a), all(t, b)
	for k := range list {
		for i := range k {
			if a.Meet(list[i], list[k]) != b.Meet(twin[i], twin[k]) {
				t.Errorf("%d meets %d: %v", k, i, a.Meet(list[i], list[k]))
			}
		}
		if listed := len(a.meets[k].named); listed != 0 {
			t.Errorf("%d has a list of %d", k, listed)
		}
	}
}

func TestABadFileIsRefusedWithItsLine(t *testing.T) {
	good := `{"id":"a","arrival_s":5,"duration_s":60,"green":true}` + "\n"
	for text, want := range map[string]string{
		"":                        "no change",
		"no json":                 "line 1: it is no change",
		`{"id":"a` + "\xff":       "line 1: it is not UTF-8",
		`{"id":"a"}`:              "line 1: arrival_s is missing\nduration_s is missing\ngreen is missing",
		good + good:               "line 2: there was a change \"a\" before",
		good + good[:20]:          "line 2: it is no change",
		good[:len(good)-1] + "{}": "more than one value",
		good[:len(good)-1] + "}":  "more than one value",
		good[:len(good)-1] + "]":  "more than one value",
		good[:len(good)-1] + "x":  "more than one value",
		good + `{"id":"b","arrival_s":4,"duration_s":60,"green":true}`:                                   "line 2: it arrives at 4 s",
		good + `{"id":"b","arrival_s":-1,"duration_s":60,"green":true}`:                                  "line 2: it arrives at -1 s",
		good + `{"id":"b","arrival_s":6,"duration_s":-3,"green":true}`:                                   "takes -3 s",
		good + `{"id":"b","arrival_s":6,"duration_s":0,"green":true}`:                                    "takes 0 s",
		good + `{"id":"b","arrival_s":6,"duration_s":1e-7,"green":true}`:                                 "takes 1e-07 s",
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"meets":["c"]}`:                      `meets names "c"`,
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"meets":["b"]}`:                      "names the change itself",
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"breaks":["a"]}`:                     `breaks with a change that it does not meet, "a"`,
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"meets_last":2}`:                     "meets the last 2",
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"meets":["a"],"meets_last":1}`:       "both meets and meets_last",
		good + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"colour":"red"}`:                     "colour",
		good + `{"id":"` + strings.Repeat("x", maxLine) + `","arrival_s":6,"duration_s":1,"green":true}`: "line 2: it is longer",
	} {
		_, _, err := Survey(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, should say %q", text, err, want)
		}
	}
}

func TestAByteOrderMarkIsNoPartOfAFile(t *testing.T) {
	good := `{"id":"a","arrival_s":5,"duration_s":60,"green":true}` + "\n"
	if _, n, err := Survey(strings.NewReader("\ufeff" + good)); err != nil || n != 1 {
		t.Errorf("%d changes: %v", n, err)
	}
	if _, _, err := Survey(strings.NewReader(good + "\ufeff" + good)); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("one on line 2: %v", err)
	}
}

func FuzzFileNeverPanics(f *testing.F) {
	f.Add(`{"id":"a","arrival_s":5,"duration_s":60,"green":true}` + "\n" + `{"id":"b","arrival_s":6,"duration_s":1,"green":true,"meets":["a"],"breaks":["a"]}`)
	f.Add(`{"id":"a","arrival_s":1e300,"duration_s":1e-300,"green":null,"meets_last":-1}`)
	f.Fuzz(func(t *testing.T, text string) {
		rates, n, err := Survey(strings.NewReader(text))
		if err != nil {
			return
		}
		if list := all(t, NewFile(strings.NewReader(text), rates)); len(list) != n {
			t.Errorf("%d changes, then %d", n, len(list))
		}
	})
}
