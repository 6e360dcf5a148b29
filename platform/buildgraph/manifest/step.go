package manifest

import (
	"path"
	"regexp"
	"strings"
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
		default:
			r.unknown(f, what, "name", "run", "dir", "timeout", "caches")
		}
	}
	if step.Name == "" {
		r.problem(node.line, "a step has no name; add name: …")
	}
	if len(step.Argv) == 0 {
		r.problem(node.line, "a step has nothing to run; add run: [program, argument, …]")
	}
	return step
}

func (r *fileReader) readArgv(f field) []string {
	if f.value.kind == textNode {
		r.problem(f.line, "run must be a list of program and arguments, as no shell reads it: [go, test, ./...]")
		return nil
	}
	var argv []string
	for _, w := range r.words(f, "a step") {
		if strings.ContainsRune(w.text, 0) {
			r.problem(w.line, "run holds a NUL character; remove it")
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
