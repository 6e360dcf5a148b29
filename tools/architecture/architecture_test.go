// Package architecture_test holds the architecture of the workspace as tests. Each rule is a function from the source to
// complaints, and each complaint gives the rule's reason; violations_test.go shows that each rule finds what it forbids.
package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// rule checks the whole project. It returns nothing for a project that keeps it.
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
		"the engine reaches nothing outside":        pureEngine,
		"services holds services and nothing else":  serviceFolders,
		"no service imports another":                separateServices,
		"modules depend downward only":              moduleDirections,
		"events import Protobuf and nothing else":   lightEvents,
		"packages are named for what they compute":  meaningfulNames,
		"loggers are arguments":                     argumentLoggers,
		"standard output belongs to commands":       quietServices,
		"files can be read in one sitting":          readableFiles,
		"a struct of the engine holds one thing":    smallStructs,
		"the model names every package":             modelNamesPackages,
		"nothing is unsafe":                         safeFiles,
		"services touch only topics of their own":   ownTopics,
		"accounts may do what the code does":        accountsFit,
		"every service has a README":                serviceReadmes,
		"READMEs and the table of topics agree":     readmeTopics,
		"documents name what exists":                livingLinks,
		"every claim has a row, and names its test": claimRows,
		"each threat names a test that is there":    threatTests,
	}
}

// harmless lists the packages of the standard library that touch neither the world nor the scheduler. "time" is there for
// its types; its clock is in impure.
var harmless = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json", "encoding/xml",
	"errors", "fmt", "iter", "maps", "math", "math/big", "math/bits", "path", "regexp", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// impure lists the functions of harmless packages that are not harmless.
var impure = map[string][]string{
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"time": {"After", "AfterFunc", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
}

const whyPure = "the engine is a function of its arguments: replay, the random schedules and every other instance must get the same from the same log (ARCHITECTURE.md, rules of the code)"

// askingModels lists what the engine may use of the module learning, by package: asking a model is arithmetic; fitting one is
// the trainer's.
var askingModels = map[string][]string{
	"landfall.build/learning/bytime":      {"ErrNotAModel", "Unmarshal"},
	"landfall.build/learning/calibration": {"Map", "Unmarshal"},
	"landfall.build/learning/logistic":    {"Unmarshal"},
	"landfall.build/learning/ngboost":     {"Distribution", "LogNormal", "Model", "Unmarshal"},
}

// testSupport ends the name of a package that only tests may import. It may draw random numbers.
const testSupport = "test"

// pureEngine: every package of the engine is state and one ordered input in, new state and outputs out.
func pureEngine(p *project) (complaints []string) {
	for _, f := range p.below("engine") {
		if f.generated || strings.HasSuffix(f.folder, testSupport) {
			continue
		}
		for _, imported := range f.imports {
			_, asks := askingModels[imported]
			if !asks && !mayImport(imported) {
				complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", f.path, imported, whyPure))
			}
		}
		complaints = append(complaints, impureUses(f)...)
	}
	return complaints
}

func mayImport(imported string) bool {
	if slices.Contains(harmless, imported) || strings.HasPrefix(imported, "google.golang.org/protobuf/") {
		return true
	}
	local, ours := strings.CutPrefix(imported, modulePrefix)
	return ours && (local == "events" || local == "events/v1" || strings.HasPrefix(local, "engine/") && !strings.HasSuffix(local, testSupport))
}

// impureUses returns the clocks, printing and concurrency in one file of the engine, and its uses of learning beyond asking.
func impureUses(f *goFile) (complaints []string) {
	complain := func(pos token.Pos, what string) {
		complaints = append(complaints, fmt.Sprintf("%s: %s: %s", f.at(pos), what, whyPure))
	}
	f.eachUse(func(imported, name string, pos token.Pos) {
		if slices.Contains(impure[imported], name) {
			complain(pos, "uses "+imported+"."+name)
		}
		if allowed, asks := askingModels[imported]; asks && !slices.Contains(allowed, name) {
			complain(pos, fmt.Sprintf("uses %s.%s; of that package the engine may use %v", imported, name, allowed))
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

// moduleDirections: modules import downward only.
func moduleDirections(p *project) (complaints []string) {
	allowed := map[string][]string{
		"events":   {},
		"learning": {"events"}, // its tests take their seeds as all others do
		"engine":   {"events", "learning"},
		"platform": {"events", "engine"},
		"services": {"events", "learning", "engine", "platform"},
		"tools":    {"events", "learning", "engine", "platform", "services"},
	}
	for _, f := range p.files {
		from, _, _ := strings.Cut(f.path, "/")
		for _, imported := range f.imports {
			local, ours := strings.CutPrefix(imported, modulePrefix)
			to, _, _ := strings.Cut(local, "/")
			if ours && to != from && !slices.Contains(allowed[from], to) {
				complaints = append(complaints, fmt.Sprintf(
					"%s imports %s: module %s may import %v only; a code-review system imports events alone, the simulator runs the engine without a broker, and a service is deployed without the tools' dependencies",
					f.path, imported, from, allowed[from]))
			}
		}
	}
	return complaints
}

// serviceFolders: the module services has one folder for each service and nothing else.
func serviceFolders(p *project) (complaints []string) {
	names := serviceNames()
	seen := map[string]bool{}
	for _, f := range p.files {
		below, in := strings.CutPrefix(f.path, "services/")
		if !in {
			continue
		}
		folder, _, nested := strings.Cut(below, "/")
		if seen[folder] || nested && slices.Contains(names, folder) {
			continue
		}
		seen[folder] = true
		complaints = append(complaints, fmt.Sprintf(
			"services/%s is no service of events.Topics: services has one folder for each service, so that its list is the list of what runs; decisions belong in engine, what touches the world for several services in platform", folder))
	}
	return complaints
}

// separateServices: services know each other's records, never each other's code.
func separateServices(p *project) (complaints []string) {
	for _, f := range p.files {
		below, in := strings.CutPrefix(f.path, "services/")
		if !in {
			continue
		}
		own, _, _ := strings.Cut(below, "/")
		for _, imported := range f.imports {
			other, is := strings.CutPrefix(imported, modulePrefix+"services/")
			if first, _, _ := strings.Cut(other, "/"); is && first != own {
				complaints = append(complaints, fmt.Sprintf("%s imports %s: services speak through topics alone, so that each can be read, deployed and replaced by itself; what both need belongs in engine or platform", f.path, imported))
			}
		}
	}
	return complaints
}

// lightEvents: programs that publish land requests import this module.
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
	for _, f := range slices.Concat(p.below("engine"), p.below("platform"), p.below("services")) {
		f.eachUse(func(imported, name string, pos token.Pos) {
			if imported == "log" || imported == "log/slog" && slices.Contains(global, name) {
				complaints = append(complaints, fmt.Sprintf("%s: uses %s.%s: loggers are arguments, so that a line says which service, queue and change it is about", f.at(pos), imported, name))
			}
		})
	}
	return complaints
}

func quietServices(p *project) (complaints []string) {
	for _, f := range slices.Concat(p.below("engine"), p.below("platform"), p.below("services")) {
		f.eachUse(func(imported, name string, pos token.Pos) {
			if imported == "fmt" && slices.Contains(impure["fmt"], name) || imported == "os" && name == "Stdout" {
				complaints = append(complaints, fmt.Sprintf("%s: uses %s.%s: with --json standard output holds one JSON value and nothing else; log, or return it", f.at(pos), imported, name))
			}
		})
	}
	return complaints
}

// maxLines is the length at which a file fails the tests. The aim is less than 400.
const maxLines = 900

func readableFiles(p *project) (complaints []string) {
	for _, f := range p.files {
		if !f.generated && f.lines > maxLines {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, at most %d: a file is read in one sitting; split it by what arrives or by what is computed", f.path, f.lines, maxLines))
		}
	}
	return complaints
}

// maxFields is the most fields that a struct of the engine has. A larger one holds several things that can be named.
const maxFields = 15

// largeStructs are folders of the engine whose structs may be larger, with the reason.
var largeStructs = map[string]string{
	"engine/ranking": "a change of the ranking is a record of many numbers that are kept up together, and is laid out for the search",
}

func smallStructs(p *project) (complaints []string) {
	needed := map[string]bool{}
	for _, f := range p.below("engine") {
		if f.generated {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			t, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			s, is := t.Type.(*ast.StructType)
			if !is {
				return true
			}
			fields := 0
			for _, field := range s.Fields.List {
				fields += max(1, len(field.Names))
			}
			if fields <= maxFields {
				return true
			}
			if _, exempt := largeStructs[f.folder]; exempt {
				needed[f.folder] = true
				return true
			}
			complaints = append(complaints, fmt.Sprintf("%s: %s has %d fields, at most %d: what belongs together is a struct with a name of its own", f.at(t.Pos()), t.Name.Name, fields, maxFields))
			return true
		})
	}
	for folder := range largeStructs {
		if !needed[folder] {
			complaints = append(complaints, fmt.Sprintf("%s has no struct of more than %d fields any more: take it out of largeStructs", folder, maxFields))
		}
	}
	return complaints
}

// safeFiles: nothing reads memory past the types.
func safeFiles(p *project) (complaints []string) {
	for _, f := range slices.Concat(p.below("engine"), p.below("platform"), p.below("services")) {
		for _, imported := range f.imports {
			if imported == "unsafe" && !f.generated && !strings.HasPrefix(f.path, "platform/sandbox/") { // the kernel takes addresses
				complaints = append(complaints, fmt.Sprintf("%s imports unsafe: a state is read through its types, or a change of a type breaks what was kept without a word (decision 0047)", f.path))
			}
		}
	}
	return complaints
}

// modelNamesPackages: engine/README.md names each package of the engine, so that a reader finds the claims of a package and the
// package of a claim.
func modelNamesPackages(p *project) (complaints []string) {
	seen := map[string]bool{}
	for _, f := range p.below("engine") {
		if seen[f.folder] || f.generated || strings.HasSuffix(f.folder, testSupport) {
			continue
		}
		seen[f.folder] = true
		if !strings.Contains(p.documents[specification], "`"+f.folder+"`") {
			complaints = append(complaints, fmt.Sprintf("%s does not name %s: its table of packages says which claims each one holds", specification, f.folder))
		}
	}
	return complaints
}
