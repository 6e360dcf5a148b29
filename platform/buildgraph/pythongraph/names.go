package pythongraph

import (
	"path"
	"strings"
)

// moduleName returns the name by which a file is imported, empty if it cannot be: a.py and a.cpython-311.so are a.
func moduleName(name string) string {
	switch path.Ext(name) {
	case ".py":
		name = name[:len(name)-len(".py")]
	case ".so", ".pyd":
		name, _, _ = strings.Cut(name, ".")
	default:
		return ""
	}
	if strings.Contains(name, ".") || !isDotted(name) {
		return ""
	}
	return name
}

// answers returns what of a folder answers to names: modules, folders and symbolic links, as they are written.
func (s *survey) answers(f *folder, visit func(name, written string)) {
	for _, i := range f.files {
		written := s.name(f, i)
		name := moduleName(written)
		if name == "" && !s.isFile(i) && isDotted(written) && !strings.Contains(written, ".") {
			name = written
		}
		if name != "" && name != "__init__" {
			visit(name, written)
		}
	}
	for _, sub := range f.subs {
		name, markers := nameOf(sub.path), s.markers[sub.path]
		if (sub.coded || markers != nil) && isDotted(name) && !strings.Contains(name, ".") {
			visit(name, name+"/"+strings.Join(markers, ","))
		}
	}
}

// Names of listings and definitions. All begin with the adapter's, so that they are no other's.

func answerName(dir, name string) string { return "python:" + below(dir, name) }
func initName(dir string) string         { return "python:" + below(dir, initFile) }
func allBelow(dir string) string         { return "python:" + below(dir, "**") }
func codeBelow(dir string) string        { return "python:" + below(dir, "**.py") }
func indexName(p *project, name string) string {
	return "python:" + below(p.dir(), "**/"+name)
}
func wholeIndexName(name string) string { return "python:module " + name }
func binariesName(dir string) string    { return "python:" + below(dir, "*.so") }
func codeName(dir string) string        { return "python:code of " + below(dir, "...") }
func moduleNode(file string) string     { return "python:module " + file }
func filesName(dir string) string       { return "python:files of " + below(dir, "*") }
func documentsName(dir string) string   { return "python:documents of " + below(dir, "*") }
func dataName(dir string) string        { return "python:data of " + below(dir, "...") }
func ownDataName(dir string) string     { return "python:data of " + below(dir, "... but for projects") }
func markersName(dir string) string     { return "python:projects in " + below(dir, "*") }
func allMarkersName(dir string) string  { return "python:projects in " + below(dir, "...") }
func projectName(dir string) string     { return "python:project " + below(dir, pyprojectFile) }

const allManifests = "python:all manifests"

func besidesName(dir string) string  { return "python:folders beside " + below(dir, pyprojectFile) }
func developName(dir string) string  { return "python:development of " + below(dir, pyprojectFile) }
func settingsName(dir string) string { return "python:settings of " + below(dir, "...") }
func searchName(name string) string  { return "python:search by " + below(name, ".") }
func pytestName(dir string) string   { return "python:pytest in " + below(dir, pyprojectFile) }

// pytestGroupName is of the group with which uv installs pytest for members of the workspace.
func pytestGroupName(dir string) string {
	return "python:group with pytest in " + below(dir, pyprojectFile)
}
func uvName(dir string) string         { return "python:uv in " + below(dir, pyprojectFile) }
func membersName(dir string) string    { return "python:members of " + below(dir, pyprojectFile) }
func pluginsName(dir string) string    { return "python:plugins of " + below(dir, pyprojectFile) }
func wholeName(dir string) string      { return "python:all of " + below(dir, pyprojectFile) }
func everythingName(dir string) string { return "python:everything in " + below(dir, "...") }
func hidingName(dir string) string     { return "python:names of others in " + dir }
func sameName(p *project, name string) string {
	return "python:test modules named " + name + " in " + p.label()
}
func optionsName(p *project) string       { return "python:options of pytest in " + p.label() }
func requirementsName(file string) string { return "python:requirements " + file }
func requirementsIn(dir string) string    { return "python:requirements in " + below(dir, "*") }
func lockName(file string) string         { return "python:lock " + file }
func lockedName(file, name string) string { return "python:" + file + " " + name }
func localName(file, dir string) string   { return "python:" + file + " has " + below(dir, ".") }
func distributionName(name string) string { return "python:distribution " + name }
func seenName(p *project, n string) string {
	return "python:" + n + " seen from " + below(p.dir(), ".")
}

// collectorsOf is of what a project, or what stands in none, has that collects tests in another way than by modules.
func collectorsOf(p *project) string {
	if p == nil {
		return "python:collectors outside of projects"
	}
	return "python:collectors of " + p.label()
}
func collectorsIn(dir string) string { return "python:collectors in " + below(dir, "conftest.py") }

// examplesOf is of the texts of a project with examples.
func examplesOf(p *project) string { return "python:examples in texts of " + p.label() }
func linkName(file string) string  { return "python:link " + file }

// targetName returns the label of what stands in a folder.
func targetName(dir, suffix string) string {
	switch {
	case dir == "":
		dir = "."
	case strings.HasSuffix(dir, "]"):
		dir += "/" // "a [test]" can be the name of a folder.
	}
	return "python://" + dir + suffix
}
