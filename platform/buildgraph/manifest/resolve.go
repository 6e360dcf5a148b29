package manifest

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// repository is what all manifests of a tree say together.
type repository struct {
	snapshot    *snapshot
	environment []string
	// caches are given to every step.
	caches   []string
	inputs   []*pattern
	targets  []*definition // by file and place in it
	edges    []targets.Edge
	byName   map[string]*definition
	problems problems
}

// resolve joins the files, in the order of their paths, and checks what can only
// be checked with all of them. One target there has to be, unless others find some.
func resolve(s *snapshot, files []*parsedFile, others bool) *repository {
	r := &repository{snapshot: s, byName: make(map[string]*definition)}
	for _, file := range files {
		r.problems = append(r.problems, file.problems...)
		if file.path == FileName {
			r.environment, r.inputs, r.caches = file.environment, file.inputs, file.caches
		}
		for _, d := range file.targets {
			r.addTarget(d)
		}
		r.edges = append(r.edges, file.edges...)
	}
	if len(r.byName)+len(r.edges) == 0 && len(r.problems) == 0 && !others {
		r.problems.add(files[0].path, 0, "no manifest of the repository defines a target, so nothing would be verified; add targets: or remove the file")
	}
	if len(r.byName) > maxTargets {
		r.problems.add(files[0].path, 0, "the repository has %d targets, more than %d; join some", len(r.byName), maxTargets)
		return r
	}
	r.checkDeps()
	r.checkCycles()
	r.checkSources()
	r.checkOutputs()
	return r
}

func (r *repository) addTarget(d *definition) {
	if first, ok := r.byName[d.name]; ok {
		r.problems.add(d.file, d.line, "target %s is already defined at %s:%d; rename one", d.name, first.file, first.line)
		return
	}
	r.byName[d.name] = d
	r.targets = append(r.targets, d)
}

func (r *repository) checkDeps() {
	for _, d := range r.targets {
		for _, dep := range d.deps {
			if _, ok := r.byName[dep.text]; !ok {
				r.problems.add(d.file, dep.line, "%s depends on %s, which no %s defines; correct the name or define it", d.name, clip(dep.text), FileName)
			}
		}
	}
}

// checkCycles takes away targets whose dependencies are all taken away; what is
// left depends on itself in the end.
func (r *repository) checkCycles() {
	dependants := make(map[*definition][]*definition)
	open := make(map[*definition]int)
	var ready []*definition
	for _, d := range r.targets {
		for _, dep := range d.deps {
			if to, ok := r.byName[dep.text]; ok {
				dependants[to] = append(dependants[to], d)
				open[d]++
			}
		}
		if open[d] == 0 {
			ready = append(ready, d)
		}
	}
	for len(ready) > 0 {
		d := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for _, dependant := range dependants[d] {
			if open[dependant]--; open[dependant] == 0 {
				ready = append(ready, dependant)
			}
		}
	}
	seen := make(map[*definition]bool)
	for _, d := range r.targets {
		if open[d] > 0 && !seen[d] {
			r.reportCycle(d, open, seen)
		}
	}
}

// reportCycle follows dependencies that are on or lead to a cycle until it
// comes to a target a second time, and reports a cycle not seen before.
func (r *repository) reportCycle(d *definition, open map[*definition]int, seen map[*definition]bool) {
	var way []*definition
	for !seen[d] {
		seen[d] = true
		way = append(way, d)
		next := slices.IndexFunc(d.deps, func(dep word) bool {
			to, ok := r.byName[dep.text]
			return ok && open[to] > 0
		})
		d = r.byName[d.deps[next].text]
	}
	start := slices.Index(way, d)
	if start < 0 {
		return // leads to one that was reported
	}
	names := make([]string, 0, 8)
	for _, on := range append(way[start:], d) {
		if len(names) == 7 {
			names = append(names, "…")
			break
		}
		names = append(names, on.name)
	}
	r.problems.add(d.file, d.line, "targets depend on themselves: %s; remove one of these dependencies", strings.Join(names, " → "))
}

// checkSources refuses folders named as if they were files: their content would
// be in nobody's version.
func (r *repository) checkSources() {
	for _, d := range r.targets {
		for _, s := range d.sources {
			if dir, ok := s.literal(); ok && r.snapshot.folders[dir] != nil {
				r.problems.add(d.file, s.line, "source %s of %s is a folder; write %s/** for all files below it", dir, d.name, dir)
			}
		}
	}
	for _, p := range r.inputs {
		if dir, ok := p.literal(); ok && r.snapshot.folders[dir] != nil {
			r.problems.add(FileName, 0, "input %s is a folder; write %s/** for all files below it", dir, dir)
		}
	}
}

// settings returns the normal form of what holds for the whole repository.
func (r *repository) settings() []byte {
	var normal []byte
	for _, variable := range r.environment {
		normal = fmt.Appendf(normal, "environment %q\n", variable)
	}
	texts := patternTexts(r.inputs)
	slices.Sort(texts)
	for _, text := range slices.Compact(texts) {
		normal = fmt.Appendf(normal, "input %q\n", text)
	}
	return normal
}
