package pythongraph

import (
	"errors"
	"strings"
	"testing"
)

func TestAWrongDefinitionIsNamedByFileAndLine(t *testing.T) {
	for want, edit := range map[string]memoryTree{
		"packages/cart/pyproject.toml:2: ": {"packages/cart/pyproject.toml": "[project]\nname = \n"},
		"uv.lock:1: ":                      {"uv.lock": "version = 1 = 2\n"},
	} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", sample.with(edit))
		if invalid, is := errors.AsType[*Invalid](err); !is || !strings.HasPrefix(invalid.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

func TestATreeWithoutProjectsHasNone(t *testing.T) {
	for _, tree := range []memoryTree{{}, {"a.py": "import b\n"}, {"pyproject.toml": "[tool.black]\n"}, {"tests/data/pyproject.toml": "[project]\n"}} {
		if _, err := newLoader(t, Options{}).Load(t.Context(), "", tree); !errors.Is(err, ErrNoProject) {
			t.Errorf("%q: %v", tree, err)
		}
	}
}

func TestADefinitionThatIsALinkConflictsWithEverything(t *testing.T) {
	graph := load(t, sample.with(memoryTree{"other/pyproject.toml": "mode 120000 ../pyproject.toml"}))
	if reasons := graph.Unknown(); len(reasons) != 1 || !strings.Contains(reasons[0], "other/pyproject.toml") {
		t.Errorf("got %q", reasons)
	}
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"a variable twice":         {Env: []string{"A=1", "A=2"}},
		"a variable without value": {Env: []string{"A"}},
		"an input of nothing":      {Inputs: []Input{{}}},
		"a pattern that is none":   {Inputs: []Input{{Files: []string{"../x"}}}},
		"a folder outside":         {Roots: []string{"../x"}},
		"a command without words":  {Commands: Commands{Plain: Steps{Test: []Template{{Name: "test"}}}}},
	} {
		if _, err := NewLoader(o, Memory{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestOptionsArePartOfEveryVersion(t *testing.T) {
	before := load(t, sample)
	for name, o := range map[string]Options{
		"a variable":  {Env: []string{"PYTHONHASHSEED=0"}},
		"a toolchain": {Toolchain: "3.12"},
		"an input":    {Inputs: []Input{{Files: []string{"README.md"}}}},
	} {
		after := loadWith(t, o, sample)
		for target := range before.Targets() {
			if now, _ := after.Target(target.Name); now.Hash == target.Hash {
				t.Errorf("%s leaves %s alone", name, target.Name)
			}
		}
	}
}

func FuzzDefinitions(f *testing.F) {
	for file, content := range sample {
		if !strings.HasSuffix(file, ".py") {
			f.Add(content)
		}
	}
	f.Add("-e ../x # y\n-r a.txt\n--find-links=x\n")
	f.Add("[options]\ninstall_requires =\n  a\n  b @ file:../b\n")
	f.Fuzz(func(t *testing.T, text string) {
		tree := memoryTree{
			"pyproject.toml": text, "setup.cfg": text, "setup.py": text, "requirements.txt": text, "uv.lock": text, "poetry.lock": text, "pytest.ini": text,
			"test_a.py": text, "p/setup.py": "setup()\n",
		}
		_, err := newLoader(t, Options{}).Load(t.Context(), "", tree)
		if _, invalid := errors.AsType[*Invalid](err); err != nil && !invalid {
			t.Fatalf("%q: %v", text, err)
		}
		delete(tree, "pyproject.toml")
		delete(tree, "uv.lock")
		delete(tree, "poetry.lock")
		if _, err := newLoader(t, Options{}).Load(t.Context(), "", tree); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
