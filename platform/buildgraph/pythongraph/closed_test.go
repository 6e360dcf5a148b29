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
		"setuptools, flat": {memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n", "shop/__init__.py": "", "tests/test_a.py": "def test_a():\n    pass\n"},
			"guides/intro.md", "python://., python://tests [test]"},
		"setuptools, src": {memoryTree{"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\n", "src/shop/__init__.py": ""},
			"guides/intro.md", ""},
		"uv": {memoryTree{"pyproject.toml": "[project]\nname = \"root\"\nversion = \"1\"\n\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n", "uv.lock": "version = 1\n[[package]]\nname = \"root\"\nversion = \"1\"\nsource = { editable = \".\" }\n[[package]]\nname = \"a\"\nversion = \"1\"\nsource = { editable = \"packages/a\" }\n",

			"src/root/__init__.py": "", "packages/a/pyproject.toml": "[project]\nname = \"a\"\nversion = \"1\"\n", "packages/a/src/a/__init__.py": ""},
			"packages/docs/guide.md", "python://., python://. [lock], python://packages/a"},
	} {
		t.Run(name, func(t *testing.T) {
			head := c.base.with(memoryTree{c.file: "# words\n"})
			if got := delta(t, c.base, head); got != strings.ReplaceAll(c.want, "python://", "") {
				t.Errorf("affected: %q, want %q", got, c.want)
			}
			graph := loadWith(t, Options{Closed: true}, head)
			for target := range graph.Targets() {
				files, closed := graph.Workspace(target.Name)
				if _, named := files[c.file]; closed && named != (c.want != "") {
					t.Errorf("%s: the workspace names %s: %v", target.Name, c.file, named)
				}
			}
		})
	}
}
