package audit

import (
	"fmt"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// slowestFirst is the dumb twin of agenda.take: the first of those that no other exceeds by a doubling.
func slowestFirst(waiting []*task, usual map[string]time.Duration) *task {
	class := func(t *task) int {
		n := 0
		for d := usual[t.target.Name]; d >= time.Second; d /= 2 {
			n++
		}
		return n
	}
	for _, t := range waiting {
		most := true
		for _, other := range waiting {
			most = most && class(other) <= class(t)
		}
		if most {
			return t
		}
	}
	return nil
}

func TestSlowTargetsComeFirstAndTheRestInOrder(t *testing.T) {
	random := seedtest.Random(t)
	for range 200 {
		a, usual := &agenda{}, map[string]time.Duration{}
		for i := range random.IntN(12) {
			name := fmt.Sprintf("//t%d", i%5)
			a.add(&task{target: targets.Target{Name: name}})
			if random.IntN(2) == 0 {
				usual[name] = time.Duration(random.Int64N(int64(9 * time.Second)))
			}
		}
		for len(a.waiting) > 0 {
			want := slowestFirst(a.waiting, usual)
			if got := a.take(usual); got != want {
				t.Fatalf("took %s, not %s", got.target.Name, want.target.Name)
			}
		}
		if a.take(usual) != nil {
			t.Fatal("an empty agenda gives a task")
		}
	}
}

func TestUnknownTargetsArePredictedAsTheAverage(t *testing.T) {
	a := &agenda{}
	for _, name := range []string{"//known", "//new", "//new"} {
		a.add(&task{target: targets.Target{Name: name}})
	}
	usual := map[string]time.Duration{"//known": 4 * time.Second, "//done": 2 * time.Second}
	if got := a.remaining(usual); got != 10*time.Second {
		t.Errorf("%s remain", got)
	}
	if got := a.remaining(nil); got != 0 {
		t.Errorf("%s remain of what nobody knows", got)
	}
}
