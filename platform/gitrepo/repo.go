package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options configure a mirror.
type Options struct {
	// Remote is a path or a URL that git can fetch from and push to.
	Remote string
	// Dir is the mirror's directory, made if it is not there. Processes may share it.
	// Beside it lies Dir+".lock".
	Dir string
	// Log gets one line for each fetch, push and restart; nil for none.
	Log *slog.Logger
	// RemoteEnv is environment ("NAME=value") for the commands that talk to the remote
	// alone: SSH_AUTH_SOCK, GIT_SSH_COMMAND, proxies, or a credential helper by
	// GIT_CONFIG_COUNT, GIT_CONFIG_KEY_0, … GIT_CONFIG_GLOBAL with safe.directory in that
	// file is needed for a remote path that another user owns.
	RemoteEnv []string
	// TreeCacheBytes bounds the memory for parsed trees; 0 means 64 MiB.
	TreeCacheBytes int
}

// Repo is a mirror of one remote repository.
type Repo struct {
	dir, remote, shownRemote string
	secrets, networkEnv      []string
	log                      *slog.Logger

	readers *readerPool
	trees   *cache[string, *treeNode]
	treeIDs *cache[string, string]
	merges  *cache[mergeKey, mergeOutcome]
	fetches fetchQueue
	used    *cache[string, time.Time] // when a use was last written down
	clock   func() time.Time
	// pathBytes is MaxPathBytes, but in tests.
	pathBytes int
	// treeRoom, commitBytes, gitMemory and mergeWork are what their constants say, but in tests.
	treeRoom    treeRoom
	commitBytes int
	gitMemory   uint64
	mergeWork   time.Duration
}

const (
	remoteFile      = "landfall-remote" // in the mirror: what it mirrors
	defaultTreeMem  = 64 << 20
	maxTreeIDs      = 16 << 10 // commit → tree pairs remembered
	maxMerges       = 8 << 10  // merges remembered
	oldestGit       = "2.38"
	oldestGitReason = "for merge-tree --write-tree"
)

// Open makes the mirror of a remote, or takes up the one that is there. It does not
// contact the remote: a new mirror is empty until Fetch. Close it when done.
func Open(ctx context.Context, o Options) (*Repo, error) {
	remote, err := settleRemote(o.Remote)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil || o.Dir == "" {
		return nil, fmt.Errorf("%w: mirror directory %q", ErrInvalid, o.Dir)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.TreeCacheBytes == 0 {
		o.TreeCacheBytes = defaultTreeMem
	}
	r := &Repo{
		dir: dir, remote: remote, shownRemote: redactURL(remote), secrets: secretsOf(remote),
		networkEnv: o.RemoteEnv,
		trees:      newCache[string, *treeNode](o.TreeCacheBytes),
		treeIDs:    newCache[string, string](maxTreeIDs),
		merges:     newCache[mergeKey, mergeOutcome](maxMerges),
		used:       newCache[string, time.Time](maxUses),
		clock:      time.Now,
		pathBytes:  MaxPathBytes, treeRoom: treeRoom{maxTreeEntries, maxTreeBytes}, commitBytes: maxCommitBytes, gitMemory: mostMemory, mergeWork: mostMergeWork,
	}
	r.log = o.Log.With("remote", r.shownRemote)
	r.fetches.apart, r.fetches.taken, r.fetches.bounds = map[string]*apartFetch{}, map[string]time.Duration{}, defaultFetchBounds
	r.fetches.ctx, r.fetches.stop = context.WithCancel(context.Background())
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", r.shownRemote, err)
	}
	if err := r.ensureMirror(ctx); err != nil {
		return nil, fmt.Errorf("mirror of %s in %s: %w", r.shownRemote, dir, err)
	}
	r.readers = newReaderPool(r)
	return r, nil
}

// MirrorsAnother reports whether a directory is the mirror of another remote than this one: Open would refuse it.
func MirrorsAnother(dir, remote string) bool {
	of, err := os.ReadFile(filepath.Join(dir, remoteFile))
	if err != nil {
		return false
	}
	remote, err = settleRemote(remote)
	return err == nil && string(bytes.TrimSpace(of)) != redactURL(remote)
}

// Close ends the processes that serve the mirror. What is under way fails.
func (r *Repo) Close() error {
	r.fetches.close()
	r.readers.close()
	return nil
}

// Dir returns the mirror's directory: a bare repository.
func (r *Repo) Dir() string { return r.dir }

// Remote names the remote, without credentials.
func (r *Repo) Remote() string { return r.shownRemote }

// ensureMirror makes the mirror elsewhere and renames it, so that a directory of that
// name is always a whole mirror.
func (r *Repo) ensureMirror(ctx context.Context) error {
	unlock, err := lockFile(ctx, r.dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	of, err := os.ReadFile(filepath.Join(r.dir, remoteFile))
	switch {
	case err == nil:
		if got := string(bytes.TrimSpace(of)); got != r.shownRemote {
			return fmt.Errorf("%w: the directory mirrors another remote, %s; name another folder for data, or remove the directory if nothing uses that mirror", ErrInvalid, got)
		}
		r.finishPrune()
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if _, err := os.Lstat(r.dir); err == nil {
		return fmt.Errorf("%w: the directory exists and is not a mirror of Landfall; name another or remove it", ErrInvalid)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(r.dir), filepath.Base(r.dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	if err := os.Chmod(fresh, 0o755); err != nil {
		return err
	}
	init := invocation{dir: fresh, args: []string{"init", "--bare", "--quiet", "--template=", "--object-format=sha1"}, env: []string{"GIT_DIR=" + fresh}}
	if err := r.checkVersion(ctx, fresh); err != nil {
		return err
	}
	if _, err := r.run(ctx, init); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(fresh, "info"), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, "info", "attributes"), []byte(exactAttributes), 0o666); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(fresh, remoteFile), []byte(r.shownRemote+"\n"), 0o666); err != nil {
		return err
	}
	return os.Rename(fresh, r.dir)
}

// exactAttributes outranks every .gitattributes: a checkout holds each blob's very bytes.
// Conversions would make a file depend on more than its blob's id, and a cheap move from
// tree to tree would leave behind what another .gitattributes had made.
const exactAttributes = "* -text -eol -ident -filter -working-tree-encoding\n"

func (r *Repo) checkVersion(ctx context.Context, dir string) error {
	out, err := r.run(ctx, invocation{dir: dir, args: []string{"version"}})
	if err != nil {
		return err
	}
	var major, minor, wantMajor, wantMinor int
	version := strings.TrimSpace(strings.TrimPrefix(string(out), "git version "))
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("git's version %q cannot be read", clip(version))
	}
	fmt.Sscanf(oldestGit, "%d.%d", &wantMajor, &wantMinor)
	if major < wantMajor || major == wantMajor && minor < wantMinor {
		return fmt.Errorf("git is %s, and %s or later is needed (%s)", version, oldestGit, oldestGitReason)
	}
	return nil
}
