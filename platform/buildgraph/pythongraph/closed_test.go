package pythongraph

import (
	"strings"
	"testing"
)

// TestAFolderThatSetuptoolsTakesForAPackageIsInTheHashAndTheWorkspace: setuptools refuses a project with two of them, and uv a
// workspace whose members it takes the folder for.
func TestAFolderThatAToolTakesForItsOwnIsInTheHashAndTheWorkspace(t *testing.T) {
	for name, c := range map[string]struct {
		base memoryTree
		file string
		want string
	}{
		"setuptools, flat": {memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n\n[build-system]\nrequires = [\"setuptools\"]\n", "shop/__init__.py": "", "tests/test_a.py": "def test_a():\n    pass\n"},
			"guides/intro.md", "python://., python://tests [test]"},
		"setuptools, src": {memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n\n[build-system]\nrequires = [\"setuptools\"]\n", "src/shop/__init__.py": ""},
			"guides/intro.md", ""},
		"uv": {memoryTree{"pyproject.toml": "[project]\nname = \"root\"\nversion = \"1\"\n\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n", "uv.lock": "version = 1\n[[package]]\nname = \"root\"\nversion = \"1\"\nsource = { editable = \".\" }\n[[package]]\nname = \"a\"\nversion = \"1\"\nsource = { editable = \"packages/a\" }\n",

			"src/root/__init__.py": "", "packages/a/pyproject.toml": "[project]\nname = \"a\"\nversion = \"1\"\n", "packages/a/src/a/__init__.py": ""},
			"packages/docs/guide.md", "python://., python://. [lock], python://packages/a"},
		"hatchling": {memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n\n[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n", "src/shop/__init__.py": "", "tests/test_a.py": "import shop\n\ndef test_a():\n    pass\n"},
			".gitignore", "python://., python://tests [test]"},
		"hatchling, above": {memoryTree{"py/pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n\n[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n", "py/src/shop/__init__.py": "", "py/tests/test_a.py": "import shop\n\ndef test_a():\n    pass\n"},
			".gitignore", "python://py, python://py/tests [test]"},
	} {
		t.Run(name, func(t *testing.T) {
			head := c.base.with(memoryTree{c.file: "# words\n"})
			if got := delta(t, c.base, head); got != strings.ReplaceAll(c.want, "python://", "") {
				t.Errorf("affected: %q, want %q", got, c.want)
			}
			graph := loadWith(t, Options{Closed: true}, head)
			for target := range graph.Targets() {
				space := graph.Workspace(target.Name)
				if space == nil {
					continue
				}
				if _, named := space.Files[c.file]; named != (c.want != "") {
					t.Errorf("%s: the workspace names %s: %v", target.Name, c.file, named)
				}
			}
		})
	}
}

// TestTheLicensesOfAProjectAreInItsHash: whatever builds a project reads them, and packs them with it.
func TestTheLicensesOfAProjectAreInItsHash(t *testing.T) {
	for name, c := range map[string]struct{ project, file, want string }{
		"a license":           {"", "LICENSE", "., tests [test]"},
		"one by its name":     {"", "LICENCE-MIT.txt", "., tests [test]"},
		"who wrote it":        {"", "AUTHORS.md", "., tests [test]"},
		"a notice":            {"", "NOTICE", "., tests [test]"},
		"a copy":              {"", "COPYING.LESSER", "., tests [test]"},
		"another document":    {"", "CHANGES.md", ""},
		"by a pattern":        {"license-files = [\"CONTRIB*\"]\n", "CONTRIBUTORS.md", "., tests [test]"},
		"in a folder":         {"license-files = [\"LICENSES/*\"]\n", "LICENSES/MIT.txt", "., tests [test]"},
		"as hatch had them":   {"license-files = {paths = [\"legal/**/*.txt\"]}\n", "legal/eu/EUPL.txt", "., tests [test]"},
		"a folder without":    {"", "LICENSES/MIT.txt", ""},
		"as setuptools does":  {"[tool.setuptools]\nlicense-files = [\"legal/?OPYING\"]\n", "legal/COPYING", "., tests [test]"},
		"for all of a folder": {"license-files = [\"*\"]\n", "CHANGES.md", "., tests [test]"},
	} {
		base := memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n" + c.project + "\n[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n",
			"src/shop/__init__.py": "", "tests/test_a.py": "import shop\n\ndef test_a():\n    pass\n"}
		head := base.with(memoryTree{c.file: "words\n"})
		if got := delta(t, base, head); got != c.want {
			t.Errorf("%s: adding %s affects %q, want %q", name, c.file, got, c.want)
		}
		if got := delta(t, head, base.with(memoryTree{c.file: "other words\n"})); got != c.want {
			t.Errorf("%s: changing %s affects %q, want %q", name, c.file, got, c.want)
		}
		graph := loadWith(t, Options{Closed: true}, head)
		if _, there := graph.Workspace("python://tests [test]").Files[c.file]; there != (c.want != "") {
			t.Errorf("%s: the workspace of the tests has %s: %v", name, c.file, there)
		}
	}
}

// TestATestThatGoesThroughProjectsDependsOnAllManifests: they are in every closed workspace, so it would not fail for want of them.
func TestATestThatGoesThroughProjectsDependsOnAllManifests(t *testing.T) {
	for code, want := range map[string]bool{
		"def test_a():\n    for p in root().iterdir():\n        assert 'requires' in (p / 'pyproject.toml').read_text()\n": true,
		"def test_a():\n    open('pyproject.toml')\n": false,
	} {
		base := memoryTree{"a/pyproject.toml": "[project]\nname = \"a\"\n", "a/tests/test_a.py": code, "b/pyproject.toml": "[project]\nname = \"b\"\n"}
		got := delta(t, base, base.with(memoryTree{"b/pyproject.toml": "[project]\nname = \"b\"\nrequires-python = \">=3.9\"\n"}))
		if strings.Contains(got, "a/tests [test]") != want {
			t.Errorf("%s: affected: %s", code, got)
		}
	}
}

// TestWhatPytestLooksAtOnItsWay: pytest imports the __init__.py of folders above one without, lists the folders below one with tests,
// and reads all code if it measures coverage.
func TestWhatPytestLooksAtOnItsWay(t *testing.T) {
	base := memoryTree{"pyproject.toml": "[project]\nname = \"a\"\n", "tests/__init__.py": "x = 1\n", "tests/unit/test_a.py": "def test_a(): pass\n",
		"tests/unit/deep/test_b.py": "def test_b(): pass\n", "app/__init__.py": ""}
	if got := delta(t, base, base.with(memoryTree{"tests/__init__.py": "raise SystemExit\n"})); !strings.Contains(got, "tests/unit [test]") {
		t.Errorf("a package above a folder with tests affects %q", got)
	}
	shown := loadWith(t, Options{Closed: true}, base).Workspace("python://tests/unit [test]").Shown
	for folder, alone := range map[string]bool{"": false, "tests": false, "tests/unit": false, "tests/unit/deep": true} {
		if got, is := shown[folder]; !is || got != alone {
			t.Errorf("names of %q are shown: %v, alone: %v", folder, is, got)
		}
	}
	for settings, want := range map[string]bool{"[tool.pytest.ini_options]\naddopts = \"-q --cov=app --cov-fail-under=90\"\n": true, "": false} {
		graph := loadWith(t, Options{Commands: DefaultCommands()}, base.with(memoryTree{"pyproject.toml": "[project]\nname = \"a\"\n" + settings}))
		target, _ := graph.Target("python://tests/unit [test]")
		if got := strings.Contains(strings.Join(target.Commands[0].Argv, " "), "pytest --no-cov "); got != want {
			t.Errorf("with %q: %q", settings, target.Commands[0].Argv)
		}
	}
}
