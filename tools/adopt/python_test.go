package adopt_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
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
	const orNone = " || test $? -eq 5"
	const uvRun = `refresh=$(sed -e '/^name = /h' -e '/^source = /!d' -e '\,://,d' -e g -e 's/name = "/--refresh-package=/' -e 's/"$//' uv.lock) && { uv run --frozen $refresh `
	tools := toolsOn(t, "1")
	for name, c := range map[string]struct {
		more, lockFile, lock, want string
		// missing is a part of what is said to lack.
		missing string
	}{
		"uv, an extra":      {extra, "uv.lock", uvLock, uvRun + "--extra tests python -m pytest" + orNone + "; }", ""},
		"uv, a group":       {"[dependency-groups]\nci = [\"pytest\"]\n", "uv.lock", uvLock, uvRun + "--group ci python -m pytest" + orNone + "; }", ""},
		"uv, the group dev": {"[dependency-groups]\ndev = [\"pytest\"]\n", "uv.lock", uvLock, uvRun + "python -m pytest" + orNone + "; }", ""},
		"uv, locked alone":  {"", "uv.lock", uvLock + "\n[[package]]\nname = \"pytest\"\nversion = \"8.0.0\"\n", uvRun + "--all-packages --all-extras --all-groups python -m pytest" + orNone + "; }", ""},
		"uv, a workspace":   {"[dependency-groups]\ndev = [\"pytest\"]\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n", "uv.lock", uvLock, uvRun + "--all-packages python -m pytest" + orNone + "; }", ""},
		"uv, nowhere":       {"", "uv.lock", uvLock, uvRun + "python -m pytest" + orNone + "; }", "uv add --dev pytest"},
		"Poetry, an extra":  {extra, "poetry.lock", "# poetry\n", "poetry install --no-interaction --extras tests && { poetry run python -m pytest" + orNone + "; }", ""},
		"Poetry, nowhere":   {"", "poetry.lock", "# poetry\n", "poetry install --no-interaction && { poetry run python -m pytest" + orNone + "; }", "poetry add --group dev pytest"},
		"Poetry, unlocked":  {"[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n", "", "", "poetry install --no-interaction && { poetry run python -m pytest" + orNone + "; }", ""},
		"plain, an extra":   {extra, "", "", "python -m pytest" + orNone, filepath.Join(tools, "python") + " -m pip install -e '.[tests]'"},
		"plain, a file":     {"", "requirements-dev.txt", "-r requirements.txt\npytest-cov==6.0.0\n", "python -m pytest" + orNone, filepath.Join(tools, "python") + " -m pip install -r requirements-dev.txt"},
		"plain, a folder":   {"", "requirements/tests.txt", "pytest==8.0.0\n", "python -m pytest" + orNone, filepath.Join(tools, "python") + " -m pip install -r requirements/tests.txt"},
		"plain, nowhere":    {"", "", "", "python -m pytest" + orNone, filepath.Join(tools, "python") + " -m pip install pytest"},
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
			if strings.HasPrefix(name, "Poetry") != strings.Contains(out, `"poetry"`) {
				t.Errorf("the tools are said in\n%s", out)
			}
			if got := r.configured().Queues["shop"].Steps.Environment.Variables["UV_LINK_MODE"]; (got == "copy") != (c.lockFile == "uv.lock") {
				t.Errorf("UV_LINK_MODE is %q", got)
			}
		})
	}
}

// TestWhatPipHasToInstallIsInRequirementsFiles: those of tests rather than others, and what the project needs itself.
func TestWhatPipHasToInstallIsInRequirementsFiles(t *testing.T) {
	tools := toolsOn(t, "1")
	r := newRepository(t)
	all := pythonProject("")
	maps.Copy(all, files{"requirements.txt": "six\n", "requirements-docs.txt": "sphinx\n", "requirements-all.txt": "pytest\n", "requirements-dev.txt": "black\npytest>=8\n", "app/requirements-test.txt": "pytest\n"})
	r.commit("one", all)
	r.push()
	const install = "-r requirements.txt -r requirements-dev.txt"
	out, err := r.init("--json", "--queue", "shop")
	if want := filepath.Join(tools, "python") + " -m pip install " + install + ","; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %s in\n%s", err, want, out)
	}
	// Where no adapter reads the project, the manifest that is written for it installs them.
	r.become("two", maps.Collect(maps.All(below("site", all))))
	r.commit("three", files{"go.mod": "module example.com/shop\n", "shop.go": "package shop\n"})
	r.push()
	if out, err := r.init("--force", "--json", "--queue", "shop", "--adapter", "go"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := r.read("site/landfall.yaml"); !strings.Contains(text, "pip install --quiet "+install+" && { .venv/bin/python -m pytest") {
		t.Errorf("the manifest is\n%s", text)
	}
}

// TestWhatNoStepInstallsIsSaid: a change of requirements.txt lands although pip could not install it.
func TestWhatNoStepInstallsIsSaid(t *testing.T) {
	toolsOn(t, "0")
	for name, c := range map[string]struct {
		more files
		want string // the file that is named
	}{
		"no list":      {nil, ""},
		"requirements": {files{"requirements.txt": "six\n"}, "requirements.txt"},
		"setup.py":     {files{"setup.py": "from setuptools import setup\nsetup(install_requires=['six'])\n"}, "setup.py"},
		"a lock file":  {files{"requirements.txt": "six\n", "uv.lock": "version = 1\n"}, ""},
		"a target":     {files{"requirements.txt": "six\n", "landfall.yaml": "targets:\n  - {name: a, sources: [requirements.txt], steps: [{name: test, run: [sh, -c, python -m pip install -r requirements.txt]}]}\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			all := pythonProject("")
			maps.Copy(all, c.more)
			r.commit("one", all)
			r.push()
			for _, args := range [][]string{{"--yes"}, {"--check"}} {
				out, _ := r.init(args...)
				if said := strings.Contains(out, "No step installs what "+c.want+" names"); said != (c.want != "") || strings.Contains(out, "No step installs") != said {
					t.Errorf("init %s says\n%s", args, out)
				}
			}
		})
	}
}

// TestAMemberWithoutPytestIsNamed: a member of a uv workspace takes pytest from its own pyproject.toml or from a dependency group of
// the workspace's; an extra of the workspace's own project does not reach it.
func TestAMemberWithoutPytestIsNamed(t *testing.T) {
	toolsOn(t, "1")
	const group, extra = "[dependency-groups]\ndev = [\"pytest\"]\n", "[project.optional-dependencies]\ntests = [\"pytest\"]\n"
	for name, c := range map[string]struct {
		root, member string
		lacks        bool
	}{
		"a group of the root":  {group, "", false},
		"an extra of the root": {extra, "", true},
		"one of its own":       {extra, group, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			all := pythonProject(c.root + "[tool.uv.workspace]\nmembers = [\"libs/*\"]\n")
			all["uv.lock"] = "version = 1\n\n[[package]]\nname = \"core\"\nversion = \"1.0\"\nsource = { virtual = \"libs/core\" }\n\n[[package]]\nname = \"shop\"\nversion = \"1.0\"\nsource = { editable = \".\" }\n\n" +
				"[[package]]\nname = \"pytest\"\nversion = \"8.0.0\"\n"
			all["libs/core/pyproject.toml"] = "[project]\nname = \"core\"\nversion = \"1.0\"\n" + c.member
			all["libs/core/test_core.py"] = "def test_one():\n    pass\n"
			all["libs/quiet/pyproject.toml"] = "[project]\nname = \"quiet\"\nversion = \"1.0\"\n"
			r.commit("one", all)
			r.push()
			out, err := r.init("--json", "--queue", "shop")
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checked, _ := r.init("--check", "--json")
			for _, said := range []string{out, checked} {
				if strings.Contains(said, `"pytest_missing"`) != c.lacks || strings.Contains(said, "uv add --dev pytest --package core") != c.lacks {
					t.Errorf("it says\n%s", said)
				}
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

// TestAnEditOfAProjectThatIsUsedByItsPathIsSeenByStepsOfInit although uv's cache goes by the time of its pyproject.toml.
func TestAnEditOfAProjectThatIsUsedByItsPathIsSeenByStepsOfInit(t *testing.T) {
	needUV(t)
	const source = "libs/core/core/__init__.py"
	project := files{
		".gitignore":               ".venv\n",
		"go.mod":                   "module example.com/shop\n\ngo 1.21\n",
		"shop.go":                  "package shop\n",
		"app/pyproject.toml":       "[project]\nname = \"app\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\ndependencies = []\n\n[project.optional-dependencies]\ntests = [\"pytest\", \"The_Core\"]\n\n[tool.uv.sources]\nThe_Core = { path = \"../libs/core\" }\n",
		"app/test_app.py":          "import core\n\n\ndef test_answer():\n    assert core.ANSWER == 42\n",
		"libs/core/pyproject.toml": "[project]\nname = \"The_Core\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\n\n[tool.setuptools]\npackages = [\"core\"]\n\n[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n",
		source:                     "ANSWER = 42\n",
	}
	locked := t.TempDir()
	put(t, locked, project)
	fetch(t, filepath.Join(locked, "app"), "uv", "lock", "--quiet")
	project["app/uv.lock"] = filesBelow(t, locked)["app/uv.lock"]
	for _, adapter := range []string{"python", "go"} {
		t.Run("the adapter "+adapter, func(t *testing.T) {
			r := newRepository(t)
			r.commit("one", project)
			r.push()
			// Where no adapter reads the project, a manifest is written for it.
			if out, err := r.init("--queue", "shop", "--adapter", adapter); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			steps := r.configured().Queues["shop"].Analysis.WholeRepositorySteps
			i := slices.IndexFunc(steps, func(s configuration.Step) bool { return s.Dir == "app" })
			if i < 0 {
				t.Fatalf("no step tests app:\n%s", r.read("landfall.config.yaml"))
			}
			argv := steps[i].Run
			cache := t.TempDir()
			for _, c := range []struct {
				text string
				want bool
			}{{"ANSWER = 42\n", true}, {"ANSWER = 43\n", false}} {
				put(t, r.clone, files{source: c.text})
				if err := os.RemoveAll(filepath.Join(r.clone, "app", ".venv")); err != nil {
					t.Fatal(err)
				}
				step := exec.Command(argv[0], argv[1:]...)
				step.Dir, step.Env = filepath.Join(r.clone, "app"), append(os.Environ(), "UV_CACHE_DIR="+cache, "UV_LINK_MODE=copy", "PYTHONDONTWRITEBYTECODE=1")
				out, err := step.CombinedOutput()
				if (err == nil) != c.want || !c.want && !strings.Contains(string(out), "assert 43 == 42") {
					t.Errorf("with %s%q: %v\n%s", c.text, argv, err, out)
				}
			}
		})
	}
}

// TestTheWholeOfAWorkspaceIsBuiltBeforeItIsTested: members import what others build.
func TestTheWholeOfAWorkspaceIsBuiltBeforeItIsTested(t *testing.T) {
	const members = `"workspaces": ["packages/*"]`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"npm": {map[string]string{"package.json": `{"name": "top", ` + members + `}`, "package-lock.json": `{"lockfileVersion": 3, "packages": {}}`},
			"npm ci --no-audit --no-fund && npm run build --workspaces --if-present && npm run test --workspaces --include-workspace-root --if-present"},
		"npm, a script of the root": {map[string]string{"package.json": `{"name": "top", ` + members + `, "scripts": {"build": "tsc -b"}}`, "package-lock.json": `{"lockfileVersion": 3, "packages": {}}`},
			"npm ci --no-audit --no-fund && npm run build && npm run test --workspaces --include-workspace-root --if-present"},
		"pnpm": {map[string]string{"package.json": `{"name": "top"}`, "pnpm-workspace.yaml": "packages: [packages/*]\n", "pnpm-lock.yaml": "lockfileVersion: '9.0'\n"},
			"pnpm install --frozen-lockfile && pnpm -r --if-present run build && pnpm -r run test"},
	} {
		r := newRepository(t)
		c.files["packages/a/package.json"] = `{"name": "a", "scripts": {"build": "true", "test": "true"}}`
		r.commit("one", c.files)
		r.push()
		out, err := r.init("--json", "--queue", "shop")
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		steps := r.configured().Queues["shop"].Analysis.WholeRepositorySteps
		if len(steps) != 1 || steps[0].Run[len(steps[0].Run)-1] != c.want {
			t.Errorf("%s: the steps are %+v, want %s", name, steps, c.want)
		}
	}
}
