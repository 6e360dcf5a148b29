package trace

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, folder string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// module has a hub, two users of it, a test that reaches across, and a package on its own.
func module(t *testing.T) string {
	return write(t, t.TempDir(), map[string]string{
		"go.mod":             "module example.org/m\n",
		"hub/hub.go":         "package hub\nimport _ \"fmt\"\n",
		"a/a.go":             "package a\nimport _ \"example.org/m/hub\"\n",
		"b/b.go":             "package b\nimport _ \"example.org/m/hub\"\n",
		"b/b_test.go":        "package b\nimport _ \"example.org/m/alone\"\n",
		"alone/alone.go":     "package alone\n",
		"testdata/no.go":     "package no\nimport _ \"example.org/m/a\"\n",
		"alone/template.go":  "{{ this is no Go }}",
		"main.go":            "package main\nimport _ \"example.org/m/a\"\n",
		"vendor/x/vendor.go": "package x\n",
	})
}

func TestAChangeAffectsWhatDependsOnWhatItTouches(t *testing.T) {
	g, err := Imports(module(t))
	if err != nil {
		t.Fatal(err)
	}
	if g.Targets != 6 { // five libraries and a test
		t.Errorf("%d targets", g.Targets)
	}
	for folders, want := range map[string]int{"hub": 5, "a": 2, "b": 2, "alone": 2, ".": 1, "gone": 0, "a alone": 4} {
		n := 0
		set := g.Affected(strings.Fields(folders))
		for i := range g.Targets {
			if set.has(i) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s affects %d targets, should be %d", folders, n, want)
		}
	}
	if _, err := Imports(t.TempDir()); err == nil {
		t.Error("a folder without a module has a graph")
	}
}

const commitsFile = `repo,commit,commit_time,affected_targets,direct_packages
m,c3,2026-01-01T02:00:00Z,1,alone
m,c1,2026-01-01T00:00:00Z,5,hub
other,x,2026-01-01T00:00:00Z,1,a
m,c2,2026-01-01T01:00:00Z,2,a b
m,doc,2026-01-01T03:00:00Z,0,.
`

func TestCommitsMeetInTheirTargets(t *testing.T) {
	folder := module(t)
	file := filepath.Join(write(t, t.TempDir(), map[string]string{"commits.csv": commitsFile}), "commits.csv")
	list, err := Commits(file, "m")
	if err != nil || len(list) != 4 || list[0].ID != "c1" {
		t.Fatalf("%v, %v", list, err)
	}
	g, err := Imports(folder)
	if err != nil {
		t.Fatal(err)
	}
	r := OnGraph(list, g, 10*time.Minute, 70*time.Minute)
	r.Rate = 2
	tr := r.Start()
	c := all(t, tr)
	// c2 affects b's test, and so does alone.
	if !tr.Meet(c[0], c[1]) || !tr.Meet(c[1], c[2]) || tr.Meet(c[0], c[3]) || tr.Meet(c[2], c[3]) {
		t.Error("who meets whom is not what the targets say")
	}
	if c[0].Duration != int64(60*time.Minute/time.Microsecond) || c[3].Duration != int64(10*time.Minute/time.Microsecond) {
		t.Errorf("the hub takes %d, a document %d", c[0].Duration, c[3].Duration)
	}
	if hours := float64(c[3].Arrival) / 3.6e9; math.Abs(hours-2) > 1e-6 {
		t.Errorf("four changes at two an hour take %v hours", hours)
	}
	if share := r.MeetOf(15); share != 0.5 {
		t.Errorf("%v of them meet one before", share)
	}
	r.Failure = 1
	if c := all(t, r.Start()); c[0].Green {
		t.Error("a change that always fails is green")
	}
	if _, err := Commits(file, "istio"); err == nil || !strings.Contains(err.Error(), "it has those of m, other") {
		t.Errorf("%v", err)
	}
	bad := strings.Replace(commitsFile, "5,hub", "many,hub", 1)
	file = filepath.Join(write(t, t.TempDir(), map[string]string{"commits.csv": bad}), "commits.csv")
	if _, err := Commits(file, "m"); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
}
