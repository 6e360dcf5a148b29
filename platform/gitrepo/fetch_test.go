package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestACommitIsFetchedByItsIDEvenIfNoBranchHoldsIt(t *testing.T) {
	f := newFixture(t)
	f.commit("one")
	f.publish("main")
	f.git("push", "--quiet", "origin", "HEAD:refs/for/review")
	f.write("a", "only here")
	lost := f.commit("two")
	f.git("push", "--quiet", "origin", "HEAD:refs/for/review")
	plainGit(t, f.remote, "update-ref", "-d", "refs/for/review")
	if _, err := f.repo.CommitInfo(t.Context(), lost); !errors.Is(err, ErrNoSuchCommit) {
		t.Fatalf("before: %v, want ErrNoSuchCommit", err)
	}
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{lost}}); err != nil {
		t.Fatal(err)
	}
	if entries, err := f.repo.Tree(t.Context(), lost); err != nil || len(entries) != 1 {
		t.Fatalf("tree %v, %v", entries, err)
	}
	// What is there is not asked for: the remote need not even be.
	if err := os.Rename(f.remote, f.remote+".away"); err != nil {
		t.Fatal(err)
	}
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{lost, lost}}); err != nil {
		t.Error(err)
	}
	if err := os.Rename(f.remote+".away", f.remote); err != nil {
		t.Fatal(err)
	}
	unknown := strings.Repeat("12", 20)
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{unknown}}); !errors.Is(err, ErrNoSuchCommit) || !strings.Contains(err.Error(), unknown) {
		t.Errorf("an unknown commit: %v, want ErrNoSuchCommit with its id", err)
	}
}

func TestRequestsThatMeetAreServedTogetherAndFailAlone(t *testing.T) {
	f := newFixture(t)
	var ids []string
	for i := range 10 {
		f.write("a", fmt.Sprint(i))
		ids = append(ids, f.commit("next"))
		f.git("push", "--quiet", "origin", fmt.Sprintf("HEAD:refs/heads/b%d", i))
	}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			switch {
			case i%3 == 0 && i/3 < 10:
				if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{fmt.Sprintf("b%d", i/3)}}); err != nil {
					t.Error(err)
				} else if got, err := f.repo.Resolve(t.Context(), fmt.Sprintf("b%d", i/3)); err != nil || got != ids[i/3] {
					t.Errorf("b%d is %s, %v", i/3, got, err)
				}
			case i%3 == 1:
				if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"ghost"}}); !errors.Is(err, ErrNoBranch) {
					t.Errorf("ghost: %v", err)
				}
			default:
				if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{ids[i/3]}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.repo.Fetch(ctx, Wanted{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: %v", err)
	}
}

func TestABranchMayTakeTheNameOfAnotherOnesFolder(t *testing.T) {
	f := newFixture(t)
	f.commit("one")
	f.publish("topic")
	plainGit(t, f.remote, "update-ref", "-d", "refs/heads/topic")
	id := f.commit("two")
	f.publish("topic/sub")
	if got, err := f.repo.Resolve(t.Context(), "topic/sub"); got != id || err != nil {
		t.Errorf("topic/sub is %s, %v", got, err)
	}
	if _, err := f.repo.Resolve(t.Context(), "topic"); !errors.Is(err, ErrNoSuchCommit) {
		t.Errorf("topic: %v, want ErrNoSuchCommit", err)
	}
}

func TestFetchingAllForgetsWhatIsGone(t *testing.T) {
	f := newFixture(t)
	id := f.commit("one")
	f.git("tag", "-a", "-m", "release", "v1")
	f.git("push", "--quiet", "origin", "v1")
	f.publish("main")
	f.publish("old")
	plainGit(t, f.remote, "update-ref", "-d", "refs/heads/old")
	if err := f.repo.Fetch(t.Context(), Wanted{}); err != nil {
		t.Fatal(err)
	}
	for name, found := range map[string]bool{
		"main": true, "v1": true, "refs/tags/v1": true, "refs/heads/main": true, id: true, id[:7]: true, id[:4]: true,
		"old": false, "refs/heads/v1": false, id[:3]: false, strings.Repeat("1", 40): false, "v2": false,
	} {
		got, err := f.repo.Resolve(t.Context(), name)
		if found && (got != id || err != nil) || !found && !errors.Is(err, ErrNoSuchCommit) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "-v", "--all", "main^", "main:a", "a b", "a\nb", "../x", "refs/", "@{-1}"} {
		if got, err := f.repo.Resolve(t.Context(), name); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNoSuchCommit) {
			t.Errorf("%q: %s, %v", name, got, err)
		}
	}
}

// TestHelperProcess is the second process of the test below, not a test of its own.
func TestHelperProcess(t *testing.T) {
	remote, dir := os.Getenv("GITREPO_TEST_REMOTE"), os.Getenv("GITREPO_TEST_MIRROR")
	if remote == "" {
		return
	}
	repo, err := Open(t.Context(), Options{Remote: remote, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		id := lines.Text()
		if err := repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}, Commits: []string{id}}); err != nil {
			t.Fatal(err)
		}
		entries, err := repo.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("answer %s %d\n", id, len(entries))
	}
}

func TestTwoProcessesShareAMirror(t *testing.T) {
	f := newFixture(t)
	f.git("checkout", "--quiet", "-b", "main2")
	shared := filepath.Join(t.TempDir(), "shared.git")
	type process struct {
		cmd     *exec.Cmd
		in      *bufio.Writer
		answers *bufio.Scanner
	}
	var processes []process
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "GITREPO_TEST_REMOTE="+f.remote, "GITREPO_TEST_MIRROR="+shared)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
		processes = append(processes, process{cmd, bufio.NewWriter(in), bufio.NewScanner(out)})
	}
	for i := range 8 { // both make the mirror, then fetch the same at once
		f.write(fmt.Sprintf("file%d", i), "x")
		id := f.commit("next")
		f.git("push", "--quiet", "origin", "HEAD:refs/heads/main")
		for _, p := range processes {
			fmt.Fprintln(p.in, id)
			if err := p.in.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		for n, p := range processes {
			want := fmt.Sprintf("answer %s %d", id, i+1)
			var heard []string
			for p.answers.Scan() && p.answers.Text() != want {
				heard = append(heard, p.answers.Text())
			}
			if p.answers.Text() != want {
				t.Fatalf("process %d said %q, want %q", n, heard, want)
			}
		}
	}
}

func TestAMirrorIsOfOneRemoteAndMadeWhole(t *testing.T) {
	f := newFixture(t)
	if _, err := Open(t.Context(), Options{Remote: f.work, Dir: f.repo.Dir()}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a mirror of another remote: %v", err)
	}
	taken := t.TempDir()
	if _, err := Open(t.Context(), Options{Remote: f.remote, Dir: taken}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a directory that is no mirror: %v", err)
	}
	if left, err := os.ReadDir(taken); err != nil || len(left) != 0 {
		t.Errorf("left in it: %v, %v", left, err)
	}
	for _, remote := range []string{"", "--upload-pack=touch x", "ext::sh -c id", "a\nb"} {
		if _, err := Open(t.Context(), Options{Remote: remote, Dir: filepath.Join(t.TempDir(), "m")}); !errors.Is(err, ErrInvalid) {
			t.Errorf("remote %q: %v, want ErrInvalid", remote, err)
		}
	}
}

func TestNoMessageShowsAPassword(t *testing.T) {
	const secret = "s3cret-token"
	repo := openMirror(t, "http://user:"+secret+"@127.0.0.1:1/x.git", filepath.Join(t.TempDir(), "m"))
	if err := repo.Fetch(t.Context(), Wanted{}); !errors.Is(err, ErrUnreachable) || strings.Contains(err.Error(), secret) {
		t.Errorf("error %v", err)
	}
	data, err := os.ReadFile(filepath.Join(repo.Dir(), remoteFile))
	if err != nil || strings.Contains(string(data), secret) || strings.Contains(repo.Remote(), secret) {
		t.Errorf("kept %q (%v), called %q", data, err, repo.Remote())
	}
}
