package pythongraph

import (
	"regexp"
	"slices"
	"strings"
)

// PytestSource is how the environment of a project gets pytest.
type PytestSource struct {
	// Declared reports whether the project's pyproject.toml names pytest or a plugin of it.
	Declared bool
	// UV is the option with which uv run installs it, Poetry that of poetry install: "--extra tests", say. It is "" if it is
	// installed anyway.
	UV, Poetry string
	// Pip are the arguments with which pip install installs it with the project, "" if it cannot.
	Pip string
}

// FindPytest returns what a pyproject.toml says of pytest.
func FindPytest(pyproject []byte) PytestSource {
	t, _, err := parseTable(pyproject)
	if err != nil {
		return PytestSource{}
	}
	return pytestIn(t)
}

// RequiresPytest reports whether a file, by its path, is a requirements file, and names pytest or a plugin of it.
func RequiresPytest(file string, content []byte) bool {
	return isRequirements(file) && slices.ContainsFunc(parseRequirements(content).needs, func(r requirement) bool { return isPytest(r.name) })
}

// UsesPoetry reports whether a pyproject.toml has a [tool.poetry].
func UsesPoetry(pyproject []byte) bool {
	t, _, err := parseTable(pyproject)
	return err == nil && t.table("tool", "poetry") != nil
}

// pytestIn finds what brings pytest: what is installed anyway, else a group, else an extra.
func pytestIn(t table) (s PytestSource) {
	project, uv, poetry := t.table("project"), t.table("tool", "uv"), t.table("tool", "poetry")
	groups := t.table("dependency-groups")
	inMain := bringsPytest(project["dependencies"])
	inGroup := func(name string) bool { return groupBringsPytest(groups, name, len(groups)) }
	inExtra := func(name string) bool { return bringsPytest(project.table("optional-dependencies")[name]) }
	groupNames, extraNames := byPreference(groups), byPreference(project.table("optional-dependencies"))
	option := func(flag string, names []string, brings func(string) bool) (string, bool) {
		if i := slices.IndexFunc(names, brings); i >= 0 {
			return flag + " " + names[i], true
		}
		return "", false
	}

	defaults := []string{"dev"}
	if uv["default-groups"] != nil {
		defaults = uv.texts("default-groups")
	}
	ofUV := inMain || bringsPytest(uv["dev-dependencies"]) || slices.ContainsFunc(groupNames, func(name string) bool {
		return inGroup(name) && (slices.Contains(defaults, name) || uv.text("default-groups") == "all")
	})
	if !ofUV {
		if s.UV, ofUV = option("--group", groupNames, inGroup); !ofUV {
			s.UV, ofUV = option("--extra", extraNames, inExtra)
		}
	}

	extra, isExtra := option("", extraNames, inExtra)
	group, isGroup := option("--group", groupNames, inGroup)
	switch {
	case inMain:
		s.Pip = "-e ."
	case isExtra:
		s.Pip = "-e '.[" + strings.TrimSpace(extra) + "]'"
	case isGroup:
		s.Pip = "-e . " + group
	}

	// Poetry's own tables have the names of distributions as keys.
	named := func(dependencies table, optional bool) bool {
		return slices.ContainsFunc(dependencies.keys(), func(name string) bool {
			is := slices.ContainsFunc(tablesOf(dependencies[name]), func(d table) bool { return d["optional"] == true })
			return isPytest(name) && is == optional
		})
	}
	own := poetry.table("group")
	ownGroup := func(name string) bool { return named(own.table(name, "dependencies"), false) }
	ownExtra := func(name string) bool {
		return inExtra(name) || named(poetry.table("dependencies"), true) && bringsPytest(poetry.table("extras")[name])
	}
	ofPoetry := inMain || named(poetry.table("dependencies"), false) || named(poetry.table("dev-dependencies"), false) ||
		slices.ContainsFunc(groupNames, inGroup) ||
		slices.ContainsFunc(own.keys(), func(name string) bool { return ownGroup(name) && own.table(name)["optional"] != true })
	if !ofPoetry {
		if s.Poetry, ofPoetry = option("--with", byPreference(own), ownGroup); !ofPoetry {
			s.Poetry, ofPoetry = option("--extras", append(extraNames, byPreference(poetry.table("extras"))...), ownExtra)
		}
	}
	s.Declared = ofUV || ofPoetry
	return s
}

// FindPytestGroup returns the dependency group of a pyproject.toml that has pytest, "" if none does. With uv run --group it is
// installed for the members of the workspace too.
func FindPytestGroup(pyproject []byte) string {
	t, _, err := parseTable(pyproject)
	if err != nil {
		return ""
	}
	return pytestGroupIn(t)
}

func pytestGroupIn(t table) string {
	groups := t.table("dependency-groups")
	for _, name := range byPreference(groups) {
		if groupBringsPytest(groups, name, len(groups)) {
			return name
		}
	}
	if bringsPytest(t.table("tool", "uv")["dev-dependencies"]) {
		return "dev"
	}
	return ""
}

// option returns the option for a kind of project, with a space before it.
func (s PytestSource) option(kind projectKind) string {
	option := map[projectKind]string{uvProject: s.UV, poetryProject: s.Poetry}[kind]
	if option == "" {
		return ""
	}
	return " " + option
}

// isPytest reports whether a distribution is pytest, or a plugin, which needs it.
func isPytest(name string) bool {
	name = normalName(name)
	return name == "pytest" || strings.HasPrefix(name, "pytest-")
}

// bringsPytest reports whether a list of requirements has pytest.
func bringsPytest(list any) bool {
	return slices.ContainsFunc(textsOf(list), func(text string) bool { return isPytest(parseRequirement(text).name) })
}

// groupBringsPytest reports whether a group or one that it includes has pytest. depth bounds groups that include themselves.
func groupBringsPytest(groups table, name string, depth int) bool {
	if bringsPytest(groups[name]) {
		return true
	}
	return depth > 0 && slices.ContainsFunc(groups.tables(name), func(include table) bool {
		return groupBringsPytest(groups, include.text("include-group"), depth-1)
	})
}

// preferred are names of groups and extras that are for tests, the first the most.
var preferred = []string{"tests", "test", "testing", "dev", "develop", "development"}

// optionName is a name that needs no quotes in a line of the shell.
var optionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// byPreference returns the keys of groups or extras, those that are for tests first.
func byPreference(of table) []string {
	names := slices.DeleteFunc(of.keys(), func(name string) bool { return !optionName.MatchString(name) })
	rank := func(name string) int {
		if i := slices.Index(preferred, normalName(name)); i >= 0 {
			return i
		}
		return len(preferred)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}
