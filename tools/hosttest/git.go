package hosttest

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Git is a bare repository that is served by HTTP, as a fake of a code host has it.
type Git struct {
	t *testing.T
	// root is above it; the rest of Dir is its path in addresses.
	root, Dir string
}

// NewGit makes a repository at a path, as in acme/shop, which runs a script before each push (pre-receive).
func NewGit(t *testing.T, path, script string) *Git {
	root := t.TempDir()
	g := &Git{t: t, root: root, Dir: filepath.Join(root, path+".git")}
	g.run("init", "-q", "--bare", "-b", "main", g.Dir)
	for _, setting := range []string{"http.receivepack", "uploadpack.allowAnySHA1InWant"} {
		g.Run("config", setting, "true")
	}
	if err := os.WriteFile(filepath.Join(g.Dir, "hooks", "pre-receive"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *Git) run(args ...string) string {
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		g.t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Run runs git in the repository, and returns what it prints.
func (g *Git) Run(args ...string) string { return g.run(append([]string{"-C", g.Dir}, args...)...) }

// Contains reports whether a commit is an ancestor of another, or the same.
func (g *Git) Contains(commit, ancestor string) bool {
	return exec.Command("git", "-C", g.Dir, "merge-base", "--is-ancestor", ancestor, commit).Run() == nil
}

// Branches returns the commits of the branches.
func (g *Git) Branches() map[string]string {
	branches := map[string]string{}
	for line := range strings.Lines(g.Run("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads")) {
		if branch, commit, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			branches[branch] = commit
		}
	}
	return branches
}

// Serve answers a request of git, and calls pushed after a push with who pushed, and the branches before and after. Nobody pushes without a
// name; no password is asked for.
func (g *Git) Serve(out http.ResponseWriter, in *http.Request, pushed func(by string, before, after map[string]string)) {
	by, _, _ := in.BasicAuth()
	const service = "git-receive-pack"
	if by == "" && (strings.HasSuffix(in.URL.Path, service) || in.FormValue("service") == service) {
		out.Header().Set("WWW-Authenticate", "Basic")
		http.Error(out, "who are you?", http.StatusUnauthorized)
		return
	}
	handler := &cgi.Handler{
		Path: filepath.Join(g.run("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + g.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + by, "GIT_CONFIG_NOSYSTEM=1", "HOME=" + g.root},
	}
	if !strings.HasSuffix(in.URL.Path, service) {
		handler.ServeHTTP(out, in)
		return
	}
	before := g.Branches()
	handler.ServeHTTP(out, in)
	pushed(by, before, g.Branches())
}

// RemoteOf is the address of a repository for a user, "" for nobody.
func RemoteOf(address, path, user string) string {
	address += "/" + path + ".git"
	if user == "" {
		return address
	}
	return strings.Replace(address, "http://", "http://"+user+":x@", 1)
}

// Clone is a working copy of a repository.
type Clone struct {
	t   *testing.T
	dir string
}

// NewClone makes an empty one, with a branch main.
func NewClone(t *testing.T) *Clone {
	c := &Clone{t, t.TempDir()}
	c.Run("init", "-q", "-b", "main")
	return c
}

// Try runs git in it.
func (c *Clone) Try(args ...string) (string, error) {
	command := exec.Command("git", args...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Run runs git in it, and ends the test if that fails.
func (c *Clone) Run(args ...string) string {
	c.t.Helper()
	out, err := c.Try(args...)
	if err != nil {
		c.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// Commit commits a new file, and returns the commit.
func (c *Clone) Commit(file string) string {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, file), []byte(file), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.Run("add", "-A")
	c.Run("commit", "-q", "-m", file)
	return c.Run("rev-parse", "HEAD")
}

// Squash makes a commit on main of what a branch has, beside another one, and returns it.
func (c *Clone) Squash(branch string) string {
	c.t.Helper()
	c.Run("checkout", "-q", "main")
	c.Commit("other")
	c.Run("merge", "-q", "--squash", branch)
	c.Run("commit", "-q", "-m", branch+", squashed")
	return c.Run("rev-parse", "HEAD")
}
