package buildgraph

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

var goes = configuration.Analysis{Adapter: configuration.AdapterGo}

func goBase(f *fixture) string {
	return f.commits("", files{
		"go.mod": "module m\n\ngo 1.26\n", "a/a.go": "package a\n", "b/b.go": "package b\n\nimport _ \"m/a\"\n", "b/b_test.go": "package b\n", "c/c.go": "package c\n",
	})[0]
}

func TestTheAdapterGoMakesATargetOfEachPackage(t *testing.T) {
	f := newFixture(t)
	r := f.analyze(goes, goBase(f), files{"a/a.go": "package a // 2\n"}, files{"c/c.go": "package c // 2\n"})
	if got := versions(r); got != "m/a@1 m/b@1 m/b [test]@1 m/c@2" {
		t.Errorf("δ = %s", got)
	}
	if r.Adapter != "go" || r.All {
		t.Errorf("adapter %q, all %v", r.Adapter, r.All)
	}
	target, ok := r.Parts[0].Target("m/b [test]")
	if !ok || len(target.Commands) != 1 || fmt.Sprint(target.Commands[0].Argv) != "[go test -count=1 ./b]" {
		t.Errorf("m/b [test] is verified by %+v", target.Commands)
	}
}

// TestAPackageWithoutTestsIsVetted as go test ./... vets it. The mainline would be red for whoever runs that.
func TestAPackageWithoutTestsIsVetted(t *testing.T) {
	f := newFixture(t)
	own := configuration.Analysis{Adapters: []configuration.AdapterUse{{Adapter: configuration.AdapterGo, Steps: []configuration.AdapterStep{{Kind: "package", Name: "own", Run: []string{"own"}}}}}}
	for _, c := range []struct {
		analysis configuration.Analysis
		target   string
		want     string
	}{
		{goes, "m/c", "[go test -count=1 ./c]"},
		{goes, "m/b", "[go build -o /dev/null ./b]"},
		{own, "m/c", "[own]"},
	} {
		target, _ := f.analyze(c.analysis, goBase(f), files{"a/a.go": "package a // 2\n"}).Parts[0].Target(c.target)
		var got []string
		for _, command := range target.Commands {
			got = append(got, fmt.Sprint(command.Argv))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s is verified by %v, want %s", c.target, got, c.want)
		}
	}
}

func TestConfiguredInputsArePartOfTheTargetsOfTheirFolders(t *testing.T) {
	f := newFixture(t)
	settings := goes
	settings.Inputs = []configuration.Input{{Folders: []string{"c/**"}, Files: []string{"shared/*.yaml"}}}
	base := f.commits(goBase(f), files{"shared/x.yaml": "1\n", "shared/x.txt": "1\n"})[0]
	if got := versions(f.analyze(settings, base, files{"shared/x.yaml": "2\n"})); got != "m/c@1" {
		t.Errorf("an input affects %s", got)
	}
	if r := f.analyze(settings, base, files{"shared/x.txt": "2\n"}); fmt.Sprint(r.Uncovered.Files) != "[shared/x.txt]" {
		t.Errorf("what is no input is covered: %s", versions(r))
	}
	if got := versions(f.analyze(settings, base, files{"shared/new.yaml": "2\n"})); got != "m/c@1" {
		t.Errorf("a new input affects %s", got)
	}
}

func TestTheAdapterGoRefusesWhatNoBuildCouldUse(t *testing.T) {
	f := newFixture(t)
	if r := f.analyze(goes, goBase(f), files{"go.mod": "module m\n\nrequire x\n"}); r.Invalid == nil || !strings.HasPrefix(r.Invalid.Message, "go.mod:3:") {
		t.Errorf("a broken go.mod: %+v", r.Invalid)
	}
	if r := f.analyze(goes, goBase(f), files{"go.mod": "-"}); r.Invalid == nil || !strings.Contains(r.Invalid.Message, "the repository has none") {
		t.Errorf("no go.mod: %+v", r.Invalid)
	}
}

// Where a pair is on the mainline nobody is rejected for it.
func TestAnImportPathThatDiffersFromAnotherInCaseAloneIsInvalid(t *testing.T) {
	f := newFixture(t)
	base := goBase(f)
	twin := files{"A/a.go": "package a\n"}
	const want = `case-insensitive import collision: "m/a" and "m/A"`
	if r := f.analyze(goes, base, files{"c/c.go": "package c // 2\n"}, twin); r.Invalid == nil || r.Invalid.Message != want || r.InvalidPart != 2 {
		t.Errorf("%+v of part %d, want %s", r.Invalid, r.InvalidPart, want)
	}
	if r := f.analyze(goes, f.commits(base, twin)[0], files{"a/a.go": "package a // 2\n"}); r.Invalid != nil || versions(r) != "m/a@1 m/b@1 m/b [test]@1" {
		t.Errorf("with a pair on the mainline: %+v, %s", r.Invalid, versions(r))
	}
}

// TestVariablesOfStepsArePartOfGoVersions: what decides about a build does, where
// things are does not, and what cannot be followed makes every change conflict.
func TestVariablesOfStepsArePartOfGoVersions(t *testing.T) {
	f := newFixture(t)
	start := goBase(f)
	tree, err := f.repo.TreeOf(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(name, value string) string {
		queue := configuration.Queue{Analysis: goes, Steps: configuration.Steps{Environment: configuration.Environment{Variables: map[string]string{name: value}}}}
		graph, err := NewLoader(queue, nil).Graph(t.Context(), f.repo, tree)
		if err != nil {
			t.Fatal(err)
		}
		if reasons := graph.Unknown(); len(reasons) > 0 {
			return "unknown: " + reasons[0]
		}
		target, _ := graph.Target("m/a")
		return target.Hash.String()
	}
	plain := hash("HOME", "/home/x")
	for name, value := range map[string]string{"GOFLAGS": "-tags=x", "GOARCH": "arm64", "CGO_ENABLED": "0", "GOEXPERIMENT": "x", "CC": "clang"} {
		if hash(name, value) == plain {
			t.Errorf("%s=%s is not part of the version", name, value)
		}
	}
	for _, name := range []string{"GOCACHE", "GOPROXY", "GOMODCACHE"} {
		if hash(name, "/x") != plain {
			t.Errorf("%s is part of the version", name)
		}
	}
	if kept, err := os.ReadDir(f.repo.Dir() + ".facts"); err != nil {
		t.Errorf("what files say is not kept beside the mirror: %v, %v", kept, err)
	}
	if got := hash("GOFLAGS", "-modfile=other.mod"); !strings.Contains(got, "unknown: ") || !strings.Contains(got, "-modfile") {
		t.Errorf("another go.mod file: %s", got)
	}
}
