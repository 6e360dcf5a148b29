package adopt

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// system describes a build system, besides its adapter.
type system struct {
	title string
	// tools are the programs that its steps start, or that these start.
	tools []string
	// byFile adds programs where a folder has a file of that name. A folder with one is a project of its own wherever it is.
	byFile map[string][]string
	// nested reports whether a folder below another one of the system is a part of it, and no project of its own.
	nested bool
	// whole returns a line of the shell that proves one folder, run in it; provenElsewhere if the lines of other folders
	// prove it; "" if no line is known.
	whole func(r reader, folder string) string
}

// provenElsewhere is the line of a folder that needs no step of its own.
const provenElsewhere = ":"

// systems by adapter. What an adapter is recognised by is in platform/buildgraph.
var systems = map[configuration.Adapter]system{
	configuration.AdapterManifest: {title: "landfall.yaml"},
	configuration.AdapterGo: {title: "Go", tools: []string{"go"}, whole: func(r reader, folder string) string {
		if !r.has(folder, "go.mod") {
			return provenElsewhere // a go.work: its modules have folders
		}
		return "go build -o /dev/null ./... && go test -count=1 ./..."
	}},
	// Bazel exits with 4 where all was built and there is no test.
	configuration.AdapterBazel: {title: "Bazel", tools: []string{"bazel"}, whole: func(reader, string) string {
		return "bazel test --noshow_progress //... || [ $? = 4 ]"
	}},
	configuration.AdapterNode: {title: "JavaScript", tools: []string{"node"}, nested: true, whole: wholeNode, byFile: map[string][]string{
		"package-lock.json": {"npm"}, "npm-shrinkwrap.json": {"npm"}, "pnpm-lock.yaml": {"pnpm"}, "yarn.lock": {"yarn"}, "bun.lock": {"bun"},
	}},
	configuration.AdapterCargo:  {title: "Rust", tools: []string{"cargo"}, nested: true, byFile: map[string][]string{"Cargo.lock": nil}, whole: wholeCargo},
	configuration.AdapterPython: {title: "Python", tools: []string{"python"}, nested: true, byFile: map[string][]string{"uv.lock": {"uv"}, "poetry.lock": {"poetry"}}, whole: wholePython},
}

// wholeCargo tests each member of a workspace by itself, as the steps of targets do: --workspace would build all of them with the
// features that any asks for.
func wholeCargo(r reader, folder string) string {
	locked := ""
	if r.has(folder, "Cargo.lock") {
		locked = " --locked"
	}
	// Before 1.77 cargo named packages otherwise.
	return `metadata=$(cargo metadata --no-deps --format-version 1` + locked + `) || exit 1; ` +
		`if members=$(printf %s "$metadata" | grep -o '"id":"path+file:[^"]*"' | cut -d '"' -f 4 | grep .); ` +
		`then for member in $members; do cargo test` + locked + ` --package "$member" || exit 1; done; ` +
		`else cargo test --workspace` + locked + `; fi`
}

// wholeNode installs, builds and tests a project of JavaScript with the members of its workspace, whose tests may need what others
// build: by the root's own script if it has one, which knows the order.
func wholeNode(r reader, folder string) string {
	var document struct {
		Workspaces json.RawMessage   `json:"workspaces"`
		Scripts    map[string]string `json:"scripts"`
	}
	_ = json.Unmarshal([]byte(r.read(r.ctx, path.Join(folder, "package.json"))), &document) // a package that is wrong has none
	switch {
	case r.has(folder, "pnpm-workspace.yaml"):
		return "pnpm install --frozen-lockfile && " + cmp.Or(rootBuild("pnpm", document.Scripts), "pnpm -r --if-present run build") + " && pnpm -r run test"
	case len(document.Workspaces) == 0:
		return packageCommand(r, folder, path.Join(folder, "package.json"))
	case r.has(folder, "package-lock.json"):
		return "npm ci --no-audit --no-fund && " + cmp.Or(rootBuild("npm", document.Scripts), "npm run build --workspaces --if-present") +
			" && npm run test --workspaces --include-workspace-root --if-present"
	}
	return ""
}

func rootBuild(manager string, scripts map[string]string) string {
	if scripts["build"] == "" {
		return ""
	}
	return manager + " run build"
}

// maxWhole bounds how many folders steps are written for.
const maxWhole = 20

// stepName returns a folder as a part of a step's name.
func stepName(folder string) string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(folder), "-"), "-._")
}

// part is a folder in which a build system begins.
type part struct {
	// Folder is relative to the root, "." for the root.
	Folder  string                `json:"folder"`
	System  string                `json:"system"`
	Files   []string              `json:"files"`
	Adapter configuration.Adapter `json:"adapter"`
}

// partsOf returns the folders in which build systems begin, by adapter, then by folder.
func partsOf(sightings []buildgraph.Sighting, files map[string]bool) []part {
	var parts []part
	for _, s := range sightings {
		known := systems[s.Adapter]
		at := map[string]int{}
		for _, file := range s.Files { // those nearer to the root first
			folder := path.Dir(file)
			isBegun := func(above string) bool { _, begun := at[above]; return begun }
			if known.nested && anyAbove(folder, isBegun) && !hasAny(files, folder, known.byFile) {
				continue
			}
			i, begun := at[folder]
			if !begun {
				i = len(parts)
				at[folder] = i
				parts = append(parts, part{Folder: folder, System: cmp.Or(known.title, string(s.Adapter)), Adapter: s.Adapter})
			}
			parts[i].Files = append(parts[i].Files, path.Base(file))
		}
	}
	return parts
}

// anyAbove reports whether some folder above another one satisfies is.
func anyAbove(folder string, is func(above string) bool) bool {
	for folder != "." {
		if folder = path.Dir(folder); is(folder) {
			return true
		}
	}
	return false
}

// hasAny reports whether a folder has a file with one of the names.
func hasAny(files map[string]bool, folder string, names map[string][]string) bool {
	for name := range names {
		if files[path.Join(folder, name)] {
			return true
		}
	}
	return false
}

// toolsOf returns the programs that some adapters' steps need, sorted.
func toolsOf(r reader, parts []part, uses []configuration.AdapterUse) []string {
	var tools []string
	for _, use := range uses {
		s := systems[use.Adapter]
		tools = append(tools, s.tools...)
		for _, p := range parts {
			for file, more := range s.byFile {
				if p.Adapter == use.Adapter && r.has(p.Folder, file) {
					tools = append(tools, more...)
				}
			}
			if p.Adapter == use.Adapter && p.Adapter == configuration.AdapterPython && r.usesPoetry(p.Folder) {
				tools = append(tools, "poetry")
			}
		}
	}
	slices.Sort(tools)
	return slices.Compact(tools)
}

// wholeSteps returns the steps that prove the whole repository; none if some part of it is proven in a way that is not
// known here. Without such steps those of all targets prove it.
func wholeSteps(r reader, parts []part, uses []configuration.AdapterUse, written []manifest) []configuration.Step {
	var steps []configuration.Step
	for _, p := range parts {
		if !hasAdapter(uses, p.Adapter) {
			continue
		}
		if systems[p.Adapter].whole == nil {
			return nil
		}
		switch line := systems[p.Adapter].whole(r, p.Folder); line {
		case "":
			return nil
		case provenElsewhere:
		default:
			steps = append(steps, wholeStep(string(p.Adapter), p.Folder, line))
		}
	}
	for _, m := range written {
		if m.Command != "" {
			steps = append(steps, wholeStep("", m.Folder, m.Command))
		}
	}
	if len(steps) > maxWhole {
		return nil
	}
	return steps
}

// wholeStep returns the step that runs a line of the shell in a folder.
func wholeStep(name, folder, line string) configuration.Step {
	step := configuration.Step{Run: []string{"sh", "-c", line}, Caches: cachesOf(line)}
	if folder != "." {
		name = strings.Trim(name+"-"+stepName(folder), "-")
		step.Dir = folder
	}
	step.Name = cmp.Or(name, "everything")
	return step
}

// shellQuoted returns a text as a word of the shell.
func shellQuoted(text string) string {
	if plain.MatchString(text) && !strings.ContainsAny(text, "~=") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
