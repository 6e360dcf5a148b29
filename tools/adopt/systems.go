package adopt

import (
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// system is what is known of a build system besides its adapter.
type system struct {
	title string
	// tools are the programs that its steps start, or that these start.
	tools []string
	// byFile adds programs where a folder has a file of that name.
	byFile map[string][]string
	// whole returns the steps that prove all of some folders; nil if nothing can be said.
	whole func(folders []string) []configuration.Step
}

// systems by adapter. What an adapter is recognised by is in platform/buildgraph.
var systems = map[configuration.Adapter]system{
	configuration.AdapterManifest: {title: "landfall.yaml"},
	configuration.AdapterGo:       {title: "Go", tools: []string{"go"}, whole: wholeGo},
	configuration.AdapterBazel: {title: "Bazel", tools: []string{"bazel"}, whole: func([]string) []configuration.Step {
		// Bazel exits with 4 where all was built and there is no test.
		return []configuration.Step{{Name: "bazel", Run: []string{"sh", "-c", "bazel test --noshow_progress //... || [ $? = 4 ]"}}}
	}},
}

// maxWhole bounds how many folders steps are written for.
const maxWhole = 10

func wholeGo(folders []string) []configuration.Step {
	if len(folders) > maxWhole {
		return nil
	}
	var steps []configuration.Step
	for _, folder := range folders {
		name, at := "", []string(nil)
		if folder != "." {
			name, at = "-"+stepName(folder), []string{"-C", folder}
		}
		steps = append(steps,
			configuration.Step{Name: "go-build" + name, Run: slices.Concat([]string{"go", "build"}, at, []string{"-o", "/dev/null", "./..."})},
			configuration.Step{Name: "go-test" + name, Run: slices.Concat([]string{"go", "test"}, at, []string{"./..."})})
	}
	return steps
}

// stepName makes a part of a step's name of a folder.
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
func partsOf(sightings []buildgraph.Sighting) []part {
	var parts []part
	for _, s := range sightings {
		at := map[string]int{}
		for _, file := range s.Files {
			folder := path.Dir(file)
			i, known := at[folder]
			if !known {
				i = len(parts)
				at[folder] = i
				title := systems[s.Adapter].title
				if title == "" {
					title = string(s.Adapter)
				}
				parts = append(parts, part{Folder: folder, System: title, Adapter: s.Adapter})
			}
			parts[i].Files = append(parts[i].Files, path.Base(file))
		}
	}
	return parts
}

// toolsOf returns the programs that some adapters' steps need, sorted.
func toolsOf(parts []part, uses []configuration.AdapterUse, files map[string]bool) []string {
	var tools []string
	for _, use := range uses {
		s := systems[use.Adapter]
		tools = append(tools, s.tools...)
		for _, p := range parts {
			for file, more := range s.byFile {
				if p.Adapter == use.Adapter && files[path.Join(p.Folder, file)] {
					tools = append(tools, more...)
				}
			}
		}
	}
	slices.Sort(tools)
	return slices.Compact(tools)
}

// wholeSteps returns the steps that prove the whole repository; none if some part of it is proven in a way that is not
// known here. Without such steps those of all targets prove it.
func wholeSteps(parts []part, uses []configuration.AdapterUse, written []manifest) []configuration.Step {
	var steps []configuration.Step
	for _, use := range uses {
		if use.Adapter == configuration.AdapterManifest && !slices.ContainsFunc(parts, func(p part) bool { return p.Adapter == use.Adapter }) {
			continue // all of them are written here
		}
		var folders []string
		for _, p := range parts {
			if p.Adapter == use.Adapter {
				folders = append(folders, p.Folder)
			}
		}
		whole := systems[use.Adapter].whole
		if whole == nil {
			return nil
		}
		more := whole(folders)
		if len(more) == 0 {
			return nil
		}
		steps = append(steps, more...)
	}
	for _, m := range written {
		for _, command := range m.commands {
			name := "everything"
			if m.Folder != "." {
				name = stepName(m.Folder)
			}
			run := []string{"sh", "-c", command}
			if m.Folder != "." {
				run[2] = "cd " + shellQuoted(m.Folder) + " && " + grouped(command)
			}
			steps = append(steps, configuration.Step{Name: name, Run: run})
		}
	}
	return steps
}

// shellQuoted returns a text as a word of the shell.
func shellQuoted(text string) string {
	if plain.MatchString(text) && !strings.ContainsAny(text, "~=") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// grouped returns a line of the shell that can stand after &&.
func grouped(command string) string {
	if strings.ContainsAny(strings.ReplaceAll(command, "&&", ""), ";&|\n") {
		return "{ " + command + "; }"
	}
	return command
}
