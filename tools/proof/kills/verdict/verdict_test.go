package verdict

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/sample"
)

// ended is a run of three changes: two land, one of them past the other, and one is wrong.
type ended struct {
	sample   *sample.Repository
	changes  map[string]view.Change
	mainline expectation.Mainline
	report   *audit.Report
}

func landed(name string, commits ...string) view.Change {
	v := view.Change{}
	v.Change, v.State, v.Revision, v.Commits = name, view.StateLanded, 1, commits
	v.Landing = &view.Landing{Commits: commits}
	return v
}

func rejected(name, class string) view.Change {
	v := view.Change{}
	v.Change, v.State, v.Revision, v.Rejection = name, view.StateRejected, 1, &view.Rejection{Class: class}
	return v
}

func well() *ended {
	change := func(name string, want sample.Ending) sample.Change {
		return sample.Change{Name: name, Commits: []sample.Commit{{Title: "Title of " + name}}, Want: want}
	}
	e := &ended{
		sample: &sample.Repository{
			Changes: []sample.Change{change("a", sample.Landed), change("b", sample.Landed), change("wrong", sample.StepFailed)},
			Direct:  change("direct", sample.Landed),
		},
		changes:  map[string]view.Change{"a": landed("a", "1"), "b": landed("b", "2"), "wrong": rejected("wrong", "step_failed")},
		mainline: expectation.Mainline{Commits: []string{"1", "d", "2"}, Titles: []string{"Title of a", "Title of direct", "Title of b"}},
		report:   &audit.Report{Commits: make([]audit.Commit, 3)},
	}
	e.changes["a"].Landing.Bypassed = []string{"b"}
	return e
}

func TestEveryBrokenPromiseIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*ended)
		want  Line
	}{
		"all is well":                 {func(*ended) {}, Line{}},
		"a commit is red":             {func(e *ended) { e.report.Commits[1].Bad = []*audit.Finding{{}} }, Line{Red: 1}},
		"a landed commit is gone":     {func(e *ended) { e.mainline.Commits[2] = "another" }, Line{Lost: 1}},
		"a stack landed in part":      {func(e *ended) { e.changes["b"] = landed("b") }, Line{Lost: 1}},
		"a change is not known":       {func(e *ended) { delete(e.changes, "b") }, Line{Lost: 1}},
		"a change landed twice":       {func(e *ended) { e.push("3", "Title of b") }, Line{Doubled: 1}},
		"a change landed thrice":      {func(e *ended) { e.push("3", "Title of b"); e.push("4", "Title of b") }, Line{Doubled: 2}},
		"a change is pending":         {func(e *ended) { e.state("b", view.StateTesting) }, Line{Undecided: 1}},
		"an innocent is rejected":     {func(e *ended) { e.changes["b"] = rejected("b", "step_failed") }, Line{WronglyRejected: 1}},
		"a reason is another":         {func(e *ended) { e.changes["wrong"] = rejected("wrong", "timed_out") }, Line{WronglyRejected: 1}},
		"somebody is thrown out":      {func(e *ended) { e.state("b", view.StateEjected) }, Line{WronglyRejected: 1}},
		"a cancelled one is nobody's": {func(e *ended) { e.state("b", view.StateCancelled) }, Line{WronglyRejected: 1}},
	} {
		e := well()
		c.spoil(e)
		got, problems := Judge(e.sample, e.changes, e.mainline, e.report)
		c.want.Bypasses = 1
		if got != c.want || got.Kept() != (name == "all is well") {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if name == "all is well" && len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func (e *ended) push(id, title string) {
	e.mainline.Commits, e.mainline.Titles = append(e.mainline.Commits, id), append(e.mainline.Titles, title)
}

func (e *ended) state(name, state string) {
	v := landed(name)
	v.State, v.Landing = state, nil
	e.changes[name] = v
}

func TestTheLineHasExactlyItsFields(t *testing.T) {
	const want = `{"schedules":2,"seed":9,"red":0,"lost":0,"doubled":0,"undecided":0,"wrongly_rejected":0,"bypasses":0,"crashes":7,"stale_writes":0,"guard_refusals":0}`
	l := Line{Schedules: 1, Seed: 9, Crashes: 3}
	l.Add(Line{Schedules: 1, Seed: 10, Crashes: 4})
	if got, err := json.Marshal(l); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestRecordsOfAReplacedOwnerAreStale(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 2})
	defer log.Close()
	n := 0
	put := func(topic, source string, term int64, m proto.Message) int64 {
		n++
		at, err := log.Append(t.Context(), topic, 1, events.Envelope{
			ID: fmt.Sprint("r", n), Source: source, Instance: "test", Queue: "q", Time: time.UnixMicro(1), Term: term, Message: m,
		})
		if err != nil {
			t.Fatal(err)
		}
		return at[0]
	}
	ref := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	old := put(events.TopicChanges, events.ServiceLander, -1, &eventsv1.Claim{Service: events.ServiceLander})
	put(events.TopicChanges, events.ServiceLander, old, &eventsv1.Refused{Change: ref})
	put(events.TopicChanges, events.ServiceLander, -1, &eventsv1.Claim{Service: events.ServiceLander})
	put(events.TopicChanges, events.ServiceLander, old, &eventsv1.Refused{Change: ref})
	put(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{})
	got, err := ReadLog(t.Context(), log)
	if want := (Log{Records: 5, Stale: 1, Claims: 2, ClaimsOf: map[string]map[string]int{events.ServiceLander: {"": 2}}, Refusals: 1}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
