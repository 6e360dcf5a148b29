package pythongraph

import (
	"cmp"
	"path"
	"slices"
)

// lock is what a uv.lock, poetry.lock or pylock.toml means.
type lock struct {
	line    int
	problem error
	// header is what holds for all packages.
	header   []byte
	packages []*locked // by name
	// develops are what the groups of a uv workspace need whose folder is no project.
	develops []string
}

// locked is what a lock file says of a distribution: of all versions that it can have.
type locked struct {
	name string
	// pin is versions, sources and sums in normal form.
	pin []byte
	// local is the distribution's folder relative to the lock file's, if it is one of the repository.
	local   string
	isLocal bool
	// needs are names of other distributions; develops those that only work on it needs.
	needs, develops []string
}

// isLock reports whether a file of that name is a lock file.
func isLock(file string) bool {
	name := nameOf(file)
	return name == "uv.lock" || name == "poetry.lock" || name == "pylock.toml"
}

// parseLock reads a lock file of any kind: they share what matters.
func parseLock(content []byte) *lock {
	l := &lock{}
	t, line, err := parseTable(content)
	if err != nil {
		l.line, l.problem = line, err
		return l
	}
	byName := map[string]*locked{}
	pins := map[string][]any{}
	for _, key := range []string{"package", "packages"} {
		for _, entry := range t.tables(key) {
			name := normalName(entry.text("name"))
			p := byName[name]
			if p == nil {
				p = &locked{name: name}
				byName[name] = p
			}
			pins[name] = append(pins[name], map[string]any(entry))
			p.read(entry)
		}
		delete(t, key)
	}
	// Files of packages in the older form of poetry.lock.
	if files := t.table("metadata", "files"); files != nil {
		for _, name := range files.keys() {
			pins[normalName(name)] = append(pins[normalName(name)], files[name])
		}
		delete(t.table("metadata"), "files")
	}
	// Members of a uv workspace: a new one alters none of the others.
	if manifest := t.table("manifest"); manifest != nil {
		delete(manifest, "members")
		l.develops = groupNeeds(manifest)
	}
	l.header = normal(t)
	for name, p := range byName {
		p.pin = normal(pins[name])
		p.needs, p.develops = unique(p.needs), unique(p.develops)
		l.packages = append(l.packages, p)
	}
	slices.SortFunc(l.packages, func(x, y *locked) int { return cmp.Compare(x.name, y.name) })
	return l
}

// LockedProjects returns the projects that a uv.lock holds by their folders, relative to its own, "." for that, with their names.
func LockedProjects(content []byte) map[string]string {
	found := map[string]string{}
	for _, p := range parseLock(content).packages {
		if p.isLocal {
			found[p.local] = p.name
		}
	}
	return found
}

// read adds an entry.
func (p *locked) read(entry table) {
	source := entry.table("source")
	for _, key := range []string{"editable", "virtual", "directory"} {
		if at, is := source[key].(string); is {
			p.isLocal, p.local = true, path.Clean(at)
		}
	}
	if source.text("type") == "directory" {
		p.isLocal, p.local = true, path.Clean(source.text("url"))
	}
	if at := entry.table("directory").text("path"); at != "" {
		p.isLocal, p.local = true, path.Clean(at)
	}
	p.needs = append(p.needs, namesOf(entry["dependencies"])...)
	for _, group := range entry.table("optional-dependencies").keys() {
		p.needs = append(p.needs, namesOf(entry.table("optional-dependencies")[group])...)
	}
	for _, extra := range entry.table("extras").keys() {
		for _, need := range entry.table("extras").texts(extra) {
			p.needs = append(p.needs, parseRequirement(need).name)
		}
	}
	p.develops = append(p.develops, groupNeeds(entry)...)
}

// groupNeeds returns the names of what the groups of an entry need.
func groupNeeds(entry table) (names []string) {
	for _, key := range []string{"dev-dependencies", "dependency-groups"} {
		groups := entry.table(key)
		for _, group := range groups.keys() {
			names = append(names, namesOf(groups[group])...)
		}
	}
	return unique(names)
}

// namesOf returns the names of dependencies: in uv's and the standard's locks tables with a name, in Poetry's the keys.
func namesOf(value any) []string {
	var names []string
	if keyed, is := value.(map[string]any); is {
		for name := range keyed {
			names = append(names, normalName(name))
		}
		return names
	}
	for _, d := range tablesOf(value) {
		names = append(names, normalName(d.text("name")))
	}
	return names
}
