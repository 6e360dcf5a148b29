package cargograph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// Scheme is part of every target's hash; it changes when what the adapter takes a tree for does.
const Scheme = "cargo/8"

// Memory bounds what a Loader remembers, in approximate bytes. A zero field takes the default.
type Memory struct {
	// Graphs is for whole graphs, by tree id; default 512 MiB.
	Graphs int64
	// Files is for what files say, by blob id: half for Rust files, the rest for manifests, lock files, configuration and
	// symbolic links; default 256 MiB.
	Files int64
}

// Loader makes the target graphs of trees for one set of options, and remembers what the next tree has in common with the
// last ones. What it remembers never changes a result. It may be used from several goroutines.
type Loader struct {
	options   Options
	graphs    memo[targets.Graph]
	manifests memo[manifest]
	locks     memo[lockFile]
	configs   memo[configFile]
	sources   memo[sourceFacts]
	linkTexts memo[string]
}

// NewLoader returns a loader that remembers nothing yet. Its error lists what is wrong with the options.
func NewLoader(options Options, memory Memory) (*Loader, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("options of the Cargo adapter: %w", err)
	}
	if memory.Graphs == 0 {
		memory.Graphs = 512 << 20
	}
	if memory.Files == 0 {
		memory.Files = 256 << 20
	}
	l := &Loader{options: options.normal()}
	l.graphs.init(memory.Graphs)
	l.sources.init(memory.Files / 2)
	for _, m := range []interface{ init(int64) }{&l.manifests, &l.locks, &l.configs, &l.linkTexts} {
		m.init(memory.Files / 8)
	}
	return l, nil
}

// Load makes the graph of the tree with that id; with an empty id the graph is not remembered. What cannot be followed
// makes the graph incomplete (Graph.Unknown gives the reasons). The errors are
//
//   - ErrNoPackage: the tree has no Cargo.toml that counts; take another adapter;
//   - *Invalid: a Cargo.toml, Cargo.lock or configuration file is wrong; targets.Unknown stands for the tree;
//   - anything else: the tree could not be read; try again.
func (l *Loader) Load(ctx context.Context, id string, tree gittree.Tree) (*targets.Graph, error) {
	if id != "" {
		if graph := l.graphs.get(id); graph != nil {
			return graph, nil
		}
	}
	entries, err := tree.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	run := &loading{loader: l, tree: tree, survey: &survey{
		snapshot: newSnapshot(entries), options: l.options, crates: map[string]*crate{},
	}}
	if err := run.examine(ctx); err != nil {
		return nil, err
	}
	graph, err := run.assemble(ctx, id)
	if err != nil {
		return nil, err
	}
	if id != "" {
		nodes, edges := graph.Size()
		l.graphs.put(id, graph, int64(nodes)*160+int64(edges)*4)
	}
	return graph, nil
}

// loading is one Load.
type loading struct {
	*survey
	loader *Loader
	tree   gittree.Tree
}

// examine reads all definitions.
func (l *loading) examine(ctx context.Context) error {
	if err := l.readLinks(ctx); err != nil {
		return err
	}
	if err := l.readManifests(ctx); err != nil {
		return err
	}
	if len(l.crates) == 0 {
		return ErrNoPackage
	}
	for _, c := range l.crates {
		l.findRoot(c)
	}
	for _, c := range l.crates {
		l.resolve(c)
	}
	l.chooseTargets()
	if err := l.readWorkspaces(ctx); err != nil {
		return err
	}
	l.addElsewhere()
	if err := l.problems.invalid(); err != nil {
		return err
	}
	for _, w := range l.workspaces {
		for _, p := range w.manifest.patches {
			w.patches = append(w.patches, l.refer(below(w.path, manifestName), w.path, dependency{name: p.name, path: p.path}))
		}
		l.findBuilt(w)
		l.judge(w)
	}
	if len(l.workspaces) == 0 {
		return ErrNoPackage
	}
	return nil
}

func (l *loading) readLinks(ctx context.Context) error {
	var at []int32
	for i := range l.entries {
		if l.entries[i].Mode&modeType == modeLink {
			at = append(at, int32(i))
		}
	}
	texts, err := parseBlobs(ctx, l, &l.loader.linkTexts, at, maxLinkBytes, func(content []byte) *string {
		text := string(content)
		return &text
	})
	if err != nil {
		return err
	}
	l.links = make(map[int32]string, len(at))
	for k, i := range at {
		if texts[k] != nil {
			l.links[i] = *texts[k]
		} else {
			l.links[i] = "" // Too long for any system to follow.
		}
	}
	return nil
}

// readManifests reads every Cargo.toml that counts, round by round: those read lead to others.
func (l *loading) readManifests(ctx context.Context) error {
	var wanted []*folder
	asked := map[*folder]bool{}
	want := func(dir string, ok bool) {
		for f := l.folders[dir]; ok && f != nil && !asked[f]; f = f.parent {
			// What stands around a package decides about its workspace.
			asked[f] = true
			if f.manifest >= 0 {
				wanted = append(wanted, f)
			}
		}
	}
	for _, f := range l.all {
		if f.manifest >= 0 && l.plain(f.path) {
			want(f.path, true)
		}
	}
	for _, f := range l.all {
		for _, name := range configNames {
			if config, err := l.configAt(ctx, below(f.path, name)); err != nil {
				return err
			} else if config != nil && l.plain(f.path) {
				for _, p := range config.patches {
					want(join(f.path, p.path))
				}
			}
		}
	}
	for len(wanted) > 0 {
		round := wanted
		wanted = nil
		at := make([]int32, len(round))
		for k, f := range round {
			at[k] = f.manifest
		}
		read, err := parseBlobs(ctx, l, &l.loader.manifests, at, maxManifestBytes, parseManifest)
		if err != nil {
			return err
		}
		for k, f := range round {
			if c := l.take(f, read[k]); c != nil {
				l.lead(c, want)
				c.patch(want)
			}
		}
		if len(l.crates) > maxManifests {
			return &Invalid{Problems: []string{fmt.Sprintf("%s:1: the repository has more than %d packages", manifestName, maxManifests)}}
		}
	}
	return nil
}

// take makes a crate of a Cargo.toml that was read.
func (l *loading) take(f *folder, m *manifest) *crate {
	file := l.entries[f.manifest]
	switch {
	case file.Mode&modeType == modeLink:
		l.noteIncomplete("%s is a symbolic link; put the file there", file.Path)
		return nil
	case file.Kind != "blob":
		l.noteIncomplete("%s is a submodule", file.Path)
		return nil
	case m == nil:
		m = &manifest{found: []problem{{1, "too large"}}, workspace: &workspaceTable{}}
	}
	if l.plain(f.path) {
		l.problems.add(file.Path, m.found)
	}
	if m.pkg == nil && m.workspace == nil {
		m = &manifest{found: m.found, workspace: &workspaceTable{}} // It is wrong.
	}
	c := &crate{folder: f, manifest: m}
	l.crates[f.path] = c
	return c
}

// addElsewhere collects the mistakes of manifests that do not count by themselves but that a target leads to. Other manifests
// may be data of tests.
func (l *loading) addElsewhere() {
	seen := map[*crate]bool{}
	var visit func(dir string, ok bool)
	visit = func(dir string, ok bool) {
		c := l.crates[dir]
		if !ok || c == nil || seen[c] {
			return
		}
		seen[c] = true
		for f := c.folder; f != nil; f = f.parent {
			if around := l.crates[f.path]; around != nil && !l.plain(f.path) {
				l.problems.add(below(f.path, manifestName), around.manifest.found)
			}
		}
		l.lead(c, visit)
	}
	for _, w := range l.workspaces {
		visit(w.path, true)
		w.patch(visit)
		for _, c := range w.members {
			visit(c.path, true)
		}
		for _, p := range w.patches {
			visit(p.dir, p.inFolder)
		}
	}
}

// patch asks for what the patches of a manifest lead to. Those of a workspace's root count, and no others.
func (c *crate) patch(want func(dir string, ok bool)) {
	for _, p := range c.manifest.patches {
		if p.path != "" {
			want(join(c.path, p.path))
		}
	}
}

// lead asks for what a manifest leads to, but for its patches.
func (l *loading) lead(c *crate, want func(dir string, ok bool)) {
	follow := func(path string) {
		if path != "" {
			want(join(c.path, path))
		}
	}
	if p := c.manifest.pkg; p != nil {
		follow(p.root)
		for _, d := range p.dependencies {
			follow(d.path)
		}
	}
	if w := c.manifest.workspace; w != nil {
		for _, d := range w.dependencies {
			follow(d.path)
		}
		for _, text := range w.members {
			follow(text)
			for _, dir := range l.expand(&workspace{crate: c}, text) {
				want(dir, true)
			}
		}
	}
}

// readWorkspaces reads lock files and configuration.
func (l *loading) readWorkspaces(ctx context.Context) error {
	for _, w := range l.workspaces {
		path := below(w.path, "Cargo.lock")
		if i := l.fileAt(path); i >= 0 {
			read, err := parseBlobs(ctx, l, &l.loader.locks, []int32{i}, maxLockBytes, parseLock)
			if err != nil {
				return err
			}
			if w.lock = read[0]; w.lock == nil {
				w.lock = &lockFile{found: []problem{{1, "too large"}}}
			}
			l.problems.add(path, w.lock.found)
			if w.lock.unknown != "" {
				l.noteIncomplete("%s: %s", path, w.lock.unknown)
			}
		}
		var failed error
		l.useConfigs(w, func(path string) *configFile {
			config, err := l.configAt(ctx, path)
			failed = errors.Join(failed, err)
			return config
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// fileAt returns the entry of the file that a path leads to, or -1.
func (s *survey) fileAt(path string) int32 {
	way := s.follow(path)
	if !way.ok {
		return -1
	}
	if i := s.find(way.end); i >= 0 && s.entries[i].Kind == "blob" {
		return i
	}
	return -1
}

// configAt reads a configuration file; nil if it is not there.
func (l *loading) configAt(ctx context.Context, path string) (*configFile, error) {
	i := l.fileAt(path)
	if i < 0 {
		return nil, nil
	}
	read, err := parseBlobs(ctx, l, &l.loader.configs, []int32{i}, maxManifestBytes, parseConfig)
	if err == nil && read[0] == nil {
		return &configFile{found: []problem{{1, "too large"}}}, nil
	}
	if err != nil {
		return nil, err
	}
	return read[0], nil
}

// memo remembers values that never change, by the ids of blobs or trees.
type memo[V any] struct {
	mu    sync.Mutex
	known *lru.Cache[string, *V]
}

func (m *memo[V]) init(limit int64) { m.known = lru.New[string, *V](limit) }

func (m *memo[V]) get(id string) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _ := m.known.Get(id)
	return value
}

func (m *memo[V]) put(id string, value *V, weight int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Put(id, value, weight)
}

// readers is how many blobs are read at the same time.
const readers = 4

// parseBlobs returns what parse makes of the contents of entries, from memory where that is possible; nil for what is larger
// than max, and for submodules.
func parseBlobs[V any](ctx context.Context, l *loading, m *memo[V], entries []int32, max int64, parse func([]byte) *V) ([]*V, error) {
	values := make([]*V, len(entries))
	var missing []string
	waiting := map[string][]int{}
	for k, i := range entries {
		object := l.entries[i].Object
		if l.entries[i].Kind != "blob" {
			continue
		}
		if values[k] = m.get(object); values[k] == nil {
			if waiting[object] == nil {
				missing = append(missing, object)
			}
			waiting[object] = append(waiting[object], k)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed error
	for part := range slices.Chunk(missing, len(missing)/readers+1) {
		all.Go(func() {
			for _, object := range part {
				content, err := l.tree.Blob(ctx, object, max)
				tooLarge := errors.Is(err, gittree.ErrTooLarge) || err == nil && int64(len(content)) > max
				var value *V
				if err == nil && !tooLarge {
					value = parse(content)
					m.put(object, value, int64(len(content))+400)
				}
				mu.Lock()
				if err != nil && !tooLarge {
					failed = fmt.Errorf("read blob %s: %w", object, err)
				}
				for _, k := range waiting[object] {
					values[k] = value
				}
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	if failed == nil {
		failed = context.Cause(ctx)
	}
	return values, failed
}
