// Package services_test holds the architecture of the workspace as tests. Each rule is a function from
// the source to complaints, and each complaint gives the rule's reason; architecture_violations_test.go
// shows that each rule finds what it forbids.
package services_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// rule looks at the whole project. What it returns is empty for a project that keeps it.
type rule func(p *project) (complaints []string)

func TestTheWorkspaceKeepsItsArchitecture(t *testing.T) {
	p := readProject(t)
	for name, check := range rules() {
		t.Run(name, func(t *testing.T) {
			for _, complaint := range check(p) {
				t.Error(complaint)
			}
		})
	}
}

func rules() map[string]rule {
	return map[string]rule{
		"pure cores reach nothing outside":          pureCores,
		"modules depend downward only":              moduleDirections,
		"events import Protobuf and nothing else":   lightEvents,
		"packages are named for what they compute":  meaningfulNames,
		"loggers are arguments":                     argumentLoggers,
		"standard output belongs to commands":       quietServices,
		"files can be read in one sitting":          readableFiles,
		"services touch only topics of their own":   ownTopics,
		"every service has a README":                serviceReadmes,
		"READMEs and the table of topics agree":     readmeTopics,
		"documents name what exists":                livingLinks,
		"every claim has a row, and names its test": claimRows,
	}
}

// pureFolders are the cores: state and one ordered input in, new state and outputs out. Their results rest
// on nothing but their arguments, so that a log gives the same state on every machine and at any time.
var pureFolders = []string{
	"services/analyzer/affected",
	"services/analyzer/agenda",
	"services/analyzer/churn",
	"services/analyzer/targets",
	"services/builder/work",
	"services/enumerator/speculation",
	"services/evidence",
	"services/foreign",
	"services/gateway/admission",
	"services/gateway/state",
	"services/gateway/view",
	"services/graph",
	"services/historian/rows",
	"services/lander/guard",
	"services/lineup",
	"services/memberset",
	"services/pathkind",
	"services/prioritizer/eta",
	"services/prioritizer/explanation",
	"services/prioritizer/ranking",
	"services/profiler/bypass",
	"services/profiler/features",
	"services/profiler/prediction",
	"services/profiler/recent",
	"services/selector/decision",
	"services/trainer/book",
}

// harmless is the part of the standard library that neither looks at the world nor at the scheduler. "time"
// is there for its types; see impure for its clock.
var harmless = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "errors", "fmt", "iter",
	"maps", "math", "math/big", "math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// impure names what a harmless package has that is not.
var impure = map[string][]string{
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"time": {"After", "AfterFunc", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
}

const whyPure = "a core is a function of its arguments: replay, the random schedules and every other instance must get the same from the same log (ARCHITECTURE.md, rules of the code)"

// exemption lets a core use one more package, and of that only these names.
type exemption struct {
	folder, imported string
	names            []string
	reason           string
}

var pureExemptions = []exemption{
	{"services/gateway/state", "landfall.build/services/journal", []string{"Entry"}, "the type of a record as read; the state neither appends nor follows"},
	{"services/gateway/state", "landfall.build/services/snapshot", []string{"Freeze", "Thaw"}, "bytes of what is in memory, and back; files are the keeper's"},
	{"services/gateway/view", "landfall.build/services/journal", []string{"Entry"}, "the type of a record as read; the view neither appends nor follows"},
	{"services/profiler/prediction", "landfall.build/learning/bytime", []string{"ErrNotAModel", "Unmarshal"}, "asking a model is arithmetic; fitting one is the trainer's"},
	{"services/profiler/prediction", "landfall.build/learning/calibration", []string{"Map", "Unmarshal"}, "asking a map is arithmetic; fitting one is the trainer's"},
	{"services/profiler/prediction", "landfall.build/learning/logistic", []string{"Unmarshal"}, "asking a model is arithmetic; fitting one is the trainer's"},
	{"services/profiler/prediction", "landfall.build/learning/ngboost", []string{"Distribution", "LogNormal", "Model", "Unmarshal"}, "asking a model is arithmetic; fitting one is the trainer's"},
}

func pureCores(p *project) (complaints []string) {
	used := map[int]bool{}
	for _, folder := range pureFolders {
		files := p.in(folder)
		if len(files) == 0 {
			complaints = append(complaints, folder+": there is no Go file; take the folder out of pureFolders, or put the core back")
		}
		for _, f := range files {
			for _, imported := range f.imports {
				exempt := slices.IndexFunc(pureExemptions, func(e exemption) bool { return e.folder == folder && e.imported == imported })
				switch {
				case exempt >= 0:
					used[exempt] = true
				case !mayImport(imported):
					complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", f.path, imported, whyPure))
				}
			}
			complaints = append(complaints, impureUses(f)...)
		}
	}
	for i, e := range pureExemptions {
		if !used[i] {
			complaints = append(complaints, fmt.Sprintf("%s no longer imports %s; drop the exemption", e.folder, e.imported))
		}
	}
	return complaints
}

func mayImport(imported string) bool {
	if slices.Contains(harmless, imported) || strings.HasPrefix(imported, "google.golang.org/protobuf/") {
		return true
	}
	local, ours := strings.CutPrefix(imported, modulePrefix)
	return ours && (local == "events" || local == "events/v1" || slices.Contains(pureFolders, local))
}

// impureUses are clocks, printing and concurrency in one file of a core.
func impureUses(f *goFile) (complaints []string) {
	complain := func(pos token.Pos, what string) {
		complaints = append(complaints, fmt.Sprintf("%s: %s: %s", f.at(pos), what, whyPure))
	}
	f.eachUse(func(imported, name string, pos token.Pos) {
		if slices.Contains(impure[imported], name) {
			complain(pos, "uses "+imported+"."+name)
		}
		for _, e := range pureExemptions {
			if e.folder == f.folder && e.imported == imported && !slices.Contains(e.names, name) {
				complain(pos, fmt.Sprintf("uses %s.%s, but only %v is exempt", imported, name, e.names))
			}
		}
	})
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.GoStmt:
			complain(n.Pos(), "starts a goroutine")
		case *ast.SelectStmt:
			complain(n.Pos(), "selects")
		case *ast.ChanType:
			complain(n.Pos(), "has a channel")
		}
		return true
	})
	return complaints
}

// moduleDirections: what each module may import of the others.
func moduleDirections(p *project) (complaints []string) {
	allowed := map[string][]string{
		"events":   {},
		"learning": {},
		"services": {"events", "learning"},
		"tools":    {"events", "learning", "services"},
	}
	for _, f := range p.files {
		from, _, _ := strings.Cut(f.path, "/")
		for _, imported := range f.imports {
			local, ours := strings.CutPrefix(imported, modulePrefix)
			to, _, _ := strings.Cut(local, "/")
			if ours && to != from && !slices.Contains(allowed[from], to) {
				complaints = append(complaints, fmt.Sprintf(
					"%s imports %s: module %s may import %v only; a code-review system imports events without the services, and a service is deployed without the tools' dependencies",
					f.path, imported, from, allowed[from]))
			}
		}
	}
	return complaints
}

// lightEvents: whoever publishes land events imports this module.
func lightEvents(p *project) (complaints []string) {
	for _, f := range p.below("events") {
		for _, imported := range f.imports {
			first, _, _ := strings.Cut(imported, "/")
			standard := !strings.Contains(first, ".")
			if !standard && !strings.HasPrefix(imported, "google.golang.org/protobuf/") && !strings.HasPrefix(imported, modulePrefix+"events") {
				complaints = append(complaints, fmt.Sprintf("%s imports %s: events depend on Protobuf and the standard library alone, so that a code-review system can import them", f.path, imported))
			}
		}
	}
	return complaints
}

func meaningfulNames(p *project) (complaints []string) {
	banned := []string{
		"base", "common", "commons", "core", "entity", "entities", "global", "helper", "helpers", "lib", "manager", "managers",
		"misc", "model", "models", "shared", "stuff", "type", "types", "util", "utils",
	}
	seen := map[string]bool{}
	for _, f := range p.files {
		folders := strings.Split(f.folder, "/")
		name := strings.TrimSuffix(f.syntax.Name.Name, "_test")
		for _, n := range append(folders, name) {
			if slices.Contains(banned, n) && !seen[f.folder] {
				seen[f.folder] = true
				complaints = append(complaints, fmt.Sprintf("%s: %q says nothing: name the package for what it computes, or nobody can tell what belongs in it", f.folder, n))
			}
		}
	}
	return complaints
}

func argumentLoggers(p *project) (complaints []string) {
	global := []string{
		"Debug", "DebugContext", "Default", "Error", "ErrorContext", "Info", "InfoContext", "Log", "LogAttrs", "SetDefault", "Warn", "WarnContext", "With",
	}
	for _, f := range p.below("services") {
		f.eachUse(func(imported, name string, pos token.Pos) {
			if imported == "log" || imported == "log/slog" && slices.Contains(global, name) {
				complaints = append(complaints, fmt.Sprintf("%s: uses %s.%s: loggers are arguments, so that a line says which service, queue and change it is about", f.at(pos), imported, name))
			}
		})
	}
	return complaints
}

func quietServices(p *project) (complaints []string) {
	for _, f := range p.below("services") {
		f.eachUse(func(imported, name string, pos token.Pos) {
			if imported == "fmt" && slices.Contains(impure["fmt"], name) || imported == "os" && name == "Stdout" {
				complaints = append(complaints, fmt.Sprintf("%s: uses %s.%s: with --json standard output holds one JSON value and nothing else; log, or return it", f.at(pos), imported, name))
			}
		})
	}
	return complaints
}

// maxLines is where a file ends the build. What is written aims at less than 400.
const maxLines = 900

func readableFiles(p *project) (complaints []string) {
	for _, f := range p.files {
		if !f.generated && f.lines > maxLines {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, at most %d: a file is read in one sitting; split it by what arrives or by what is computed", f.path, f.lines, maxLines))
		}
	}
	return complaints
}
