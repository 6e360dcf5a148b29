package cargograph

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// manifest is what one Cargo.toml says, whatever its path.
type manifest struct {
	found     []problem
	pkg       *packageTable   // nil in a virtual workspace
	workspace *workspaceTable // nil if it is no workspace's root
	patches   []patch
	// settings are what holds for all packages of a workspace, in normal form.
	settings []byte
}

// packageTable is a package.
type packageTable struct {
	name, version, edition, resolver string
	// root is package.workspace: where the root of the workspace is said to be.
	root         string
	dependencies []dependency
	// inherited are the keys of the workspace's inheritable values that it takes: "package.version", "lints",
	// "dependencies.serde".
	inherited []string
	// build holds for [package] build: a path, or "" for build.rs where there is one.
	build   string
	noBuild bool
	// code and tests are paths that the manifest names for targets, which can be outside the folder.
	code, tests []string
	programs    []string // by the names that it gives them
}

// purpose is what a dependency is for.
type purpose uint8

const (
	forCode purpose = iota // also of build scripts
	forTests
)

// dependency is one entry of a table of dependencies.
type dependency struct {
	purpose purpose
	// name is the package's, key what the manifest calls it.
	name, key string
	path      string
	inherits  bool
	// outside is set if a registry or a git repository has it.
	outside bool
}

// workspaceTable is the [workspace] of a root.
type workspaceTable struct {
	members, exclude []string
	resolver         string
	// values are the inheritable ones by key, in normal form.
	values       map[string][]byte
	dependencies map[string]dependency
	version      string
	edition      string
}

// patch puts a folder in the place of an external package.
type patch struct{ name, path string }

// inheritable names a value of a workspace.
func inheritable(table, key string) string { return table + "." + key }

var dependencyTables = []struct {
	name    string
	purpose purpose
}{
	{"dependencies", forCode}, {"build-dependencies", forCode}, {"build_dependencies", forCode},
	{"dev-dependencies", forTests}, {"dev_dependencies", forTests},
}

// parseManifest reads a Cargo.toml. What is wrong is in the result's problems.
func parseManifest(content []byte) *manifest {
	d := parseTOML(content)
	m := &manifest{}
	if table := d.packageTable(); table != nil {
		m.pkg = d.readPackage(table)
	}
	if _, ok := d.root["workspace"]; ok {
		m.workspace = d.readWorkspace(d.table(d.root, "workspace"))
	}
	if m.pkg != nil && m.pkg.root != "" && m.workspace != nil {
		d.complain(d.line("workspace"), "package.workspace and [workspace] exclude each other")
	}
	if m.pkg == nil && m.workspace == nil && len(d.found) == 0 {
		d.complain(1, "there is neither a [package] nor a [workspace]")
	}
	m.patches = d.readPatches(d.root)
	settings := map[string]any{}
	for _, key := range []string{"profile", "patch", "replace", "cargo-features"} {
		if value, ok := d.root[key]; ok {
			settings[key] = value
		}
	}
	if workspace, is := d.root["workspace"].(map[string]any); is {
		for key, value := range workspace {
			if !slices.Contains([]string{"members", "exclude", "default-members", "package", "dependencies", "lints", "metadata"}, key) {
				settings["workspace."+key] = value
			}
		}
	}
	m.settings = normal(nil, settings)
	m.found = d.found
	return m
}

// packageTable returns [package], or what it was called once.
func (d *document) packageTable() map[string]any {
	for _, key := range []string{"package", "project"} {
		if _, ok := d.root[key]; ok {
			if table := d.table(d.root, key); table != nil {
				return table
			}
			return map[string]any{}
		}
	}
	return nil
}

func (d *document) readPackage(table map[string]any) *packageTable {
	p := &packageTable{name: d.text(table, "name"), root: d.text(table, "workspace"), resolver: d.text(table, "resolver")}
	if !isPackageName(p.name) {
		d.complain(d.line("name"), "the package needs a name of letters, digits, - and _")
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if inherits(table[key]) {
			p.inherited = append(p.inherited, inheritable("package", key))
		}
	}
	// A number or an inherited value is no text; cargo complains about the former.
	p.version, _ = table["version"].(string)
	p.edition, _ = table["edition"].(string)
	if inherits(d.root["lints"]) {
		p.inherited = append(p.inherited, "lints")
	}
	switch build := table["build"].(type) {
	case string:
		p.build = build
	case bool:
		p.noBuild = !build
	case []any:
		eachText(build, func(text string) { p.code = append(p.code, text) })
	}
	for _, key := range []string{"readme", "license-file"} {
		if text, is := table[key].(string); is {
			p.code = append(p.code, text)
		}
	}
	d.readTargets(p)
	d.readDependencies(p, d.root)
	if conditional := d.table(d.root, "target"); conditional != nil {
		for _, condition := range slices.Sorted(maps.Keys(conditional)) {
			d.readDependencies(p, d.table(conditional, condition))
		}
	}
	slices.Sort(p.inherited)
	p.inherited = slices.Compact(p.inherited)
	return p
}

// inherits reports whether a value is { workspace = true }.
func inherits(value any) bool {
	table, _ := value.(map[string]any)
	is, _ := table["workspace"].(bool)
	return is
}

func (d *document) readTargets(p *packageTable) {
	if path := d.text(d.table(d.root, "lib"), "path"); path != "" {
		p.code = append(p.code, path)
	}
	for _, kind := range []string{"bin", "test", "example", "bench"} {
		for _, table := range d.tables(d.root, kind) {
			path := d.text(table, "path")
			if name := d.text(table, "name"); kind == "bin" && name != "" {
				p.programs = append(p.programs, name)
			}
			switch {
			case path == "":
			case kind == "bin":
				p.code = append(p.code, path)
			default:
				p.tests = append(p.tests, path)
			}
		}
	}
}

func (d *document) readDependencies(p *packageTable, in map[string]any) {
	for _, kind := range dependencyTables {
		table := d.table(in, kind.name)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			dep := d.readDependency(key, table[key])
			dep.purpose = kind.purpose
			if dep.inherits {
				p.inherited = append(p.inherited, inheritable("dependencies", key))
			}
			p.dependencies = append(p.dependencies, dep)
		}
	}
}

func (d *document) readDependency(key string, value any) dependency {
	dep := dependency{name: key, key: key}
	switch v := value.(type) {
	case string:
		dep.outside = true
	case map[string]any:
		dep.inherits = inherits(v)
		dep.path = d.text(v, "path")
		if name := d.text(v, "package"); name != "" {
			dep.name = name
		}
		_, versioned := v["version"]
		_, inGit := v["git"]
		dep.outside = !dep.inherits && (versioned || inGit || dep.path == "")
	default:
		d.complain(d.line(key), "dependency %s must be a version or a table", key)
	}
	return dep
}

func (d *document) readWorkspace(table map[string]any) *workspaceTable {
	w := &workspaceTable{
		members: d.texts(table, "members"), exclude: d.texts(table, "exclude"), resolver: d.text(table, "resolver"),
		values: map[string][]byte{}, dependencies: map[string]dependency{},
	}
	shared := d.table(table, "package")
	for key, value := range shared {
		w.values[inheritable("package", key)] = normal(nil, value)
	}
	w.version, _ = shared["version"].(string)
	w.edition, _ = shared["edition"].(string)
	dependencies := d.table(table, "dependencies")
	for _, key := range slices.Sorted(maps.Keys(dependencies)) {
		w.values[inheritable("dependencies", key)] = normal(nil, dependencies[key])
		w.dependencies[key] = d.readDependency(key, dependencies[key])
	}
	if lints, ok := table["lints"]; ok {
		w.values["lints"] = normal(nil, lints)
	}
	return w
}

// readPatches reads [patch] and [replace] of a manifest or a configuration file.
func (d *document) readPatches(root map[string]any) []patch {
	var patches []patch
	add := func(key string, value any) {
		table, _ := value.(map[string]any)
		path, _ := table["path"].(string)
		if path == "" {
			return
		}
		name, _ := table["package"].(string)
		if name == "" {
			// The key of a replacement is a package id: name:version or URL#name:version.
			name = key[strings.LastIndexByte(key, '#')+1:]
			name, _, _ = strings.Cut(name, ":")
			name, _, _ = strings.Cut(name, "@")
		}
		patches = append(patches, patch{name, path})
	}
	sources := d.table(root, "patch")
	for _, source := range slices.Sorted(maps.Keys(sources)) {
		table := d.table(sources, source)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			add(key, table[key])
		}
	}
	replaced := d.table(root, "replace")
	for _, key := range slices.Sorted(maps.Keys(replaced)) {
		add(key, replaced[key])
	}
	return patches
}

// isPackageName reports whether cargo takes a name for a package's. It becomes an argument of a command, where it must not
// be taken for a flag.
func isPackageName(name string) bool {
	for i, r := range name {
		switch {
		case r == '_' || unicode.IsLetter(r):
		case i == 0 || r != '-' && !unicode.IsDigit(r) && !unicode.IsMark(r):
			return false
		}
	}
	return name != "" && len(name) <= 200
}
