package buildgraph

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// TestATreeThatNobodyMayCheckOutIsInvalid and no trouble of the mainline: a queue that waited for it would stand still.
func TestATreeThatNobodyMayCheckOutIsInvalid(t *testing.T) {
	f := newFixture(t)
	base := f.commits("", files{"landfall.yaml": "targets: [{name: t, sources: [\"*\"], steps: [{name: s, run: [\"true\"]}]}]\n"})[0]
	blob := f.git("rev-parse", base+":landfall.yaml")
	empty := f.git("hash-object", "-w", "-t", "blob", "/dev/null")
	for name, entry := range map[string]string{
		".git": "100644 blob " + blob, "..": "100644 blob " + blob, ".GIT": "100644 blob " + blob,
		strings.Repeat("n", 300): "100644 blob " + blob, "link": "120000 blob " + empty,
	} {
		mktree := exec.Command("git", "mktree")
		mktree.Dir = f.dir
		mktree.Stdin = strings.NewReader(fmt.Sprintf("%s\n%s\t%s\n", f.git("ls-tree", base), entry, name))
		out, err := mktree.Output()
		if err != nil {
			t.Fatalf("mktree: %v", err)
		}
		head := f.git("commit-tree", "-p", base, "-m", "hostile", strings.TrimSpace(string(out)))
		f.git("update-ref", "refs/heads/hostile", head)
		if err := f.repo.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
			t.Fatal(err)
		}
		for _, adapter := range []configuration.Adapter{configuration.AdapterAuto, configuration.AdapterGo} {
			r, err := Analyze(t.Context(), NewLoader(configuration.Queue{Analysis: configuration.Analysis{Adapter: adapter}}, nil), f.repo, base, []landing.Pick{{Head: head, Base: base}})
			if err != nil || r.Invalid == nil || !strings.Contains(r.Invalid.Error(), name) {
				t.Errorf("%s, adapter %s: %+v, %v", name, adapter, r, err)
			}
		}
	}
}
