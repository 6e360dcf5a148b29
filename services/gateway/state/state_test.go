package state

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/state/statetest"
	"landfall.build/services/gateway/view"
)

// fold folds an entry as a gateway does: an admission code that passes refuses a delivery, others the request.
func (q *Queue) fold(e journal.Entry) string {
	consequence, request, answer := q.Fold(e, func(r *eventsv1.RequestRefused) string {
		if admission.Code(r.Code).Passing() {
			return e.ID
		}
		return ""
	})
	return fmt.Sprintf("%+v %s %v %v %s", consequence.Applied, request, answer.Admitted, answer.Refused, answer.Delivery)
}

// reopened is what a process finds that starts again.
func reopened(t *testing.T, q *Queue, limits view.Limits) *Queue {
	t.Helper()
	frozen, err := proto.Marshal(q.Snapshot("main"))
	if err != nil {
		t.Fatal(err)
	}
	m := &snapshotv1.GatewayQueue{}
	if err := proto.Unmarshal(frozen, m); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(m, limits)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func sameShown(t *testing.T, q, restored *Queue) {
	t.Helper()
	want, got := shown(t, q), shown(t, restored)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("after a restart is shown\n%v\ninstead of\n%v", got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
		}
	}
}

// shown is all that people are shown of a queue.
func shown(t *testing.T, q *Queue) (out []string) {
	t.Helper()
	put := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	put(q.View.Overview())
	put(q.View.Quarantines())
	put(q.View.Flakes())
	for _, s := range append(q.View.Pending(), q.View.Finished(1000)...) {
		c, _ := q.View.Change(s.Change)
		put(c)
		e, _ := q.View.Explain(s.Change)
		put(e)
		attempts, _ := q.View.Attempts(s.Change, 0)
		put(attempts)
		i, _ := q.View.Inquire(s.Change)
		i.ExplainNow(func(f func(*view.Queue)) { f(q.View) })
		put(i.Answer)
		put(q.View.Waiting(s.Change, time.UnixMicro(1)))
		put([]int64{i.Offset, i.Term})
	}
	put(q.View.Since(q.View.Sequence()/2, nil))
	return out
}

// TestASnapshotHoldsTheWholeQueue in random histories: the restored queue is the same, shows the same, and goes on as the
// original does.
func TestASnapshotHoldsTheWholeQueue(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	limits := view.Limits{Finished: 30, Builds: 40, Attempts: 200, TailBytes: 2000}
	// What workers choose by has a test of its own in engine/steps.
	packages := []string{"state", "view", "lineup", "explanation", "graph", "flakes", "journal", "memberset"}
	// Thirty histories have nearly always set every field; the rarest, a timeline too long to keep whole, takes more of them at times.
	for n := 0; n < 30 || n < 120 && len(fields.Missing(packages...)) > 0; n++ {
		q, s := New("main", limits), statetest.New(rand.New(rand.NewPCG(random.Uint64(), 0)), 8)
		for range 1000 {
			for _, e := range s.Next() {
				q.fold(e)
			}
		}
		restored := reopened(t, q, limits)
		fields.Same(q, restored)
		sameShown(t, q, restored)
		for range 200 {
			for _, e := range s.Next() {
				if want, got := q.fold(e), restored.fold(e); want != got {
					t.Fatalf("%v is folded as %s after a restart, else as %s", e, got, want)
				}
			}
		}
		fields.Same(q, restored)
		sameShown(t, q, restored)
	}
	fields.Done(packages...)
}

// TestATornSnapshotIsRefused, and an empty one is an empty queue.
func TestATornSnapshotIsRefused(t *testing.T) {
	if q, err := Restore(&snapshotv1.GatewayQueue{Name: "main"}, view.DefaultLimits()); err != nil || len(q.View.Pending()) > 0 {
		t.Errorf("nothing is restored as %v, %v", q, err)
	}
	for what, m := range map[string]*snapshotv1.GatewayQueue{
		"a text that is not there":            {View: &snapshotv1.GatewayView{Answered: []uint32{1}}},
		"a pending change without admission":  {View: &snapshotv1.GatewayView{Changes: []*snapshotv1.GatewayChange{{Pending: "a"}}}},
		"a start that is not there":           {View: &snapshotv1.GatewayView{Texts: []string{"a"}, History: &snapshotv1.GatewayHistory{Named: []*snapshotv1.GatewayNamed{{}}}}},
		"lists of different lengths":          {View: &snapshotv1.GatewayView{Texts: []string{"a"}, Attempts: &snapshotv1.GatewayAttempts{Target: []uint32{0}}}},
		"a change without heads":              {Changes: []string{"a"}},
		"half a fingerprint":                  {Answers: &snapshotv1.GatewayAnswers{Answered: make([]byte, 20)}},
		"half a digest":                       {Answers: &snapshotv1.GatewayAnswers{Answered: make([]byte, 16), Given: make([]byte, 8)}},
		"an answer with an unknown admission": {Answers: &snapshotv1.GatewayAnswers{Kept: []*snapshotv1.GatewayAnswer{{Request: "r", Change: "a"}}}},
	} {
		if _, err := Restore(m, view.DefaultLimits()); err == nil {
			t.Errorf("%s is no error", what)
		}
	}
}

// TestAnswersOutliveASnapshot, those for good and those of the moment.
func TestAnswersOutliveASnapshot(t *testing.T) {
	q := New("main", view.DefaultLimits())
	q.Answers.put("mine", Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: "mine", Change: "a"}}, Delivery: "d1"})
	q.Answers.put("other", Given{Answer: admission.Answer{Admitted: &eventsv1.Admission{RequestId: "other", Change: "b"}}})
	kept := &reopened(t, q, view.DefaultLimits()).Answers
	a, _ := kept.Get("mine")
	b, _ := kept.Get("other")
	if !kept.HasRefused("d1") || kept.Has("mine") || !kept.Has("other") || a.Delivery != "d1" || a.Refused.GetChange() != "a" || b.Admitted.GetChange() != "b" {
		t.Errorf("%+v", kept)
	}
}

// TestAnIDIsItsChangesHoweverLongAgo, and what it was answered is known.
func TestAnIDIsItsChangesHoweverLongAgo(t *testing.T) {
	q := New("main", view.DefaultLimits())
	place := &eventsv1.RequestPlace{Partition: 2, Offset: 77}
	q.Answers.put("admitted", Given{Answer: admission.Answer{Admitted: &eventsv1.Admission{RequestId: "admitted", Change: "a", Revision: 3, Place: place}}})
	q.Answers.put("empty", Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: "empty", Change: "a", Code: string(admission.Empty), Place: place}}})
	q.Answers.put("late", Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: "late", Change: "a", Code: string(admission.NoSuchRef)}}, Delivery: "d1"})
	q.Answers.put("before", Given{Answer: admission.Answer{Admitted: &eventsv1.Admission{RequestId: "before", Change: "a", Revision: 1}}}) // by an earlier version
	for i := range keptAnswers + 10 {
		id := fmt.Sprint("r", i)
		q.Answers.put(id, Given{Answer: admission.Answer{Refused: &eventsv1.RequestRefused{RequestId: id, Change: "b", Code: string(admission.Unchanged)}}})
	}
	for range 2 {
		here := PlaceOf(place)
		for _, c := range []struct {
			request, change, delivery string
			place                     uint64
			want                      Standing
		}{
			{"admitted", "a", "", here, Answered},
			{"admitted", "a", "", here + 1, Repeated},
			{"admitted", "b", "", here + 1, Repeated},
			{"empty", "a", "", here, Answered},
			{"empty", "b", "", here + 1, Repeated},
			{"late", "a", "d1", here, Answered},
			{"late", "a", "d2", here, Undecided},
			{"late", "b", "d2", here, Repeated},
			{"before", "a", "d2", here, Answered},
			{"before", "b", "d2", here, Answered},
			{"never", "b", "d2", here, Undecided},
		} {
			if got := q.Answers.Standing(c.request, c.change, c.delivery, c.place); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
		if a, known := q.Answers.Earlier("admitted", "a"); !known || a.Admitted.GetRevision() != 3 {
			t.Errorf("admitted: %v", a)
		}
		if a, known := q.Answers.Earlier("admitted", "b"); !known || a.Change() == "b" {
			t.Errorf("admitted for another change: %v", a)
		}
		if a, known := q.Answers.Earlier("empty", "a"); !known || a.Refused.GetCode() != "empty" {
			t.Errorf("empty: %v", a)
		}
		if a, known := q.Answers.Earlier("late", "a"); known {
			t.Errorf("late is still to be decided: %v", a)
		}
		q = reopened(t, q, view.DefaultLimits())
	}
	m := q.Snapshot("main")
	m.Answers.Given = nil // as earlier versions wrote it
	old, err := Restore(m, view.DefaultLimits())
	if err != nil || !old.Answers.Has("admitted") || old.Answers.Standing("admitted", "a", "", 1) != Answered || old.Answers.Standing("r20", "a", "", 1) != Answered {
		t.Errorf("a snapshot of an earlier version: %v", err)
	}
}
