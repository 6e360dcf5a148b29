package pythongraph

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Whatever tests of this project read when they run, by paths from where pytest runs, another content makes another version.
func TestWhatTestsReadWhenTheyRunIsPartOfTheTarget(t *testing.T) {
	dir, _ := tools(t)
	tree := memoryTree{
		"pyproject.toml":           "[project]\nname = \"shop\"\nversion = \"1\"\n",
		"README.md":                "# shop\n",
		"changes.csv":              "1\n",
		"CHANGES":                  "free\n",
		"src/shop/__init__.py":     "",
		"src/shop/deep/prices.py":  "PRICE = 1\n",
		"docs/index.rst":           "shop\n",
		"tests/data/x.json":        "{}\n",
		"tests/test_readme.py":     "from pathlib import Path\nfrom subprocess import check_output\ndef test_readme():\n    assert 'shop' in Path('README.md').read_text()\n    assert check_output('cat CHANGES', shell=True) and open('CHANGES').read()\n",
		"tests/unit/test_x.py":     "import csv, os\ndef test_x():\n    assert open('tests/data/x.json').read()\n    assert list(csv.reader(open(os.path.join(os.getcwd(), 'changes.csv'))))\n",
		"tests/lint/test_lint.py":  "from pathlib import Path\nimport pytest\n@pytest.mark.parametrize('file', Path('src').rglob('*.py'))\ndef test_lint(file):\n    assert '\\t' not in file.read_text()\n",
		"tests/lint/test_docs.py":  "import glob\ndef test_docs():\n    assert [open(f).read() for f in glob.glob('docs/*.rst')]\n",
		"tests/other/test_none.py": "def test_none():\n    pass\n",
	}
	project := tree.write(t)
	graph := load(t, tree)
	for folder, least := range map[string][]string{
		"tests": {"README.md", "CHANGES"}, "tests/unit": {"tests/data/x.json", "changes.csv"}, "tests/lint": {"src/shop/deep/prices.py", "docs/index.rst"}, "tests/other": nil,
	} {
		target, ok := graph.Target("python://" + folder + " [test]")
		if !ok {
			t.Fatalf("%s has no target", folder)
		}
		read := readAs(t, dir, project, folder, "run")
		for _, file := range least {
			if !slices.Contains(read, file) {
				t.Fatalf("the tests of %s read %q, not %s", folder, read, file)
			}
		}
		for _, file := range read {
			if _, err := os.Stat(filepath.Join(project, file)); err != nil || tree[file] == "" && file != "src/shop/__init__.py" {
				continue
			}
			if now, _ := load(t, tree.with(memoryTree{file: tree[file] + "\n# more\n"})).Target(target.Name); now.Hash == target.Hash && file != "pyproject.toml" {
				t.Errorf("%s is the same whatever is in %s", target.Name, file)
			}
		}
	}
	if got := delta(t, tree, tree.with(memoryTree{"README.md": "new\n"})); got != "tests [test]" {
		t.Errorf("a document that a test reads affects %s", got)
	}
}

// TestASetupScriptIsCompiled: no step of a plain project starts it, so one that is no Python would land.
func TestASetupScriptIsCompiled(t *testing.T) {
	tree := memoryTree{
		"a/setup.py": "from setuptools import setup\nsetup(name='a')\n", "a/shop.py": "", "b/setup.py": "from setuptools import setup\nsetup(name='b')\n",
		"c/setup.cfg": "[metadata]\nname = c\n", "c/shop.py": "",
	}
	for folder, want := range map[string][]string{"a": {"shop.py", "setup.py"}, "b": {"setup.py"}, "c": {"shop.py"}} {
		target, _ := load(t, tree).Target("python://" + folder)
		if len(target.Commands) == 0 || target.Commands[0].Name != "compile" || !slices.Equal(target.Commands[0].Argv[len(target.Commands[0].Argv)-len(want):], want) {
			t.Errorf("%s is compiled by %+v, not with %q", folder, target.Commands, want)
		}
	}
}
