package pythongraph

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of how far a path is followed through a file.
const (
	maxSteps  = 64 // of one expression
	maxPasses = 6  // through the file's assignments
	maxValues = 8  // of one name
)

// origin is a path that code makes of its own place.
type origin struct {
	// path is seen from the file's folder, or from the folder in which the code runs.
	path    string
	fromRun bool
	// lost is set if the path begins in a folder that is not known, or has parts that are not.
	lost bool
}

// up returns the folder a number of levels above.
func (o origin) up(levels int) origin {
	for range min(levels, maxLevels) {
		if o.path == "." || o.path == ".." || strings.HasSuffix(o.path, "/..") {
			o.path = path.Join(o.path, "..")
		} else {
			o.path = path.Dir(o.path)
		}
	}
	return o
}

// follower follows the paths that a file makes of its own place.
type follower struct {
	f      *facts
	tokens []token
	named  map[string][]origin
	// imported holds the names that come from other files.
	imported map[string]bool
	// climbed holds the places of climbs that begin at a known place.
	climbed map[int]bool
	changed bool
	// given is set if a place of the file's is handed to code that is not followed.
	given bool
}

// follow notes the folders above that a file reaches from its own place, by names too. What climbs and is not understood
// can reach the whole repository.
func (f *facts) follow(tokens []token) {
	w := &follower{f: f, tokens: tokens, named: map[string][]origin{}, imported: map[string]bool{}, climbed: map[int]bool{}}
	usesPaths := false
	for i, t := range tokens {
		if t.kind == nameToken && t.text == "import" {
			for k := i + 1; at(tokens, k).kind == nameToken && tokens[k].text != "import" || isByte(at(tokens, k), ",") || isByte(at(tokens, k), "(") || isByte(at(tokens, k), "."); k++ {
				w.imported[tokens[k].text] = true
			}
		}
		usesPaths = usesPaths || t.text == "pathlib" || t.text == "os" || t.text == "Path"
		if t.kind != nameToken && strings.Contains(t.text, "--show-toplevel") || isByte(at(tokens, i-1), ".") && (t.text == "rootpath" || t.text == "rootdir") {
			f.whole = true
		}
		if (t.kind == stringToken || t.kind == formatToken) && climbsBehindField(t.text) {
			f.whole = true
		}
	}
	w.changed = true
	for pass := 0; w.changed; pass++ {
		if pass == maxPasses {
			f.whole = true // A loop to the root.
			break
		}
		w.changed = false
		w.pass()
	}
	for i, t := range tokens {
		if t.kind != nameToken || w.climbed[i] {
			continue
		}
		f.climb(tokens, i)
		isMethod := isByte(at(tokens, i-1), ".")
		switch {
		case t.text == "parents" && isMethod && !isByte(at(tokens, i+1), "["):
			f.whole = f.whole || usesPaths
		case t.text == "parent" && isMethod && at(tokens, i-2).kind == nameToken && isByte(at(tokens, i-3), "=") && at(tokens, i-4).text == tokens[i-2].text:
			f.whole = f.whole || usesPaths // p = p.parent
		case t.text == "dirname" && isByte(at(tokens, i+1), "("):
			j := i
			for isByte(at(tokens, j-1), ".") {
				j -= 2
			}
			f.whole = f.whole || w.given || isByte(at(tokens, j-1), "=") && at(tokens, j-2).kind == nameToken && at(tokens, j-2).text == at(tokens, i+2).text
		case (t.text == "parent" || t.text == "parents") && isMethod:
			f.whole = f.whole || w.given
		}
	}
}

// climbsBehindField reports whether a text goes up from a part that is not known: "{here}/../x", "%s/..".
func climbsBehindField(text string) bool {
	field := strings.IndexAny(text, "{%")
	return field >= 0 && (strings.Contains(text[field:], "/../") || strings.HasSuffix(text, "/.."))
}

// pass reads each expression that begins at a known place once.
func (w *follower) pass() {
	function := ""
	for i, t := range w.tokens {
		if t.kind != nameToken {
			continue
		}
		before := at(w.tokens, i-1)
		isMember := isByte(before, ".")
		switch {
		case before.kind == nameToken && before.text == "def":
			function = t.text
		case t.text == "__file__":
			w.expression(i, i, function, origin{path: "__file__", lost: isMember})
		case (t.text == "cwd" || t.text == "getcwd") && isByte(at(w.tokens, i+1), "(") && isByte(at(w.tokens, i+2), ")"):
			w.expression(i, i+2, function, origin{path: ".", fromRun: true})
		case isByte(at(w.tokens, i+1), "=") && !isByte(at(w.tokens, i+2), "="):
		case isMember && (!w.imported[at(w.tokens, i-2).text] || isByte(at(w.tokens, i-3), ".")) && at(w.tokens, i-2).text != "self" && at(w.tokens, i-2).text != "cls":
		case len(w.named[t.text]) > 0:
			for _, o := range w.named[t.text] {
				w.expression(i, i, function, o)
			}
		case w.imported[t.text] && !isMember && t.text != "os" && t.text != "Path":
			w.expression(i, i, function, origin{path: ".", lost: true})
		case isMember && w.imported[at(w.tokens, i-2).text] && at(w.tokens, i-2).text != "os" && at(w.tokens, i-2).text != "Path":
			w.expression(i, i, function, origin{path: ".", lost: true})
		}
	}
}

// samePath are functions and methods that return the path that they are given.
var samePath = map[string]bool{"Path": true, "PurePath": true, "PosixPath": true, "abspath": true, "realpath": true, "str": true, "fspath": true, "normpath": true, "resolve": true, "absolute": true, "expanduser": true, "as_posix": true, "__str__": true, "local": true}

// opening are functions that read the path that they are given, and climb nowhere.
var opening = map[string]bool{
	"open": true, "exists": true, "isfile": true, "isdir": true, "listdir": true, "scandir": true, "walk": true, "glob": true, "iglob": true, "read_csv": true, "print": true,
	"insert": true, "append": true, "chdir": true, "load": true, "read_text": true, "relative_to": true, "len": true, "sorted": true, "list": true,
}

// expression reads what is made of a known place, which stands from start to end.
func (w *follower) expression(start, end int, function string, o origin) {
	tokens := w.tokens
	for isByte(at(tokens, start-1), ".") && at(tokens, start-2).kind == nameToken {
		start -= 2
	}
	isImported := o.lost && o.path == "."
	for range maxSteps {
		next, part := at(tokens, end+1), at(tokens, end+2)
		switch before := at(tokens, start-1); {
		case isByte(next, ".") && (part.text == "parent" || part.text == "dirname"):
			w.climbed[end+2] = true
			o, end = o.up(1), end+2
			continue
		case isByte(next, ".") && part.text == "parents":
			w.climbed[end+2] = true
			level, err := strconv.Atoi(at(tokens, end+4).text)
			if !isByte(at(tokens, end+3), "[") || !isByte(at(tokens, end+5), "]") || err != nil {
				w.f.whole = true
				return
			}
			o, end = o.up(level+1), end+5
			continue
		case isByte(next, ".") && (samePath[part.text] || part.text == "joinpath") && isByte(at(tokens, end+3), "("):
			if last, joined, ok := w.arguments(end+4, o); ok {
				o, end = joined, last
				continue
			}
		case isImported && isByte(next, "(") && isByte(part, ")"):
			end += 2
			continue
		case isByte(next, "/") && part.kind == stringToken, isByte(next, "+") && part.kind == stringToken && strings.HasPrefix(part.text, "/"):
			o.path, end = path.Join(o.path, part.text), end+2
			continue
		case isByte(before, "(") && at(tokens, start-2).kind == nameToken && !isKeyword(at(tokens, start-2)):
			called := at(tokens, start-2).text
			last, joined, ok := w.arguments(end+1, o)
			if ok && called == "dirname" && last == end+1 {
				w.climbed[start-2] = true
				joined = joined.up(1)
			} else if !ok || !samePath[called] && called != "join" {
				break
			}
			o, end, start = joined, last, start-2
			for isByte(at(tokens, start-1), ".") && at(tokens, start-2).kind == nameToken {
				start -= 2
			}
			continue
		case isByte(before, "(") && isByte(next, ")"):
			start, end = start-1, end+1
			continue
		}
		break
	}
	w.note(o)
	w.keep(start, end, function, o)
}

// arguments reads further texts of a call, which are joined to a path, up to its end.
func (w *follower) arguments(i int, o origin) (last int, _ origin, ok bool) {
	unknown := false
	for range 2 * maxJoined {
		switch t := at(w.tokens, i); {
		case isByte(t, ")"):
			return i, o, true
		case t.kind == stringToken:
			o.lost = o.lost || unknown && strings.Contains(t.text, "..")
			o.path = path.Join(o.path, t.text)
		case t.text == "pardir":
			o.path = path.Join(o.path, "..")
		case isByte(t, ",") || isByte(t, ".") || t.text == "os" || t.text == "path" || t.text == "strict" || t.text == "True" || isByte(t, "="):
		case t.kind == nameToken:
			unknown = true
			o.path = path.Join(o.path, "*")
		default:
			return i, o, false
		}
		i++
	}
	return i, o, false
}

// note notes a path that leads out of the folder it begins in.
func (w *follower) note(o origin) {
	spec := outsidePath(o.path)
	switch {
	case spec == "":
	case o.lost:
		w.f.whole = true
	case o.fromRun:
		w.f.reads = append(w.f.reads, spec)
	default:
		w.f.climbs = append(w.f.climbs, spec)
	}
}

// keep remembers a path by the name that it is given.
func (w *follower) keep(start, end int, function string, o origin) {
	tokens := w.tokens
	before, name := at(tokens, start-1), ""
	if next := at(tokens, end+1); next.kind != lineToken && next.kind != 0 && !isByte(next, ")") && !isByte(next, ",") {
		o.lost = true
	}
	switch {
	case isByte(before, "=") && isByte(at(tokens, start-2), ":"):
		name = at(tokens, start-3).text
	case isByte(before, "=") && isByte(at(tokens, start-3), ":"):
		name = at(tokens, start-4).text
	case isByte(before, "=") && at(tokens, start-2).kind == nameToken:
		name = at(tokens, start-2).text
	case before.kind == nameToken && (before.text == "return" || before.text == "yield"):
		name = function
	case before.kind == nameToken && before.text == "in":
		if o.path, o.lost = path.Join(o.path, "*"), true; at(tokens, start-2).kind == nameToken {
			name = at(tokens, start-2).text
		}
	case isByte(before, "(") || isByte(before, ",") || isByte(before, "["):
		called, _ := calledWith(tokens, start)
		isImported := o.lost && o.path == "."
		w.given = w.given || !isImported && !isByte(at(tokens, end+1), ".") && !opening[called] && !joiners[called]
	}
	if name == "" || o.lost && o.path == "." || slices.Contains(w.named[name], o) {
		return
	}
	if len(w.named[name]) == maxValues {
		w.f.whole = true
		return
	}
	w.named[name] = append(w.named[name], o)
	w.changed = true
}
