package recorded_test

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"landfall.build/events/seedtest"
	"landfall.build/tools/train/recorded"
)

func invented(random *rand.Rand, n int) []recorded.Build {
	began := time.Unix(1_700_000_000, 0)
	builds := make([]recorded.Build, n)
	for i := range builds {
		builds[i] = recorded.Build{
			Project: fmt.Sprintf("p%d", random.IntN(2)), Change: fmt.Sprintf("c%d", random.IntN(8)), Branch: "main", Number: i, Head: fmt.Sprint(random.IntN(30)),
			Started: began.Add(time.Duration(random.IntN(200_000)) * time.Second), Took: time.Duration(1+random.IntN(20_000)) * time.Second,
			Result: []string{"SUCCESS", "SUCCESS", "UNSTABLE", "FAILURE", "ABORTED"}[random.IntN(5)], Files: random.IntN(9) - 1, Added: 3, Deleted: 1,
		}
	}
	return builds
}

func same(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			return false
		}
	}
	return len(a) == len(b)
}

// TestWhatEndedAfterABuildBeganChangesNothingThatWasKnown: results and ends of everything that was still running, and
// all that came later, are shifted and turned round.
func TestWhatEndedAfterABuildBeganChangesNothingThatWasKnown(t *testing.T) {
	random := seedtest.Random(t)
	builds := invented(random, 300)
	rows := recorded.Rows(builds)
	changed := 0
	for range 40 {
		at := rows[random.IntN(len(rows))]
		other := make([]recorded.Build, len(builds))
		for i, b := range builds {
			if b.Started.Add(b.Took).Before(at.Started) {
				other[i] = b
				continue
			}
			changed++
			// It still ends after the moment, and has still begun when it had.
			b.Result = []string{"SUCCESS", "FAILURE"}[random.IntN(2)]
			b.Took = max(0, at.Started.Sub(b.Started)) + time.Duration(1+random.IntN(90_000))*time.Second
			other[i] = b
		}
		for _, r := range recorded.Rows(other) {
			if r.Number == at.Number && !same(r.Known, at.Known) {
				t.Fatalf("build %d knew\n%v, and with another future\n%v", at.Number, at.Known, r.Known)
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d builds were changed", changed)
	}
}

// TestRatesAreThoseOfTheBuildsThatHadEnded: the dumb twin looks through all builds for each one.
func TestRatesAreThoseOfTheBuildsThatHadEnded(t *testing.T) {
	builds := invented(seedtest.Random(t), 120) // fewer ends of a project than are kept, mostly
	index := map[string]int{}
	for i, c := range recorded.Columns() {
		index[c] = i
	}
	for _, r := range recorded.Rows(builds) {
		begun, ofChange, passed, running := 0.0, 0.0, 0.0, 0.0
		for _, b := range builds {
			// Of two that begin at one instant the one that is first by name is the earlier.
			earlier := cmp.Or(b.Started.Compare(r.Started), cmp.Compare(b.Project, r.Project), cmp.Compare(b.Change, r.Change), cmp.Compare(b.Number, r.Number)) < 0
			ended := b.Started.Add(b.Took).Before(r.Started)
			if b.Project != r.Project || !earlier {
				continue
			}
			if !ended {
				running++
			}
			begun++
			if b.Change == r.Change {
				ofChange++
				if ended && b.Result == "SUCCESS" {
					passed++
				}
			}
		}
		got := []float64{r.Known[index["builds_of_change"]], r.Known[index["passed_of_change"]], r.Known[index["project_running"]]}
		if want := []float64{ofChange, passed, running}; !same(got, want) {
			t.Fatalf("build %d of %s: %v, by looking through all %v (of %v)", r.Number, r.Change, got, want, begun)
		}
		if len(r.Known) != len(recorded.Columns()) {
			t.Fatalf("%d values for %d columns", len(r.Known), len(recorded.Columns()))
		}
	}
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }

func TestTablesHaveEachBuildOnceAndNothingThatCameLater(t *testing.T) {
	folder := t.TempDir()
	const header = "project,pr_name,build_id,pr_base_branch,build_duration,build_timestamp,build_result,build_head_sha,passcount\n"
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.training.csv", header+"a,PR-1,1,main,100,1700000000,SUCCESS,x,5\na,PR-1,1,main,100,1700000000,SUCCESS,x,6\na,PR-2,1,main,50,1700000200,UNSTABLE,y,6\n")
	write("a.testing.csv", header+"a,PR-2,1,main,50,1700000200,UNSTABLE,y,6\na,PR-3,1,main,200,1700000300,ABORTED,z,6\na,PR-2,2,main,150,1700001000,SUCCESS,z,6\n")
	write("change_stats.csv", "project,pr_name,build_id,num_changed_files,num_addition,num_deletion,num_changed_line\na,PR-2,2,3,10,4,14\n")
	builds, err := recorded.ReadJenkins(folder)
	if err != nil || len(builds) != 4 {
		t.Fatalf("%d builds, %v", len(builds), err)
	}
	rows := recorded.Rows(builds)
	var outcomes, durations bytes.Buffer
	if n, err := recorded.WriteOutcomes(&outcomes, rows, false); err != nil || n != 3 {
		t.Errorf("%d outcomes, %v", n, err)
	}
	if n, err := recorded.WriteDurations(&durations, rows, false); err != nil || n != 3 {
		t.Errorf("%d durations, %v", n, err)
	}
	table, err := csv.NewReader(&durations).ReadAll()
	if err != nil || len(table) != 4 || table[0][len(table[0])-1] != "seconds" || table[3][len(table[3])-1] != "150" {
		t.Errorf("%v, %v", table, err)
	}
	if strings.Contains(outcomes.String(), "ended") {
		t.Error("when a build ended is in a table that nobody asked for it in")
	}
	var ends bytes.Buffer
	if _, err := recorded.WriteDurations(&ends, rows, true); err != nil {
		t.Fatal(err)
	}
	if with, err := csv.NewReader(&ends).ReadAll(); err != nil || with[0][1] != recorded.ColumnEnded || with[3][1] != "1700001150" || len(with[3]) != len(table[3])+1 {
		t.Errorf("%v, %v", with, err)
	}
	// The one build before took 50 s, and the one before that 100.
	if typical := table[3][slices.Index(table[0], "typical_seconds")]; typical != number(math.Cbrt(50*75*75)) {
		t.Errorf("typical of the third build are %s s", typical)
	}
	if strings.Contains(outcomes.String(), "passcount") || strings.Contains(outcomes.String(), "ABORTED") {
		t.Error("what was known only after the build is in the table")
	}

	for name, text := range map[string]string{
		"no such column": "project,pr_name\n",
		"no number":      header + "a,PR-1,one,main,1,1,SUCCESS,x,5\n",
		"no time":        header + "a,PR-1,7,main,1,never,SUCCESS,x,5\n",
		"a negative one": header + "a,PR-1,8,main,-1,1700000000,SUCCESS,x,5\n",
		"ragged":         header + "a,PR-1\n",
		"empty":          "",
	} {
		write("b.csv", text)
		if _, err := recorded.ReadJenkins(folder); !errors.Is(err, recorded.ErrRecording) || !strings.Contains(err.Error(), "b.csv") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := recorded.ReadJenkins(t.TempDir()); !errors.Is(err, recorded.ErrRecording) {
		t.Errorf("an empty folder: %v", err)
	}
}
