package pythongraph

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// randomEdit makes a few edits, of which many touch what decides about edges.
func randomEdit(random *rand.Rand) memoryTree {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	dirs := []string{"", "src/", "src/a/", "src/a/b/", "a/", "a/b/", "tests/", "tests/a/", "p/", "p/src/", "p/src/c/", "p/c/", "p/tests/", "q/", "q/d/", "x/y/"}
	name := func() string {
		return pick("a", "b", "c", "d", "a.b", "a.b.c", "c.d", "json", "helpers", "tests.helpers", "x.y", "q.d", "p")
	}
	statement := func() string {
		switch random.IntN(8) {
		case 0:
			return "from " + name() + " import " + pick("a", "b", "c", "*", "x")
		case 1:
			return "from " + pick(".", "..", ".a", "..b") + " import " + pick("a", "b", "*", "helpers")
		case 2:
			return "patch('" + name() + ".x')"
		case 4:
			return pick("open('../x/y/data.txt')", "open('../data.txt')", "join(here, '..', 'a', 'data')", "Path(__file__).parents[1]", "open('../p/' + x)", "open('x/y/data.txt')", "Path('a').glob('*')", "os.listdir()", "x = '>>> import a'", "pytest_plugins = []", "def pytest_addoption(): pass", "def pytest_collect_file(): pass")
		case 3:
			return pick("import_module(x)", "import subprocess", "import_module('"+name()+"')", "subprocess.run('uv tree .')")
		}
		return "import " + name()
	}
	edit := memoryTree{}
	for range 1 + random.IntN(3) {
		dir := pick(dirs...)
		switch random.IntN(16) {
		case 0, 1, 2, 3:
			edit[dir+pick("a", "b", "c", "helpers", "json", "test_a", "test_b", "conftest", "d_test")+".py"] = statement() + "\n" + statement() + "\n"
		case 4, 5:
			edit[dir+pick("a", "b", "c", "helpers", "test_a", "test_b", "conftest", "__init__")+".py"] = ""
		case 6, 7:
			edit[dir+"__init__.py"] = pick("# package\n", "from .a import *\n", "import c\n", "")
		case 8:
			edit[dir+pick("data.txt", "data/x.txt", "test_x.txt", "a.so", "README.md", ".python-version")] = pick("1\n", "2\n", ">>> 1\n", "")
		case 9:
			edit[pick("p/", "q/", "x/", "src/a/")+"pyproject.toml"] = pick("", "[tool.black]\n", "[project]\nname = \"p\"\n", "[project]\nname = \"q\"\ndependencies = [\"p\", \"shop\"]\n",
				"[project]\nname = \"x\"\n[dependency-groups]\ndev = [\"q\"]\n", "[tool.poetry]\nname = \"q\"\n[tool.poetry.dependencies]\np = { path = \"../p\" }\n[tool.pytest.ini_options]\npythonpath = [\"..\", \"d\"]\n")
		case 10:
			edit[pick("p/", "q/", "x/", "")+"setup.py"] = pick("", "setup(name='p')\n", "setup(name='q', install_requires=['p'])\n", "import d\nsetup(name='d', ext_modules=[])\n")
		case 11:
			edit[pick("p/", "q/", "x/", "")+pick("requirements.txt", "requirements/dev.txt")] = pick("", "-e ../p\n", "-r other.txt\n", "q\n", "-e x\n")
		case 12:
			edit[pick("", "p/", "q/", "tests/")+pick("pytest.ini", "tox.ini", "setup.cfg")] = pick("", "[pytest]\npython_files = check_*.py a.py\n", "[pytest]\npythonpath = a src/a\n", "[metadata]\nname = p\n", "[pytest]\ntestpaths = tests\n[tool:pytest]\naddopts = -p helpers\n",
				"[pytest]\naddopts = --doctest-modules --doctest-glob=*.txt\n", "[pytest]\ntestpaths = d tests/test_a.py\n", "[pytest]\naddopts = --import-mode=importlib\n", "[pytest]\naddopts = a/b src/a/x.py\n",
				"[pytest]\npython_files = a/b/*.py\naddopts = --nbval\n", "[pytest]\npython_files = a/*.py\n", "[pytest]\nnorecursedirs = a tests/b src/a\n")
		case 13:
			edit[pick("", "p/")+"uv.lock"] = pick("", "[[package]]\nname = \"p\"\nsource = { editable = \"p\" }\ndependencies = [{ name = \"attrs\" }]\n[[package]]\nname = \"attrs\"\n",
				"[[package]]\nname = \"q\"\nsource = { virtual = \"q\" }\ndependencies = [{ name = \"p\" }]\n[[package]]\nname = \"p\"\nsource = { editable = \"p\" }\n",
				"version = 2\n[[package]]\nname = \"p\"\nsource = { editable = \".\" }\n",
				"[[package]]\nname = \"q\"\nsource = { virtual = \"q\" }\n[[package]]\nname = \"tavern\"\n")
		case 14:
			edit[dir+pick("l.py", "c", "b", "l")] = "mode " + pick("120000 ../src/a", "120000 a", "120000 ../tests", "160000 commit", "120000 a.py", "120000 ..", "120000 ../p/src/c")
		case 15:
			files := slices.Sorted(maps.Keys(small))
			edit[pick(files...)] = ""
		}
	}
	return edit
}

// small is a repository in which many edits matter to others.
var small = memoryTree{
	"pyproject.toml":    "[project]\nname = \"shop\"\ndependencies = [\"p\"]\n[tool.uv.workspace]\nmembers = [\"p\", \"q\"]\n",
	"src/a/x.py":        "import c\n",
	"src/a/y.py":        "",
	"src/a/b/a.py":      "from .. import y\n",
	"src/a/b/b.py":      "import json\n",
	"tests/test_a.py":   "import a.b\nimport tests.helpers\n",
	"tests/test_b.py":   "from a import x, z\n",
	"tests/helpers.py":  "import d\n",
	"p/pyproject.toml":  "[project]\nname = \"p\"\n",
	"p/src/c/a.py":      "import_module(x)\n",
	"p/src/c/b.py":      "",
	"p/tests/test_a.py": "import c.b\n",
	"q/setup.py":        "setup(name='q', install_requires=['p'])\n",
	"q/setup.cfg":       "[metadata]\nname = q\n",
	"q/d/a.py":          "import c\n",
	"q/test_a.py":       "import d.a\n",
	"x/y/a.py":          "import a\n",
	"x/y/test_a.py":     "from . import a\n",
}

// pairs returns how many pairs of random edits are tried: enough to notice that something broke. LANDFALL_PYTHONGRAPH_PAIRS
// asks for a search.
func pairs(t *testing.T) int {
	text := os.Getenv("LANDFALL_PYTHONGRAPH_PAIRS")
	if text == "" {
		return 800
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LANDFALL_PYTHONGRAPH_PAIRS: %v", err)
	}
	return n
}

// Of two changes that M1 calls independent, each target version of the union is one that one of them makes alone
// (equation 6).
func TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	loader := newLoader(t, Options{})
	graphOf := func(tree memoryTree) *targets.Graph {
		graph, err := loader.Load(t.Context(), "", tree)
		if _, invalid := errors.AsType[*Invalid](err); err != nil && !invalid && !errors.Is(err, ErrNoProject) {
			t.Fatalf("%q: %v", tree, err)
		}
		return graph
	}
	independent := 0
	base := small
	for n := range pairs(t) {
		if n%50 == 0 {
			// From another base, so that there is more to take away.
			if base = small; n%100 == 0 {
				if moved := small.with(randomEdit(random)).with(randomEdit(random)); sound(moved) && graphOf(moved) != nil {
					base = moved
				}
			}
		}
		first, second := randomEdit(random), randomEdit(random)
		both := base.with(first).with(second)
		if !disjoint(first, second) || !sound(base.with(first)) || !sound(base.with(second)) || !sound(both) {
			continue
		}
		before := graphOf(base)
		graphs := []*targets.Graph{graphOf(base.with(first)), graphOf(base.with(second)), graphOf(both)}
		if slices.Contains(graphs, nil) {
			continue
		}
		a, b, union := targets.Delta(before, graphs[0]), targets.Delta(before, graphs[1]), targets.Delta(before, graphs[2])
		if a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			continue
		}
		independent++
		if want, got := versions(a, b), versions(union); want != got {
			t.Fatalf("called independent:\n%q\n%q\non\n%q\nonly alone or only together they make\n%s", first, second, base, difference(want, got))
		}
	}
	if independent < 20 {
		t.Errorf("only %d pairs were independent", independent)
	}
	t.Logf("%d independent pairs", independent)
}

// sound reports whether a tree can exist: no file is a folder as well.
func sound(tree memoryTree) bool {
	for path := range tree {
		for dir := folderOf(path); dir != ""; dir = folderOf(dir) {
			if _, ok := tree[dir]; ok {
				return false
			}
		}
	}
	return true
}

func disjoint(x, y memoryTree) bool {
	for path := range x {
		if _, ok := y[path]; ok {
			return false
		}
	}
	return true
}

// versions lists what analyses make and delete.
func versions(analyses ...targets.Analysis) string {
	set := map[string]bool{}
	for _, a := range analyses {
		for _, v := range a.Affected {
			set[fmt.Sprintf("%s %s", v.Name, v.Hash)] = true
		}
		for _, name := range a.Deleted {
			set["-"+name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n")
}

// difference returns the lines that only one of two texts has.
func difference(x, y string) string {
	var only []string
	for _, line := range strings.Split(x+"\n"+y, "\n") {
		if strings.Contains(x, line) != strings.Contains(y, line) {
			only = append(only, line)
		}
	}
	return strings.Join(only, "\n")
}

func TestAGraphDoesNotRestOnWhatWasLoadedBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 2))
	loader := newLoader(t, Options{})
	trees := []memoryTree{small}
	for range 150 {
		tree := trees[random.IntN(len(trees))].with(randomEdit(random))
		if random.IntN(3) == 0 {
			// An edit that says nothing, which the graph before answers.
			tree = trees[len(trees)-1].with(memoryTree{"src/a/x.py": "import c\n# " + strconv.Itoa(random.IntN(1000)) + "\n"})
		}
		if !sound(tree) {
			continue
		}
		full, errFull := newLoader(t, Options{}).Load(t.Context(), "", tree)
		// A map gives its entries in another order each time.
		next, err := loader.Load(t.Context(), tree.id(), tree)
		if fmt.Sprint(err) != fmt.Sprint(errFull) {
			t.Fatalf("alone: %v\nafter others: %v", errFull, err)
		}
		if err != nil {
			continue
		}
		trees = append(trees, tree)
		checkSame(t, full, next)
	}
	if loader.recent.derived == 0 {
		t.Error("no graph was made from another")
	}
}

func checkSame(t *testing.T, x, y *targets.Graph) {
	t.Helper()
	if len(x.Unknown()) > 0 || len(y.Unknown()) > 0 {
		if fmt.Sprint(x.Unknown()) != fmt.Sprint(y.Unknown()) {
			t.Fatalf("%v, %v", x.Unknown(), y.Unknown())
		}
		return
	}
	a, b := targets.Delta(x, y), targets.Delta(y, x)
	if len(a.Touched())+len(a.Leaves)+len(a.Added)+len(b.Touched())+len(b.Leaves)+len(b.Added) > 0 {
		t.Fatalf("graphs differ: %+v, %+v", a, b)
	}
	for target := range x.Targets() {
		if other, ok := y.Target(target.Name); !ok || fmt.Sprint(other) != fmt.Sprint(target) {
			t.Fatalf("%+v is %+v", target, other)
		}
	}
}
