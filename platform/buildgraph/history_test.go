package buildgraph

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// fixturesModule is a Go module that holds the whole histories of real repositories, as packs of git.
const fixturesModule = "github.com/go-git/go-git-fixtures/v4@v4.3.1"

// history is a real repository.
type history struct {
	name string
	// dir is of git, or pack names one of fixturesModule.
	dir, pack string
	head      string
	// module reports whether it is the releases of the Go module of this name.
	module bool
	// laid returns files that are put into a tree, given its paths: what it would have if it had begun with a queue.
	laid func(paths []string) files
	// adapter finds the targets, with inputs that they do not declare.
	adapter configuration.Adapter
	inputs  []configuration.Input
}

// histories are repositories in Go, C, and Python with shell and Gradle, and this one.
var histories = []history{
	{name: "go-git", pack: "3559b3b47e695b33b0913237a4df3357e739831c", head: "e8788ad9165781196e917292d6055cba1d78664e",
		adapter: configuration.AdapterGo, laid: func([]string) files { return files{"go.mod": "module gopkg.in/src-d/go-git.v4\n\ngo 1.20\n"} }},
	{name: "rumprun-xen", pack: "7861f2632868833a35fe5e4ab94f99638ec5129b", head: "cb76259edb1309ea45ac601edd9db3721e7cb5a0",
		adapter: configuration.AdapterManifest, laid: targetPerFolder},
	{name: "spinnaker", pack: "f2e0a8889a746f7600e07d2246a2e29a72f696be", head: "06ce06d0fc49646c4de733c45b7788aabad98a6f",
		adapter: configuration.AdapterManifest, laid: targetPerFolder},
	{name: "Landfall", dir: "../..", head: "HEAD", adapter: configuration.AdapterGo, inputs: []configuration.Input{
		{Folders: []string{"platform/configuration"}, Files: []string{"schemas/configuration/*"}},
		{Folders: []string{"events", "engine/snapshotv1"}, Files: []string{"schemas/events/**", "schemas/snapshots/**", "schemas/generate.sh"}},
		{Folders: []string{"services/historian/**"}, Files: []string{"schemas/clickhouse/*"}},
		{Folders: []string{"learning/**", "tools/train"}, Files: []string{"learning/testdata/**"}},
		{Folders: []string{"tools/cmd/faults"}, Files: []string{"Makefile"}},
	}},
}

// targetPerFolder is a manifest with a target for each folder in the root of a tree, and one for the other files of the root: what
// somebody writes who knows no more of a repository. Hidden folders and those of documents have none.
func targetPerFolder(paths []string) files {
	folders := map[string]bool{}
	var root []string
	for _, path := range paths {
		folder, _, below := strings.Cut(path, "/")
		switch {
		case strings.HasPrefix(path, ".") || isDocument(path):
		case below:
			folders[folder] = true
		default:
			root = append(root, strconv.Quote(path))
		}
	}
	text := "targets:\n- name: root\n  sources: [" + strings.Join(root, ", ") + "]\n"
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		text += fmt.Sprintf("- name: %s\n  sources: [%q]\n", folder, folder+"/**")
	}
	return files{"landfall.yaml": text}
}

func isDocument(path string) bool {
	patterns, err := glob.ParseAll(DocumentPatterns)
	return err == nil && slices.ContainsFunc(patterns, func(p glob.Pattern) bool { return p.MatchesFile(path) })
}

func TestDocumentPatternsAreOfDocumentsAlone(t *testing.T) {
	for _, path := range []string{"README.md", "docs/img/flow.svg", "a/b/README", "a/LICENSE.txt", ".github/workflows/ci.yml", "x/.gitignore", "guide.adoc"} {
		if !isDocument(path) {
			t.Errorf("%s is no document", path)
		}
	}
	for _, path := range []string{"main.go", "Makefile", "go.sum", ".gitattributes", ".gitmodules", "requirements.txt", "schemas/example.yaml", "a/docs.go", "read.me/x.c"} {
		if isDocument(path) {
			t.Errorf("%s is a document", path)
		}
	}
}

// TestFewCommitsOfRealHistoriesAffectEverything if documents are ignored: of each history the newest LANDFALL_UNCOVERED_COMMITS
// commits, 1,000 with LANDFALL_TEST_SLOW; without either it is skipped. LANDFALL_UNCOVERED_HISTORY is the folder of one more, by the adapter go.
func TestFewCommitsOfRealHistoriesAffectEverything(t *testing.T) {
	most, err := strconv.Atoi(os.Getenv("LANDFALL_UNCOVERED_COMMITS"))
	if os.Getenv("LANDFALL_TEST_SLOW") != "" && err != nil {
		most, err = 1000, nil
	}
	if err != nil {
		t.Skip("LANDFALL_UNCOVERED_COMMITS says of how many commits")
	}
	all := histories
	if dir := os.Getenv("LANDFALL_UNCOVERED_HISTORY"); dir != "" {
		all = append(slices.Clone(all), history{name: dir, dir: dir, head: "HEAD", adapter: configuration.AdapterGo})
	}
	for _, h := range all {
		s := h.measure(t, most)
		t.Logf("%s, by %s: %s", h.name, h.adapter, s)
		if 20*s.kept > s.commits || s.commits == 0 {
			t.Errorf("of %s %d of %d commits affect everything", h.name, s.kept, s.commits)
		}
	}
}

// share is what became of the commits of a history.
type share struct {
	commits int
	// bare is how many affect everything if no file is ignored, kept if documents are.
	bare, kept int
	// otherwise affect everything for another reason, or are invalid.
	otherwise int
	// by counts the commits of kept by the files that cause it.
	by map[string]int
}

func (s share) String() string {
	percent := func(n int) float64 { return 100 * float64(n) / float64(max(s.commits, 1)) }
	text := fmt.Sprintf("%d commits; if nothing is ignored %d (%.1f %%) affect everything, if documents are %d (%.1f %%); for another reason %d",
		s.commits, s.bare, percent(s.bare), s.kept, percent(s.kept), s.otherwise)
	paths := slices.SortedFunc(maps.Keys(s.by), func(a, b string) int { return cmp.Or(cmp.Compare(s.by[b], s.by[a]), cmp.Compare(a, b)) })
	for _, path := range paths[:min(len(paths), 10)] {
		text += fmt.Sprintf("\n%5d %s", s.by[path], path)
	}
	return text
}

// measure compares each commit that is no merge with its parent.
func (h history) measure(t *testing.T, most int) share {
	t.Helper()
	w := &historian{history: h, T: t, index: filepath.Join(t.TempDir(), "index"), trees: map[string]string{}}
	w.open()
	type edit struct{ before, after string }
	var edits []edit
	for line := range strings.Lines(w.git("", "rev-list", "--no-merges", "--parents", "--topo-order", "--max-count="+strconv.Itoa(most), w.head)) {
		if f := strings.Fields(line); len(f) == 2 {
			edits = append(edits, edit{w.tree(f[1]), w.tree(f[0])})
		}
	}
	w.git("", "update-ref", "refs/heads/trees", w.last)
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: w.dir, Dir: filepath.Join(t.TempDir(), "mirror")})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	if err := repo.Fetch(t.Context(), gitrepo.Wanted{Commits: []string{w.last}}); err != nil {
		t.Fatal(err)
	}
	loader := NewLoader(configuration.Queue{Analysis: configuration.Analysis{
		Adapter: h.adapter, Inputs: h.inputs, Uncovered: configuration.Uncovered{Ignore: DocumentPatterns},
	}}, nil)
	defer loader.Close()
	s := share{by: map[string]int{}}
	for _, e := range slices.Backward(edits) { // oldest first
		r, err := Compare(t.Context(), loader, repo, e.before, []string{e.after})
		if err != nil {
			t.Fatal(err)
		}
		s.commits++
		switch u := r.Uncovered; {
		case r.Invalid != nil || r.All && len(u.Files) == 0:
			s.otherwise++
		case len(u.Files) > 0:
			s.kept++
			s.bare++
			for _, path := range u.Files {
				s.by[path]++
			}
		case len(u.Ignored) > 0:
			s.bare++
		}
	}
	return s
}

// historian writes the trees of a history with what is laid into them.
type historian struct {
	history
	*testing.T
	index string
	trees map[string]string // by commit
	// last is a commit on which all of them hang, so that one fetch has them.
	last string
}

// open makes a repository of the history's own.
func (w *historian) open() {
	w.Helper()
	from := w.dir
	w.dir = w.TempDir()
	w.git("", "init", "--quiet", "--bare", ".")
	if w.module {
		w.fetchReleases()
		return
	}
	if w.pack == "" {
		source, err := filepath.Abs(from)
		if err != nil {
			w.Fatal(err)
		}
		w.git("", "fetch", "--quiet", source, w.head+":refs/heads/history")
		w.head = "refs/heads/history"
		return
	}
	download := exec.Command("go", "mod", "download", "-json", fixturesModule)
	download.Dir = w.TempDir()
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	var module struct{ Dir string }
	out, err := download.Output()
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		w.Fatalf("%s cannot be had: %v", fixturesModule, err)
	}
	pack, err := os.ReadFile(filepath.Join(module.Dir, "data", "pack-"+w.pack+".pack"))
	if err != nil {
		w.Fatal(err)
	}
	w.git(string(pack), "index-pack", "--stdin")
}

func (w *historian) git(in string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = w.dir, strings.NewReader(in)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_INDEX_FILE=" + w.index,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com",
	}
	out, err := cmd.Output()
	if err != nil {
		w.Fatalf("%s: git %q: %v", w.name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// tree returns the tree of a commit.
func (w *historian) tree(commit string) string {
	w.Helper()
	if tree := w.trees[commit]; tree != "" {
		return tree
	}
	w.git("", "read-tree", commit)
	if w.laid != nil {
		for path, text := range w.laid(strings.Split(w.git("", "ls-files"), "\n")) {
			w.git("", "update-index", "--add", "--cacheinfo", "100644,"+w.git(text, "hash-object", "-w", "--stdin")+","+path)
		}
	}
	tree := w.git("", "write-tree")
	args := []string{"commit-tree", "-m", "tree", tree}
	if w.last != "" {
		args = append(args, "-p", w.last)
	}
	w.last, w.trees[commit] = w.git("", args...), tree
	return tree
}
