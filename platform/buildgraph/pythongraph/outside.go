package pythongraph

import (
	"path"
	"strconv"
	"strings"
	"unicode"

	"landfall.build/engine/targets"
)

// Bounds of what is read as one path. What follows is below.
const (
	maxJoined = 16  // strings
	maxLevels = 100 // folders upward
)

// path notes what a string, maybe with fields, says of files outside of the folder: its words that begin with "..", with the strings that a
// comma or a slash joins to it.
func (f *facts) path(tokens []token, i int) {
	text, last := tokens[i].text, i
	if !strings.Contains(text, "..") {
		return
	}
	for word := range strings.FieldsSeq(text) {
		last = i
		for word == text && last-i < 2*maxJoined && (isByte(at(tokens, last+1), ",") || isByte(at(tokens, last+1), "/")) && at(tokens, last+2).kind == stringToken {
			last += 2
			word += "/" + tokens[last].text
			text = word
		}
		if next := at(tokens, last+1); isByte(next, "+") || isByte(next, "%") {
			word = word[:strings.LastIndexByte(word, '/')+1]
		}
		spec := outsidePath(word)
		switch before := at(tokens, i-1); {
		case spec == "":
		case isByte(before, ",") || isByte(before, "/"):
			f.climbs = append(f.climbs, spec) // What is joined to it is mostly made of __file__.
		default:
			f.reads = append(f.reads, spec)
		}
	}
}

// climb notes a folder above the file's: parents[2], parent.parent, dirname(dirname(…)), with the strings that a slash joins
// to it.
func (f *facts) climb(tokens []token, i int) {
	levels, last := 0, i
	switch tokens[i].text {
	case "parents":
		last += 3
		if !isByte(at(tokens, i+1), "[") || !isByte(at(tokens, last), "]") {
			return
		}
		levels, _ = strconv.Atoi(at(tokens, i+2).text)
	case "parent":
		if at(tokens, i-2).text == "parent" {
			return // It is part of what was read before.
		}
		for isByte(at(tokens, last+1), ".") && at(tokens, last+2).text == "parent" {
			levels, last = levels+1, last+2
		}
	case "dirname":
		for k := i + 1; k < len(tokens) && levels < maxLevels && k-last <= 6 && (tokens[k].kind == nameToken || isByte(tokens[k], "(") || isByte(tokens[k], ".")); k++ {
			if tokens[k].text == "dirname" {
				levels, last = levels+1, k
			}
		}
		last = i
	default:
		return
	}
	if levels <= 0 {
		return
	}
	spec := strings.TrimSuffix(strings.Repeat("../", min(levels, maxLevels)), "/")
	for end := last + 2*maxJoined; last < end && isByte(at(tokens, last+1), "/") && at(tokens, last+2).kind == stringToken; {
		last += 2
		spec += "/" + tokens[last].text
	}
	if spec = outsidePath(spec); spec != "" {
		f.climbs = append(f.climbs, spec)
	}
}

// outsidePath returns the path that a text is, if it leads out of a folder, and else "". It ends before the first name with
// a wildcard or a field.
func outsidePath(text string) string {
	if len(text) > maxNameBytes || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	if known := knownPart(text); known == ".." || strings.HasPrefix(known, "../") {
		return known
	}
	return ""
}

// knownPart returns a path in its clean form, up to the first name with a wildcard or a field.
func knownPart(text string) string {
	names := strings.Split(path.Clean(text), "/")
	for i, name := range names {
		if strings.ContainsAny(name, `*?[{%$\`) {
			names = names[:i]
			break
		}
	}
	return strings.Join(names, "/")
}

// addOutside makes the module of a test depend on what it names outside of its folder, which starts there or, where pytest
// runs, in the project's.
func (a *assembler) addOutside(node targets.Node, f *folder, said *facts) {
	add := func(dir, spec string) {
		if at, ok := join(dir, spec); ok {
			a.edge(node, a.outside(at))
		}
	}
	if said.whole {
		a.edge(node, a.outside(""))
	}
	for _, spec := range said.climbs {
		add(f.path, spec)
	}
	if f.project != nil {
		if said.here {
			add(f.project.dir(), ".")
		}
		for _, spec := range said.places {
			add(f.project.dir(), spec)
			if strings.HasSuffix(spec, ".py") {
				add(f.path, spec) // What else is below is data of the test.
			}
		}
	}
	for _, spec := range said.reads {
		add(f.path, spec)
		if f.project != nil {
			add(f.project.dir(), spec)
		}
	}
}

// outside returns the node of a path that tests name: the file, or the folder with all below, there or not.
func (a *assembler) outside(named string) targets.Node {
	if node, ok := a.named[named]; ok {
		return node
	}
	node := a.builder.Definition("python:named by tests "+named, nil)
	a.named[named] = node
	for at := named; at != ""; at = folderOf(at) {
		a.ref(node, targets.KindFile, at)
		if i := a.find(at); i >= 0 {
			a.edge(node, a.moduleOrFile(i)) // The file, or a link on the way.
		}
	}
	if named == "" || a.find(named) < 0 {
		a.addFolder(node, named)
	}
	return node
}
