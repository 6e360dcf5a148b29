package cargograph

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// truth compares a graph with what cargo says of a checkout of its tree.
type truth struct {
	testing.TB
	graph *targets.Graph
	root  string
	// lock is the path of the workspace's lock file in the tree.
	lock string

	edges, externals, members, files int
	missing                          []string
}

// inside returns a path of the checkout in the tree.
func (c *truth) inside(path string) (string, bool) {
	rel, err := filepath.Rel(c.root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	if rel == "." {
		rel = ""
	}
	return filepath.ToSlash(rel), true
}

func (c *truth) need(from, to string) {
	if !slices.Contains(c.graph.Dependencies(from), to) {
		c.missing = append(c.missing, from+" → "+to)
	}
}

// compare checks every dependency that cargo reports for a workspace, of its members and of external packages.
func (c *truth) compare(m metadata) {
	labels := map[string]string{}
	for _, p := range m.Packages {
		if dir, ok := c.inside(filepath.Dir(p.ManifestPath)); ok && p.Source == nil {
			labels[p.ID] = label(dir)
			if _, is := c.graph.Target(label(dir)); !is && slices.Contains(m.WorkspaceMembers, p.ID) {
				c.missing = append(c.missing, "the target "+label(dir))
			}
			reached := reachedFrom(c.graph, label(dir)+" [test]")
			for _, t := range p.Targets {
				if !isFile(t.SrcPath) {
					continue // It was left out when the package was published.
				}
				c.files++
				if file, _ := c.inside(t.SrcPath); !reached["file:"+file] {
					c.missing = append(c.missing, label(dir)+" [test] → "+file)
				}
			}
			continue
		}
		one := locked{name: p.Name, version: p.Version, source: *p.Source}
		labels[p.ID] = "ext:cargo:" + one.id() + " in " + c.lock
	}
	for _, node := range m.Resolve.Nodes {
		from := labels[node.ID]
		for _, dep := range node.Deps {
			for _, kind := range dep.DepKinds {
				to := labels[dep.Pkg]
				if strings.HasPrefix(to, "ext:") {
					c.externals++
				} else {
					c.edges++
				}
				switch {
				case kind.Kind != nil && *kind.Kind == "dev":
					if from != to { // Tests may name the package itself.
						c.need(from+" [test]", to)
					}
				default:
					c.need(from, to)
				}
			}
		}
	}
	c.members += len(m.WorkspaceMembers)
}

// reachedFrom returns all that a node depends on.
func reachedFrom(g *targets.Graph, label string) map[string]bool {
	seen := map[string]bool{}
	pending := []string{label}
	for len(pending) > 0 {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !seen[next] {
			seen[next] = true
			pending = append(pending, g.Dependencies(next)...)
		}
	}
	return seen
}

// report fails the test for each edge that the graph lacks.
func (c *truth) report() {
	c.Helper()
	for _, edge := range c.missing[:min(len(c.missing), 20)] {
		c.Errorf("missing: %s", edge)
	}
	if c.members == 0 || c.files == 0 {
		c.Errorf("nothing was compared: %d members, %d files", c.members, c.files)
	}
}

// complaints returns what is found wrong about the workspaces of a tree.
func complaints(t testing.TB, tree diskTree) map[string][]string {
	t.Helper()
	run := &loading{loader: newLoader(t, Options{}), tree: tree, survey: &survey{snapshot: newSnapshot(tree.entries), crates: map[string]*crate{}}}
	if err := run.examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, w := range run.workspaces {
		if len(w.wrong) > 0 {
			found[w.path] = w.wrong
		}
	}
	return found
}

// versionsTried is the newest version of each repository, or all with LANDFALL_TEST_SLOW, as in make test-all.
func versionsTried() []int {
	if os.Getenv("LANDFALL_TEST_SLOW") != "" {
		return []int{0, 1, 2}
	}
	return []int{2}
}

// TestEveryDependencyThatCargoReportsIsAnEdge makes one repository of those of well-known packages, each a workspace or a
// package of its own, and compares the graph with what cargo resolves in each.
func TestEveryDependencyThatCargoReportsIsAnEdge(t *testing.T) {
	loader := newLoader(t, Options{})
	for _, version := range versionsTried() {
		repositories := slices.Sorted(maps.Keys(histories))
		folders := fetch(t, version, repositories)
		root := t.TempDir()
		for _, name := range repositories {
			restore(t, filepath.Join(root, name), histories[name][version], folders)
			if _, err := cargo(filepath.Join(root, name), "generate-lockfile", "--quiet"); err != nil {
				unavailable(t, err)
			}
		}
		tree := readFolder(t, root)
		graph, err := loader.Load(t.Context(), "", tree)
		if err != nil {
			t.Fatal(err)
		}
		if unknown := graph.Unknown(); len(unknown) > 0 {
			t.Errorf("version %d: the graph is not whole: %q", version, unknown)
		}
		checkSameGraph(t, load(t, tree), graph)
		for dir, wrong := range complaints(t, tree) {
			t.Errorf("version %d: cargo accepts %s, the adapter finds %q", version, dir, wrong)
		}
		for _, name := range repositories {
			m, err := readMetadata(filepath.Join(root, name), "--locked")
			if err != nil {
				unavailable(t, err)
			}
			c := &truth{TB: t, graph: graph, root: root, lock: name + "/Cargo.lock"}
			c.compare(m)
			c.report()
			t.Logf("%s %s: %d members, %d edges between packages and %d to or between external ones, %d files; %d missing", name,
				histories[name][version][""], c.members, c.edges, c.externals, c.files, len(c.missing))
		}
	}
}
