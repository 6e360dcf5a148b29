package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestEachFaultIsRefusedByName: the error names the fault, and where it is.
func TestEachFaultIsRefusedByName(t *testing.T) {
	for _, x := range []struct{ snapshot, says string }{
		{`{"changes":[{"id":"a"},{"id":"a"}]}`, `changes[1] (a): changes[0] has the same id`},
		{`{"changes":[{}]}`, `changes[0]: it has no id`},
		{`{"changes":[{"id":"a","success":1.5}]}`, `changes[0] (a): success is 1.5; it is a probability`},
		{`{"changes":[{"id":"a","success":-0.1}]}`, `success is -0.1`},
		{`{"changes":[{"id":"a","success":NaN}]}`, `changes[0] (a): success is NaN, which is not a number`},
		{`{"changes":[{"id":"a","benefit":-Infinity}]}`, `benefit is -Infinity, which is not a number`},
		{`{"changes":[{"id":"a","benefit":1e999}]}`, `benefit is 1e999, which is not a number`},
		{`{"changes":[{"id":"a","benefit":0}]}`, `benefit is 0; it is above 0`},
		{`{"changes":[{"id":"a","success":"high"}]}`, `success is "high", which is not a number`},
		{`{"changes":[{"id":"a","duration":{"mean":-1}}]}`, `the mean of its duration is -1; it is a number of seconds`},
		{`{"changes":[{"id":"a","duration":{"mean":1,"std":-2}}]}`, `the std of its duration is -2`},
		{`{"changes":[{"id":"a","duration":{"std":2}}]}`, `its duration has no mean`},
		{`{"changes":[{"id":"a","admitted":"yesterday"}]}`, `admitted is "yesterday"; it is a time`},
		{`{"changes":[{"id":"a"},{"id":"b","requires":["x"]}]}`, `changes[1] (b): requires names "x", which is not a change`},
		{`{"changes":[{"id":"a","requires":["b"]},{"id":"b"}]}`, `b cannot be ahead of a, which is before it in the queue: that is a cycle`},
		{`{"changes":[{"id":"a","requires":["a"]}]}`, `a cannot be ahead of itself`},
		{`{"changes":[{"id":"a"},{"id":"b","classes":[["a"]]}]}`, `changes[1] (b): classes[0]: it names a, which is not ahead of b`},
		{`{"changes":[{"id":"a"}],"conflicts":[{"ahead":"a","behind":"b"}]}`, `conflicts[0]: behind names "b", which is not a change`},
		{`{"changes":[{"id":"a"},{"id":"b"}],"conflicts":[{"ahead":"b","behind":"a"}]}`, `conflicts[0]: b cannot be ahead of a, which is before it in the queue: that is a cycle`},
		{`{"changes":[{"id":"a"},{"id":"b"}],"conflicts":[{"ahead":"a","behind":"b","probability":2}]}`, `conflicts[0]: probability is 2`},
		{`{"changes":[{"id":"a"},{"id":"b"}],"conflicts":[{"ahead":"a","behind":"b"},{"ahead":"a","behind":"b"}]}`, `conflicts[1]: a ahead of b is listed twice`},
		{`{"changes":[{"id":"a"},{"id":"b"}],"builds":[{"change":"b","assumed":["a"],"state":"green"}]}`, `builds[0]: assumed: it names a, which is not ahead of b`},
		{`{"builds":[{"change":"b","state":"green"}]}`, `builds[0]: change names "b", which is not a change`},
		{`{"changes":[{"id":"a"}],"builds":[{"change":"a","state":"blue"}]}`, `state is "blue"; it is one of running, green, red`},
		{`{"now":"2026-01-05T10:00:00Z","changes":[{"id":"a"}],"builds":[{"change":"a","state":"running"}]}`, `started is missing`},
		{`{"changes":[{"id":"a"}],"builds":[{"change":"a","state":"running","started":"2026-01-05T10:00:00Z"}]}`, `the snapshot has no now`},
		{`{"now":"2026-01-05T10:00:00Z","changes":[{"id":"a"}],"builds":[{"change":"a","state":"running","started":"2026-01-05T10:00:01Z"}]}`, `after now`},
		{`{"now":"2026-01-05T10:00:00Z","changes":[{"id":"a"}],"builds":[{"change":"a","state":"running","started":"2026-01-05T10:00:00Z"},{"change":"a","state":"running","started":"2026-01-05T10:00:00Z"}]}`, `runs already`},
		{`{"changes":[{"id":"a"}],"builds":[{"change":"a","state":"red","failed":[1]}]}`, `failed has 1; a has classes 0 to 0`},
		{`{"changes":[{"id":"a"}],"builds":[{"change":"a","state":"green","failed":[0]}]}`, `failed says which classes are red, but the build is green`},
		{`{"threshold":1.1}`, `the snapshot: threshold is 1.1`},
		{`{"abort_threshold":nan}`, `the snapshot: abort_threshold is nan`},
		{`{"bypass_threshold":2}`, `the snapshot: bypass_threshold is 2`},
		{`{"slots":-1}`, `the snapshot: slots is -1`},
		{`{"slots":1.5}`, `the snapshot: slots is 1.5`},
		{`{"treshold":0.1}`, `unknown field "treshold"`},
		{`{"changes":{}}`, `changes is of the wrong type (object)`},
		{`{"changes":[`, `the snapshot is not JSON`},
		{`{"changes":[{"id":"a\nb"}]}`, `changes[0] (a\u000ab): its id has a character that cannot be shown`},
		{`{"changes":[{"id":"a\ud800"}]}`, `its id has a character that cannot be shown`},
		{`{"changes":[{"id":NaN}]}`, `its id has a character that cannot be shown`},
		{`{"changes":[{"id":"a","success":0.2}],"changes":[{"id":"b"}]}`, `an object has the field "changes" twice`},
		{`{"changes":[{"id":"a","Id":"b"}]}`, `an object has the field "id" twice`},
		{`{"changes":[{"id":"` + "\xff" + `"}]}`, `the snapshot is not UTF-8`},
		{`null`, `it has no changes`},
		{`{"changes":[]} {}`, `something follows the snapshot`},
		{``, `the snapshot is not JSON`},
	} {
		_, err := read(strings.NewReader(x.snapshot))
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want it to say %s", x.snapshot, err, x.says)
		}
	}
}

// TestAllFaultsAreReportedAtOnce, up to a number of them.
func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	_, err := read(strings.NewReader(`{"threshold":7,"changes":[{"id":"a","success":NaN},{"id":"a"},{"id":"b","duration":{"mean":-1}}],
		"conflicts":[{"ahead":"b","behind":"a","probability":3}],"builds":[{"change":"b","assumed":["a"],"state":"green"},{"change":"x"}]}`))
	for _, part := range []string{"threshold is 7", "success is NaN", "has the same id", "is -1", "probability is 3", "a cycle", "not ahead of b", `"x", which is not a change`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("nothing says %q:\n%v", part, err)
		}
	}
	var changes []map[string]any
	for i := range 3 * maxProblems {
		changes = append(changes, map[string]any{"id": fmt.Sprint(i), "success": 2})
	}
	text, _ := json.Marshal(map[string]any{"changes": changes})
	_, err = read(strings.NewReader(string(text)))
	if lines := strings.Count(err.Error(), "\n") + 1; lines != maxProblems+1 || !strings.Contains(err.Error(), "and 200 more problems") {
		t.Errorf("%d lines of errors", lines)
	}
}

// FuzzSnapshot: whatever is read, it is either refused or planned, and the plan names nothing but what the
// snapshot has.
func FuzzSnapshot(f *testing.F) {
	f.Add(`{"now":"2026-01-05T10:00:00Z","slots":8,"threshold":0.1,"abort_threshold":0.05,"bypass_threshold":0.5,
 "changes":[{"id":"C1","admitted":"2026-01-05T09:40:00Z","success":0.9,"duration":{"mean":1800,"std":300},"benefit":1,"requires":[],"held":false,"classes":[[]]},{"id":"C2","requires":["C1"]}],
 "conflicts":[{"ahead":"C1","behind":"C2","probability":0.05,"merge_conflict":false}],
 "builds":[{"change":"C2","assumed":["C1"],"state":"running","failed":[],"started":"2026-01-05T09:50:00Z"},{"change":"C1","state":"red","failed":[0]}]}`)
	f.Add(`{"changes":[{"id":"a","success":NaN},{"id":"b\"","benefit":-inf}],"conflicts":[{"ahead":"a","behind":"b\""}]}`)
	f.Add(`{"slots":0,"changes":[{"id":"a"}]}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := read(strings.NewReader(text))
		if err != nil || len(q.changes) > 10 {
			return
		}
		p := planner{explained: true}.plan(q)
		if len(p.Decisions) != len(q.changes) || q.limited && len(p.Builds) > q.slots {
			t.Fatalf("%d decisions and %d builds", len(p.Decisions), len(p.Builds))
		}
		for _, b := range p.Builds {
			if _, known := q.byID[b.Change]; !known || !(b.Needed > 0 && b.Needed <= 1+1e-9) {
				t.Fatalf("%+v", b)
			}
		}
		if _, err := json.Marshal(p); err != nil {
			t.Fatal(err)
		}
	})
}
