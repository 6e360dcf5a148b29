package pythongraph

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pyproject is what a pyproject.toml means. It rests on the file's content alone.
type pyproject struct {
	line    int
	problem error
	normal  []byte

	isProject bool
	name      string
	// needs are what the project needs where it is used, extras among them; develops what only work on it needs.
	needs, develops []requirement
	// usesPoetry: it has a [tool.poetry].
	usesPoetry bool
	// native: how it is built is not known, or takes more than Python files.
	native bool
	// discovers: setuptools builds it, and looks for its packages itself.
	discovers bool
	// files are paths that it names, relative to its folder; names are dotted names of modules.
	files, names []string
	// licenses are folders in which patterns of license files look, relative to its folder, "" for that.
	licenses []string
	// plugins are modules of entry points, but for scripts.
	plugins []string

	// uv is [tool.uv] in normal form, nil if there is none.
	uv []byte
	// members and exclude are patterns of a uv workspace, nil if it is none.
	members, exclude []string
	pytest           pytestSettings
	bringsPytest     PytestSource
	// pytestGroup is the dependency group that has pytest, "" if none does.
	pytestGroup string
}

// pytestSettings are what a file says about pytest.
type pytestSettings struct {
	normal []byte // nil: nothing
	// folders are those of pythonpath, relative to the file's; files are patterns of the names of test files.
	folders, files []string
	// paths are those of testpaths, passedBy names of folders without tests.
	paths, passedBy []string
	// has: there is a section of pytest's; passes: it names folders without tests, or that there are none.
	has, passes bool
	// names are modules that the settings load.
	names   []string
	options pytestOptions
}

// pureBackends build from the Python files alone, unless the project adds something.
var pureBackends = []string{
	"", "setuptools.build_meta", "setuptools.build_meta:__legacy__", "hatchling.build", "flit_core.buildapi", "flit.buildapi",
	"poetry.core.masonry.api", "poetry.masonry.api", "pdm.backend", "pdm.pep517.api", "uv_build",
}

func parsePyproject(content []byte) *pyproject {
	p := &pyproject{}
	t, line, err := parseTable(content)
	if err != nil {
		p.line, p.problem = line, err
		return p
	}
	p.normal = normal(t)
	project, poetry, uv := t.table("project"), t.table("tool", "poetry"), t.table("tool", "uv")
	p.usesPoetry = poetry != nil
	p.isProject = project != nil || poetry != nil || t.table("build-system") != nil || uv.table("workspace") != nil || t.table("tool", "flit") != nil
	p.name = normalName(project.text("name"))
	if p.name == "" {
		p.name = normalName(poetry.text("name"))
	}
	p.readNeeds(t)
	p.readBuild(t)
	p.bringsPytest, p.pytestGroup = pytestIn(t), pytestGroupIn(t)
	for _, group := range []table{project.table("entry-points"), poetry.table("plugins"), t.table("tool", "flit", "entrypoints")} {
		eachText(group, func(s string) { p.plugins = append(p.plugins, moduleOfEntry(s)) })
	}
	p.plugins = unique(slices.DeleteFunc(p.plugins, func(s string) bool { return s == "" }))
	if uv != nil {
		p.uv = normal(uv)
		if workspace := uv.table("workspace"); workspace != nil {
			p.members, p.exclude = workspace.texts("members"), workspace.texts("exclude")
			if p.members == nil {
				p.members = []string{}
			}
		}
	}
	if settings := t.table("tool", "pytest"); settings != nil {
		options := settings
		if old := settings.table("ini_options"); old != nil {
			options = old
		}
		p.pytest = pytestSettings{normal: normal(settings), folders: words(options["pythonpath"]), files: words(options["python_files"]),
			paths: words(options["testpaths"]), passedBy: words(options["norecursedirs"]), has: true, passes: options["norecursedirs"] != nil}
		p.pytest.options.add(words(options["addopts"]))
		for _, key := range collectingKeys {
			p.pytest.options.collects = p.pytest.options.collects || options[key] != nil
		}
		eachText(options, func(s string) { p.pytest.loads(s) })
	}
	return p
}

// words returns the words of a text or of a list of texts.
func words(value any) []string {
	var all []string
	for _, s := range textsOf(value) {
		all = append(all, strings.Fields(s)...)
	}
	return all
}

// searches reports whether settings say something about where modules and tests are.
func (s *pytestSettings) searches() bool {
	o := &s.options
	return len(s.folders)+len(s.files)+len(s.paths)+len(s.options.named) > 0 || s.passes || o.doctests() || o.importlib || o.collects
}

// hold reports whether pytest goes by a file, and looks for no other: pytest.ini and the like are always its own.
func (s *pytestSettings) hold(file string) bool {
	return s.has || strings.HasPrefix(strings.TrimPrefix(nameOf(file), "."), "pytest.")
}

// loads notes what a setting of pytest loads: dotted names, and what follows -p.
func (s *pytestSettings) loads(value string) {
	plugin := false
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" \t\n\"'=,:", r) }) {
		rest, attached := strings.CutPrefix(word, "-p")
		switch {
		case isDotted(word) && (plugin || strings.Contains(word, ".")):
			s.names = append(s.names, word)
		case attached && isDotted(rest):
			s.names = append(s.names, rest)
		}
		plugin = word == "-p"
	}
}

// parsePytest reads the settings of pytest in a file of its own: an ini file, or TOML that reads like one.
func parsePytest(content []byte) *pytestSettings {
	s := &pytestSettings{}
	c := parseConfig(content)
	for _, section := range []string{"pytest", "tool:pytest"} {
		options := c[section]
		s.folders, s.files = append(s.folders, listed(options["pythonpath"])...), append(s.files, listed(options["python_files"])...)
		s.paths, s.passedBy = append(s.paths, listed(options["testpaths"])...), append(s.passedBy, listed(options["norecursedirs"])...)
		_, passes := options["norecursedirs"]
		s.has, s.passes = s.has || options != nil, s.passes || passes
		s.options.add(listed(options["addopts"]))
		for _, key := range collectingKeys {
			s.options.collects = s.options.collects || options[key] != ""
		}
		for _, value := range options {
			s.loads(value)
		}
	}
	s.folders, s.files, s.names, s.paths = unique(s.folders), unique(s.files), unique(s.names), unique(s.paths)
	return s
}

// listed returns the words of a list, however it is written.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"',[]", r) })
}

// moduleOfEntry returns the module of an entry point, "module:attribute [extra]".
func moduleOfEntry(value string) string {
	value, _, _ = strings.Cut(value, ":")
	value, _, _ = strings.Cut(value, "[")
	if value = strings.TrimSpace(value); isDotted(value) {
		return value
	}
	return ""
}

// readNeeds collects requirements from wherever the tools have them.
func (p *pyproject) readNeeds(t table) {
	add := func(to *[]requirement, value any) {
		eachText(value, func(s string) {
			s = strings.TrimSpace(strings.TrimPrefix(s, "-e "))
			if r := parseRequirement(s); r != (requirement{}) {
				*to = append(*to, r)
			}
		})
	}
	keyed := func(to *[]requirement, deps table) {
		for _, name := range deps.keys() {
			if name == "python" {
				continue
			}
			*to = append(*to, requirement{name: normalName(name)})
			for _, d := range tablesOf(deps[name]) {
				for _, key := range []string{"path", "file"} {
					if at := filePath(d.text(key)); at != "" {
						*to = append(*to, requirement{name: normalName(name), path: at})
					}
				}
			}
		}
	}
	project, tool := t.table("project"), t.table("tool")
	add(&p.needs, project["dependencies"])
	add(&p.needs, project["optional-dependencies"])
	add(&p.needs, t.table("build-system")["requires"])
	keyed(&p.needs, tool.table("poetry", "dependencies"))
	keyed(&p.develops, tool.table("poetry", "dev-dependencies"))
	for _, group := range tool.table("poetry", "group").keys() {
		keyed(&p.develops, tool.table("poetry", "group", group, "dependencies"))
	}
	keyed(&p.needs, tool.table("uv", "sources"))
	for _, group := range t.table("dependency-groups").keys() {
		// A table in it includes another group.
		add(&p.develops, stringsOnly(t.table("dependency-groups")[group]))
	}
	add(&p.develops, tool.table("uv")["dev-dependencies"])
	add(&p.develops, tool.table("pdm")["dev-dependencies"])
	for _, env := range tool.table("hatch", "envs").keys() {
		e := tool.table("hatch", "envs", env)
		add(&p.develops, e["dependencies"])
		add(&p.develops, e["extra-dependencies"])
	}
	for _, key := range []string{"requires", "dev-requires"} {
		add(&p.develops, tool.table("flit", "metadata")[key])
	}
	p.needs, p.develops = sortedNeeds(p.needs), sortedNeeds(p.develops)
}

func stringsOnly(value any) []any {
	var list []any
	for _, s := range textsOf(value) {
		list = append(list, s)
	}
	return list
}

func sortedNeeds(needs []requirement) []requirement {
	slices.SortFunc(needs, func(x, y requirement) int {
		if x.name != y.name {
			return strings.Compare(x.name, y.name)
		}
		return strings.Compare(x.path, y.path)
	})
	return slices.Compact(needs)
}

var pathLike = regexp.MustCompile(`^[\w.@+-]+(/[\w.@+-]+)*$`)

// readBuild notes what building the project takes besides its modules.
func (p *pyproject) readBuild(t table) {
	build := t.table("build-system")
	hooks := t.table("tool", "hatch", "build", "hooks")
	p.native = !slices.Contains(pureBackends, build.text("build-backend")) || build["backend-path"] != nil ||
		len(hooks) > 0 && !onlyKeys(hooks, "vcs", "version") || t.table("tool", "poetry")["build"] != nil ||
		t.table("tool", "setuptools")["ext-modules"] != nil || t.table("tool", "cython") != nil
	tool := t.table("tool", "setuptools")
	p.discovers = strings.HasPrefix(cmp.Or(build.text("build-backend"), "setuptools"), "setuptools") && len(build) > 0 && tool["packages"] == nil && tool["py-modules"] == nil
	for _, part := range []table{t.table("project"), t.table("tool", "setuptools"), t.table("tool", "hatch"), t.table("tool", "poetry"), t.table("tool", "pdm"), t.table("tool", "flit")} {
		eachText(part, func(s string) {
			if isDotted(s) && strings.Contains(s, ".") {
				p.names = append(p.names, s)
			}
			if s = strings.TrimPrefix(s, "./"); pathLike.MatchString(s) && strings.ContainsAny(s, "./") && path.Clean(s) == s {
				p.files = append(p.files, s)
			}
		})
	}
	for _, value := range []any{t.table("project")["license-files"], tool["license-files"]} {
		eachText(value, func(s string) {
			if at := strings.IndexAny(s, "*?[{"); at >= 0 && (strings.Contains(s[:at], "/") || !licenses.MatchString(s[:at])) {
				p.licenses = append(p.licenses, folderOf(s[:at]))
			} else if at < 0 {
				p.files = append(p.files, path.Clean(s))
			}
		})
	}
	p.files, p.names, p.licenses = unique(p.files), unique(p.names), unique(p.licenses)
}

func onlyKeys(t table, keys ...string) bool {
	for key := range t {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

// setup is what a setup.py or a setup.cfg says.
type setup struct {
	isProject bool
	name      string
	needs     []requirement
	plugins   []string
	native    bool
}

// parseSetupConfig reads a setup.cfg.
func parseSetupConfig(content []byte) *setup {
	c := parseConfig(content)
	s := &setup{isProject: c["metadata"] != nil || c["options"] != nil, name: normalName(c["metadata"]["name"])}
	list := func(text string) {
		for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' }) {
			if r := parseRequirement(line); r != (requirement{}) {
				s.needs = append(s.needs, r)
			}
		}
	}
	for _, key := range []string{"install_requires", "setup_requires", "tests_require"} {
		list(c["options"][key])
	}
	for _, text := range c["options.extras_require"] {
		list(text)
	}
	for group, text := range c["options.entry_points"] {
		if group == "console_scripts" || group == "gui_scripts" {
			continue
		}
		for line := range strings.Lines(text) {
			if _, value, is := strings.Cut(line, "="); is {
				s.plugins = append(s.plugins, moduleOfEntry(strings.TrimSpace(value)))
			}
		}
	}
	s.needs, s.plugins = sortedNeeds(s.needs), unique(slices.DeleteFunc(s.plugins, func(s string) bool { return s == "" }))
	return s
}

// parseSetupScript reads a setup.py: each of its texts can be a requirement or an entry point.
func parseSetupScript(content []byte) *setup {
	s := &setup{isProject: true}
	tokens, _ := lex(content)
	for i, t := range tokens {
		switch t.kind {
		case nameToken:
			switch t.text {
			case "Extension", "ext_modules", "cffi_modules", "rust_extensions", "cmdclass", "cythonize", "build_ext", "data_files":
				s.native = true
			case "name":
				if value := at(tokens, i+2); isByte(at(tokens, i+1), "=") && value.kind == stringToken && s.name == "" {
					s.name = normalName(value.text)
				}
			}
		case stringToken:
			for line := range strings.Lines(t.text) {
				if entry, value, is := strings.Cut(line, "="); is && entry != "" && !strings.HasPrefix(value, "=") {
					if module := moduleOfEntry(strings.TrimSpace(value)); module != "" {
						s.plugins = append(s.plugins, module)
					}
				}
				if r := parseRequirement(line); r != (requirement{}) && !strings.Contains(line, "::") {
					s.needs = append(s.needs, r)
				}
			}
		}
	}
	s.needs, s.plugins = sortedNeeds(s.needs), unique(s.plugins)
	return s
}
