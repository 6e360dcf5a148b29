package pythongraph

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// collected returns the files whose tests pytest collects for a project, whatever it says besides.
func collected(t *testing.T, dir, project string, env []string) []string {
	t.Helper()
	out, err := command(t.Context(), project, append(env, "PYTHONPATH=src"), filepath.Join(dir, "venv/bin/python"), "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for line := range strings.Lines(out) {
		if file, _, is := strings.Cut(line, "::"); is {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// What the steps of all targets collect is what pytest collects for the project, whatever its settings say.
func TestTheStepsCollectWhatPytestCollects(t *testing.T) {
	dir, env := tools(t)
	const test = "def test_x():\n    pass\n"
	base := memoryTree{
		"pyproject.toml":       "[project]\nname = \"shop\"\nversion = \"1\"\n",
		"src/shop/__init__.py": "",
		"src/shop/cart.py":     "def one():\n    \"\"\"\n    >>> one()\n    1\n    \"\"\"\n    return 1\n",
		"src/shop/plain.py":    "def two():\n    \"\"\"Two.\"\"\"\n",
		"guide/use.rst":        ">>> 1 + 1\n2\n",
		"tests/test_top.py":    test,
		"tests/checks.py":      test,
		"tests/unit/test_a.py": test,
		"tests/unit/test_b.py": test,
		"build/test_built.py":  test,
		"test_root.py":         test,
	}
	for _, settings := range []string{
		"", "testpaths = docs", "testpaths = docs tests/unit", "testpaths = tests/unit/test_a.py", "testpaths = tests/test_*.py", "testpaths = tests/checks.py", "testpaths = build",
		"addopts = --doctest-modules", "addopts = --doctest-glob *.rst\ntestpaths = guide",
	} {
		tree := base.with(memoryTree{"pytest.ini": "[pytest]\n" + settings + "\n"})
		project := tree.write(t)
		want := collected(t, dir, project, env)
		found := map[string]bool{}
		for target := range load(t, tree).Targets() {
			for _, c := range target.Commands {
				if !strings.HasSuffix(target.Name, " [test]") {
					continue
				}
				// As the step, but that the tests are only listed.
				argv := slices.Clone(c.Argv)
				for i, arg := range argv {
					argv[i] = strings.Replace(arg, "python -m pytest ", "python -m pytest --collect-only -q -p no:cacheprovider ", 1)
				}
				out, err := command(t.Context(), filepath.Join(project, c.Dir), env, argv...)
				if err != nil {
					t.Errorf("%q: %v", settings, err)
				}
				for line := range strings.Lines(out) {
					if file, _, is := strings.Cut(line, "::"); is {
						found[file] = true
					}
				}
			}
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", settings, got, want)
		}
	}
}

func TestAnExampleThatIsATestDependsOnTheProject(t *testing.T) {
	base := memoryTree{
		"setup.py": "", "pytest.ini": "[pytest]\naddopts = --doctest-modules\n", "shop/__init__.py": "", "shop/a.py": "'''\n>>> import shop.b\n'''\n", "shop/b.py": "x = 1\n",
	}
	if got := delta(t, base, base.with(memoryTree{"shop/b.py": "x = 2\n"})); got != "., shop [test]" {
		t.Errorf("affected: %s", got)
	}
}

// TestTestModulesOfOneNameAreCollectedTogether: pytest refuses them, though it runs each folder.
func TestTestModulesOfOneNameAreCollectedTogether(t *testing.T) {
	base := memoryTree{"setup.py": "", "tests/a/test_same.py": "def test_a():\n    pass\n", "tests/c/test_other.py": "def test_c():\n    pass\n"}
	second := memoryTree{"tests/b/test_same.py": "def test_b():\n    pass\n"}
	if got := delta(t, base, base.with(second)); got != "., . [collect], tests/a [test], tests/b [test]" && got != ". [collect], tests/a [test], tests/b [test]" {
		t.Errorf("a second module of that name affects %s", got)
	}
	dir, env := tools(t)
	for name, c := range map[string]struct {
		more      memoryTree
		has, pass bool
	}{
		"one":                {memoryTree{}, false, true},
		"two":                {second, true, false},
		"in packages":        {second.with(memoryTree{"tests/a/__init__.py": "# a\n", "tests/b/__init__.py": "# b\n"}), false, true},
		"in packages of one": {memoryTree{"tests/a/test_same.py": "", "x/p/__init__.py": "# a\n", "y/p/__init__.py": "# b\n", "x/p/test_same.py": "def test_a():\n    pass\n", "y/p/test_same.py": "def test_b():\n    pass\n"}, true, false},
		"with importlib":     {second.with(memoryTree{"pytest.ini": "[pytest]\naddopts = --import-mode=importlib\n"}), false, true},
		"where none is run":  {second.with(memoryTree{"pytest.ini": "[pytest]\ntestpaths = tests/a\n"}), false, true},
		"helpers of one name": {memoryTree{"tests/a/helpers.py": "one = 1\n", "tests/a/test_h.py": "from helpers import one\ndef test_a():\n    pass\n",
			"tests/c/helpers.py": "two = 2\n", "tests/c/test_other.py": "from helpers import two\ndef test_c():\n    pass\n"}, true, false},
		"one within the root": {memoryTree{"test_same.py": "def test_b():\n    pass\n"}, true, false},
	} {
		tree := base.with(c.more)
		project := tree.write(t)
		target, has := load(t, tree).Target("python://. [collect]")
		if has != c.has {
			t.Errorf("%s: a target for collecting: %v", name, has)
		}
		if _, err := command(t.Context(), project, env, filepath.Join(dir, "venv/bin/python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"); (err == nil) != c.pass {
			t.Errorf("%s: pytest ends with %v", name, err)
		}
		for _, step := range target.Commands {
			if out, err := command(t.Context(), filepath.Join(project, step.Dir), append(env, "HOME="+os.TempDir()), step.Argv...); (err == nil) != c.pass || err != nil && !strings.Contains(err.Error(), "import file mismatch") && !strings.Contains(err.Error(), "cannot import name 'two'") {
				t.Errorf("%s: %q: %v\n%s", name, step.Argv, err, out)
			}
		}
	}
}
