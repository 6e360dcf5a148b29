package pythongraph

import (
	"slices"
	"strings"
	"unicode"
)

// Bounds of what is read as paths from where code runs.
const (
	maxPlaces   = 5000 // With more, all that is there counts.
	maxArgument = 32   // tokens between a call's parenthesis and a string
)

// joiners are functions that make one path of their arguments.
var joiners = map[string]bool{"join": true, "joinpath": true, "Path": true, "PurePath": true, "PosixPath": true, "PurePosixPath": true}

// listers are functions that read a folder which their first argument names.
var listers = map[string]bool{
	"Path": true, "PurePath": true, "PosixPath": true, "walk": true, "fwalk": true, "listdir": true, "scandir": true, "glob": true, "iglob": true,
	"abspath": true, "realpath": true, "chdir": true, "copytree": true, "find_packages": true,
}

// pathModules are modules with listers.
var pathModules = []string{"os", "path", "glob", "pathlib", "shutil"}

// place notes what a string says of files from where the code runs: paths that begin with a name. A string without spaces is one,
// with what is joined to it; of one with spaces, the words with a dot or a slash, and documents, are.
func (f *facts) place(tokens []token, i int) {
	text := tokens[i].text
	if text == "" || isDocstring(tokens, i) {
		return
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		for word := range strings.FieldsSeq(text) {
			if word = strings.Trim(word, "\"'`(),;:"); strings.ContainsAny(word, "./") || isDocument(word) {
				f.addPlace(word)
			}
		}
		return
	}
	function, first := calledWith(tokens, i)
	joins := func(t token) bool { return isByte(t, "/") || isByte(t, ",") && joiners[function] }
	before := at(tokens, i-1)
	if before.kind == stringToken || (joins(before) || isByte(before, "+")) && at(tokens, i-2).kind == stringToken {
		return // It is part of what was read before.
	}
	word, last := text, i
	for last-i < 2*maxJoined {
		next := last + 1
		if isByte(at(tokens, next), "+") {
			next++
		}
		if part := at(tokens, next); part.kind == stringToken {
			word, last = word+part.text, next
			continue
		}
		next = last + 1
		if first && joiners[function] && isByte(at(tokens, next), ")") && isByte(at(tokens, next+1), "/") {
			next++ // Path("a") / "b"
		}
		part := at(tokens, next+1)
		if !joins(at(tokens, next)) || part.kind != stringToken && part.kind != formatToken {
			break
		}
		word, last = word+"/"+part.text, next+1
	}
	if next := at(tokens, last+1); isByte(next, "+") || isByte(next, "%") {
		word = word[:strings.LastIndexByte(word, '/')+1]
	}
	if known := knownPart(word); word != "" && (known == "" || known == ".") {
		// All that is there. A method's object can be any folder.
		ofModule := !isByte(at(tokens, i-3), ".") || slices.Contains(pathModules, at(tokens, i-4).text)
		f.here = f.here || first && listers[function] && ofModule
		return
	}
	f.addPlace(word)
}

// addPlace notes a path that begins with a name.
func (f *facts) addPlace(text string) {
	text, _, _ = strings.Cut(text, "::") // A test's id.
	if len(text) > maxNameBytes || strings.Contains(text, "//") || strings.ContainsFunc(text, isInNoPath) || !strings.ContainsFunc(text, unicode.IsLetter) {
		return
	}
	if known := knownPart(text); known != "." && known != "" && known != ".." && known[0] != '/' && !strings.HasPrefix(known, "../") {
		f.places = append(f.places, known)
	}
}

// isInNoPath reports whether a character is one that paths in tests do not have: what has them is another kind of text.
func isInNoPath(r rune) bool {
	return unicode.IsControl(r) || strings.ContainsRune("\"'`<>|;&=(),!#^", r)
}

// calledWith returns the function in whose call a token stands; first reports whether it begins the call's arguments.
func calledWith(tokens []token, i int) (function string, first bool) {
	depth := 0
	for k := i - 1; k >= 0 && i-k <= maxArgument && tokens[k].kind != lineToken; k-- {
		switch t := tokens[k]; {
		case isByte(t, ")") || isByte(t, "]") || isByte(t, "}"):
			depth++
		case depth > 0 && (isByte(t, "(") || isByte(t, "[") || isByte(t, "{")):
			depth--
		case isByte(t, "(") && at(tokens, k-1).kind == nameToken:
			return tokens[k-1].text, k == i-1
		case isByte(t, "(") || isByte(t, "[") || isByte(t, "{"):
			return "", false
		}
	}
	return "", false
}

// isDocstring reports whether a string is a statement of its own. One with examples can be a test.
func isDocstring(tokens []token, i int) bool {
	isLine := func(k int) bool { return k < 0 || k >= len(tokens) || tokens[k].kind == lineToken }
	return isLine(i-1) && isLine(i+1) && !strings.Contains(tokens[i].text, ">>>")
}

// workingFolder notes a read of the folder in which the code runs, unless a name in it is joined to it.
func (f *facts) workingFolder(tokens []token, i int) {
	last := i
	switch tokens[i].text {
	case "getcwd", "cwd", "listdir", "scandir", "Path":
		if last += 2; !isByte(at(tokens, i+1), "(") || !isByte(at(tokens, last), ")") {
			return
		}
	case "rootdir", "rootpath", "curdir":
		if !isByte(at(tokens, i-1), ".") {
			return
		}
	default:
		return
	}
	next, part := at(tokens, last+1), at(tokens, last+2)
	switch {
	case isByte(next, "/") && part.kind == stringToken:
	case isByte(next, ",") && part.kind == stringToken:
		function, _ := calledWith(tokens, i)
		f.here = f.here || !joiners[function]
	case isByte(next, ".") && joiners[part.text] && at(tokens, last+4).kind == stringToken:
	default:
		f.here = true
	}
}
