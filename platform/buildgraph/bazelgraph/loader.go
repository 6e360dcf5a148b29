package bazelgraph

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
)

// ErrNoWorkspace is returned for a tree whose root is no Bazel workspace.
var ErrNoWorkspace = errors.New("no MODULE.bazel and no WORKSPACE in the repository")

// Invalid is the error for a tree whose BUILD or .bzl files are wrong: Bazel said so twice, and about files of
// the tree alone.
type Invalid struct {
	// Message has Bazel's own lines, with paths relative to the workspace.
	Message string
}

func (e *Invalid) Error() string { return e.Message }

// Failure is the error for a tree that Bazel said nothing reliable about. It says nothing against the
// tree: a repository could not be fetched, Bazel is not there, hangs, crashes or prints what is not understood.
type Failure struct{ Reason string }

func (e *Failure) Error() string { return e.Reason }

// Checkout is a folder that holds one tree at a time; *gitrepo.Worktree is one.
type Checkout interface {
	Dir() string
	Checkout(ctx context.Context, tree string) error
	Release()
}

// Place is where a loader works: a checkout of its own, and a folder beside it for what Bazel writes.
type Place struct {
	Checkout Checkout
	Dir      string
	// IsMainline reports whether a tree is the mainline's: then its code may leave what others use. Nil: none is.
	IsMainline func(ctx context.Context, tree string) bool
}

// Loader makes the target graphs of trees for one set of options. It may be used from several goroutines; one
// query runs at a time. Close ends the server.
type Loader struct {
	options Options
	// take returns the place, when it is first needed.
	take   func(ctx context.Context) (Place, error)
	graphs graphs

	busy chan struct{} // holds one token while nobody uses what follows
	*workplace
	texts    *lru.Cache[string, text] // by blob
	failed   time.Time                // when Bazel last failed for no reason of a tree's
	failure  string
	releases map[string]string // by what decides which Bazel runs
	closed   bool

	closing context.Context
	stop    context.CancelFunc
	once    sync.Once
}

// workplace is a place that was taken.
type workplace struct {
	place  Place
	server *server
}

// resting is how long Bazel is left alone after it failed for reasons of its own: each change would wait for
// its limit otherwise.
const resting = 30 * time.Second

// NewLoader returns a loader that works where take says. Its error lists what is wrong with the options.
func NewLoader(options Options, take func(ctx context.Context) (Place, error)) (*Loader, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("options of the Bazel adapter: %w", err)
	}
	l := &Loader{options: options, take: take, busy: make(chan struct{}, 1), releases: map[string]string{}, texts: lru.New[string, text](textsInMemory)}
	l.closing, l.stop = context.WithCancel(context.Background())
	l.busy <- struct{}{}
	return l, nil
}

// Close ends what runs, and Bazel's server. The loader gives nothing but what it remembers afterwards.
func (l *Loader) Close() {
	l.once.Do(func() {
		l.stop()
		<-l.busy
		l.closed = true
		if l.workplace != nil {
			l.server.end()
			l.place.Checkout.Release()
			l.workplace = nil
		}
		l.busy <- struct{}{}
	})
}

var errClosed = errors.New("the loader of Bazel's targets is closed")

// Load makes the graph of the tree with that id. The errors are
//
//   - ErrNoWorkspace: take another adapter;
//   - *Invalid: the tree's definitions are wrong;
//   - *Failure: Bazel could not be asked; targets.Unknown stands for the tree;
//   - anything else: the tree could not be read, or ctx ended; try again.
func (l *Loader) Load(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	if graph := l.graphs.get(tree); graph != nil {
		return graph, nil
	}
	entries, err := repo.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	if next := l.graphs.successor(tree, entries); next != nil {
		l.graphs.put(next, true)
		return next.graph, nil
	}
	select {
	case <-l.busy:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { l.busy <- struct{}{} }()
	if l.closed {
		return nil, errClosed
	}
	// What others have asked for meanwhile may be near.
	if next := l.graphs.successor(tree, entries); next != nil {
		l.graphs.put(next, true)
		return next.graph, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.closing, func() { cancel(errClosed) })()
	defer cancel(nil)
	made, err := l.query(ctx, repo, tree, entries)
	if err != nil {
		return nil, err
	}
	if len(made.graph.Unknown()) == 0 {
		l.graphs.put(made, false)
	}
	return made.graph, nil
}

// query makes a graph by asking Bazel.
func (l *Loader) query(ctx context.Context, repo Repository, tree string, entries []gitrepo.Entry) (*loaded, error) {
	s, err := newSnapshot(ctx, repo, entries)
	if err != nil {
		return nil, err
	}
	if !s.isWorkspace() {
		return nil, ErrNoWorkspace
	}
	r := &reader{snapshot: s, repo: repo, memo: l.texts}
	m, err := r.workspace(ctx)
	if errors.Is(err, errTooLarge) {
		return nil, &Failure{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	if since := time.Since(l.failed); since < resting {
		return nil, &Failure{l.failure}
	}
	if err := l.prepare(ctx, tree); err != nil {
		return nil, err
	}
	answer, release, err := l.answer(ctx, s)
	if err != nil {
		return nil, err
	}
	a := &assembler{reader: r, options: &l.options, answer: answer, mentions: m, root: l.server.dir}
	graph, err := a.assemble(ctx, tree, release)
	if errors.Is(err, errTooLarge) {
		return nil, &Failure{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &loaded{tree: tree, graph: graph, entries: s.entries, decisive: m.decides(inputsOf(l.options))}, nil
}

// decides returns what tells whether the content of a file can decide about rules.
func (m *mentions) decides(inputs []input) func(file string) bool {
	named := map[string]bool{}
	for l := range m.labels {
		named[l.path()] = true
	}
	return func(file string) bool {
		if isDecisive(file) {
			return true
		}
		for at := file; at != ""; at, _ = split(at) {
			if m.files[at] || named[at] {
				return true
			}
		}
		for _, in := range inputs {
			if matchesAny(in.files, file) {
				return true
			}
		}
		return false
	}
}

// prepare takes the place if need be, and puts the tree there.
func (l *Loader) prepare(ctx context.Context, tree string) error {
	if l.workplace == nil {
		place, err := l.take(ctx)
		if err != nil {
			return l.fail(ctx, fmt.Errorf("a folder for Bazel: %w", err))
		}
		server, err := newServer(ctx, &l.options, place.Checkout.Dir(), place.Dir)
		if err != nil {
			place.Checkout.Release()
			return l.fail(ctx, err)
		}
		l.workplace = &workplace{place, server}
	}
	if err := l.place.Checkout.Checkout(ctx, tree); err != nil {
		return err
	}
	if l.server.box != nil {
		l.server.box.mainline = l.place.IsMainline != nil && l.place.IsMainline(ctx, tree)
	}
	return nil
}

// answer asks Bazel. A tree without BUILD files is not asked about: Bazel calls that an error.
func (l *Loader) answer(ctx context.Context, s *snapshot) (*answer, string, error) {
	release, err := l.release(ctx, s)
	if err != nil {
		return nil, "", l.fail(ctx, err)
	}
	if !s.hasBuildFiles() {
		return &answer{}, release, nil
	}
	a, err := l.server.query(ctx)
	ended, exited := errors.AsType[*exit](err)
	if !exited {
		if err != nil {
			return nil, "", l.fail(ctx, err)
		}
		return a, release, nil
	}
	message, blamed := l.blame(ended)
	if !blamed {
		if ended.code == exitAnalysis || ended.code == exitBuild {
			// Something that the tree asks for could not be had. Another tree need not ask for it.
			return nil, "", &Failure{"bazel query: " + ended.Error()}
		}
		return nil, "", l.fail(ctx, err)
	}
	// A change is turned away for this, so it is asked again. What Bazel remembers of it, it tells in fewer words.
	_, err = l.server.query(ctx)
	if again, exited := errors.AsType[*exit](err); exited {
		if _, blamed := l.blame(again); blamed {
			return nil, "", &Invalid{message}
		}
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	return nil, "", &Failure{"bazel query failed, and otherwise when it was asked again: " + ended.Error()}
}

// release returns Bazel's version, as the tree chooses it.
func (l *Loader) release(ctx context.Context, s *snapshot) (string, error) {
	var key strings.Builder
	for _, file := range []string{".bazelversion", ".bazeliskrc", "tools/bazel", ".bazelrc"} {
		if i := s.find(file); i >= 0 {
			key.WriteString(s.entries[i].Object)
		}
		key.WriteByte(' ')
	}
	if known, ok := l.releases[key.String()]; ok {
		return known, nil
	}
	release, err := l.server.release(ctx)
	if err == nil && release == "" {
		err = errors.New("bazel info names no release")
	}
	if err != nil {
		return "", err
	}
	if len(l.releases) > 1000 {
		clear(l.releases)
	}
	l.releases[key.String()] = release
	return release, nil
}

// fail makes a Failure of what went wrong with Bazel itself, which then rests.
func (l *Loader) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.failed, l.failure = time.Now(), "Bazel cannot be asked for the targets: "+err.Error()
	return &Failure{l.failure}
}

// Exit codes of Bazel.
const (
	exitBuild    = 1
	exitAnalysis = 7
)

// blame returns what Bazel says of the tree's own files, and whether it speaks of nothing else. Whatever
// could be a matter of the machine or of the network is no fault of the tree.
func (l *Loader) blame(e *exit) (message string, ok bool) {
	if e.code != exitAnalysis && e.code != exitBuild {
		return "", false
	}
	root := l.server.dir + string(filepath.Separator)
	var lines []string
	for line := range strings.Lines(e.message) {
		line, here := strings.TrimRight(line, "\n"), strings.Contains(line, root)
		line = strings.ReplaceAll(line, root, "")
		if !strings.HasPrefix(line, "ERROR: ") && !strings.HasPrefix(line, "Error in ") && !strings.HasPrefix(line, "\t") {
			continue
		}
		lower := strings.ToLower(line)
		for _, suspect := range []string{
			"@", "fetch", "download", "repositor", "external", "network", "connect", "timed out", "timeout", "no space", "memory", "permission",
			"i/o", "server", "interrupt", "crash", "internal", "resolve", "certificate", "proxy", "http:", "https:",
		} {
			if strings.Contains(lower, suspect) {
				return "", false
			}
		}
		lines = append(lines, line)
		// A place in a file, a package or a file by name.
		ok = ok || here || strings.HasPrefix(line, "ERROR: error loading package '") || strings.HasPrefix(line, "ERROR: package contains errors: ")
	}
	const most = 20
	return strings.Join(lines[:min(len(lines), most)], "\n"), ok
}
