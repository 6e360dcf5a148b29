package pythongraph

import (
	"cmp"
	"strings"
	"time"

	"landfall.build/engine/targets"
)

// Commands are the templates of what verifies the targets of each kind.
type Commands struct {
	// UV is for projects that a uv.lock holds, Poetry for those with a poetry.lock or [tool.poetry], Plain for all others.
	UV, Poetry, Plain Steps
	// Lock verifies a uv.lock, in its folder.
	Lock []Template
}

// Steps are the templates for one kind of project.
type Steps struct {
	Package, Test []Template
	// Collect verifies that tests can be collected together, where pytest may refuse that.
	Collect []Template
	// Whole verifies all tests of a project at once, where they are not those of modules alone.
	Whole []Template
}

// Template is a command for each target. In an argument
//
//	{project}  is the project's folder, relative to the repository's root, "." for the root;
//	{folder}   is the target's folder, relative to the project's;
//	{name}     is the project's name;
//	{roots}    is where modules of the project, and of those that it uses, are found: relative to the project's folder, with
//	           colons between them;
//	{pytest}   is the option, with a space before it, that has uv run or poetry install bring pytest; empty if none is needed;
//	{refresh}  is the options, with a space before each, that have uv build the projects anew which the project uses: its cache
//	           goes by the times of their pyproject.toml;
//	{coverage} is the option, with a space before it, that has pytest measure no coverage where its settings do (--cov): of some of
//	           the tests it says nothing, and to report it all code is read.
//
// An argument {refresh} becomes these options. An argument {tests} becomes the files of test modules, or options to run or collect all tests without those of other projects, an argument {sources} the project's top-level packages and modules and its setup.py, an argument {modules} their names as far as
// they can be imported without harm. A command with one of them is left out where there is none.
type Template struct {
	Name string
	Argv []string
	// Dir is the working directory, relative to the repository's root; empty for the project's folder.
	Dir     string
	Timeout time.Duration
}

// importAll imports the modules that its arguments name.
const importAll = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"

// OrNoTests is behind pytest in a line of the shell: it ends with 5 where there is no test after all, and that is no failure.
// What was tested is recorded of each step.
const OrNoTests = " || test $? -eq 5"

// runPytest runs the tests of the folder $0. Those of folders below are targets of their own.
const runPytest = `python -m pytest{coverage} "$0" --ignore-glob="$0/*/*"` + OrNoTests

// runWhole runs all tests of a project.
const runWhole = `python -m pytest{coverage} "$@"` + OrNoTests

// collectPytest imports test modules as one run of all does.
const collectPytest = `python -m pytest{coverage} --collect-only -q "$@"` + OrNoTests

// poetryInstall makes the environment of a Poetry project from its lock file. Each step has a HOME of its own.
const poetryInstall = "poetry install --no-interaction && "

// poetryInstallTests also installs what brings pytest.
const poetryInstallTests = "poetry install --no-interaction{pytest} && "

// DefaultCommands are the commands of kinds for which the options have none.
//
// Each step of uv and of Poetry makes its environment from the lock file. A project without either is verified by the Python
// on the PATH, which must have what the project needs: nothing pins it.
func DefaultCommands() Commands {
	steps := func(compile, load, test, collect, whole []string) Steps {
		return Steps{
			Package: []Template{{Name: "compile", Argv: compile}, {Name: "import", Argv: load}},
			Test:    []Template{{Name: "test", Argv: test}},
			Collect: []Template{{Name: "collect", Argv: collect}},
			Whole:   []Template{{Name: "test", Argv: whole}},
		}
	}
	return Commands{
		UV: steps(
			[]string{"uv", "run", "--frozen", "{refresh}", "python", "-m", "compileall", "-q", "{sources}"},
			[]string{"uv", "run", "--frozen", "{refresh}", "python", "-c", importAll, "{modules}"},
			[]string{"sh", "-c", "uv run --frozen{refresh}{pytest} " + runPytest, "{folder}"},
			[]string{"sh", "-c", "uv run --frozen{refresh}{pytest} " + collectPytest, "sh", "{tests}"},
			[]string{"sh", "-c", "uv run --frozen{refresh}{pytest} " + runWhole, "sh", "{tests}"},
		),
		Poetry: steps(
			[]string{"sh", "-c", poetryInstall + `poetry run python -m compileall -q "$@"`, "sh", "{sources}"},
			[]string{"sh", "-c", poetryInstall + `poetry run python -c "$0" "$@"`, importAll, "{modules}"},
			[]string{"sh", "-c", poetryInstallTests + "{ poetry run " + runPytest + "; }", "{folder}"},
			[]string{"sh", "-c", poetryInstallTests + "{ poetry run " + collectPytest + "; }", "sh", "{tests}"},
			[]string{"sh", "-c", poetryInstallTests + "{ poetry run " + runWhole + "; }", "sh", "{tests}"},
		),
		Plain: steps(
			[]string{"env", "PYTHONPATH={roots}", "python", "-m", "compileall", "-q", "{sources}"},
			[]string{"env", "PYTHONPATH={roots}", "python", "-c", importAll, "{modules}"},
			[]string{"env", "PYTHONPATH={roots}", "sh", "-c", runPytest, "{folder}"},
			[]string{"env", "PYTHONPATH={roots}", "sh", "-c", collectPytest, "sh", "{tests}"},
			[]string{"env", "PYTHONPATH={roots}", "sh", "-c", runWhole, "sh", "{tests}"},
		),
		Lock: []Template{{Name: "lock", Argv: []string{"uv", "lock", "--check"}}},
	}
}

// site is where a template is applied.
type site struct {
	project, folder, name, pytest, coverage string
	// refresh are the names of the projects that it uses, and of its own if it is built.
	roots, sources, importable, refresh, tests []string
}

// refreshed returns the options of {refresh}.
func (s site) refreshed() []string {
	var options []string
	for _, name := range s.refresh {
		options = append(options, "--refresh-package="+name)
	}
	return options
}

// expand returns the commands of a target.
func expand(templates []Template, s site) []targets.Command {
	fields := strings.NewReplacer("{project}", cmp.Or(s.project, "."), "{folder}", s.folder, "{name}", s.name, "{roots}", strings.Join(s.roots, ":"), "{pytest}", s.pytest, "{coverage}", s.coverage, "{refresh}", strings.Join(append([]string{""}, s.refreshed()...), " "))
	var commands []targets.Command
	for _, t := range templates {
		c := targets.Command{Name: t.Name, Dir: s.project, Timeout: t.Timeout}
		if t.Dir != "" {
			if c.Dir = fields.Replace(t.Dir); c.Dir == "." {
				c.Dir = ""
			}
		}
		empty := false
		for _, arg := range t.Argv {
			switch arg {
			case "{refresh}":
				c.Argv = append(c.Argv, s.refreshed()...)
			case "{tests}":
				c.Argv = append(c.Argv, s.tests...)
			case "{sources}":
				c.Argv = append(c.Argv, s.sources...)
				empty = empty || len(s.sources) == 0
			case "{modules}":
				c.Argv = append(c.Argv, s.importable...)
				empty = empty || len(s.importable) == 0
			default:
				c.Argv = append(c.Argv, fields.Replace(arg))
			}
		}
		if !empty {
			commands = append(commands, c)
		}
	}
	return commands
}
