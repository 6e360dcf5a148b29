package pythongraph

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

const (
	// passing is a test module, collector a conftest.py that makes a test of each test*.json.
	passing   = "def test_x():\n    pass\n"
	collector = `import json, pytest

class Spec(pytest.Item):
    def runtest(self):
        assert json.loads(self.path.read_text())["a"] == 3

class Specs(pytest.File):
    def collect(self):
        yield Spec.from_parent(self, name="a")

def pytest_collect_file(parent, file_path):
    if file_path.name.startswith("test") and file_path.suffix == ".json":
        return Specs.from_parent(parent, path=file_path)
`
)

// TestWhatPytestCollectsBesideTestModulesIsPartOfTheTarget: a change of it affects a test of the project.
func TestWhatPytestCollectsBesideTestModulesIsPartOfTheTarget(t *testing.T) {
	base := memoryTree{
		"pyproject.toml": "[project]\nname = \"shop\"\n", "shop/__init__.py": "x = 1\n", "tests/test_a.py": passing,
		"tests/specs/test_one.json": "{\"a\": 3}\n", "docs/guide.md": "```python\nimport shop\n```\n", "notes/a.ipynb": "{}\n", "checks/price.py": passing,
		"README.md": "```python\n1\n```\n",
	}
	settings := func(text string) memoryTree { return memoryTree{"pytest.ini": "[pytest]\n" + text + "\n"} }
	requires := func(text string) memoryTree {
		return memoryTree{"pyproject.toml": base["pyproject.toml"] + text}
	}
	for name, c := range map[string]struct {
		more memoryTree
		file string
	}{
		"a conftest.py":                     {memoryTree{"tests/conftest.py": collector}, "tests/specs/test_one.json"},
		"one of the root":                   {memoryTree{"conftest.py": "from sybil import Sybil\npytest_collect_file = Sybil().pytest()\n"}, "docs/guide.md"},
		"one of documents":                  {memoryTree{"conftest.py": "def pytest_collect_file(file_path, parent): pass\n"}, "README.md"},
		"one of folders":                    {memoryTree{"conftest.py": "def pytest_collect_directory(path, parent): pass\n"}, "docs/guide.md"},
		"a hook of another name":            {memoryTree{"conftest.py": "@pytest.hookimpl(specname='pytest_collect_file')\ndef collect(file_path, parent): pass\n"}, "docs/guide.md"},
		"a plugin of the project":           {memoryTree{"shop/plug.py": collector, "conftest.py": "pytest_plugins = ['shop.plug']\n"}, "tests/specs/test_one.json"},
		"a plugin of a project that it has": {requires("dependencies = [\"plug\"]\n").with(memoryTree{"plug/pyproject.toml": "[project]\nname = \"plug\"\n", "plug/plug.py": collector}), "tests/specs/test_one.json"},
		"a plugin outside of projects":      {memoryTree{"pyproject.toml": "", "py/pyproject.toml": base["pyproject.toml"], "py/pytest.ini": "[pytest]\naddopts = -p tools.plug\npythonpath = ..\n", "py/guide.md": "1\n", "tools/plug.py": collector}, "py/guide.md"},
		"a conftest.py above the project":   {memoryTree{"pyproject.toml": "", "conftest.py": collector, "py/pyproject.toml": base["pyproject.toml"], "py/guide.md": "1\n"}, "py/guide.md"},
		"settings in a conftest.py":         {memoryTree{"conftest.py": "def pytest_configure(config):\n    config.addinivalue_line('python_files', 'price.py')\n"}, "checks/price.py"},
		"--nbval":                           {settings("addopts = -q --nbval"), "notes/a.ipynb"},
		"--nbmake":                          {settings("addopts = --nbmake --tb=short"), "notes/a.ipynb"},
		"--markdown-docs":                   {settings("addopts = --markdown-docs"), "docs/guide.md"},
		"--ruff":                            {requires("[tool.pytest.ini_options]\naddopts = [\"--ruff\"]\n"), "checks/price.py"},
		"--ruff-format":                     {settings("addopts = --ruff-format"), "checks/price.py"},
		"--mypy":                            {settings("addopts = --mypy"), "checks/price.py"},
		"--flake8":                          {settings("addopts = --flake8"), "checks/price.py"},
		"doctest_plus":                      {settings("doctest_plus = enabled"), "docs/guide.md"},
		"an override":                       {settings("addopts = -o python_files=*.py"), "checks/price.py"},
		"a file in addopts":                 {settings("addopts = checks/price.py tests"), "checks/price.py"},
		"a test in addopts":                 {settings("addopts = checks/price.py::test_x tests"), "checks/price.py"},
		"a folder in addopts":               {settings("addopts = -v ./checks"), "checks/price.py"},
		"files of tavern":                   {memoryTree{"api/test_login.tavern.yaml": "1\n"}, "api/test_login.tavern.yaml"},
		"a plugin of its requirements":      {requires("[dependency-groups]\ndev = [\"pytest-workflow\"]\n"), "notes/a.ipynb"},
		"one of a lock file": {memoryTree{"uv.lock": "version = 1\n[[package]]\nname = \"shop\"\nversion = \"1\"\nsource = { editable = \".\" }\n" +
			"[[package]]\nname = \"pytest-mypy-plugins\"\nversion = \"1\"\nsource = { registry = \"x\" }\n"}, "notes/a.ipynb"},
		"examples in a text": {memoryTree{"docs/test_use.txt": ">>> import shop\n"}, "docs/test_use.txt"},
		"code for one":       {memoryTree{"docs/test_use.txt": ">>> import shop\n"}, "shop/__init__.py"},
	} {
		tree := base.with(c.more)
		if got := delta(t, tree, tree.with(memoryTree{c.file: tree[c.file] + "# more\n"})); !strings.Contains(got, "[test]") {
			t.Errorf("%s: a change of %s affects %q", name, c.file, got)
		}
		closed := loadWith(t, Options{Closed: true}, tree)
		holds := false
		for target := range closed.Targets() {
			if space := closed.Workspace(target.Name); space != nil && strings.HasSuffix(target.Name, " [test]") {
				_, is := space.Files[c.file]
				holds = holds || is
			}
		}
		if !holds {
			t.Errorf("%s: no workspace of a test holds %s", name, c.file)
		}
	}

	environment := func(tree memoryTree) *targets.Graph {
		return loadWith(t, Options{Env: []string{"PYTEST_ADDOPTS=--nbval"}}, tree)
	}
	if d := targets.Delta(environment(base), environment(base.with(memoryTree{"notes/a.ipynb": "[]\n"}))); len(d.Affected) == 0 {
		t.Error("PYTEST_ADDOPTS: a change of a notebook affects nothing")
	}
}

// TestTestsOfModulesAloneAreTargetsByFolder: what adds nothing to them leaves them so.
func TestTestsOfModulesAloneAreTargetsByFolder(t *testing.T) {
	base := memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\n", "shop/__init__.py": "x = 1\n", "tests/test_a.py": passing, "tests/unit/test_b.py": passing,
		"requirements.txt": "pytest-cov\n", "test-requirements.txt": "pytest\n", "words/test_words.txt": "words\n"}
	for name, more := range map[string]memoryTree{
		"options":                      {"pytest.ini": "[pytest]\naddopts = -ra --cov shop --cov-report term -m 'not slow' -n auto -p no:cacheprovider --strict-markers --ignore tests/unit/data --doctest-modules --doctest-continue-on-failure\n"},
		"another project's collectors": {"other/pyproject.toml": "[project]\nname = \"other\"\n", "other/conftest.py": collector},
		"a conftest.py":                {"tests/conftest.py": "import pytest\ndef pytest_addoption(parser): pass\n"},
		"nothing":                      {},
	} {
		tree := base.with(more)
		if got := delta(t, tree, tree.with(memoryTree{"tests/unit/test_b.py": passing + passing})); got != "tests/unit [test]" && got != "., tests/unit [test]" {
			t.Errorf("%s: a test module affects %s", name, got)
		}
		if got := delta(t, tree, tree.with(memoryTree{"words/test_words.txt": "other\n"})); strings.Contains(got, "[test]") {
			t.Errorf("%s: a text affects %s", name, got)
		}
	}
}

// TestPatternsWithASlashGoByThePath: as pytest matches those of python_files and norecursedirs.
func TestPatternsWithASlashGoByThePath(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		want          bool
	}{
		{"test_*.py", "a/test_b.py", true},
		{"checks/*.py", "checks/price.py", true},
		{"checks/*.py", "py/checks/price.py", true},
		{"checks/*.py", "checks/deep/price.py", true}, // A star goes beyond slashes.
		{"checks/*.py", "mychecks/price.py", false},
		{"checks/p?ice.py", "checks/price.py", true},
		{"checks/[!x]*.py", "checks/price.py", true},
		{"[!p]*.py", "checks/price.py", false},
		{"[!x]*.py", "checks/price.py", true},
		{"[p-r]rice.py", "price.py", true},
		{"[]p]rice.py", "price.py", true},
		{"[price.py", "[price.py", true},
		{"*a*b*c", "xaxbxc", true},
		{"*a*b*c", "xaxcxb", false},
		{"*", "checks/.price", true},
	} {
		if got := matchesPath(c.pattern, c.file); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.file, got)
		}
	}
	base := memoryTree{"setup.py": "", "tests/test_a.py": passing, "checks/price.py": passing, "lib/checks/deep/b.py": passing, "tests/data/test_d.py": passing}
	for file, text := range map[string]string{
		"pyproject.toml": "[tool.pytest.ini_options]\npython_files = [\"test_*.py\", \"checks/*.py\"]\nnorecursedirs = [\"tests/data\"]\n",
		"tox.ini":        "[pytest]\npython_files = test_*.py checks/*.py\nnorecursedirs = tests/data\n",
	} {
		var found []string
		for target := range load(t, base.with(memoryTree{file: text})).Targets() {
			if folder, is := strings.CutSuffix(target.Name, " [test]"); is {
				found = append(found, strings.TrimPrefix(folder, "python://"))
			}
		}
		slices.Sort(found)
		if want := []string{"checks", "lib/checks/deep", "tests"}; !slices.Equal(found, want) {
			t.Errorf("%s: tests of %q, want %q", file, found, want)
		}
	}
}

// TestSettingsHideThoseAbove: pytest goes by the first file that has any.
func TestSettingsHideThoseAbove(t *testing.T) {
	built := memoryTree{"pytest.ini": "[pytest]\nnorecursedirs = none\n", "py/setup.py": "", "py/tests/test_a.py": passing, "py/build/test_b.py": passing}
	hidden := built.with(memoryTree{"py/tox.ini": "[pytest]\naddopts = -q\n"})
	if got := delta(t, hidden, hidden.with(memoryTree{"py/tox.ini": ""})); !strings.Contains(got, ", py/build [test]") {
		t.Errorf("settings that hide others no more affect %q", got)
	}
	above := built.with(memoryTree{"pytest.ini": "", "tox.ini": "[pytest]\naddopts = -q\n"})
	if got := delta(t, above, above.with(memoryTree{"tox.ini": "[pytest]\naddopts = -v\n"})); got != "py/tests [test]" {
		t.Errorf("settings that say nothing of where tests are affect %q", got)
	}
}

// TestTwoChangesThatTogetherCollectMoreConflict: one has pytest collect in another way where the other leads.
func TestTwoChangesThatTogetherCollectMoreConflict(t *testing.T) {
	base := memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\n", "tests/test_a.py": passing, "plug/pyproject.toml": "[project]\nname = \"plug\"\n"}
	for name, c := range map[string][3]memoryTree{
		"settings and what hides them": {{"a/tox.ini": "[metadata]\n"}, {"pytest.ini": "[pytest]\nnorecursedirs = none\n"},
			{"a/tox.ini": "[pytest]\n", "a/py/setup.py": "setup()\n", "a/py/build/test_b.py": passing, "pytest.ini": "[pytest]\n"}},
		"a plugin and its use":  {{"plug/plug.py": collector}, {"pyproject.toml": "[project]\nname = \"shop\"\ndependencies = [\"plug\"]\n"}},
		"a path and its option": {{"notes/a.ipynb": "{}\n"}, {"tox.ini": "[pytest]\naddopts = notes\n"}, {"tox.ini": "[pytest]\naddopts = -q\n"}},
		"examples where none were looked for": {{"docs/test_use.txt": ">>> 1\n"}, {"tox.ini": "[pytest]\naddopts = -q\n"},
			{"docs/test_use.txt": "words\n", "tox.ini": "[pytest]\ntestpaths = tests\n"}},
	} {
		base := base.with(c[2])
		first, second := base.with(c[0]), base.with(c[1])
		a, b := targets.Delta(load(t, base), load(t, first)), targets.Delta(load(t, base), load(t, second))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s: the changes are independent", name)
		}
	}
}

// TestTheOneTargetRunsWhatTheProjectCollects: with pytest itself.
func TestTheOneTargetRunsWhatTheProjectCollects(t *testing.T) {
	_, env := tools(t)
	base := memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\n", "tests/conftest.py": collector, "tests/test_a.py": passing, "tests/specs/test_one.json": "{\"a\": 3}\n",
		"member/pyproject.toml": "[project]\nname = \"member\"\n", "member/tests/test_m.py": "import absent\n"}
	for content, pass := range map[string]bool{"{\"a\": 3}\n": true, "{\"a\": 4}\n": false} {
		tree := base.with(memoryTree{"tests/specs/test_one.json": content})
		project := tree.write(t)
		target, ok := load(t, tree).Target("python://. [test]")
		if !ok {
			t.Fatal("no target for the project's tests")
		}
		for _, c := range target.Commands {
			if out, err := command(t.Context(), filepath.Join(project, c.Dir), env, c.Argv...); (err == nil) != pass {
				t.Errorf("%q ends with %v\n%s", content, err, out)
			}
		}
	}
}
