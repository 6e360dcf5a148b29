package graphview

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/gitrepo"
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
		if _, complaint, err := s.git(ctx, "rev-parse", "--git-dir"); err != nil {
			return nil, fmt.Errorf("%s is no git repository; give --repo the folder of one, or a URL: %w", s.local, cmp.Or(complaint, err))
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
	id, complaint, err := s.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	switch {
	case complaint != nil:
		return "", fmt.Errorf("%q names no commit of %s: %w", name, s.local, complaint)
	case err != nil:
		return "", s.hinted(ctx, fmt.Errorf("%q names no commit of %s; give a branch, a tag, an id or what git rev-parse takes", name, s.local))
	}
	return id, s.Fetch(ctx, gitrepo.Wanted{Commits: []string{id}})
}

// uncommitted returns the manifests of the working folder that a commit lacks. Those that git ignores are none; nor is there any where git
// cannot say.
func (s *source) uncommitted(ctx context.Context, commit string) (list []string) {
	if s.local == "" {
		return nil
	}
	out, _, err := s.git(ctx, "ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard", "--", ":(top)"+manifest.FileName, ":(top,glob)**/"+manifest.FileName)
	if err != nil {
		return nil
	}
	for _, file := range strings.Split(out, "\x00") {
		if file == "" || slices.Contains(list, file) {
			continue
		}
		if _, _, missing := s.git(ctx, "cat-file", "-e", commit+":"+file); missing != nil {
			list = append(list, file)
		}
	}
	return list
}

// git asks git in the repository on this machine. complaint is what it said of an error, nil if nothing.
func (s *source) git(ctx context.Context, args ...string) (out string, complaint, err error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", s.local}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		complaint = err
	} else if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		complaint = errors.New(text)
	}
	return strings.TrimSpace(string(printed)), complaint, err
}

// hinted adds to an error of a missing commit what is the matter with a clone that has a part of the history only.
func (s *source) hinted(ctx context.Context, err error) error {
	if s.local == "" {
		return err
	}
	if shallow, _, failed := s.git(ctx, "rev-parse", "--is-shallow-repository"); failed != nil || shallow != "true" {
		return err
	}
	return fmt.Errorf("%w (the clone is shallow: git -C %s fetch --unshallow brings the rest of the history)", err, s.local)
}
