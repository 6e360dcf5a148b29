package pythongraph

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
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
	dir, env := toolsWithoutPlugins(t)
	const test = "def test_x():\n    pass\n"
	base := memoryTree{
		"pyproject.toml":       "[project]\nname = \"shop\"\nversion = \"1\"\n",
		"src/shop/__init__.py": "",
		"src/shop/cart.py":     "def one():\n    \"\"\"\n    >>> one()\n    1\n    \"\"\"\n    return 1\n",
		"src/shop/plain.py":    "def two():\n    \"\"\"Two.\"\"\"\n",
		"guide/use.rst":        ">>> 1 + 1\n2\n",
		"guide/test_use.txt":   ">>> 1 + 1\n2\n",
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
		"python_files = test_*.py tests/c*.py", "python_files = s*c/[!_]*.py", "norecursedirs = tests/unit", "norecursedirs =", "addopts = tests/checks.py guide", "addopts = --doctest-glob=*.rst -o testpaths=guide",
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

// refused is what pytest says of tests that it runs folder by folder, but not together.
var refused = regexp.MustCompile("import file mismatch|cannot import name 'two'|Defining 'pytest_plugins' in a non-top-level conftest|option names {'--slow'} already added")

// TestTestModulesOfOneNameAreCollectedTogether: pytest refuses them, though it runs each folder.
func TestTestModulesOfOneNameAreCollectedTogether(t *testing.T) {
	base := memoryTree{"setup.py": "", "tests/a/test_same.py": "def test_a():\n    pass\n", "tests/c/test_other.py": "def test_c():\n    pass\n"}
	second := memoryTree{"tests/b/test_same.py": "def test_b():\n    pass\n"}
	if got := delta(t, base, base.with(second)); got != "., . [collect], tests/a [test], tests/b [test]" && got != ". [collect], tests/a [test], tests/b [test]" {
		t.Errorf("a second module of that name affects %s", got)
	}
	const option = "def pytest_addoption(parser):\n    parser.addoption('--slow', action='store_true')\n"
	dir, env := toolsWithoutPlugins(t)
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
		"plugins below the top": {memoryTree{"tests/a/conftest.py": "pytest_plugins = ['pytester']\n"}, true, false},
		"plugins at the top":    {memoryTree{"tests/conftest.py": "pytest_plugins = ['pytester']\n"}, false, true},
		"options of one name": {memoryTree{"tests/a/conftest.py": option, "tests/c/conftest.py": option,
			"member/pyproject.toml": "[project]\nname = \"m\"\n", "member/test_m.py": "import absent\n", "setup.cfg": "[tool:pytest]\ntestpaths = tests\n"}, true, false},
		"options of one name at the top": {memoryTree{"tests/conftest.py": option, "testing/conftest.py": option, "testing/test_t.py": "def test_t():\n    pass\n"}, true, false},
		"an option below the top":        {memoryTree{"tests/a/conftest.py": option}, true, true},
		"an option at the top":           {memoryTree{"tests/conftest.py": option}, false, true},
		"one within the root":            {memoryTree{"test_same.py": "def test_b():\n    pass\n"}, true, false},
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
			if out, err := command(t.Context(), filepath.Join(project, step.Dir), append(env, "HOME="+os.TempDir()), step.Argv...); (err == nil) != c.pass || err != nil && !refused.MatchString(err.Error()) {
				t.Errorf("%s: %q: %v\n%s", name, step.Argv, err, out)
			}
		}
	}
}

// TestTwoChangesThatPytestRefusesTogetherConflict: each adds an option of one name to the tests of a folder.
func TestTwoChangesThatPytestRefusesTogetherConflict(t *testing.T) {
	const test, option = "def test_x():\n    pass\n", "def pytest_addoption(parser):\n    parser.addoption('--slow')\n"
	for name, dirs := range map[string][2]string{"below": {"tests/a", "tests/b"}, "at the top": {"tests", "testing"}} {
		base := memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\n", dirs[0] + "/test_a.py": test, dirs[1] + "/test_b.py": test, "other/test_c.py": test}
		first := base.with(memoryTree{dirs[0] + "/conftest.py": option})
		second := base.with(memoryTree{dirs[1] + "/conftest.py": option})
		a, b := targets.Delta(load(t, base), load(t, first)), targets.Delta(load(t, base), load(t, second))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s: the changes are independent", name)
		}
		both := first.with(memoryTree{dirs[1] + "/conftest.py": option})
		if got := delta(t, first, both); !strings.Contains(got, ". [collect]") {
			t.Errorf("%s: the second affects %s", name, got)
		}
		for _, edit := range []memoryTree{{"other/test_c.py": test + test}, {"other/deep/test_d.py": test}, {"other/deep/conftest.py": "import os\n"}, {"pytest.ini": "[pytest]\n"}, {dirs[0] + "/conftest.py": option + "\n# more\n"}} {
			if got := delta(t, both, both.with(edit)); !strings.Contains(got, ". [collect]") {
				t.Errorf("%s: %q affects %s", name, edit, got)
			}
		}
		parts := both.with(memoryTree{"parts/m/pyproject.toml": "[project]\nname = \"m\"\n", "parts/m/test_m.py": test})
		collect, _ := loadWith(t, Options{IgnoreFolders: []string{"old"}}, parts).Target("python://. [collect]")
		if argv := strings.Join(collect.Commands[0].Argv, " "); !strings.HasSuffix(argv, " sh --ignore=old --ignore=parts/m") {
			t.Errorf("%s: tests are collected by %s", name, argv)
		}
		if got := delta(t, both, both.with(memoryTree{"docs/x.svg": "x\n"})); strings.Contains(got, "[collect]") {
			t.Errorf("%s: data that no test reads affects %s", name, got)
		}
	}
}

// TestTestpathsHoldForTheirFolder: pytest goes by them only where it is started there.
func TestTestpathsHoldForTheirFolder(t *testing.T) {
	const test = "def test_x():\n    pass\n"
	base := memoryTree{
		"pyproject.toml":  "[project]\nname = \"root\"\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n[tool.pytest.ini_options]\ntestpaths = [\"tests\", \"packages/b/checks.py\"]\n",
		"tests/test_r.py": test, "more/test_m.py": test,
		"packages/a/pyproject.toml": "[project]\nname = \"a\"\n", "packages/a/src/a/__init__.py": "x = 1\n", "packages/a/tests/test_a.py": "import a\n" + test,
		"packages/b/pyproject.toml": "[project]\nname = \"b\"\n[tool.pytest.ini_options]\ntestpaths = [\"tests\"]\n", "packages/b/tests/test_b.py": test, "packages/b/more/test_m.py": test, "packages/b/checks.py": test,
	}
	var names []string
	for target := range load(t, base).Targets() {
		if folder, is := strings.CutSuffix(target.Name, " [test]"); is {
			names = append(names, strings.TrimPrefix(folder, "python://"))
		}
	}
	slices.Sort(names)
	if want := []string{"packages/a/tests", "packages/b", "packages/b/tests", "tests"}; !slices.Equal(names, want) {
		t.Errorf("tests of %q, want %q", names, want)
	}
	if got := delta(t, base, base.with(memoryTree{"packages/a/src/a/__init__.py": "x = 2\n"})); !strings.Contains(got, "packages/a/tests [test]") {
		t.Errorf("a change of a member affects %s", got)
	}
}
