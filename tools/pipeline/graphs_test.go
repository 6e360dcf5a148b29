package pipeline

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// TestAllServicesOfAProcessMakeTheSameHashes: builder and lander look through the loaders of the process, the analyzer
// through its own. What a Go target is built with is the variables of the queue's steps too.
func TestAllServicesOfAProcessMakeTheSameHashes(t *testing.T) {
	dir := t.TempDir()
	git := func(input string, args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", dir}, args...)...)
		command.Stdin = strings.NewReader(input)
		command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("", "init", "--quiet", "--bare", "--initial-branch=main", ".")
	git("commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 4\nmain\n"+
		"M 100644 inline go.mod\ndata 18\nmodule m\n\ngo 1.26\n"+"M 100644 inline a.go\ndata 10\npackage m\n\n", "fast-import", "--quiet")
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: dir, Dir: filepath.Join(t.TempDir(), "mirror.git"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	if err := repo.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	commit, err := repo.Resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.TreeOf(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	queue := configuration.Queue{
		Analysis: configuration.Analysis{Adapter: configuration.AdapterGo, Toolchain: "go1.99"},
		Steps:    configuration.Steps{Environment: configuration.Environment{Variables: map[string]string{"GOFLAGS": "-tags=x"}}},
	}
	hash := func(l *buildgraph.Loader) string {
		graph, err := l.Graph(t.Context(), repo, tree)
		if err != nil {
			t.Fatal(err)
		}
		target, ok := graph.Target("m")
		if !ok {
			t.Fatal("there is no target m")
		}
		return target.Hash.String()
	}
	process := &Process{Configuration: &configuration.Configuration{Queues: map[string]configuration.Queue{"main": queue}}}
	ofAnalyzer := hash(buildgraph.NewLoader(queue, nil))
	if hash(process.graphsOf("main")) != ofAnalyzer {
		t.Error("builder and lander see another target than the analyzer")
	}
	if hash(buildgraph.NewLoader(configuration.Queue{Analysis: queue.Analysis}, nil)) == ofAnalyzer {
		t.Error("the variables of steps are no part of the hash, so this test shows nothing")
	}
}
