package gograph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"landfall.build/engine/targets"
)

// listNodes are the nodes of a build list.
type listNodes struct {
	*buildList
	environment  targets.Node
	requirements targets.Node
	imports      map[string]*lookup
}

// Names of the definitions that hold for many targets.
const (
	environmentName  = "go environment"
	requirementsName = "go requirements"
)

// addModule defines what a go.mod means for each package of the module, whatever
// it is built for. What it requires is elsewhere.
func (a *assembler) addModule(m *repoModule) {
	node := a.builder.Definition(moduleName(m.folder.path),
		normalText("module", append([]string{m.file.path, m.file.problem}, m.file.language...)...))
	a.modules[m] = node
	a.builder.Definition(requiredName(m.folder.path), normalText("requirements", m.file.lines()...))
	if !m.hidden {
		// Names of targets rest on who else has the module's path, or one above it.
		for path := m.file.path; path != ""; path = folderOf(path) {
			a.edge(node, a.builder.Ref(targets.KindDefinition, namesakesName(path)))
		}
	}
	// Go takes the nearest go.work, and refuses to build a module that this does not
	// use.
	for _, dir := range upward(m.folder.path) {
		a.edge(node, a.builder.Ref(targets.KindDefinition, workName(dir)))
	}
}

// addNamesakes defines which folders hold the modules of each path.
func (a *assembler) addNamesakes() {
	dirs := map[string][]string{}
	for _, m := range a.survey.modules {
		if !m.hidden {
			dirs[m.file.path] = append(dirs[m.file.path], m.folder.path)
		}
	}
	for path, list := range dirs {
		slices.Sort(list)
		a.builder.Definition(namesakesName(path), normalText("folders", list...))
	}
}

func namesakesName(path string) string { return "go modules named " + path }

func requiredName(dir string) string { return "go requirements of " + below(dir, "go.mod") }

func moduleName(dir string) string { return "go module " + below(dir, "go.mod") }

// vendorName names what decides whether a vendor folder is used.
func vendorName(dir string) string { return "go vendor " + below(dir, "vendor") }

func workName(dir string) string { return "go work " + below(dir, "go.work") }

// addWorkspace defines what a go.work says.
func (a *assembler) addWorkspace(dir string, work *moduleFile) {
	node := a.builder.Definition(workName(dir), append(append(
		normalText("language", work.language...), normalText("uses", work.uses...)...), normalText("replaces", work.lines()...)...))
	for _, used := range usedFolders(dir, work) {
		a.addPlace(node, used)
	}
	a.builder.Interprets(below(dir, "go.work"))
}

// addList defines the environment and the modules of a build list.
func (a *assembler) addList(ctx context.Context, list *buildList) error {
	w := &listNodes{buildList: list, imports: map[string]*lookup{}}
	a.listNodes[list] = w
	w.environment = a.builder.Definition(environmentName+w.suffix(), a.environment(list))
	if list.workspace != nil {
		a.edge(w.environment, a.builder.Ref(targets.KindDefinition, workName(list.dir)))
	}
	a.edge(w.environment, a.builder.Ref(targets.KindDefinition, vendorName(list.dir)))
	for _, in := range a.loading.loader.inputs {
		if len(in.folders) == 0 {
			a.addInputs(w.environment, in.files)
		}
	}
	w.requirements = a.builder.Definition(requirementsName+w.suffix(), nil)
	for _, path := range list.sumPaths {
		a.addNamed(w.requirements, path)
	}
	for _, dirs := range list.inside {
		for _, dir := range dirs {
			a.edge(w.requirements, a.builder.Ref(targets.KindDefinition, requiredName(dir)))
			a.addPlace(w.requirements, dir)
		}
	}
	a.addModuleListings(w)
	for _, path := range slices.Sorted(maps.Keys(list.inside)) {
		a.addInside(w, path)
	}
	a.prefetchRequirements(ctx, list)
	for _, path := range slices.Sorted(maps.Keys(list.outside)) {
		if err := a.addOutside(ctx, w, path); err != nil {
			return err
		}
	}
	return nil
}

// addNamed makes a node depend on a path, there or not, a link or not.
func (a *assembler) addNamed(from targets.Node, path string) {
	if i := a.find(path); i >= 0 {
		a.addFile(from, i)
		return
	}
	a.edge(from, a.builder.Ref(targets.KindFile, path))
}

// environment returns what holds for every target of a build list.
func (a *assembler) environment(list *buildList) []byte {
	o := a.loading.loader.options
	text := normalText("environment", o.Env...)
	text = append(text, normalText("toolchain", o.Toolchain)...)
	if list.workspace != nil {
		text = append(text, normalText("workspace", list.workspace.language...)...)
	} else {
		text = append(text, normalText("main", list.mains[0].file.language...)...)
	}
	text = append(text, normalText("vendor", fmt.Sprint(list.vendor != nil))...)
	return append(text, normalText("refused", list.disagreements...)...)
}

// node refers to a module as a build list sees it, in it or not.
func (a *assembler) node(w *listNodes, path string) targets.Node {
	return a.builder.Ref(targets.KindExternal, path+w.suffix())
}

// addInside defines a module of the repository as importers of its packages see
// it.
func (a *assembler) addInside(w *listNodes, path string) {
	node := a.builder.External(path+w.suffix(), normalText("inside", slices.Sorted(slices.Values(w.inside[path]))...))
	a.addRivals(w, node, path)
}

// addOutside defines an external module: by what pins it, and with what it can
// reach.
func (a *assembler) addOutside(ctx context.Context, w *listNodes, path string) error {
	e := w.outside[path]
	source := e.source()
	values := []string{e.required.Path, e.required.Version, source.Path, source.Version}
	for _, sums := range w.sums {
		values = append(values, sums.of(source)...)
	}
	if w.vendor != nil {
		values = append(values, "vendored")
		values = append(values, w.vendor[path]...)
	}
	node := a.builder.External(path+w.suffix(), normalText("outside", values...))
	a.addRivals(w, node, path)
	if w.vendor != nil {
		return nil // What its packages import stands in the vendor folder.
	}
	required, err := a.requiredBy(ctx, e)
	switch {
	case errors.Is(err, ErrUnknownModule):
		a.edge(node, w.requirements)
	case err != nil:
		return fmt.Errorf("what %s requires: %w", source, err)
	default:
		for _, r := range required.requires {
			a.edge(node, a.node(w, r.Path))
		}
	}
	return nil
}

// prefetchRequirements asks what external modules require, several at a time, where that is not known: the first tree of a
// repository would wait for hundreds of answers one by one. Whatever fails is asked again by whoever needs it.
func (a *assembler) prefetchRequirements(ctx context.Context, list *buildList) {
	l := a.loading.loader
	if l.options.Requirements == nil || list.vendor != nil {
		return
	}
	next := make(chan *external)
	var all sync.WaitGroup
	for range min(maxPrefetches, len(list.outside)) {
		all.Go(func() {
			for e := range next {
				_, _ = a.requiredBy(ctx, e)
			}
		})
	}
	for _, e := range list.outside {
		if l.required.get(e.source().String()) == nil {
			next <- e
		}
	}
	close(next)
	all.Wait()
}

// maxPrefetches is how many answers of Requirements are waited for at the same time.
const maxPrefetches = 8

// requiredBy returns the go.mod of an external module.
func (a *assembler) requiredBy(ctx context.Context, e *external) (*moduleFile, error) {
	source := e.source()
	l := a.loading.loader
	if l.options.Requirements == nil || source.Version == "" {
		return nil, ErrUnknownModule
	}
	key := source.String()
	if file := l.required.get(key); file != nil {
		return file, nil
	}
	content, err := l.options.Requirements.GoMod(ctx, source.Path, source.Version)
	if err != nil {
		return nil, err
	}
	file := parseModuleFile(content)
	if file.problem != "" {
		return nil, fmt.Errorf("%w: its go.mod: %s", ErrUnknownModule, file.problem)
	}
	l.required.put(key, file, int64(len(content))*2+200)
	return file, nil
}

// addRivals makes a module's node depend on which other modules could provide
// packages of the same import paths: those with a longer path by their names,
// those with a shorter one by themselves.
func (a *assembler) addRivals(w *listNodes, node targets.Node, path string) {
	a.edge(node, a.builder.Ref(targets.KindListing, modulesBelow(w, path)))
	for prefix := folderOf(path); prefix != ""; prefix = folderOf(prefix) {
		a.edge(node, a.node(w, prefix))
	}
}

func modulesBelow(w *listNodes, path string) string { return "modules below " + path + w.suffix() }

// addModuleListings defines the names of the modules below each path, whether or
// not there is a module of that path.
func (a *assembler) addModuleListings(w *listNodes) {
	under := map[string][]string{}
	for _, paths := range [][]string{slices.Sorted(maps.Keys(w.inside)), slices.Sorted(maps.Keys(w.outside))} {
		for _, path := range paths {
			for prefix := folderOf(path); prefix != ""; prefix = folderOf(prefix) {
				under[prefix] = append(under[prefix], path)
			}
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(under)) {
		a.builder.Listing(modulesBelow(w, prefix), under[prefix])
	}
}
