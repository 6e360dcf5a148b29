package pythongraph

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatBringsPytestIsFound(t *testing.T) {
	const project = "[project]\nname = \"shop\"\nversion = \"1\"\n"
	const poetry = "[tool.poetry]\nname = \"shop\"\n"
	for name, c := range map[string]struct {
		text string
		want PytestSource
	}{
		"nothing":                 {project, PytestSource{}},
		"an extra":                {project + "[project.optional-dependencies]\nsocks = [\"a\"]\ntests = [\"freezegun\", \"pytest>=8\"]\n", PytestSource{true, "--extra tests", "--extras tests", "-e '.[tests]'"}},
		"a plugin in an extra":    {project + "[project.optional-dependencies]\ncheck = [\"pytest_cov\"]\n", PytestSource{true, "--extra check", "--extras check", "-e '.[check]'"}},
		"the extra for tests":     {project + "[project.optional-dependencies]\nall = [\"pytest\"]\ntest = [\"pytest\"]\n", PytestSource{true, "--extra test", "--extras test", "-e '.[test]'"}},
		"dependencies":            {project + "dependencies = [\"Pytest\"]\n[project.optional-dependencies]\ntests = [\"pytest\"]\n", PytestSource{Declared: true, Pip: "-e ."}},
		"the default group":       {project + "[dependency-groups]\ndev = [\"pytest\"]\n", PytestSource{Declared: true, Pip: "-e . --group dev"}},
		"uv's own":                {project + "[tool.uv]\ndev-dependencies = [\"pytest\"]\n", PytestSource{Declared: true}},
		"another group":           {project + "[dependency-groups]\nci = [\"pytest\"]\n", PytestSource{true, "--group ci", "", "-e . --group ci"}},
		"a default group":         {project + "[dependency-groups]\nci = [\"pytest\"]\n[tool.uv]\ndefault-groups = [\"ci\"]\n", PytestSource{Declared: true, Pip: "-e . --group ci"}},
		"all groups":              {project + "[dependency-groups]\nci = [\"pytest\"]\n[tool.uv]\ndefault-groups = \"all\"\n", PytestSource{Declared: true, Pip: "-e . --group ci"}},
		"no default group":        {project + "[dependency-groups]\ndev = [\"pytest\"]\n[tool.uv]\ndefault-groups = []\n", PytestSource{true, "--group dev", "", "-e . --group dev"}},
		"an included group":       {project + "[dependency-groups]\ntest = [\"pytest\"]\ndev = [{include-group = \"test\"}]\n", PytestSource{Declared: true, Pip: "-e . --group test"}},
		"groups without end":      {project + "[dependency-groups]\na = [{include-group = \"b\"}]\nb = [{include-group = \"a\"}]\n", PytestSource{}},
		"a name for the shell":    {project + "[project.optional-dependencies]\n\"a; b\" = [\"pytest\"]\n", PytestSource{}},
		"Poetry's dependencies":   {poetry + "[tool.poetry.dependencies]\npytest = \"^8\"\n", PytestSource{Declared: true}},
		"Poetry's old group":      {poetry + "[tool.poetry.dev-dependencies]\npytest = \"^8\"\n", PytestSource{Declared: true}},
		"Poetry's group":          {poetry + "[tool.poetry.group.ci.dependencies]\npytest = \"^8\"\n", PytestSource{Declared: true}},
		"Poetry's optional group": {poetry + "[tool.poetry.group.ci]\noptional = true\n[tool.poetry.group.ci.dependencies]\npytest = \"^8\"\n", PytestSource{true, "", "--with ci", ""}},
		"Poetry's extra":          {poetry + "[tool.poetry.dependencies]\npytest = {version = \"^8\", optional = true}\n[tool.poetry.extras]\nwork = [\"pytest\"]\n", PytestSource{true, "", "--extras work", ""}},
	} {
		if got := FindPytest([]byte(c.text)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestStepsInstallWhatBringsPytest: the default commands of each kind of project.
func TestStepsInstallWhatBringsPytest(t *testing.T) {
	const extra = "\n[project.optional-dependencies]\ntests = [\"pytest\"]\n"
	const project = "[project]\nname = \"shop\"\nversion = \"1\"\n"
	lock := "version = 1\n[[package]]\nname = \"shop\"\nversion = \"1\"\nsource = { editable = \".\" }\n"
	for name, c := range map[string]struct {
		tree memoryTree
		want string
	}{
		"uv":          {memoryTree{"pyproject.toml": project + extra, "uv.lock": lock}, "uv run --frozen --extra tests python -m pytest"},
		"uv, a group": {memoryTree{"pyproject.toml": project + "[dependency-groups]\ndev = [\"pytest\"]\n", "uv.lock": lock}, "uv run --frozen python -m pytest"},
		"Poetry":      {memoryTree{"pyproject.toml": project + extra, "poetry.lock": "[[package]]\nname = \"pytest\"\nversion = \"8\"\n"}, "poetry install --no-interaction --extras tests && "},
	} {
		c.tree["tests/test_a.py"] = "def test_a():\n    pass\n"
		commands := ""
		for target := range load(t, c.tree).Targets() {
			if strings.HasSuffix(target.Name, " [test]") {
				commands = strings.Join(slices.Concat(target.Commands[0].Argv), " ")
			}
		}
		if !strings.Contains(commands, c.want) {
			t.Errorf("%s: %q, want %q in it", name, commands, c.want)
		}
	}
}

// TestPoetrySaysWhyItInstallsNothing: with --quiet it says nothing at all, so an author who left out the lock file would read nothing.
func TestPoetrySaysWhyItInstallsNothing(t *testing.T) {
	dir := t.TempDir()
	poetry := "#!/bin/sh\ncase \"$*\" in *quiet*) ;; *) echo 'pyproject.toml changed significantly since poetry.lock was last generated.' >&2;; esac\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "poetry"), []byte(poetry), 0o755); err != nil {
		t.Fatal(err)
	}
	graph := load(t, memoryTree{"pyproject.toml": "[tool.poetry]\nname = \"shop\"\n", "poetry.lock": "", "shop/__init__.py": "", "tests/test_a.py": "def test_a():\n    pass\n"})
	for target := range graph.Targets() {
		command := target.Commands[0]
		cmd := exec.CommandContext(t.Context(), command.Argv[0], command.Argv[1:]...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		if output, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(output), "changed significantly") {
			t.Errorf("%s: %v, %q", target.Name, err, output)
		}
	}
}
