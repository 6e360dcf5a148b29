package builder

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"landfall.build/platform/folders/folderstest"
	"landfall.build/services/builder/groups"
	"landfall.build/services/builder/reading"
)

// nestedReports makes folders of long names within each other where a group's tool leaves its reports, with one report in the innermost. It
// returns that folder.
func nestedReports(t *testing.T, workplace string, levels int) *os.Root {
	t.Helper()
	reports := filepath.Join(workplace, junitFolder)
	if err := os.MkdirAll(reports, 0o700); err != nil {
		t.Fatal(err)
	}
	at := folderstest.Nest(t, reports, strings.Repeat("d", 250), levels)
	if err := at.WriteFile("x.xml", []byte("<testsuite/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// byItself reports whether the test has its process to itself. If not, it runs the test in a process of its own, in which nobody else
// allocates anything, and fails if that fails.
func byItself(t *testing.T) bool {
	t.Helper()
	const name = "LANDFALL_TEST_ALONE"
	if os.Getenv(name) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), name+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// allocated returns what do allocates, in MiB.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20
}

// finished returns the tally of a group that has reported a pass, once its folder of reports is read.
func finished(root *os.Root) *groups.Tally {
	tally := groups.NewTally([]string{"a"}, groups.Trust{ExitSpeaks: true})
	r := &reportFile{root: root, junit: groups.NewJUnit(tally, func(string, []byte) {})}
	r.junit.Read(strings.NewReader(`<testsuite name="a"><testcase/></testsuite>`))
	r.finish()
	return tally
}

// TestFoldersThatAStepNestsWithoutBoundAreNotLookedInto: a walk keeps the names of all folders that it is in, so that 10,000 of them
// took 12 GiB of the service.
func TestFoldersThatAStepNestsWithoutBoundAreNotLookedInto(t *testing.T) {
	if !byItself(t) {
		return
	}
	dir := t.TempDir()
	nestedReports(t, dir, 900)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	place := &workplace{}
	place.request.Worktree, place.step.Queue.Steps.Reports = dir, []string{"**/*.xml"}
	none := func(fs.File, error) bool { t.Error("a report is found in folders nested too deep"); return false }
	var tally *groups.Tally
	got := allocated(func() {
		if found := reading.Ending(root)("a/x.xml"); len(found) > 0 {
			t.Errorf("a file is found in folders nested too deep: %.100q", found)
		}
		if err := (&worker{}).reportsInTree(place, none, func() bool { return false }); err != nil {
			t.Error(err)
		}
		tally = finished(root)
	})
	if got > 150 { // one walk of all folders took 300
		t.Errorf("900 folders took %d MiB", got)
	}
	// A report that is not read may be of a failure, so no pass is believed.
	if list := tally.End(true, 1); len(list) != 1 || list[0].Outcome == groups.Passed {
		t.Errorf("results are %v", list)
	}
}

// TestTheNamesOfWhatAStepLeavesAreBounded: a failed step left 200,000 files in 98 folders with long names, in seconds, and to look for one
// of them took 5 GiB of the service; what ended it by that was run again with its start.
func TestTheNamesOfWhatAStepLeavesAreBounded(t *testing.T) {
	if !byItself(t) {
		return
	}
	dir, files := t.TempDir(), 6000
	at := nestedReports(t, dir, reading.MostDeep-5)
	for i := range files {
		file, err := at.Create(fmt.Sprintf("%d.xml", i))
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var tally *groups.Tally
	got := allocated(func() {
		if found := reading.Ending(root)("a/1.xml"); len(found) > 0 {
			t.Errorf("a file is found among too many: %.100q", found)
		}
		tally = finished(root)
	})
	if got > 120 { // without the bound it was 900
		t.Errorf("%d files took %d MiB", files, got)
	}
	// A report that is not read may be of a failure, so no pass is believed.
	if list := tally.End(true, 1); len(list) != 1 || list[0].Outcome == groups.Passed {
		t.Errorf("results are %v", list)
	}
}

// TestAPipeInPlaceOfAFolderOfReportsIsNotOpened: to open a pipe waits for somebody who writes to it.
func TestAPipeInPlaceOfAFolderOfReportsIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, junitFolder), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	// A report that is not read may be of a failure, so no pass is believed.
	if list := finished(root).End(true, 1); len(list) != 1 || list[0].Outcome == groups.Passed {
		t.Errorf("results are %v", list)
	}
}
