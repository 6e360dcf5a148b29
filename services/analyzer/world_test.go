package analyzer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/landing"
)

const (
	queueName = "monorepo"
	// patience bounds waits of tests for what must come; it is no measure of speed.
	patience = time.Minute
)

// world is a real remote, a log, and a person at a clone who plays gateway and lander.
type world struct {
	*testing.T
	dir    string
	repo   *gitrepo.Repo // the lander's mirror
	log    *memory.Log
	config *configuration.Configuration
	cursor journal.Cursor
	term   int64
	facts  []proto.Message // the analyzer's, as read so far
	main   string
	known  map[string]*eventsv1.Admission
	// faults are what the broker does to the analyzer's next appends; set before start.
	faults []memory.Verdict
}

type files map[string]string

func newWorld(t *testing.T, mainline files, edit ...func(*configuration.Queue)) *world {
	t.Helper()
	w := &world{T: t, dir: t.TempDir(), known: map[string]*eventsv1.Admission{}}
	w.log = memory.New(memory.Options{Fault: w.fault})
	w.config = configuration.New(configuration.Defaults{Workers: 2})
	queue := configuration.NewQueue(queueName, configuration.Defaults{Workers: 2})
	queue.Repository = "code"
	queue.Analysis.Uncovered.Ignore = []string{"**"} // but in the tests about these files
	for _, e := range edit {
		e(&queue)
	}
	w.config.Queues = map[string]configuration.Queue{queueName: queue}
	repository := configuration.NewRepository("code")
	repository.URL = filepath.Join(w.dir, "remote.git")
	w.config.Repositories = map[string]configuration.Repository{"code": repository}

	w.run(w.dir, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
	w.run(w.dir, "init", "--quiet", "--initial-branch=main", "clone")
	w.git("remote", "add", "origin", repository.URL)
	w.main = w.commit("", mainline, "mainline")
	w.git("push", "--quiet", "origin", w.main+":refs/heads/main")
	w.repo = w.mirror("lander")

	var err error
	if w.cursor, err = w.log.Follow(t.Context(), events.TopicChanges, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cursor.Close)
	w.term = w.append(events.ServiceLander, -1, &eventsv1.Claim{Service: events.ServiceLander})
	w.lander(&eventsv1.MainlineMoved{To: w.main, Initial: true})
	return w
}

func (w *world) fault(_ string, _ int32, e events.Envelope) memory.Verdict {
	if e.Source != events.ServiceAnalyzer || len(w.faults) == 0 {
		return memory.Deliver
	}
	next := w.faults[0]
	w.faults = w.faults[1:]
	return next
}

func (w *world) run(dir string, args ...string) string {
	w.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com", "GIT_COMMITTER_DATE=1700000100 +0000",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) git(args ...string) string {
	w.Helper()
	return w.run(filepath.Join(w.dir, "clone"), args...)
}

// mirror opens a mirror of its own for somebody.
func (w *world) mirror(name string) *gitrepo.Repo {
	w.Helper()
	repo, err := gitrepo.Open(w.Context(), gitrepo.Options{
		Remote: w.config.Repositories["code"].URL, Dir: filepath.Join(w.dir, "mirrors", name),
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { repo.Close() })
	if err := repo.Fetch(w.Context(), gitrepo.Wanted{}); err != nil {
		w.Fatal(err)
	}
	return repo
}

// commit makes a commit on top of a parent ("" for none); a file with the content "-" is deleted.
func (w *world) commit(parent string, edits files, message string) string {
	w.Helper()
	clone := filepath.Join(w.dir, "clone")
	if parent == "" {
		w.git("checkout", "--quiet", "--orphan", strings.ReplaceAll(message, " ", "-"))
	} else {
		w.git("checkout", "--quiet", "--force", "--detach", parent)
	}
	for _, path := range slices.Sorted(maps.Keys(edits)) {
		full := filepath.Join(clone, path)
		if edits[path] == "-" {
			if err := os.Remove(full); err != nil {
				w.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(edits[path]), 0o666); err != nil {
			w.Fatal(err)
		}
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "--allow-empty", "-m", message)
	return w.git("rev-parse", "HEAD")
}

func (w *world) append(source string, term int64, m proto.Message) int64 {
	w.Helper()
	offsets, err := w.log.Append(context.Background(), events.TopicChanges, 0, events.Envelope{
		ID: fmt.Sprint(time.Now().UnixNano()), Source: source, Queue: queueName, Time: time.Now(), Term: term, Message: m,
	})
	if err != nil {
		w.Fatal(err)
	}
	return offsets[0]
}

func (w *world) lander(m proto.Message) { w.Helper(); w.append(events.ServiceLander, w.term, m) }

// admit publishes a change with one entry for each set of edits, stacked, made on a commit of the mainline.
func (w *world) admit(id, on string, entries ...files) {
	w.Helper()
	w.admitRevision(id, 1, on, entries...)
}

func (w *world) admitRevision(id string, revision uint64, on string, entries ...files) {
	w.Helper()
	a := &eventsv1.Admission{Queue: queueName, Change: id, Revision: revision, Mainline: on}
	base := on
	for i, edits := range entries {
		head := w.commit(base, edits, id+" "+strconv.Itoa(i))
		a.LandingCommits = append(a.LandingCommits, &eventsv1.LandingCommit{Head: head, Base: base, Entry: uint32(i)})
		base = head
	}
	w.git("push", "--quiet", "--force", "origin", base+":refs/heads/changes/"+id)
	w.known[id] = a
	if revision == 1 {
		w.append(events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: a})
	} else {
		w.append(events.ServiceGateway, -1, &eventsv1.ChangeRevised{Admission: a})
	}
}

// land does what the lander does, without any guard.
func (w *world) land(id string) {
	w.Helper()
	a := w.known[id]
	picks := landing.PicksOf(a.LandingCommits)
	if err := w.repo.Fetch(w.Context(), gitrepo.Wanted{Commits: append(commitsOf(picks), w.main)}); err != nil {
		w.Fatal(err)
	}
	landed, conflict, err := landing.Commits(w.Context(), w.repo, w.main, picks,
		landing.Meta{Change: id, Revision: int64(a.Revision), Queue: queueName, Date: "1700000200 +0000"})
	if err != nil || conflict != nil {
		w.Fatal(err, conflict)
	}
	ref := &eventsv1.ChangeRef{Change: id, Revision: a.Revision}
	tip := landed.Commits[len(landed.Commits)-1]
	w.lander(&eventsv1.LandIntended{Change: ref, Base: w.main, Commits: landed.Commits})
	if err := w.repo.Push(w.Context(), "main", w.main, tip); err != nil {
		w.Fatal(err)
	}
	w.lander(&eventsv1.ChangeLanded{Change: ref, Base: w.main, Commits: landed.Commits})
	w.main = tip
	w.git("fetch", "--quiet", "origin", "main")
}

// push goes past the queue.
func (w *world) push(edits files) (from, to string) {
	w.Helper()
	from = w.main
	w.main = w.commit(from, edits, "past the queue")
	w.git("push", "--quiet", "origin", w.main+":refs/heads/main")
	w.lander(&eventsv1.MainlineMoved{From: from, To: w.main})
	return from, w.main
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

// start runs an analyzer with a mirror of its own until stop is called or the test ends.
func (w *world) start(name string, edit ...func(*Options)) (stop func()) {
	w.Helper()
	repo := w.mirror(name)
	o := Options{
		Log: w.log, Configuration: w.config, Instance: name,
		Repo:   func(context.Context, string) (*gitrepo.Repo, error) { return repo, nil },
		Graphs: buildgraph.NewLoaders(w.config).Of,
		Logger: slog.New(slog.NewTextHandler(testWriter{w.T}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	for _, e := range edit {
		e(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("%s: %v", name, err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// await reads on until a fact of the analyzer satisfies the condition, among all that were read.
func await[M proto.Message](w *world, what string, condition func(M) bool) M {
	w.Helper()
	for _, m := range w.facts {
		if f, ok := m.(M); ok && condition(f) {
			return f
		}
	}
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		e, err := w.cursor.Next(ctx)
		if err != nil {
			w.Fatalf("waiting for %s: %v", what, err)
		}
		if e.Source != events.ServiceAnalyzer {
			continue
		}
		w.facts = append(w.facts, e.Message)
		if f, ok := e.Message.(M); ok && condition(f) {
			return f
		}
	}
}

// analysis waits for the analysis of a change's present revision on the present mainline.
func (w *world) analysis(id string) *eventsv1.ChangeAnalyzed {
	w.Helper()
	return w.analysisOn(id, w.main)
}

func (w *world) analysisOn(id, base string) *eventsv1.ChangeAnalyzed {
	w.Helper()
	return await(w, "the analysis of "+id+" on "+base, func(f *eventsv1.ChangeAnalyzed) bool {
		return f.Change.Change == id && f.Change.Revision == w.known[id].Revision && f.Base == base
	})
}

// countAnalyses counts all that was written about a change, read or not, once each id.
func (w *world) countAnalyses(id string) int {
	w.Helper()
	cursor, err := w.log.Follow(w.Context(), events.TopicChanges, 0, 0)
	if err != nil {
		w.Fatal(err)
	}
	defer cursor.Close()
	ids := map[string]bool{}
	for {
		e, ok, err := cursor.TryNext()
		if err != nil {
			w.Fatal(err)
		}
		if !ok {
			return len(ids)
		}
		if f, is := e.Message.(*eventsv1.ChangeAnalyzed); is && f.Change.Change == id {
			ids[e.ID] = true
		}
	}
}

// targetsOf shows δ as "target@part", with "!" for a trivial one.
func targetsOf(a *eventsv1.Affected) []string {
	var list []string
	for _, v := range a.GetTargets() {
		text := fmt.Sprintf("%s@%d", v.Target, v.Part)
		if v.Trivial {
			text += "!"
		}
		list = append(list, text)
	}
	return list
}

func check[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

// monorepo has three targets with steps, of which app needs lib, and one without.
var monorepo = files{
	"landfall.yaml":      "targets: []\n",
	"lib/landfall.yaml":  manifestOf("lib", "", true),
	"lib/lib.txt":        "one\ntwo\nthree\nfour\nfive\n",
	"app/landfall.yaml":  manifestOf("app", "//lib", true),
	"app/app.txt":        "app\n",
	"docs/landfall.yaml": manifestOf("docs", "", false),
	"docs/docs.txt":      "docs\n",
	"tool/landfall.yaml": manifestOf("tool", "", true),
	"tool/tool.txt":      "tool\n",
	"README":             "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
}

func manifestOf(name, deps string, steps bool) string {
	text := "targets:\n  - name: " + name + "\n    sources: [\"*.txt\"]\n"
	if deps != "" {
		text += "    deps: [\"" + deps + "\"]\n"
	}
	if steps {
		text += "    steps: [{name: check, run: [\"true\"]}]\n"
	}
	return text
}
