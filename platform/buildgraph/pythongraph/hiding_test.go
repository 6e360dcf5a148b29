package pythongraph

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAModuleThatHidesOneOfOthersAffectsTheWholeProject although no file of the repository imports it: real Python fails.
func TestAModuleThatHidesOneOfOthersAffectsTheWholeProject(t *testing.T) {
	base := memoryTree{
		"pyproject.toml":       "[project]\nname = \"shop\"\nversion = \"1\"\n",
		"src/shop/__init__.py": "from concurrent.futures import ThreadPoolExecutor\nANSWER = 1\ndef run(f):\n    return ThreadPoolExecutor(1).submit(f).result()\n",
		"tests/test_top.py":    "import shop\ndef test_top():\n    assert shop.run(lambda: 1) == shop.ANSWER\n",
		"lib/pyproject.toml":   "[project]\nname = \"lib\"\nversion = \"1\"\n",
		"lib/lib.py":           "X = 1\n",
		"lib/tests/test_l.py":  "import lib\ndef test_l():\n    assert lib.X\n",
	}
	for name, edit := range map[string]memoryTree{
		"a module of the standard library": {"src/queue.py": "class Basket: pass\n"},
		"a package of its name":            {"src/queue/__init__.py": "class Basket: pass\n"},
		"sitecustomize":                    {"src/sitecustomize.py": "import shop\nshop.ANSWER = 2\n"},
		"what pytest imports":              {"src/pluggy.py": "class Basket: pass\n"},
	} {
		head := base.with(edit)
		if got := delta(t, base, head); got != "., tests [test]" {
			t.Errorf("%s affects %s", name, got)
		}
		for path := range edit {
			if got := delta(t, head, head.with(memoryTree{path: "# nothing\n"})); got != "., tests [test]" {
				t.Errorf("an edit of %s affects %s", name, got)
			}
		}
	}
	if got := delta(t, base, base.with(memoryTree{"src/shop/queue.py": "x = 1\n", "src/shop/other.py": "x = 1\n"})); !strings.HasPrefix(got, ".") || strings.Contains(got, "lib") {
		t.Errorf("a module of a package affects %s", got)
	}
	outside := base.with(memoryTree{"lib/pytest.ini": "[pytest]\npythonpath = ../src\n"})
	if got := delta(t, outside, outside.with(memoryTree{"src/queue.py": "x = 1\n"})); !strings.Contains(got, "lib/tests [test]") {
		t.Errorf("a module in a folder of pythonpath elsewhere affects %s", got)
	}

	dir, env := tools(t)
	for _, edit := range []memoryTree{{}, {"src/queue.py": "class Basket: pass\n"}, {"src/sitecustomize.py": "import shop\nshop.ANSWER = 2\n"}} {
		project := base.with(edit).write(t)
		out, err := command(t.Context(), project, append(env, "PYTHONPATH=src"), filepath.Join(dir, "venv/bin/python"), "-m", "pytest", "-q", "tests")
		if (err == nil) != (len(edit) == 0) {
			t.Errorf("with %q: %v\n%s", edit, err, out)
		}
	}
}

// TestTheNamesOfTheStandardLibraryAreKnown: those of the interpreter on the PATH.
func TestTheNamesOfTheStandardLibraryAreKnown(t *testing.T) {
	dir, _ := tools(t)
	out, err := command(t.Context(), dir, nil, filepath.Join(dir, "venv/bin/python"), "-c", "import sys; print(*sys.stdlib_module_names)")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(out) {
		if !hiding[name] {
			t.Errorf("%s is not known", name)
		}
	}
}
