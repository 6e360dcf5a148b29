package gitrepo

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fixture is a bare remote, driven by plain git as a user would, and a mirror of it.
type fixture struct {
	t      testing.TB
	remote string // bare
	work   string // a clone of it
	repo   *Repo
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, remote: filepath.Join(dir, "remote.git"), work: filepath.Join(dir, "work")}
	plainGit(t, dir, "init", "--quiet", "--bare", "--initial-branch=main", f.remote)
	plainGit(t, dir, "init", "--quiet", "--initial-branch=main", f.work)
	f.git("remote", "add", "origin", f.remote)
	f.repo = openMirror(t, f.remote, filepath.Join(dir, "mirror.git"))
	return f
}

func openMirror(t testing.TB, remote, dir string) *Repo {
	t.Helper()
	repo, err := Open(t.Context(), Options{Remote: remote, Dir: dir, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return repo
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

// plainGit runs git without this package.
func plainGit(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com", "GIT_COMMITTER_DATE=1700000100 +0000",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (f *fixture) git(args ...string) string {
	f.t.Helper()
	return plainGit(f.t, f.work, args...)
}

// write puts a file into the clone.
func (f *fixture) write(path, content string) {
	f.t.Helper()
	full := filepath.Join(f.work, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o666); err != nil {
		f.t.Fatal(err)
	}
}

// commit commits all of the clone's files and returns the id.
func (f *fixture) commit(message string) string {
	f.t.Helper()
	f.git("add", "--all", "--force")
	f.git("commit", "--quiet", "--allow-empty", "-m", message)
	return f.git("rev-parse", "HEAD")
}

// publish pushes the clone's HEAD to a branch of the remote and fetches it.
func (f *fixture) publish(branch string) {
	f.t.Helper()
	f.git("push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	if err := f.repo.Fetch(f.t.Context(), Wanted{Branches: []string{branch}}); err != nil {
		f.t.Fatal(err)
	}
}
