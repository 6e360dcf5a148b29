package graphview

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"landfall.build/services/gitrepo"
)

// source is a repository, and how names of commits in it are understood.
type source struct {
	*gitrepo.Repo
	// local is the path of a repository on this machine, "" for one behind a URL.
	local   string
	fetched bool
	// temporary is the folder to remove at the end, if any.
	temporary string
}

// openSource opens a mirror of a repository. mirror is the folder for it; "" takes one of the user's
// cache, which the next call finds filled, or else a temporary one.
func openSource(ctx context.Context, repo, mirror string, logger *slog.Logger) (*source, error) {
	s := &source{}
	remote := repo
	if _, err := os.Stat(repo); err == nil {
		if s.local, err = filepath.Abs(repo); err != nil {
			return nil, err
		}
		remote = s.local
	} else if !strings.Contains(repo, ":") {
		return nil, fmt.Errorf("there is no repository %s; give --repo a path or a URL", repo)
	}
	if mirror == "" {
		mirror = s.cacheFor(remote)
	}
	if mirror == "" {
		dir, err := os.MkdirTemp("", "landfall-graph-")
		if err != nil {
			return nil, fmt.Errorf("a folder for the mirror of %s: %w", repo, err)
		}
		s.temporary, mirror = dir, filepath.Join(dir, "mirror.git")
	}
	var err error
	if s.Repo, err = gitrepo.Open(ctx, gitrepo.Options{Remote: remote, Dir: mirror, Log: logger}); err != nil {
		os.RemoveAll(s.temporary)
		return nil, err
	}
	return s, nil
}

// cacheFor is the place of a remote's mirror in the user's cache, "" if there is none to write to.
func (s *source) cacheFor(remote string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir := filepath.Join(cache, "landfall", "mirrors")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return filepath.Join(dir, fmt.Sprintf("%x.git", sha256.Sum256([]byte(remote)))[:20]+".git")
}

func (s *source) close() {
	s.Close()
	if s.temporary != "" {
		os.RemoveAll(s.temporary)
	}
}

// commit finds a commit and has the mirror hold it. In a repository on this machine every name counts
// that git understands there, such as HEAD~2; behind a URL branches, tags, refs and ids do.
func (s *source) commit(ctx context.Context, name string) (string, error) {
	if s.local == "" {
		if !s.fetched {
			if err := s.Fetch(ctx, gitrepo.Wanted{}); err != nil {
				return "", err
			}
			s.fetched = true
		}
		id, err := s.Resolve(ctx, name)
		if errors.Is(err, gitrepo.ErrNoSuchCommit) && gitrepo.IsID(name) {
			return name, s.Fetch(ctx, gitrepo.Wanted{Commits: []string{name}})
		}
		return id, err
	}
	cmd := exec.CommandContext(ctx, "git", "-C", s.local, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return "", fmt.Errorf("ask git what %q is: %w", name, err)
		}
		return "", fmt.Errorf("%q names no commit of %s; give a branch, a tag, an id or what git rev-parse takes %s", name, s.local, bytes.TrimSpace(complaint.Bytes()))
	}
	id := strings.TrimSpace(string(out))
	return id, s.Fetch(ctx, gitrepo.Wanted{Commits: []string{id}})
}
