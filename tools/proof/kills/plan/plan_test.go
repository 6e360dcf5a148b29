package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var all = Targets{
	Services: []string{"a-one", "a-two", "b-one", "b-two"}, Builders: []string{"b-one", "b-two"},
	Brokers: []string{"k1", "k2", "k3"}, Replicated: true, Intrudable: []string{"a", "b"},
}

func first(n int, seed uint64, t Targets) (out []Action) {
	for p := New(seed, t); len(out) < n; {
		out = append(out, p.Next())
	}
	return out
}

func TestASeedGivesTheSamePlanAndAnotherOneAnother(t *testing.T) {
	if !slices.Equal(first(500, 7, all), first(500, 7, all)) {
		t.Error("seed 7 gives two plans")
	}
	if slices.Equal(first(500, 7, all), first(500, 8, all)) {
		t.Error("seeds 7 and 8 give one plan")
	}
}

// TestEverythingBefallsEveryTarget also holds each action within what its kind may do.
func TestEverythingBefallsEveryTarget(t *testing.T) {
	met := map[string]bool{}
	for _, a := range first(3000, 1, all) {
		met[fmt.Sprint(a.Kind, " ", a.Target)] = true
		var allowed []string
		switch a.Kind {
		case Kill:
			allowed = append(slices.Clone(all.Services), all.Brokers...)
		case KillChild:
			allowed = all.Builders
		case Stop:
			allowed = append(slices.Clone(all.Services), all.Brokers...)
			if a.Hold < takenOver {
				t.Errorf("nobody takes over within %s: %+v", a.Hold, a)
			}
		case Intrude:
			allowed = all.Intrudable
		}
		if !slices.Contains(allowed, a.Target) || a.Wait < 0 || a.Wait > maxWait || a.Hold < 0 || a.Hold > time.Minute || a.Pick < 0 {
			t.Errorf("%+v", a)
		}
	}
	if want := 7 + 2 + 7 + 2; len(met) != want {
		t.Errorf("%d of %d combinations of kind and target are met: %v", len(met), want, met)
	}
}

func TestABrokerFromWhichNobodyTakesOverIsNotStopped(t *testing.T) {
	alone := all
	alone.Brokers, alone.Replicated = []string{"broker"}, false
	for _, a := range first(3000, 2, alone) {
		if a.Kind == Stop && a.Target == "broker" {
			t.Fatalf("%+v", a)
		}
	}
}

func TestReplacementsAreTheSameForASeed(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	one, again := Replacements(7, names), Replacements(7, names)
	met := map[string]bool{}
	for i := range one {
		if one[i] != again[i] {
			t.Errorf("%+v and %+v", one[i], again[i])
		}
		met[one[i].Target] = true
	}
	if len(met) != len(names) {
		t.Errorf("%+v", one)
	}
}
