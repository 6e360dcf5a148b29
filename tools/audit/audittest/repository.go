// Package audittest makes small git repositories for tests of what judges commits.
package audittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repository is one with a worktree, on branch main.
type Repository struct {
	t   testing.TB
	Dir string
}

// New makes an empty one.
func New(t testing.TB) *Repository {
	t.Helper()
	r := &Repository{t: t, Dir: t.TempDir()}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// Git runs git there, without the machine's or the user's configuration, and returns what it printed.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@localhost", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@localhost",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit writes files, by path, and commits everything. It returns the commit's id.
func (r *Repository) Commit(title string, files map[string]string) string {
	r.t.Helper()
	for name, text := range files {
		path := filepath.Join(r.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "-m", title)
	return r.Git("rev-parse", "HEAD")
}

// Target returns the text of a landfall.yaml in a folder of that name: one target with one step, which passes if
// its file has the word good.
func Target(name string) map[string]string {
	return map[string]string{
		name + "/landfall.yaml": "targets:\n  - name: " + name + "\n    sources: [\"*.txt\"]\n    steps:\n" +
			"      - name: check\n        run: [sh, -c, \"cat " + name + ".txt; grep -q good " + name + ".txt\"]\n        dir: " + name + "\n",
		name + "/" + name + ".txt": "good\n",
	}
}
