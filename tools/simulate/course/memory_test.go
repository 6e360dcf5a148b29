package course

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// What is forgotten is of no use: where each change has a target of its own, nothing else comes of the trace.
func TestForgettingChangesNothingAndBoundsMemory(t *testing.T) {
	const keep = 3
	follow := func(p trace.Paper, name string, keep int) (r *Result, most, forgotten int) {
		k, err := policy.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := forecast.New(forecast.Calibrated, p.Seed, p.Start)
		if err != nil {
			t.Fatal(err)
		}
		known, pending := map[string]bool{}, 0
		r, err = Run(t.Context(), Options{
			Trace: p.Start(), Forecast: f, Kind: k, Workers: 30, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second, keep: keep,
			Record: func(s *eventsv1.Speculation) {
				for _, x := range s.Facts {
					switch x := x.Fact.(type) {
					case *eventsv1.Fact_ChangeAdmitted:
						pending++
					case *eventsv1.Fact_ChangeLanded, *eventsv1.Fact_ChangeRejected:
						pending--
					case *eventsv1.Fact_StepFinished:
						known[x.StepFinished.Target+"@"+x.StepFinished.Hash] = true
					case *eventsv1.Fact_EvidenceForgotten:
						for _, v := range x.EvidenceForgotten.Versions {
							delete(known, v.Target+"@"+v.Hash)
							forgotten++
						}
					}
				}
				if pending == 0 {
					most = max(most, len(known)) // of what is pending more is known
				}
			},
		})
		if err != nil {
			t.Fatalf("%s, seed %d: %v", name, p.Seed, err)
		}
		return r, most, forgotten
	}
	for seed := uint64(1); seed <= 3; seed++ {
		p := small(seed)
		p.Rate = 60 // so that at times nothing is pending
		for _, name := range policy.Names() {
			all, _, none := follow(p, name, 0)
			few, most, forgotten := follow(p, name, keep)
			if none != 0 || forgotten == 0 || !reflect.DeepEqual(all, few) {
				t.Errorf("seed %d, %s: %d of what is kept by default was forgotten, then %d; %+v, then %+v", seed, name, none, forgotten, all, few)
			}
			// What left in this round is forgotten in the next one.
			if most > 40 {
				t.Errorf("seed %d, %s: results of %d versions are known where nothing is pending", seed, name, most)
			}
		}
		p.ByTarget = true // targets are shared: Run says if anything else lands
		few, _, forgotten := follow(p, "landfall", keep)
		if forgotten == 0 || few.Landed+few.Rejected != p.Changes {
			t.Errorf("seed %d, by target: %d forgotten, %d landed and %d rejected of %d", seed, forgotten, few.Landed, few.Rejected, p.Changes)
		}
	}
}

// A study keeps the results of all its courses, and must not keep the courses for them.
func TestAResultKeepsNothingElseOfItsCourse(t *testing.T) {
	k, err := policy.Named("landfall")
	if err != nil {
		t.Fatal(err)
	}
	p := small(1)
	f, err := forecast.New(forecast.Calibrated, p.Seed, p.Start)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	begin := func() (*Result, error) {
		held := new([1 << 10]int64) // by what the course is given alone
		runtime.AddCleanup(held, func(gone chan struct{}) { close(gone) }, gone)
		return Run(t.Context(), Options{
			Trace: p.Start(), Forecast: f, Kind: k, Workers: 30, Threshold: k.Threshold, Bypass: k.Bypass, Round: 10 * time.Second,
			Record: func(s *eventsv1.Speculation) { held[0] = s.StampUs },
		})
	}
	r, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(r)
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the course is still there")
	runtime.KeepAlive(r)
}
