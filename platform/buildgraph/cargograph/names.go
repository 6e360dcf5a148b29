package cargograph

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// reach follows what the files of one part of a crate name.
type reach struct {
	*assembler
	node  targets.Node
	crate *crate
	part  part
	seen  map[string]bool
}

func (a *assembler) newReach(node targets.Node, c *crate, part part) *reach {
	return &reach{a, node, c, part, map[string]bool{}}
}

// source follows what a Rust file of the crate names.
func (r *reach) source(i int32) {
	file := r.entries[i].Path
	if _, is := r.links[i]; is {
		r.linked(file)
	}
	facts := r.facts[i]
	if facts == nil {
		return
	}
	in, _ := r.partOf(r.crate, file)
	// The files of a build script are those outside src: what they name is read when the package is built.
	script := r.crate.script && !within(below(r.crate.path, "src"), file)
	switch {
	case r.part == codePart:
		r.follow(file, facts, true, script)
	case in == codePart:
		r.follow(file, facts, false, !script)
	default:
		r.follow(file, facts, true, true)
	}
}

// linked follows what Rust files behind a symbolic link name.
func (r *reach) linked(file string) {
	way := r.snapshot.follow(file)
	if !way.ok {
		return
	}
	if r.folders[way.end] == nil {
		// The compiler looks for modules from where the link stands.
		if i := r.find(way.end); i >= 0 && isRust(file) {
			if facts := r.read(i); facts != nil {
				r.follow(file, facts, true, r.part == testPart)
			}
		}
		return
	}
	pending := []*folder{r.folders[way.end]}
	for len(pending) > 0 {
		f := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], f.subs...)
		for _, i := range f.files {
			if isRust(r.entries[i].Path) {
				r.outside(r.entries[i].Path, i)
			}
		}
	}
}

// follow makes the node depend on what a file names when it is built, when it is run, or both.
func (r *reach) follow(file string, facts *sourceFacts, built, run bool) {
	dir := folderOf(file)
	if built {
		for _, text := range facts.built {
			r.text(dir, text, facts, true)
		}
		if facts.manifestDir {
			r.up(facts.builtUp)
		}
		stem := below(dir, strings.TrimSuffix(nameOf(file), ".rs"))
		for _, base := range [2]string{dir, stem} {
			for _, name := range facts.modules {
				r.path(base, name+".rs", true)
				r.path(base, name+"/mod.rs", true)
			}
			for _, text := range facts.paths {
				r.path(base, text, true)
			}
		}
	}
	if run {
		for _, text := range facts.run {
			r.text(dir, text, facts, false)
		}
		if facts.manifestDir {
			r.up(facts.runUp)
		}
		if facts.above {
			r.edge(r.node, r.wholeNode(""))
		}
		if facts.below && r.crate.nests {
			r.path(r.crate.path, ".", false)
		}
		if facts.manifests {
			r.edge(r.node, r.definition(allManifests))
		}
		r.runs(facts)
	}
}

// runs makes the node depend on packages of its workspace that a file has cargo build or run.
func (r *reach) runs(facts *sourceFacts) {
	w := r.placed[r.crate]
	if w == nil {
		return
	}
	if facts.all {
		for _, c := range w.members {
			r.edge(r.node, r.builtNode(c, w))
		}
		return
	}
	if len(facts.words) == 0 {
		return
	}
	for _, c := range w.built {
		named := func(name string) bool { _, is := slices.BinarySearch(facts.words, name); return is }
		if named(c.manifest.pkg.name) || slices.ContainsFunc(c.manifest.pkg.programs, named) || slices.ContainsFunc(r.programs(c), named) {
			r.edge(r.node, r.builtNode(c, w))
		}
	}
}

// programs returns the names of the programs that a package has by files and folders in src/bin.
func (s *snapshot) programs(c *crate) (names []string) {
	bin := s.folders[below(c.path, "src/bin")]
	if bin == nil {
		return nil
	}
	for _, i := range bin.files {
		names = append(names, strings.TrimSuffix(nameOf(s.entries[i].Path), ".rs"))
	}
	for _, sub := range bin.subs {
		names = append(names, nameOf(sub.path))
	}
	return names
}

// up makes the node depend on folders around the crate, all of them.
func (r *reach) up(dots []string) {
	for _, text := range dots {
		r.path(r.crate.path, text, false)
	}
}

// text follows a text that may be a path: from the file's folder, from the package's, where tests and build scripts run, and
// where some variable may hold a folder, from the workspace's and the repository's.
func (r *reach) text(dir, text string, facts *sourceFacts, built bool) {
	if strings.HasPrefix(text, "cargo:") {
		text = text[strings.LastIndexByte(text, '=')+1:]
	}
	text, end, computed := cutComputed(withoutFolder(text))
	upward := strings.Contains(text, "..")
	if path.Clean(text) == "." {
		return
	}
	fromPackage := strings.TrimLeft(text, "/")
	if computed && isDots(fromPackage) || isDots(text) {
		if computed && built && fromPackage == text {
			r.computed(dir, text, end)
		}
		if computed {
			r.computed(r.crate.path, fromPackage, end)
		}
		return
	}
	// Without .. a path leads out of neither folder, but it can lead to another part of the package, or to another package
	// in it.
	if upward || r.crate.nests || r.part == codePart && startsBeside(fromPackage) {
		if fromPackage == text {
			r.path(dir, text, built)
		}
		r.path(r.crate.path, fromPackage, built)
	}
	if facts.otherDir && strings.Contains(text, "/") {
		r.path(r.crate.root.path, fromPackage, built)
		r.path("", fromPackage, built)
	}
}

// folderVariable is the package's folder where a text for a macro begins.
var folderVariable = regexp.MustCompile(`^\$(?:CARGO_MANIFEST_DIR|\{CARGO_MANIFEST_DIR\})/`)

// withoutFolder cuts off what stands for the package's folder where a text begins: {…}/, or folderVariable, whose / stays: no
// other folder is meant.
func withoutFolder(text string) string {
	if variable := folderVariable.FindString(text); variable != "" {
		return text[len(variable)-1:]
	}
	if strings.HasPrefix(text, "{") {
		if name, rest, ok := strings.Cut(text, "}/"); ok && !strings.ContainsAny(name[1:], "{}/") {
			return rest
		}
	}
	return text
}

// cutComputed returns the folder before the first computed part of a text, and what stands behind the last one, empty if that is not
// known. A text without such a part is returned as it is.
func cutComputed(text string) (before, end string, computed bool) {
	first := strings.IndexAny(text, wildcards)
	if first < 0 {
		return text, "", false
	}
	if last := strings.LastIndexAny(text, wildcards+"]}>"); strings.IndexByte("*?]}>", text[last]) >= 0 {
		end = strings.TrimRight(text[last+1:], "/")
	}
	return text[:max(strings.LastIndexByte(text[:first], '/'), 0)], end, true
}

// computed makes the node depend on what a computed path in a folder above can lead to: the files and folders in and below it whose
// path has an end, all manifests if that is their name, and everything if it is not known.
func (r *reach) computed(base, dots, end string) {
	dir, ok := join(base, dots)
	switch {
	case !ok:
	case end == "/"+manifestName:
		r.edge(r.node, r.definition(allManifests))
	case end == "" || strings.Contains(end, "..") || path.Clean("x"+end) != "x"+end:
		r.path(dir, ".", false)
	default:
		r.edge(r.node, r.endingNode(dir, end))
	}
}

func startsBeside(text string) bool {
	text = strings.TrimPrefix(text, "./")
	for _, name := range besides {
		if text == name || strings.HasPrefix(text, name+"/") {
			return true
		}
	}
	return false
}

// path makes the node depend on what a path from a folder leads to, unless it does anyhow. If the compiler may take it for
// Rust, what it names in turn is followed.
func (r *reach) path(base, text string, built bool) {
	if r.work++; r.work > maxWork {
		return
	}
	file, ok := join(base, text)
	if !ok {
		return
	}
	if part, own := r.partOf(r.crate, file); own && (part == codePart || r.part == testPart) && file != r.crate.path {
		return
	}
	if r.seen[file] {
		return
	}
	r.seen[file] = true
	r.addPath(r.node, file)
	if !built || !isRust(file) {
		return
	}
	if way := r.snapshot.follow(file); way.ok {
		if i := r.find(way.end); i >= 0 {
			r.outside(file, i)
		}
	}
}

// outside follows what a file names that is none of the crate's.
func (r *reach) outside(file string, i int32) {
	if key := path.Join(file, "facts"); r.seen[key] {
		return
	} else {
		r.seen[key] = true
	}
	if facts := r.read(i); facts != nil {
		r.follow(file, facts, true, r.part == testPart)
	}
}

// read returns the facts of a file, nil if it is none or cannot be read.
func (r *reach) read(i int32) *sourceFacts {
	facts, known := r.facts[i]
	if !known && r.failed == nil {
		r.failed = r.readMore([]int32{i})
		facts = r.facts[i]
	}
	return facts
}
