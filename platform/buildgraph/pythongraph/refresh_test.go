package pythongraph

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAnEditOfAProjectThatIsUsedByItsPathIsSeenWithAWarmCache although uv's cache goes by the time of its pyproject.toml.
func TestAnEditOfAProjectThatIsUsedByItsPathIsSeenWithAWarmCache(t *testing.T) {
	tools, env := tools(t)
	source := "libs/core/core/__init__.py"
	dir := memoryTree{
		"app/pyproject.toml":       "[project]\nname = \"app\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\ndependencies = [\"The_Core\"]\n\n[tool.uv.sources]\nThe_Core = { path = \"../libs/core\" }\n",
		"app/app/__init__.py":      "import core\n\nassert core.ANSWER == 42\n",
		"libs/core/pyproject.toml": "[project]\nname = \"The_Core\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\n\n[tool.setuptools]\npackages = [\"core\"]\n\n[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n",
		source:                     "ANSWER = 42\n",
	}.write(t)
	lockWith(t, tools, filepath.Join(dir, "app"), env, "uv", "lock")
	target, ok := load(t, readFolder(t, dir)).Target("python://app")
	if !ok || len(target.Commands) != 2 {
		t.Fatalf("the target is %+v", target)
	}
	for _, c := range []struct {
		text string
		want bool
	}{{"ANSWER = 42\n", true}, {"ANSWER = 43\n", false}} {
		if err := os.WriteFile(filepath.Join(dir, source), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "app", ".venv")); err != nil {
			t.Fatal(err)
		}
		load := target.Commands[1]
		if out, err := command(t.Context(), filepath.Join(dir, load.Dir), stepVariables(t, tools, env), load.Argv...); (err == nil) != c.want {
			t.Errorf("with %s%q: %v\n%s", c.text, load.Argv, err, out)
		}
	}
}
