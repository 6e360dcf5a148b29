package adopt_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pythonProject is a project with tests whose pyproject.toml ends so.
func pythonProject(more string) files {
	return files{
		"pyproject.toml":      "[project]\nname = \"shop\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\n" + more,
		"words/__init__.py":   "def one():\n    return 1\n",
		"tests/test_words.py": "import words\n\n\ndef test_one():\n    assert words.one() == 1\n",
	}
}

// toolsOn puts programs that do nothing first on PATH, and a python that ends with that code.
func toolsOn(t *testing.T, exit string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"uv": "#!/bin/sh\n", "poetry": "#!/bin/sh\n", "python": "#!/bin/sh\nexit " + exit + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	return folder
}

func TestTheExtraOrGroupThatBringsPytestIsInstalled(t *testing.T) {
	const extra = "[project.optional-dependencies]\ntests = [\"freezegun\", \"pytest\"]\n"
	const uvLock = "version = 1\n\n[[package]]\nname = \"shop\"\nversion = \"1.0\"\nsource = { editable = \".\" }\n"
	tools := toolsOn(t, "1")
	for name, c := range map[string]struct {
		more, lockFile, lock, want string
		// missing is a part of what is said to lack.
		missing string
	}{
		"uv, an extra":      {extra, "uv.lock", uvLock, "uv run --frozen --extra tests python -m pytest", ""},
		"uv, a group":       {"[dependency-groups]\nci = [\"pytest\"]\n", "uv.lock", uvLock, "uv run --frozen --group ci python -m pytest", ""},
		"uv, the group dev": {"[dependency-groups]\ndev = [\"pytest\"]\n", "uv.lock", uvLock, "uv run --frozen python -m pytest", ""},
		"uv, locked alone":  {"", "uv.lock", uvLock + "\n[[package]]\nname = \"pytest\"\nversion = \"8.0.0\"\n", "uv run --frozen --all-packages --all-extras --all-groups python -m pytest", ""},
		"uv, nowhere":       {"", "uv.lock", uvLock, "uv run --frozen python -m pytest", "uv add --dev pytest"},
		"Poetry, an extra":  {extra, "poetry.lock", "# poetry\n", "poetry install --no-interaction --quiet --extras tests && poetry run python -m pytest", ""},
		"Poetry, nowhere":   {"", "poetry.lock", "# poetry\n", "poetry install --no-interaction --quiet && poetry run python -m pytest", "poetry add --group dev pytest"},
		"plain, an extra":   {extra, "", "", "python -m pytest", filepath.Join(tools, "python") + " -m pip install -e '.[tests]'"},
		"plain, nowhere":    {"", "", "", "python -m pytest", filepath.Join(tools, "python") + " -m pip install pytest"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			all := pythonProject(c.more)
			if c.lockFile != "" {
				all[c.lockFile] = c.lock
			}
			r.commit("one", all)
			r.push()
			out, err := r.init("--json", "--queue", "shop")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			steps := r.configured().Queues["shop"].Analysis.WholeRepositorySteps
			if len(steps) != 1 || steps[0].Run[2] != c.want {
				t.Errorf("the steps are %+v, want %s", steps, c.want)
			}
			lacks := decode[result](t, out).Lacks
			i := slices.IndexFunc(lacks, func(l lack) bool { return l.Code == "pytest_missing" })
			if (i >= 0) != (c.missing != "") || i >= 0 && !strings.Contains(lacks[i].Advice, c.missing) {
				t.Errorf("it lacks %+v, want %q", lacks, c.missing)
			}
			checked, _ := r.init("--check", "--json")
			if strings.Contains(checked, `"pytest_missing"`) != (c.missing != "") {
				t.Errorf("init --check says\n%s", checked)
			}
			if got := r.configured().Queues["shop"].Steps.Environment.Variables["UV_LINK_MODE"]; (got == "copy") != (c.lockFile == "uv.lock") {
				t.Errorf("UV_LINK_MODE is %q", got)
			}
		})
	}
}

func TestAPythonThatHasPytestLacksNothing(t *testing.T) {
	toolsOn(t, "0")
	r := newRepository(t)
	r.commit("one", pythonProject(""))
	r.push()
	if out, err := r.init("--json"); err != nil || strings.Contains(out, "pytest_missing") {
		t.Errorf("%v\n%s", err, out)
	}
}
