package nodegraph

import (
	"bytes"
	"regexp"
	"strings"
)

// everywhere is the climb of code that goes up until it finds something.
const everywhere = "/"

// ownPlace are words for where a file is, or where it is run.
var ownPlace = regexp.MustCompile(`\b(?:__dirname|__filename|import\.meta|process\.cwd)\b`)

// upwards matches calls of dirname within each other and what the innermost is given.
var upwards = regexp.MustCompile(`((?:(?:[\w$]+\.)*dirname\s*\(\s*)*)((?:[\w$]+\.)*fileURLToPath\s*\(\s*import\.meta\.url|new\s+URL\s*\([^()]*\)\.pathname|process\.cwd\(\)|import\.meta\.(?:dirname|filename)|[A-Za-z_$][\w$]*)`)

// given matches the beginning of a value that a name is given: name = path.dirname(
var given = regexp.MustCompile(`([A-Za-z_$][\w$]*)\s*=\s*$`)

// place is where a value leads: so many folders above that of the file, -1 for the file itself, or above where it is run.
type place struct {
	above   int
	fromRun bool
}

var ownPlaces = map[string]place{
	"__dirname": {}, "__filename": {above: -1}, "import.meta.dirname": {}, "import.meta.filename": {above: -1}, "process.cwd()": {fromRun: true},
}

// dirnames returns the folders above to which code climbs by dirname from its own place: exactly, or everywhere if a loop does so.
func dirnames(content []byte) (found []climb) {
	if !bytes.Contains(content, []byte("dirname")) || !ownPlace.Match(content) {
		return nil
	}
	names := map[string]place{}
	above := map[string]string{} // by name, the name of whose folder it is
	for _, at := range upwards.FindAllSubmatchIndex(content, -1) {
		base := string(content[at[4]:at[5]])
		calls := strings.Count(string(content[at[2]:at[3]]), "dirname")
		from, known := ownPlaces[base]
		switch {
		case known:
		case strings.Contains(base, "import.meta.url"):
			from, known = place{above: -1}, true
		default:
			from, known = names[base]
		}
		if calls == 0 && !known && above[base] == "" {
			continue
		}
		name := ""
		if m := given.FindSubmatch(content[max(0, at[0]-maxLineBytes):at[0]]); m != nil {
			name = string(m[1])
		}
		from.above += calls
		before, again := names[name]
		switch {
		case name != "" && (calls > 0 && name == base || calls == 0 && above[base] == name || known && again && from.above > before.above):
			found = append(found, climb{spec: everywhere}) // dir = dirname(dir), at once or by another name
			continue
		case calls > 0 && name != "":
			above[name] = base
		}
		if !known {
			continue
		}
		if name != "" {
			names[name] = from
		}
		if calls > 0 && from.above > 0 {
			found = append(found, climb{strings.TrimSuffix(strings.Repeat("../", from.above), "/"), from.fromRun})
		}
	}
	return found
}
