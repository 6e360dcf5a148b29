package manifest

import (
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/glob"
)

// maxOutputs bounds what one target leaves.
const maxOutputs = 100

// readOutputs returns files and folders that a step leaves, relative to the repository's root.
func (r *fileReader) readOutputs(f field) []string {
	var outputs []string
	for _, w := range r.words(f, "a step") {
		switch clean := path.Clean(w.text); {
		case strings.ContainsAny(w.text, "*?["):
			r.problem(w.line, "output %s is a pattern; name the file, or the folder with all below it", clip(w.text))
		case w.text == "" || clean == "." || clean == ".." || path.IsAbs(clean) || strings.HasPrefix(clean, "../"):
			r.problem(w.line, "output %s is not below the manifest's folder; name a file or a folder there", clip(w.text))
		case len(w.text) > maxPatternBytes || strings.Count(w.text, "/") >= glob.MaxSegments || strings.ContainsFunc(w.text, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) || hasGit(clean):
			r.problem(w.line, "output %s is no path that can be kept; use one without control characters and backslashes, and not of .git", clip(w.text))
		default:
			outputs = append(outputs, join(r.folder, clean))
		}
	}
	slices.Sort(outputs)
	return slices.Compact(outputs)
}

// hasGit reports whether a part of a path is taken for git's own folder.
func hasGit(file string) bool {
	return slices.ContainsFunc(strings.Split(file, "/"), func(name string) bool { return strings.EqualFold(name, ".git") })
}

// checkLeaving refuses what a target may not leave.
func (r *fileReader) checkLeaving(d *definition) {
	outputs := targets.Outputs(d.steps)
	if len(outputs) == 0 {
		return
	}
	if len(outputs) > maxOutputs {
		r.problem(d.line, "the steps of a target leave more than %d outputs; name a folder", maxOutputs)
	}
	if slices.ContainsFunc(d.steps, func(c targets.Command) bool { return len(c.Needs.Secrets) > 0 }) {
		r.problem(d.line, "a target with secrets leaves no outputs, as they could hold what its dependents may not have; take the secrets to a target of their own, or outputs out")
	}
}

// checkOutputs refuses outputs of two targets in one place, and outputs where the repository has a file: what a dependent reads there would
// depend on who wrote last.
func (r *repository) checkOutputs() {
	owners := map[string]*definition{}
	for _, d := range r.targets {
		for _, output := range targets.Outputs(d.steps) {
			if first := owners[output]; first != nil {
				r.problems.add(d.file, d.line, "output %s of %s is one of %s too; give each its own", clip(output), d.name, first.name)
				continue
			}
			owners[output] = d
		}
	}
	for _, d := range r.targets {
		for _, output := range targets.Outputs(d.steps) {
			if owners[output] == d {
				r.checkOutput(d, output, owners)
			}
		}
	}
}

func (r *repository) checkOutput(d *definition, output string, owners map[string]*definition) {
	switch {
	case r.snapshot.folders[output] != nil:
		r.problems.add(d.file, d.line, "output %s of %s is a folder with files of the repository; leave it in a folder of its own", clip(output), d.name)
	case r.snapshot.hasFile(output):
		r.problems.add(d.file, d.line, "output %s of %s is a file of the repository; remove the file, or leave it elsewhere", clip(output), d.name)
	}
	for above, _ := split(output); above != ""; above, _ = split(above) {
		if outer := owners[above]; outer != nil {
			r.problems.add(d.file, d.line, "output %s of %s lies in output %s of %s; give each a place of its own", clip(output), d.name, clip(above), outer.name)
		}
		if r.snapshot.hasFile(above) {
			r.problems.add(d.file, d.line, "output %s of %s lies below %s, which is a file or link of the repository; leave it elsewhere", clip(output), d.name, clip(above))
		}
	}
}

// hasFile reports whether the tree has a file, link or submodule of that path.
func (s *snapshot) hasFile(file string) bool {
	_, found := slices.BinarySearchFunc(s.entries, file, func(e gittree.Entry, file string) int { return strings.Compare(e.Path, file) })
	return found
}
