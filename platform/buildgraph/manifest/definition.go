package manifest

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
)

// parsedFile is the meaning of one manifest. It depends on the file's path and
// content alone, so it is cached by these two, and it never changes.
type parsedFile struct {
	path        string
	bytes       int
	environment []string // NAME=value, sorted; root only
	caches      []string // root only
	inputs      []*pattern
	targets     []*definition
	edges       []targets.Edge // between targets that any adapter may define
	owners      *[]string      // of targets in and below the folder; nil if the file does not say
	problems    problems
}

// definition is one target as its manifest states it, with names made absolute.
type definition struct {
	file    string
	line    int
	name    string // the full label as shown
	kind    string
	sources []source
	exclude []*pattern
	deps    []word // full labels as shown
	foreign []word // names of targets that another adapter defines
	steps   []targets.Command
	owners  *[]string // nil if the target does not say
	// normal is the definition's meaning without its steps: equal meaning,
	// equal bytes.
	normal []byte
}

// source is a pattern and where it stands.
type source struct {
	*pattern
	line int
}

const (
	defaultKind = "library"
	maxTimeout  = 24 * time.Hour
	// platformPrefix is what the names of variables begin with by which a step is told of itself.
	platformPrefix = "LANDFALL_"
)

var (
	namePattern     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+=@~-]*$`)
	variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// EdgesAlone reports whether a manifest is in order, and has edges and nothing else.
func EdgesAlone(content []byte) bool {
	f := parseFile(FileName, content)
	return len(f.problems) == 0 && len(f.edges) > 0 && len(f.targets)+len(f.inputs)+len(f.environment)+len(f.caches) == 0
}

// parseFile reads a manifest. What is wrong is in the result's problems.
func parseFile(filePath string, content []byte) *parsedFile {
	folder := path.Dir(filePath)
	if folder == "." {
		folder = ""
	}
	r := &fileReader{path: filePath, folder: folder}
	file := &parsedFile{path: filePath, bytes: len(content)}
	root, err := parseDocument(string(content))
	var bad *syntaxError
	switch {
	case errors.As(err, &bad):
		r.problem(bad.line, "%s", bad.message)
	case !targetFolder(folder):
		r.problem(0, "the folder's name cannot be part of a target's label (colon, quote, backslash or control character); rename it")
	case root.kind != nullNode:
		r.readFile(file, root)
	}
	file.problems = r.problems
	return file
}

func (r *fileReader) readFile(file *parsedFile, root *node) {
	for _, f := range r.fields(root, "the file") {
		switch f.name {
		case "targets":
			for _, item := range r.items(f, "the file") {
				if d := r.readTarget(item); d != nil {
					file.targets = append(file.targets, d)
				}
			}
		case "environment", "inputs", "caches":
			if r.folder != "" {
				r.problem(f.line, "%s holds for the whole repository; move it to the root's %s", f.name, FileName)
				continue
			}
			switch f.name {
			case "environment":
				file.environment = r.readEnvironment(f)
			case "caches":
				file.caches = r.readNames(f, "the file")
			default:
				for _, s := range r.readSources(f, "the file") {
					file.inputs = append(file.inputs, s.pattern)
				}
			}
		case "edges":
			for _, item := range r.items(f, "the file") {
				file.edges = append(file.edges, r.readEdges(item)...)
			}
		case "owners":
			file.owners = r.readOwners(f, "the file")
		default:
			r.unknown(f, "the file", "targets", "edges", "owners", "environment (root)", "inputs (root)", "caches (root)")
		}
	}
}

func (r *fileReader) readEnvironment(f field) []string {
	var environment []string
	for _, v := range r.fields(f.value, "environment") {
		if v.value.kind != textNode {
			r.problem(v.line, "%s of environment must be a text, a number, true or false, not %s", v.name, v.value.kind)
		}
		value := v.value.text
		if !variablePattern.MatchString(v.name) {
			r.problem(v.line, "%s is not the name of an environment variable; use letters, digits and _", clip(v.name))
		}
		if strings.HasPrefix(v.name, platformPrefix) {
			r.problem(v.line, "%s has a name that begins with %s, as those do that the builder sets; give it another name", v.name, platformPrefix)
		}
		if strings.ContainsRune(value, 0) {
			r.problem(v.line, "the value of %s holds a NUL character; remove it", clip(v.name))
		}
		environment = append(environment, v.name+"="+value)
	}
	slices.Sort(environment)
	return environment
}

func (r *fileReader) readTarget(node *node) *definition {
	const what = "a target"
	d := &definition{file: r.path, line: node.line, kind: defaultKind}
	named := false
	var labels []string // of all steps
	for _, f := range r.fields(node, what) {
		switch f.name {
		case "name":
			named = true
			d.line = f.line
			d.name = r.readName(f)
		case "kind":
			d.kind = r.text(f, what)
			if !isName(d.kind) {
				r.problem(f.line, "kind %s is not a word; use one such as library, test, binary", clip(d.kind))
			}
		case "sources":
			d.sources = r.readSources(f, what)
		case "exclude":
			d.exclude = r.readExclude(f)
		case "deps":
			d.deps, d.foreign = r.readDeps(f)
		case "steps":
			d.steps = r.readSteps(f)
		case "runs_on":
			labels = r.readNames(f, what)
		case "owners":
			d.owners = r.readOwners(f, what)
		default:
			r.unknown(f, what, "name", "kind", "sources", "exclude", "deps", "steps", "runs_on", "owners")
		}
	}
	for i := range d.steps {
		needs := &d.steps[i].Needs
		needs.RunsOn = slices.Concat(needs.RunsOn, labels)
		slices.Sort(needs.RunsOn)
		needs.RunsOn = slices.Compact(needs.RunsOn)
	}
	r.checkLeaving(d)
	if !named {
		r.problem(d.line, "a target has no name; add name: …")
	}
	if d.name == "" {
		return nil
	}
	d.normal = d.normalize()
	return d
}

func (r *fileReader) readName(f field) string {
	name := r.text(f, "a target")
	if !isName(name) {
		r.problem(f.line, "%s is not a target name; use up to 200 letters, digits and . _ + = @ ~ -", clip(name))
		return ""
	}
	label := joinLabel(r.folder, name)
	if label == targets.Repository {
		r.problem(f.line, "the name %s is taken by the repository as a whole; choose another", label)
		return ""
	}
	return label
}

func (r *fileReader) readSources(f field, what string) []source {
	var sources []source
	for _, w := range r.words(f, what) {
		p, err := parsePattern(r.folder, w.text)
		if err != nil {
			r.problem(w.line, "%s %s %v", f.name, clip(w.text), err)
			continue
		}
		sources = append(sources, source{p, w.line})
	}
	return sources
}

func (r *fileReader) readExclude(f field) []*pattern {
	var exclude []*pattern
	for _, s := range r.readSources(f, "a target") {
		exclude = append(exclude, s.pattern)
	}
	if len(exclude) > maxExcludes {
		r.problem(f.line, "exclude holds more than %d patterns; join some", maxExcludes)
		return nil
	}
	return exclude
}

// readDeps returns the targets of manifests and those of other adapters.
func (r *fileReader) readDeps(f field) (deps, foreign []word) {
	for _, w := range r.words(f, "a target") {
		if isForeign(w.text) {
			foreign = append(foreign, w)
		} else if label, err := parseLabel(r.folder, w.text); err != nil {
			r.problem(w.line, "dependency %s %v", clip(w.text), err)
		} else {
			deps = append(deps, word{label, w.line})
		}
	}
	return deps, foreign
}

// readEdges reads dependencies of a target that need not be one of a manifest.
func (r *fileReader) readEdges(n *node) []targets.Edge {
	const what = "an edge"
	var from string
	var to []word
	for _, f := range r.fields(n, what) {
		switch f.name {
		case "from":
			from = r.readEnd(word{r.text(f, what), f.line})
		case "to":
			to = r.words(f, what)
		default:
			r.unknown(f, what, "from", "to")
		}
	}
	if from == "" || len(to) == 0 {
		r.problem(n.line, "an edge needs from, a target, and to, a list of targets that it depends on")
		return nil
	}
	edges := make([]targets.Edge, 0, len(to))
	for _, w := range to {
		edges = append(edges, targets.Edge{From: from, To: r.readEnd(w), Place: fmt.Sprintf("%s:%d", r.path, w.line)})
	}
	return edges
}

// readEnd reads the target at one end of an edge.
func (r *fileReader) readEnd(w word) string {
	if isForeign(w.text) {
		return w.text
	}
	label, err := parseLabel(r.folder, w.text)
	if err != nil {
		r.problem(w.line, "%s %v, or a target of another adapter as `landfall targets` shows it", clip(w.text), err)
	}
	return label
}

// normalize writes the definition without its steps, which the engine hashes
// with the target. Order and repetitions mean nothing; each field is quoted, so
// that no two definitions give the same bytes.
func (d *definition) normalize() []byte {
	var normal []byte
	list := func(field string, texts []string) {
		slices.Sort(texts)
		for _, text := range slices.Compact(texts) {
			normal = fmt.Appendf(normal, "%s %q\n", field, text)
		}
	}
	list("kind", []string{d.kind})
	var sources []string
	for _, s := range d.sources {
		sources = append(sources, s.text)
	}
	list("source", sources)
	list("exclude", patternTexts(d.exclude))
	list("dep", sortedTexts(d.deps))
	list("foreign", sortedTexts(d.foreign))
	return normal
}

func patternTexts(patterns []*pattern) []string {
	var texts []string
	for _, p := range patterns {
		texts = append(texts, p.text)
	}
	return texts
}
