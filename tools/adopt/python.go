package adopt

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/pythongraph"
	"landfall.build/platform/configuration"
)

// pytestOf returns what the pyproject.toml of a folder says of pytest, and what pip installs it with: a requirements file, if the
// project has none in its extras and groups.
func (r reader) pytestOf(folder string) pythongraph.PytestSource {
	source := pythongraph.FindPytest([]byte(r.read(r.ctx, path.Join(folder, "pyproject.toml"))))
	if source.Pip == "" {
		source.Pip = r.pytestFiles(folder)
	}
	return source
}

// pytestFiles returns the arguments with which pip installs the requirements files of a folder that have pytest, with what its
// requirements.txt has; "" if no file has it.
func (r reader) pytestFiles(folder string) string {
	const runtime = "requirements.txt"
	var found []string
	for file := range r.files {
		if dir := path.Dir(file); (dir == path.Clean(folder) || dir == path.Join(folder, "requirements")) && pythongraph.RequiresPytest(file, []byte(r.read(r.ctx, file))) {
			found = append(found, strings.TrimPrefix(file, path.Clean(folder)+"/"))
		}
	}
	if len(found) == 0 {
		return ""
	}
	best := slices.MinFunc(found, func(a, b string) int {
		rank := func(file string) int {
			return slices.IndexFunc([]string{"test", "dev", ""}, func(part string) bool { return strings.Contains(file, part) })
		}
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	})
	if best != runtime && r.has(folder, runtime) {
		return "-r " + runtime + " -r " + shellQuoted(best)
	}
	return "-r " + shellQuoted(best)
}

// usesPoetry reports whether the steps of a folder's project run poetry, as the adapter has it: by a lock file, or without any.
func (r reader) usesPoetry(folder string) bool {
	if r.has(folder, "poetry.lock") {
		return true
	}
	locked := r.has(folder, "uv.lock") || r.has(folder, "pylock.toml")
	return !locked && pythongraph.UsesPoetry([]byte(r.read(r.ctx, path.Join(folder, "pyproject.toml"))))
}

// andTest returns the line of the shell that tests after a first one, which may be empty. As in the steps of the adapter's targets it is
// no failure that there is no test.
func andTest(first, test string) string {
	if test += pythongraph.OrNoTests; first == "" {
		return test
	}
	return first + " && { " + test + "; }"
}

// wholePython tests a project in the environment that its lock file describes, else in that of the steps' PATH.
func wholePython(r reader, folder string) string {
	source := r.pytestOf(folder)
	switch {
	case r.has(folder, "uv.lock"):
		return uvRun("--frozen", r.uvOptions(folder, source))
	case r.usesPoetry(folder):
		return andTest(words("poetry install --no-interaction", source.Poetry), "poetry run python -m pytest")
	}
	return andTest("", "python -m pytest")
}

// uvRun returns the line that runs the tests in the environment of the lock file. uv's cache of a project that is used by its
// path goes by the time of its pyproject.toml, so the line has each project of the repository that the lock file names built
// anew: all whose source is no URL. They are read when the step runs, since a change may add one.
func uvRun(lock, options string) string {
	const local = `sed -e '/^name = /h' -e '/^source = /!d' -e '\,://,d' -e g -e 's/name = "/--refresh-package=/' -e 's/"$//' uv.lock`
	return andTest("refresh=$("+local+")", "uv run "+lock+" $refresh "+options+"python -m pytest")
}

// uvOptions returns the options that have uv run bring pytest, with a space behind them. Where the project names it nowhere and
// the lock file has it, all that can be installed is.
func (r reader) uvOptions(folder string, source pythongraph.PytestSource) string {
	workspace := "" // whose members the root need not depend on
	if strings.Contains(r.read(r.ctx, path.Join(folder, "pyproject.toml")), "[tool.uv.workspace]") {
		workspace = "--all-packages "
	}
	switch {
	case source.UV != "":
		return workspace + source.UV + " "
	case !source.Declared && strings.Contains(r.read(r.ctx, path.Join(folder, "uv.lock")), "\nname = \"pytest\"\n"):
		return "--all-packages --all-extras --all-groups "
	}
	return workspace
}

// pythonCommand tests a project in an environment of its own.
func pythonCommand(r reader, folder, _ string) string {
	source := r.pytestOf(folder)
	const inVenv = "python3 -m venv .venv && .venv/bin/pip install --quiet "
	switch {
	case r.has(folder, "uv.lock"):
		return uvRun("--locked", r.uvOptions(folder, source))
	case r.usesPoetry(folder):
		return andTest(words("poetry install --no-interaction", source.Poetry), "poetry run python -m pytest")
	case source.Pip != "":
		return andTest(inVenv+source.Pip, ".venv/bin/python -m pytest")
	case r.has(folder, "requirements.txt"):
		return andTest(inVenv+"-r requirements.txt", ".venv/bin/python -m unittest")
	}
	return andTest("", "python3 -m unittest")
}

// words joins the words that there are.
func words(all ...string) string { return strings.TrimSpace(strings.Join(all, " ")) }

// pytestLacks returns which projects of the adapter python have tests and no pytest to run them.
func pytestLacks(r reader, parts []part, queue configuration.Queue) (lacks []lack) {
	for _, use := range queue.Analysis.Uses() {
		if use.Adapter == configuration.AdapterPython && slices.ContainsFunc(use.Steps, func(s configuration.AdapterStep) bool { return s.Kind == "test" }) {
			return nil // who wrote steps knows what they need
		}
	}
	for _, p := range parts {
		if p.Adapter != configuration.AdapterPython || !hasAdapter(queue.Analysis.Uses(), p.Adapter) || !r.hasTests(p.Folder) {
			continue
		}
		source := r.pytestOf(p.Folder)
		add := func(message, advice string) { lacks = append(lacks, lack{"pytest_missing", message, advice}) }
		undeclared := "The tests of " + inWords(p.Folder) + " need pytest, which its pyproject.toml names nowhere."
		switch {
		case r.has(p.Folder, "uv.lock"):
			if !source.Declared && r.uvOptions(p.Folder, source) == "" {
				add(undeclared, "Land a change that adds it: uv add --dev pytest")
				continue
			}
			if pythongraph.FindPytestGroup([]byte(r.read(r.ctx, path.Join(p.Folder, "pyproject.toml")))) != "" {
				continue // members take it from there
			}
			members := pythongraph.LockedProjects([]byte(r.read(r.ctx, path.Join(p.Folder, "uv.lock"))))
			for _, folder := range slices.Sorted(maps.Keys(members)) {
				if at := path.Join(p.Folder, folder); folder != "." && r.hasTests(at) && !r.pytestOf(at).Declared {
					add("The tests of "+inWords(at)+" need pytest, which neither its pyproject.toml nor a dependency group of the workspace names.",
						"Land a change that adds it: uv add --dev pytest --package "+members[folder])
				}
			}
		case r.usesPoetry(p.Folder):
			if !source.Declared {
				add(undeclared, "Land a change that adds it: poetry add --group dev pytest")
			}
		default:
			python := lookFor("python", strings.Split(queue.Steps.Environment.Path, ":"))
			if python != "" && !importsPytest(r.ctx, python) {
				install := source.Pip
				if install == "" {
					install = "pytest"
				}
				add("The tests of "+inWords(p.Folder)+" need pytest, which "+python+" does not have.",
					"No lock file says what to install, so the Python of the steps' PATH must have it: "+python+" -m pip install "+install+", or name the folder of another Python in steps.environment.path.")
			}
		}
	}
	return lacks
}

// uninstalled returns a note for each project whose packages no step installs, although it names some: those are not tried before a change
// of their list lands. lines are what steps run.
func uninstalled(r reader, parts []part, uses []configuration.AdapterUse, lines []string) (notes []string) {
	installs := func(line string) bool { return strings.Contains(line, "pip install") }
	if !hasAdapter(uses, configuration.AdapterPython) && !hasAdapter(uses, configuration.AdapterAuto) || slices.ContainsFunc(lines, installs) {
		return nil
	}
	for _, p := range parts {
		if p.Adapter != configuration.AdapterPython || r.has(p.Folder, "uv.lock") || r.usesPoetry(p.Folder) {
			continue
		}
		for _, list := range []struct{ file, word string }{{"requirements.txt", ""}, {"pyproject.toml", "dependencies"}, {"setup.cfg", "install_requires"}, {"setup.py", "install_requires"}} {
			if file := path.Join(p.Folder, list.file); r.files[file] && strings.Contains(r.read(r.ctx, file), list.word) {
				notes = append(notes, "No step installs what "+file+" names: without a lock file of uv or Poetry, steps have the packages of the Python on their PATH. "+
					"A change of it lands without being tried. A target of a landfall.yaml can try it: docs/guides/adopt.md, Python without a lock file.")
				break
			}
		}
	}
	return notes
}

// importsPytest reports whether a Python has pytest.
func importsPytest(ctx context.Context, python string) bool {
	return lines(ctx, python, "-c", "import pytest") != nil
}

// hasTests reports whether files in or below a folder are named as pytest's are.
func (r reader) hasTests(folder string) bool {
	for file := range r.files {
		name := path.Base(file)
		below := folder == "." || strings.HasPrefix(file, folder+"/")
		if below && (strings.HasPrefix(name, "test_") && path.Ext(name) == ".py" || strings.HasSuffix(name, "_test.py")) {
			return true
		}
	}
	return false
}
