package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/explanation"
)

const example = `{"now":"2026-01-05T10:00:00Z","slots":2,"threshold":0.01,
 "changes":[{"id":"C1","success":0.9},{"id":"C2","success":0.8},{"id":"C3"}],
 "conflicts":[{"ahead":"C1","behind":"C2","probability":0.25}],
 "builds":[{"change":"C2","assumed":["C1"],"state":"running","started":"2026-01-05T09:50:00Z"},{"change":"C3","state":"green"}]}`

func execute(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	c := Command()
	var out, errs bytes.Buffer
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SetArgs(args)
	err := c.Execute()
	return out.String(), err
}

func TestThePlanOfTheExample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queue.json")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, "", "--snapshot", file, "--json")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"exact":true,"decisions":[{"change":"C1","decision":"wait","bypasses":[]},{"change":"C2","decision":"wait","bypasses":[]},{"change":"C3","decision":"land","bypasses":[]}],` +
		`"builds":[{"change":"C1","assumed":[],"needed":1,"value":1,"action":"start"},{"change":"C2","assumed":["C1"],"needed":0.9,"value":0.9,"action":"keep"}],"abort":[]}` + "\n"
	if out != want {
		t.Errorf("got  %swant %s", out, want)
	}
	if again, err := execute(t, example, "--snapshot", "-", "--json"); err != nil || again != out {
		t.Errorf("from standard input: %v, %s", err, again)
	}
}

func TestTheExplanationHasEachFactorWithItsOrigin(t *testing.T) {
	out, err := execute(t, example, "--snapshot", "-", "--json", "--explain")
	if err != nil {
		t.Fatal(err)
	}
	var p Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	want := []explanation.Factor{{Change: "C1", Assumed: "lands", Probability: 0.9, Factor: 0.9, Terms: []explanation.Term{{Says: "success of C1", Value: 0.9, From: fromSnapshot}}}}
	if got := p.Builds[1].Factors; len(got) != 1 || !reflect.DeepEqual(got[0].Terms, want[0].Terms) || got[0].Factor != 0.9 || got[0].Assumed != "lands" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if why := p.Decisions[1]; why.Why != "2 paths have no result yet" || len(why.WaitsFor) != 2 {
		t.Errorf("%+v", why)
	}
	table, err := execute(t, example, "--snapshot", "-", "--explain")
	for _, part := range []string{"0.9 success of C1 [snapshot]", "all steps passed", "no result yet: on top of the mainline alone", "nothing ahead conflicts with it"} {
		if err != nil || !strings.Contains(table, part) {
			t.Errorf("%v: nothing says %q:\n%s", err, part, table)
		}
	}
}

// TestARunningQueueLetsAWorthlessBuildGoOn until another build waits for its slot; by the model it ends.
func TestARunningQueueLetsAWorthlessBuildGoOn(t *testing.T) {
	snapshot := `{"now":"2026-01-05T10:00:00Z","slots":3,"threshold":0.1,"abort_threshold":0.1,
 "changes":[{"id":"C1","success":0.99,"duration":{"mean":600}},{"id":"C2","duration":{"mean":600}}],
 "conflicts":[{"ahead":"C1","behind":"C2"}],
 "builds":[{"change":"C2","state":"running","started":"2026-01-05T09:59:00Z"}]}`
	for args, aborts := range map[string]int{"": 1, "--as-run": 0} {
		out, err := execute(t, snapshot, append([]string{"--snapshot", "-", "--json"}, strings.Fields(args)...)...)
		var p Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		if err != nil || len(p.Abort) != aborts {
			t.Errorf("%s: %v, %+v", args, err, p)
		}
	}
}

// TestM18OfPathsThatWaitForTheSameVersionsTheBestIsListed: C1 likely lands where C0 does not, and C2 waits for C1 alone.
// C0 decides nothing that is to be built for C2, but it bears on how likely the path with C1 is.
func TestM18OfPathsThatWaitForTheSameVersionsTheBestIsListed(t *testing.T) {
	q, err := read(strings.NewReader(`{"slots":10,"changes":[{"id":"C0","success":0.5},{"id":"C1","success":0.5},{"id":"C2","classes":[["C1"]]}],
 "conflicts":[{"ahead":"C0","behind":"C1","probability":0.05},{"ahead":"C0","behind":"C2"},{"ahead":"C1","behind":"C2"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range (planner{}).plan(q).Builds {
		if b.Change == "C2" {
			got = append(got, fmt.Sprintf("%v %g", b.Assumed, b.Needed))
		}
	}
	if want := []string{"[C0] 0.2625", "[C1] 0.25"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAMissingSnapshotIsSaidToBe(t *testing.T) {
	if _, err := execute(t, ""); err == nil || !strings.Contains(err.Error(), "--snapshot is missing") {
		t.Error(err)
	}
	if _, err := execute(t, "", "--snapshot", filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if out, err := execute(t, `{"slots":-1}`, "--snapshot", "-", "--json"); err == nil || out != "" {
		t.Errorf("%v, %q", err, out)
	}
}
