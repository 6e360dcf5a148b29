package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"landfall.build/tools/remote"
)

// place is a repository as its queue is to know it.
type place struct {
	// Clone is the root of a working folder on this machine, "" for a bare repository and for one behind a URL.
	Clone string `json:"clone,omitempty"`
	// URL is what services fetch from and push to.
	URL string `json:"url"`
	// Branch is the mainline.
	Branch string `json:"branch"`
	// Name is what the repository and its queue are called.
	Name string `json:"name"`
	// password: the remote's URL had one, which is left out.
	password bool
}

// findPlace finds out about a repository: a path or a URL. url and branch are those that were asked for, or "".
func findPlace(ctx context.Context, repo, url, branch string) (place, error) {
	p := place{URL: repo, Branch: branch}
	path, err := remote.Local(ctx, repo)
	if err != nil {
		return p, err
	}
	if path != "" {
		p.URL = path
		if root, err := git(ctx, path, "rev-parse", "--show-toplevel"); err == nil && root != "" {
			p.Clone, p.URL = root, root
			p.URL = cmp.Or(remote.Upstream(ctx, root), root)
		}
	}
	if url != "" {
		if p.URL = url; !strings.Contains(url, ":") {
			if p.URL, err = filepath.Abs(url); err != nil {
				return p, err
			}
		}
	}
	p.URL, p.password = withoutPassword(p.URL)
	if p.Branch == "" {
		p.Branch = defaultBranch(ctx, p.URL, path)
	}
	p.Name = queueName(p.URL)
	return p, nil
}

// withoutPassword returns a URL as it may stand in a file, and whether it had a password.
func withoutPassword(address string) (string, bool) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.User == nil {
		return address, false
	}
	if _, has := parsed.User.Password(); !has {
		return address, false
	}
	parsed.User = nil
	return parsed.String(), true
}

// defaultBranch returns what the remote's HEAD is on, or else what the clone, if there is one, takes for that.
func defaultBranch(ctx context.Context, address, path string) string {
	out, err := git(ctx, "", "ls-remote", "--symref", "--", address, "HEAD")
	if line, _, found := strings.Cut(out, "\tHEAD"); err == nil && found {
		if branch, is := strings.CutPrefix(line, "ref: refs/heads/"); is {
			return branch
		}
	}
	if path != "" {
		return remote.Mainline(ctx, path)
	}
	return remote.FallbackBranch
}

var notName = regexp.MustCompile(`[^a-z0-9._-]+`)

// maxName is the length of the name of a repository, and of a queue.
const maxName = 63

// queueName makes a name of a path or URL.
func queueName(address string) string {
	base := filepath.Base(strings.TrimSuffix(strings.TrimRight(address, "/"), ".git"))
	if _, after, colon := strings.Cut(base, ":"); colon {
		base = after
	}
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(base), "-"), "-._")
	if len(name) > maxName {
		name = strings.TrimRight(name[:maxName], "-._")
	}
	if name == "" {
		return "main"
	}
	return name
}

// git asks the user's own git, which may need their credentials but must not ask for them.
func git(ctx context.Context, directory string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.Output()
	if failed, is := errors.AsType[*exec.ExitError](err); is && len(failed.Stderr) > 0 {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
