package gograph

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// ungrouped are flags of go test and go build that mean something else, or nothing, for several packages.
var ungrouped = strings.Fields("args blockprofile c coverprofile cpuprofile exec fuzz i json memprofile mutexprofile n o outputdir overlay test.v toolexec trace x")

// groupOf returns how one go command verifies several packages, for the step that a template makes: nil if its template is not
// a go test or go build of the package's folder.
func groupOf(argv []string, s site) *targets.Group {
	last := len(argv) - 1
	if last < 2 || argv[0] != "go" || argv[last] != "{dir}" {
		return nil
	}
	results := map[string]targets.Results{"test": targets.GoTest, "build": targets.GoBuild}[argv[1]]
	flags := slices.Clone(argv[2:last])
	// With this every program is built, and none is kept.
	discards := results == targets.GoBuild && len(flags) > 1 && flags[0] == "-o" && flags[1] == "/dev/null"
	rest := flags
	if discards {
		rest = flags[2:]
	}
	if results == "" || results == targets.GoBuild && !discards || slices.ContainsFunc(rest, func(flag string) bool { return !groups(flag) }) {
		return nil
	}
	return &targets.Group{
		Argv: slices.Concat(argv[:2], []string{"-json"}, flags), Member: s.dir, Label: s.importPath, Results: results,
	}
}

// groups reports whether a word between the verb and the packages is a flag that means the same for several packages. A word that
// is no flag could be the value of one, or a package.
func groups(word string) bool {
	name, isFlag := strings.CutPrefix(word, "-")
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return isFlag && name != "" && !slices.Contains(ungrouped, name) && !strings.Contains(word, "{")
}
