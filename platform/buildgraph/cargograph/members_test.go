package cargograph

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// randomWorkspaces writes packages with roots, members, exclusions, paths and pointers at random.
func randomWorkspaces(r *rand.Rand) memoryTree {
	dirs := []string{"", "a", "b", "a/in", "ws", "ws/x", "ws/x/deep", "lib"}
	tree := memoryTree{}
	for i, dir := range dirs {
		if r.IntN(6) == 0 {
			continue
		}
		text := ""
		if isPackage := r.IntN(6) > 0; isPackage {
			text = fmt.Sprintf("[package]\nname = \"p%d\"\nedition = \"2021\"\n", i)
			if r.IntN(8) == 0 {
				text += fmt.Sprintf("workspace = %q\n", relative(dir, pick(r, dirs)))
			}
			for _, table := range []string{"dependencies", "dev-dependencies"} {
				text += "[" + table + "]\n"
				for range r.IntN(2) {
					// A path downward or to what stands later: cargo refuses circles.
					if to := i + 1 + r.IntN(len(dirs)); to < len(dirs) && tree[below(dirs[to], manifestName)] == "" {
						text += fmt.Sprintf("p%d = { path = %q }\n", to, relative(dir, dirs[to]))
					}
				}
			}
			tree[below(dir, "src/lib.rs")] = ""
		}
		if r.IntN(5) == 0 || text == "" {
			text += "[workspace]\n"
			if r.IntN(3) > 0 {
				text += "members = " + pick(r, []string{`["*"]`, `[]`, `["lib"]`, `["a", "b"]`, `["a/*", "lib"]`, `["x", "x/*"]`, `["**"]`, `["../lib"]`, `["in"]`, `["[!a]"]`, `["ws/./x", "a/../b"]`, `["?"]`}) + "\n"
			}
			if r.IntN(3) == 0 {
				text += "exclude = " + pick(r, []string{`["a"]`, `["lib", "b"]`, `["ws"]`, `["x/deep"]`, `["./a", "in"]`}) + "\n"
			}
		}
		tree[below(dir, manifestName)] = text
	}
	return tree
}

// TestWorkspacesHaveTheMembersThatCargoGivesThem compares random repositories: where cargo accepts a package's folder, the
// members of the workspace that it finds there are targets in that workspace, and nothing is found wrong; where cargo refuses
// one that the adapter takes for a target, the adapter has found something wrong.
func TestWorkspacesHaveTheMembersThatCargoGivesThem(t *testing.T) {
	needCargo(t)
	r := seedtest.Random(t)
	layouts := 20
	if text := os.Getenv("LANDFALL_CARGOGRAPH_LAYOUTS"); text != "" {
		layouts, _ = strconv.Atoi(text)
	}
	accepted, refused := 0, 0
	for range layouts {
		tree := randomWorkspaces(r)
		root := t.TempDir()
		writeFiles(t, root, tree)
		run := &loading{loader: newLoader(t, Options{}), tree: tree, survey: &survey{crates: map[string]*crate{}}}
		entries, _ := tree.Entries(t.Context())
		run.snapshot = newSnapshot(entries)
		if err := run.examine(t.Context()); err != nil || len(run.incomplete) > 0 {
			continue
		}
		for dir, c := range run.crates {
			var w *workspace
			if w = run.placed[c]; w == nil && c.manifest.pkg == nil {
				w = c.root
			}
			m, err := readMetadata(filepath.Join(root, dir), "--offline")
			switch {
			case err != nil && w != nil && len(w.wrong) == 0:
				t.Errorf("cargo refuses %q, the adapter does not: %v\n%s", dir, err, show(asModel(tree)))
			case err != nil:
				refused++
			case w == nil && !run.enclosed(c):
				t.Errorf("cargo accepts %q, which is no target\n%s", dir, show(asModel(tree)))
			case w == nil || len(w.foreign) > 0:
				// Of two workspaces that claim a package the adapter believes the one that the package finds.
			default:
				accepted++
				var got, want []string
				for _, member := range w.members {
					got = append(got, strconv.Quote(member.path))
				}
				for _, p := range m.Packages {
					if slices.Contains(m.WorkspaceMembers, p.ID) {
						rel, _ := filepath.Rel(root, filepath.Dir(p.ManifestPath))
						want = append(want, strconv.Quote(strings.TrimPrefix(filepath.ToSlash(rel), ".")))
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) || len(w.wrong) > 0 {
					t.Errorf("in %q: members %s, cargo has %s; wrong: %q\n%s", dir, got, want, w.wrong, show(asModel(tree)))
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if accepted < layouts/4 || refused < layouts/4 {
		t.Errorf("cargo accepted %d and refused %d: too little to mean anything", accepted, refused)
	}
	t.Logf("cargo accepted %d and refused %d", accepted, refused)
}

func asModel(tree memoryTree) model {
	m := model{}
	for path, text := range tree {
		m["file "+path] = text
	}
	return m
}
