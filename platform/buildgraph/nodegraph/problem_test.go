package nodegraph

import (
	"errors"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

func TestWrongManifestsAndLockFilesAreNamedWithTheirLine(t *testing.T) {
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a manifest":                {memoryTree{"packages/app/package.json": "{\n  \"name\": \"app\",\n}"}, "packages/app/package.json:3: is not valid JSON"},
		"a manifest that is a list": {memoryTree{"packages/app/package.json": "[]"}, "packages/app/package.json:1: must hold a JSON object"},
		"a lock file":               {memoryTree{"package-lock.json": "{\n\n"}, "package-lock.json:1: is not valid JSON"},
		"a merge":                   {memoryTree{"package-lock.json": "{\n<<<<<<< ours\n"}, "package-lock.json:2: holds the marks of a merge"},
	} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", sample.with(c.edit))
		invalid, ok := errors.AsType[*Invalid](err)
		if !ok || len(invalid.Problems) != 1 || !strings.HasPrefix(invalid.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if _, err := newLoader(t, Options{}).Load(t.Context(), "", memoryTree{"x.js": "1\n", "node_modules/x/package.json": "{}", "fixtures/x/package.json": "{}"}); !errors.Is(err, ErrNoPackage) {
		t.Errorf("a tree without packages: %v", err)
	}
}

func TestWhatIsNotUnderstoodConflictsWithEverything(t *testing.T) {
	for name, edit := range map[string]memoryTree{
		"a manifest behind a link":   {"packages/new/package.json": "mode 120000 ../app/package.json"},
		"a member behind a link":     {"packages/new": "mode 120000 ../scripts"},
		"a lock file behind a link":  {"package-lock.json": "mode 120000 other.json"},
		"another format of manifest": {"packages/new/package.yaml": "name: new\n"},
		"an extended glob":           sample.replaced(t, "package.json", "packages/*", "packages/+(app|lib)"),
		"a pattern that leads out":   sample.replaced(t, "package.json", "packages/*", "../other"),
	} {
		if got := delta(t, sample, sample.with(edit)); got != "all" {
			t.Errorf("%s affects %s", name, got)
		}
	}
	if got := delta(t, sample, sample.with(memoryTree{"packages/link.md": "mode 120000 ../README.md"})); got == "all" {
		t.Error("a link to a file is taken for a member")
	}
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"a variable twice":   {Env: []string{"A=1", "A=2"}},
		"no value":           {Env: []string{"A"}},
		"a pattern":          {Inputs: []Input{{Files: []string{"../x"}}}},
		"an empty input":     {Inputs: []Input{{}}},
		"a command":          {Commands: Commands{Test: []Template{{Name: "x"}}}},
		"a command twice":    {Commands: Commands{Test: []Template{{Name: "x", Argv: []string{"x"}}, {Name: "x", Argv: []string{"x"}}}}},
		"an absolute folder": {IgnoreFolders: []string{"/x"}},
		"an odd folder":      {IgnoreFolders: []string{"x/"}},
	} {
		if _, err := NewLoader(o, Memory{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestConfigurationIsPartOfEveryVersion(t *testing.T) {
	base := loadWith(t, Options{}, sample)
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"a variable":     {Options{Env: []string{"NODE_ENV=production"}}, everyone + ", . [install]"},
		"a toolchain":    {Options{Toolchain: "node 22"}, everyone + ", . [install]"},
		"a global input": {Options{Inputs: []Input{{Files: []string{"README.md"}}}}, everyone + ", . [install]"},
		"a local input":  {Options{Inputs: []Input{{Folders: []string{"packages/t*"}, Files: []string{"docs/*"}}}}, "packages/tool"},
		"a command":      {Options{Commands: Commands{Test: []Template{{Name: "t", Argv: []string{"t"}}}}}, "packages/app [test], packages/util [test]"},
	} {
		if got := affected(targets.Delta(base, loadWith(t, c.o, sample))); got != inOrder(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, inOrder(c.want))
		}
	}
	o := Options{Inputs: []Input{
		{Folders: []string{"packages/tool"}, Files: []string{"api/**/*.yaml"}}, {Folders: []string{"packages/util"}, Files: []string{"api/**/*.yaml"}}, {Files: []string{"VERSION"}},
	}, IgnoreFolders: []string{"odd"}}
	for path, want := range map[string]string{
		"api/x/y.yaml": "., " + everyUtil + ", packages/tool", "api/x/y.txt": ".", "VERSION": everyone + ", . [install]", "odd/package-lock.json": ".",
		"plain.yaml": "., packages/app, packages/app [test]", "landfall.config.yaml": "., packages/app, packages/app [test]", // which no tool reads
		"other.config.yaml": everyone,
	} {
		tree := sample.with(memoryTree{"odd/package.json": "{}"})
		got := affected(targets.Delta(loadWith(t, o, tree), loadWith(t, o, tree.with(memoryTree{path: "{}"}))))
		if got != inOrder(want) {
			t.Errorf("an edit of %s:\n got %s\nwant %s", path, got, inOrder(want))
		}
	}
}
