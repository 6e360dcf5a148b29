package adopt

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"landfall.build/platform/configuration"
	"landfall.build/tools/client"
)

// checkingScripts are the names by which a package.json or a Makefile has the repository checked, besides tests and checks of types,
// which adapters run.
var checkingScripts = []string{"lint", "lint:check", "check", "format:check", "check:format", "fmt:check", "prettier:check", "style"}

// checkingParts are what the names of such scripts of a package.json begin with, too, such as lint:css and check:exports.
var checkingParts = []string{"lint", "check", "typecheck", "verify", "format:check"}

// adapterRuns is a line that runs the scripts that the steps of the adapter run.
const adapterRuns = "run test && run build && run typecheck && run type-check && run check-types && run check:types"

// changing are parts of the names of scripts that change files, or wait for some to change.
var changing = regexp.MustCompile(`(?i)[:._-](fix|write|watch|staged|update)\b`)

// checkingOf returns the names of a package.json's scripts that check, in the order of checkingParts.
func checkingOf(scripts map[string]string) []string {
	var list []string
	for _, begin := range slices.Concat(checkingParts, checkingScripts) {
		for _, name := range slices.Sorted(maps.Keys(scripts)) {
			rest, is := strings.CutPrefix(name, begin)
			isPart := rest != "" && strings.ContainsAny(rest[:1], ":._-") && slices.Contains(checkingParts, begin)
			if is && (rest == "" || isPart) && !changing.MatchString(name) && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// unrun are the scripts of a package.json, or the targets of a Makefile, that check the repository and that no step runs.
type unrun struct {
	file, what string
	// names are sorted as in checkingParts and checkingScripts.
	names []string
	// steps run them, one each.
	steps []configuration.Step
}

// String says so, for people.
func (u unrun) String() string {
	return client.Plain(fmt.Sprintf("No step runs these %s of %s: %s.", u.what, u.file, strings.Join(u.names, ", ")))
}

// unrunScripts returns the scripts that no step runs, by folder. lines are what steps run besides those of the adapter.
func unrunScripts(r reader, parts []part, lines []string) []unrun {
	var list []unrun
	for _, p := range parts {
		if p.Adapter != configuration.AdapterNode {
			continue
		}
		file := path.Join(p.Folder, "package.json")
		var document struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal([]byte(r.read(r.ctx, file)), &document) != nil {
			continue
		}
		u := unrun{file: file, what: "scripts", names: unrunOf(document.Scripts, lines)}
		manager, install := installOf(r, p.Folder)
		for _, name := range u.names {
			step := wholeStep(stepName(name), p.Folder, install+" && "+manager+" run "+name)
			u.steps = append(u.steps, step)
		}
		for _, u := range []unrun{u, unrunOfMembers(r, p.Folder, document.Scripts, lines)} {
			if len(u.names) > 0 {
				list = append(list, u)
			}
		}
	}
	return list
}

// unrunOf returns the checking scripts of a package.json that no step runs, but for those that one of the others runs.
func unrunOf(scripts map[string]string, lines []string) (left []string) {
	run := scriptsRun(scripts, append([]string{adapterRuns}, lines...))
	names := slices.DeleteFunc(checkingOf(scripts), func(name string) bool { return scripts[name] == "" || run[name] })
	byName := map[string]map[string]bool{}
	for _, name := range names {
		byName[name] = scriptsRun(scripts, []string{"run " + name})
	}
	for _, name := range names {
		if slices.ContainsFunc(names, func(other string) bool { return other != name && byName[other][name] }) {
			delete(byName, name)
			continue
		}
		left = append(left, name)
	}
	return left
}

// makefiles are the names that make looks for.
var makefiles = []string{"GNUmakefile", "makefile", "Makefile"}

// unrunGoals returns the targets of Makefiles that no step runs, of the root and of the folders in which build systems begin. lines
// are what steps run.
func unrunGoals(r reader, parts []part, lines []string) []unrun {
	folders := []string{"."}
	for _, p := range parts {
		if !slices.Contains(folders, p.Folder) {
			folders = append(folders, p.Folder)
		}
	}
	var list []unrun
	for _, folder := range folders {
		i := slices.IndexFunc(makefiles, func(name string) bool { return r.has(folder, name) })
		if i < 0 {
			continue
		}
		u := unrun{file: path.Join(folder, makefiles[i]), what: "targets"}
		goals := goalsOf(r.read(r.ctx, u.file))
		for _, name := range checkingScripts {
			if goals[name] && !slices.ContainsFunc(lines, func(line string) bool { return makes(line, name) }) {
				u.names = append(u.names, name)
				u.steps = append(u.steps, wholeStep(stepName(name), folder, "make "+name))
			}
		}
		if len(u.names) > 0 {
			list = append(list, u)
		}
	}
	return list
}

// makeRule is a rule of a Makefile that is written out, for one goal.
type makeRule struct {
	goal  string
	needs []string
}

// rulesOf returns the rules of a Makefile, in order.
func rulesOf(text string) (rules []makeRule) {
	for line := range strings.Lines(text) {
		names, rest, is := strings.Cut(line, ":")
		rest = strings.TrimLeft(rest, ":")
		if !is || strings.ContainsAny(names, "\t#=$") || strings.HasPrefix(rest, "=") {
			continue
		}
		needs, _, _ := strings.Cut(rest, "#")
		for _, name := range strings.Fields(names) {
			rules = append(rules, makeRule{name, strings.Fields(needs)})
		}
	}
	return rules
}

// goalsOf returns the goals of the rules of a Makefile.
func goalsOf(text string) map[string]bool {
	goals := map[string]bool{}
	for _, rule := range rulesOf(text) {
		goals[rule.goal] = true
	}
	return goals
}

// makes reports whether a line of the shell or a list of words has make bring about a target.
func makes(line, goal string) bool {
	called := regexp.MustCompile(`\bmake\b[^;&|)]*\s` + regexp.QuoteMeta(goal) + `($|[\s;&|)])`)
	return called.MatchString(listMarks.Replace(line))
}

// scriptsRun returns the scripts that some lines run, directly or through others.
func scriptsRun(scripts map[string]string, lines []string) map[string]bool {
	run := map[string]bool{}
	for lines = slices.Clone(lines); len(lines) > 0; lines = lines[1:] {
		for name, text := range scripts {
			if !run[name] && runs(lines[0], name) {
				run[name] = true
				lines = append(lines, text, scripts["pre"+name], scripts["post"+name])
			}
		}
	}
	return run
}

// listMarks are what stands between the words of a list in YAML.
var listMarks = strings.NewReplacer(",", " ", "[", " ", "]", " ", `"`, " ", "'", " ")

// runs reports whether a line of the shell or a list of words has a package manager run a script.
func runs(line, script string) bool {
	name := regexp.QuoteMeta(script)
	if i := strings.LastIndexByte(script, ':'); i >= 0 {
		name = "(" + name + "|" + regexp.QuoteMeta(script[:i+1]) + `\*+)`
	}
	called := regexp.MustCompile(`\b((run|run-script|pnpm|yarn)(\s+-\S+)*\s+|(npm-run-all2?|run-s|run-p)\s([^;&|)]*\s)?|npm:)` + name + `($|[\s;&|)])`)
	return called.MatchString(listMarks.Replace(line))
}

// linesOf returns what the steps of a queue run besides the adapters' own: those of the whole repository and of the
// configuration, and all that manifests hold.
func linesOf(r reader, analysis configuration.Analysis) []string {
	var lines []string
	for _, step := range analysis.WholeRepositorySteps {
		lines = append(lines, strings.Join(step.Run, " "))
	}
	for _, use := range analysis.Uses() {
		for _, step := range use.Steps {
			lines = append(lines, strings.Join(step.Run, " "))
		}
	}
	for file := range r.files {
		if path.Base(file) == "landfall.yaml" {
			lines = append(lines, r.read(r.ctx, file))
		}
	}
	return lines
}
