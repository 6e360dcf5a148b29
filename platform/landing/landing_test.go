package landing

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/gitrepo"
)

// project is a clone driven by plain git, its bare remote, and the mirror under test.
type project struct {
	t            *testing.T
	remote, work string
	repo         *gitrepo.Repo
	ctx          context.Context
}

func newProject(t *testing.T) *project {
	t.Helper()
	dir := t.TempDir()
	p := &project{t: t, remote: filepath.Join(dir, "remote.git"), work: filepath.Join(dir, "work"), ctx: t.Context()}
	for _, path := range []string{p.remote, p.work} {
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	p.run(p.remote, "init", "--quiet", "--bare", "--initial-branch=main")
	p.git("init", "--quiet", "--initial-branch=main")
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: p.remote, Dir: filepath.Join(dir, "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	p.repo = repo
	return p
}

func (p *project) run(dir string, args ...string) string {
	p.t.Helper()
	out, err := plainGit(dir, args...)
	if err != nil {
		p.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// fails runs git in the clone and returns what it said if it failed, "" if it did not.
func (p *project) fails(args ...string) string {
	out, err := plainGit(p.work, args...)
	if err != nil {
		return out + err.Error()
	}
	return ""
}

func plainGit(dir string, args ...string) (string, error) {
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

func (p *project) git(args ...string) string {
	p.t.Helper()
	return p.run(p.work, args...)
}

// commit writes files ("path=content"; "path" alone removes it) and commits them.
func (p *project) commit(message string, files ...string) string {
	p.t.Helper()
	for _, file := range files {
		path, content, keep := strings.Cut(file, "=")
		full := filepath.Join(p.work, path)
		if !keep {
			if err := os.Remove(full); err != nil {
				p.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o666); err != nil {
			p.t.Fatal(err)
		}
	}
	p.git("add", "--all")
	p.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message)
	return p.git("rev-parse", "HEAD")
}

// sync makes every branch of the clone known to the mirror.
func (p *project) sync() {
	p.t.Helper()
	p.git("push", "--quiet", "--force", p.remote, "refs/heads/*:refs/heads/*")
	if err := p.repo.Fetch(p.ctx, gitrepo.Wanted{}); err != nil {
		p.t.Fatal(err)
	}
}

var meta = Meta{Change: "C1", Revision: 2, Queue: "main", Date: "1800000000 +0000"}

func TestALandedSquashIsTheChangeOnTheMainline(t *testing.T) {
	p := newProject(t)
	p.commit("start", "a=1\n", "b=1\n")
	p.git("checkout", "--quiet", "-b", "feature")
	p.commit("first step\n\nwhy it is done\n\nSigned-off-by: Ada <ada@example.com>", "a=2\n")
	head := p.commit("second step", "c=1\n")
	p.git("checkout", "--quiet", "main")
	mainline := p.commit("meanwhile", "b=2\n")
	p.sync()

	picks, err := Expand(p.ctx, p.repo, Squash, mainline, []string{head})
	if err != nil {
		t.Fatal(err)
	}
	landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
	if err != nil || conflict != nil {
		t.Fatal(err, conflict)
	}
	if len(landed.Commits) != 1 || landed.Empty[0] {
		t.Fatalf("landed %+v, want one commit that is not empty", landed)
	}
	if err := p.repo.Push(p.ctx, "main", mainline, landed.Commits[0]); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a": "2", "b": "2", "c": "1"} {
		if got := p.run(p.remote, "show", "main:"+path); got != want {
			t.Errorf("%s is %q on the mainline, want %q", path, got, want)
		}
	}
	want := "first step\n\nwhy it is done\n\nSigned-off-by: Ada <ada@example.com>\n\n* second step\n\n" +
		"Landfall-Change: C1\nLandfall-Revision: 2\nLandfall-Queue: main\nLandfall-Part: 1/1"
	if got := p.run(p.remote, "log", "-1", "--format=%B", "main"); got != want {
		t.Errorf("message:\n%s\nwant:\n%s", got, want)
	}
	if got := p.run(p.remote, "log", "-1", "--format=%an|%ae|%ad|%cn|%ct", "--date=raw", "main"); got != "Ada|ada@example.com|1700000000 +0100|Landfall|1800000000" {
		t.Errorf("who made it: %s", got)
	}
}
