package cargograph

import (
	"fmt"
	"slices"
	"strings"
)

// besides are the folders of a package that its tests, examples and benchmarks are in: no library or program is built from
// them.
var besides = []string{"tests", "examples", "benches"}

// foreignFolders hold what was written for another repository, or to be wrong. A Cargo.toml in or below one counts if another
// Cargo.toml leads to it. The list is fixed: were it a setting, a change of the setting and one of a file that it takes in
// would conflict without a common node.
var foreignFolders = []string{"testdata", "fixtures", "vendor", "target", "node_modules", "template", "templates"}

// crate is a folder with a Cargo.toml that is known.
type crate struct {
	*folder
	manifest *manifest
	// root is the workspace that the folder is in, as cargo finds it: the crate's own if there is no other.
	root *workspace
	// lost: the root that it or a package around it names is none, and cargo refuses it.
	lost bool
	// nests is set if packages that are targets stand below it.
	nests bool
	// script is set for a package that runs a program when it is built.
	script bool
	deps   []reference
	// walked are the folders that the globs of its own [workspace] look into.
	walked []string
}

// reference is a dependency with what it inherits.
type reference struct {
	dependency
	// dir is where its path leads, if there is one (inFolder).
	dir      string
	inFolder bool
}

// workspace is what is built with one Cargo.lock.
type workspace struct {
	*crate
	members []*crate
	// built are the members with all that they reach by paths, patches among them; by folder.
	built   []*crate
	patches []reference
	// directories are folders of the repository that hold external packages; registries those that hold archives of them.
	directories, registries []string
	configs                 []placedConfig
	lock                    *lockFile // nil if there is none
	// wrong says what cargo refuses about the workspace as a whole.
	wrong []string
	// hollow are the folders that its globs take for members and that are none.
	hollow []string
	// foreign are those taken for members that are in another workspace.
	foreign []*crate
}

// survey is what the definitions of a tree say.
type survey struct {
	*snapshot
	options    Options
	crates     map[string]*crate // by folder
	workspaces []*workspace      // those with targets, by folder
	// placed are the workspaces of targets.
	placed     map[*crate]*workspace
	incomplete []string
	problems   problems
	work       int
}

func (s *survey) noteIncomplete(format string, args ...any) {
	if reason := fmt.Sprintf(format, args...); !slices.Contains(s.incomplete, reason) && len(s.incomplete) < maxProblems {
		s.incomplete = append(s.incomplete, reason)
	}
}

// plain reports whether a Cargo.toml in a folder counts by itself.
func (s *survey) plain(dir string) bool {
	if dir == "" {
		return !slices.Contains(s.options.IgnoreFolders, "")
	}
	for name := range strings.SplitSeq(dir, "/") {
		if strings.HasPrefix(name, ".") || slices.Contains(foreignFolders, name) {
			return false
		}
	}
	return !slices.ContainsFunc(s.options.IgnoreFolders, func(ignored string) bool { return within(ignored, dir) })
}

// findRoot sets the workspace of a crate, as cargo finds it.
func (s *survey) findRoot(c *crate) {
	if c.root != nil {
		return
	}
	if c.manifest.workspace != nil {
		c.root = &workspace{crate: c}
		return
	}
	at := func(dir string) bool {
		root := s.crates[dir]
		if root == nil || root == c || root.manifest.workspace == nil {
			return false
		}
		s.findRoot(root)
		c.root = root.root
		return true
	}
	pointed := func(from *crate) bool {
		if from.manifest.pkg == nil || from.manifest.pkg.root == "" {
			return false
		}
		dir, ok := join(from.path, from.manifest.pkg.root)
		if !ok {
			s.noteIncomplete("%s: its workspace is outside the repository", below(from.path, manifestName))
		}
		if !ok || !at(dir) {
			c.root, c.lost = &workspace{crate: c}, true
		}
		return true
	}
	if pointed(c) {
		return
	}
	for f := c.parent; f != nil; f = f.parent {
		around := s.crates[f.path]
		if around == nil {
			continue
		}
		if around.manifest.workspace != nil {
			if !around.excludes(c.path) {
				at(f.path)
				break
			}
			continue // A root further out may take what this one leaves out.
		}
		if pointed(around) {
			return
		}
	}
	if c.root == nil {
		c.root = &workspace{crate: c}
	}
}

// excludes reports whether the root of a workspace leaves a folder out.
func (c *crate) excludes(dir string) bool {
	covers := func(texts []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool {
			at, ok := join(c.path, text)
			return ok && within(at, dir)
		})
	}
	w := c.manifest.workspace
	return covers(w.exclude) && !covers(w.members)
}

// checkWay notes what keeps a folder without a Cargo.toml from being known.
func (s *survey) checkWay(file, dir string) {
	if way := s.follow(dir); len(way.via) > 0 {
		s.noteIncomplete("%s: %s is behind a symbolic link", file, dir)
	}
	for at := dir; at != ""; at = folderOf(at) {
		if i := s.find(at); i >= 0 && s.entries[i].Mode&modeType == modeSubmodule {
			s.noteIncomplete("%s: %s is in a submodule", file, dir)
		}
	}
}

// resolve sets the dependencies of a crate.
func (s *survey) resolve(c *crate) {
	if c.manifest.pkg == nil {
		return
	}
	p := c.manifest.pkg
	c.script = p.build != "" || !p.noBuild && s.find(below(c.path, "build.rs")) >= 0
	for _, d := range p.dependencies {
		base := c.path
		if d.inherits {
			shared, ok := dependency{}, false
			if c.root.manifest.workspace != nil {
				shared, ok = c.root.manifest.workspace.dependencies[d.key]
			}
			if !ok {
				shared = dependency{name: d.name, outside: true}
			}
			purpose := d.purpose
			d, base = shared, c.root.path
			d.purpose = purpose
		}
		c.deps = append(c.deps, s.refer(below(c.path, manifestName), base, d))
	}
}

// refer finds where a dependency's path leads.
func (s *survey) refer(file, base string, d dependency) reference {
	ref := reference{dependency: d}
	if d.path == "" {
		return ref
	}
	ref.dir, ref.inFolder = join(base, d.path)
	if !ref.inFolder {
		s.noteIncomplete("%s: the path of %s leads out of the repository", file, d.name)
	} else if s.crates[ref.dir] == nil {
		s.checkWay(file, ref.dir)
	}
	return ref
}

// findBuilt lists what is built in a workspace.
func (s *survey) findBuilt(w *workspace) {
	seen := map[*crate]bool{}
	pending := slices.Clone(w.members)
	lead := func(deps []reference) {
		for _, d := range deps {
			if c := s.crates[d.dir]; d.inFolder && c != nil && c.manifest.pkg != nil {
				pending = append(pending, c)
			}
		}
	}
	lead(w.patches)
	for len(pending) > 0 {
		c := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[c] {
			continue
		}
		seen[c] = true
		w.built = append(w.built, c)
		lead(w.needs(c))
	}
	slices.SortFunc(w.built, func(x, y *crate) int { return strings.Compare(x.path, y.path) })
}

// needs returns the dependencies of a crate that count in a workspace: nobody runs the tests of what is no member.
func (w *workspace) needs(c *crate) []reference {
	if _, member := slices.BinarySearchFunc(w.members, c.path, func(c *crate, dir string) int { return strings.Compare(c.path, dir) }); member {
		return c.deps
	}
	return slices.DeleteFunc(slices.Clone(c.deps), func(d reference) bool { return d.purpose == forTests })
}

// version returns a crate's version, inherited or not.
func (c *crate) version() string {
	switch p := c.manifest.pkg; {
	case p.version != "":
		return p.version
	case slices.Contains(p.inherited, inheritable("package", "version")) && c.root.manifest.workspace != nil:
		return c.root.manifest.workspace.version
	}
	return "0.0.0"
}

// separatesFeatures reports whether features that only tests, build scripts or other platforms ask for are no features of the
// code: the second resolver and later ones.
func (w *workspace) separatesFeatures() bool {
	resolver, edition := "", ""
	if p := w.manifest.pkg; p != nil {
		resolver, edition = p.resolver, p.edition
		if edition == "" && slices.Contains(p.inherited, inheritable("package", "edition")) && w.manifest.workspace != nil {
			edition = w.manifest.workspace.edition
		}
	}
	if w.manifest.workspace != nil && w.manifest.workspace.resolver != "" {
		resolver = w.manifest.workspace.resolver
	}
	if resolver != "" {
		return resolver != "1"
	}
	return edition != "" && edition != "2015" && edition != "2018"
}

// label names the target of a folder.
func label(dir string) string {
	if dir == "" {
		dir = "."
	}
	return "cargo://" + dir
}
