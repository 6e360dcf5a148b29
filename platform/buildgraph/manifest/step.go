package manifest

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/targets"
)

func (r *fileReader) readSteps(f field) []targets.Command {
	var steps []targets.Command
	names := make(map[string]bool)
	for _, item := range r.items(f, "a target") {
		step := r.readStep(item)
		if step.Name != "" && names[step.Name] {
			r.problem(item.line, "two steps of a target are named %q; rename one", step.Name)
		}
		names[step.Name] = true
		steps = append(steps, step)
	}
	return steps
}

func (r *fileReader) readStep(node *node) targets.Command {
	const what = "a step"
	results := field{}
	var step targets.Command
	for _, f := range r.fields(node, what) {
		switch f.name {
		case "name":
			step.Name = r.text(f, what)
			if !isName(step.Name) {
				r.problem(f.line, "%s is not a step name; use up to 200 letters, digits and . _ + = @ ~ -", clip(step.Name))
			}
		case "run":
			step.Argv = r.readArgv(f)
		case "dir":
			step.Dir = r.readDir(f)
		case "timeout":
			step.Timeout = r.readTimeout(f)
		case "caches":
			step.Needs.Caches = r.readNames(f, what)
		case "secrets":
			step.Needs.Secrets = r.readVariables(f, what)
		case "image":
			step.Needs.Image = r.text(f, what)
			if !imagePattern().MatchString(step.Needs.Image) {
				r.problem(f.line, "%s is not an image with its digest; write it as name@sha256:… with 64 hexadecimal digits", clip(step.Needs.Image))
			}
		case "services":
			step.Needs.Services = r.readServices(f)
		case "exclusive":
			step.Needs.Exclusive = r.readNames(f, what)
		case "resources":
			step.Needs.Resources = r.readResources(f)
		case "runs_on":
			step.Needs.RunsOn = r.readNames(f, what)
		case "outputs":
			step.Outputs = r.readOutputs(f)
		case "group":
			step.Group = &targets.Group{Argv: r.readArgv(f), Results: targets.Lines}
		case "group_results":
			results = f
		default:
			r.unknown(f, what, "name", "run", "dir", "timeout", "caches", "secrets", "exclusive", "resources", "services", "image", "runs_on", "outputs", "group", "group_results")
		}
	}
	if step.Name == "" {
		r.problem(node.line, "a step has no name; add name: …")
	}
	if len(step.Argv) == 0 {
		r.problem(node.line, "a step has nothing to run; add run: [program, argument, …]")
	}
	if results.name != "" {
		r.readResults(results, step.Group)
	}
	if g := step.Group; g != nil {
		needs := step.Needs
		needs.Caches, needs.RunsOn = nil, nil
		switch {
		case len(g.Argv) == 0:
			r.problem(node.line, "group has nothing to run; write the program that verifies several targets, and its arguments")
		case !needs.IsZero():
			r.problem(node.line, "a step with a group has no secrets, image, services, exclusive or resources; take the group out, or these")
		case len(step.Outputs) > 0:
			r.problem(node.line, "a step with a group leaves no outputs, as one invocation leaves those of many; take the group out, or outputs")
		}
	}
	return step
}

// readResults reads how the tool of a group reports; group is nil if the step has none.
func (r *fileReader) readResults(f field, group *targets.Group) {
	results := targets.Results(r.text(f, "a step"))
	switch {
	case results != targets.Lines && results != targets.JUnit:
		r.problem(f.line, "group_results %s is none of lines and junit", clip(string(results)))
	case group == nil:
		r.problem(f.line, "group_results stands without a group; add group: [program, argument, …]")
	default:
		group.Results = results
	}
}

func (r *fileReader) readArgv(f field) []string {
	if f.value.kind == textNode {
		r.problem(f.line, "%s must be a list of program and arguments, as no shell reads it: [go, test, ./...]", f.name)
		return nil
	}
	var argv []string
	for _, w := range r.words(f, "a step") {
		if strings.ContainsRune(w.text, 0) {
			r.problem(w.line, "%s holds a NUL character; remove it", f.name)
		}
		argv = append(argv, w.text)
	}
	if len(argv) > 0 && argv[0] == "" {
		r.problem(f.line, "the program to run is empty; name one")
	}
	return argv
}

// readDir returns the folder relative to the repository's root, "" for the root.
// It need not exist: an earlier step may make it.
func (r *fileReader) readDir(f field) string {
	text := r.text(f, "a step")
	dir := path.Clean(text)
	if text == "" || path.IsAbs(text) || dir == ".." || strings.HasPrefix(dir, "../") || strings.ContainsRune(text, 0) {
		r.problem(f.line, "dir %s is not a folder of the repository; write it relative to the root", clip(text))
		return ""
	}
	if dir == "." {
		return ""
	}
	return dir
}

func (r *fileReader) readTimeout(f field) time.Duration {
	text := r.text(f, "a step")
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 || timeout > maxTimeout {
		r.problem(f.line, "timeout %s is not a duration of up to 24h; write one such as 90s or 10m", clip(text))
		return 0
	}
	return timeout
}

// settingPattern is what the configuration takes as a name.
var settingPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// resourcePattern is what the configuration takes as a resource.
var resourcePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// imagePattern has a digest: what a tag means changes, and a version would not. It takes a quarter of a megabyte, and few manifests need it.
var imagePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:-]{0,254}@sha256:[0-9a-f]{64}$`)
})

// readNames returns names that the queue's configuration explains, sorted, each once.
func (r *fileReader) readNames(f field, what string) []string {
	names := r.words(f, what)
	for _, w := range names {
		if !settingPattern.MatchString(w.text) {
			r.problem(w.line, "%s in %s is not a name; use up to 63 of a-z, 0-9, '.', '_' and '-', the first a letter or digit", clip(w.text), f.name)
		}
	}
	return sortedTexts(names)
}

// readVariables returns names of variables, sorted, each once.
func (r *fileReader) readVariables(f field, what string) []string {
	names := r.words(f, what)
	for _, w := range names {
		if !variablePattern.MatchString(w.text) {
			r.problem(w.line, "%s in %s is not the name of a variable; use letters, digits and _", clip(w.text), f.name)
		}
	}
	return sortedTexts(names)
}

// maxAmount bounds how much of a resource a step may take.
const maxAmount = 1_000_000_000

func (r *fileReader) readResources(f field) []targets.Resource {
	var resources []targets.Resource
	for _, entry := range r.fields(f.value, "resources") {
		text := r.text(entry, "resources")
		amount, err := strconv.ParseInt(text, 10, 64)
		if err != nil || amount < 1 || amount > maxAmount {
			r.problem(entry.line, "%s of %s is not an amount; write a whole number from 1 to %d", clip(text), clip(entry.name), maxAmount)
		}
		if !resourcePattern.MatchString(entry.name) {
			r.problem(entry.line, "%s in resources is not a name; use up to 63 of a-z, 0-9 and _, the first a letter", clip(entry.name))
		}
		resources = append(resources, targets.Resource{Name: entry.name, Amount: amount})
	}
	slices.SortFunc(resources, func(a, b targets.Resource) int { return strings.Compare(a.Name, b.Name) })
	return resources
}
