package remote_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/tools/remote"
)

func git(t *testing.T, directory string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestACloneLandsOnItsMainWhateverItsOwnerWorksOn(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "init", "--quiet", "--initial-branch=trunk", clone)
	git(t, clone, "commit", "--quiet", "--allow-empty", "-m", "one")
	if got := remote.Mainline(t.Context(), clone); got != "trunk" {
		t.Errorf("without a main it is %s, want trunk", got)
	}
	git(t, clone, "branch", "main")
	git(t, clone, "checkout", "--quiet", "-b", "topic")
	if got := remote.Mainline(t.Context(), clone); got != "main" {
		t.Errorf("on a topic it is %s, want main", got)
	}
}

func TestACheckoutOfTheMainlineIsRefusedUntilItFollowsPushes(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "init", "--quiet", "--initial-branch=main", clone)
	git(t, clone, "commit", "--quiet", "--allow-empty", "-m", "one")
	if err := remote.CheckPush(t.Context(), clone, "main"); err == nil || !strings.Contains(err.Error(), "updateInstead") {
		t.Errorf("a push that git will refuse: %v", err)
	}
	if err := remote.CheckPush(t.Context(), clone, "release"); err != nil {
		t.Errorf("a branch that is not checked out: %v", err)
	}
	git(t, clone, "config", "receive.denyCurrentBranch", "updateInstead")
	if err := remote.CheckPush(t.Context(), clone, "main"); err != nil {
		t.Errorf("a checkout that follows: %v", err)
	}
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	if err := remote.CheckPush(t.Context(), bare, "main"); err != nil {
		t.Errorf("a bare repository: %v", err)
	}
}

func TestABranchThatIsNotThereIsSaidWithThoseThatAre(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "init", "--quiet", "--initial-branch=trunk", clone)
	says := func(branch string, want ...string) {
		t.Helper()
		err := remote.CheckBranch(t.Context(), clone, branch)
		if err == nil {
			t.Fatalf("%s is there", branch)
		}
		for _, text := range append(want, clone) {
			if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not in the one line %q", text, err)
			}
		}
	}
	says("trunk", "has no commit yet", "push one to trunk")
	git(t, clone, "commit", "--quiet", "--allow-empty", "-m", "one")
	git(t, clone, "branch", "topic")
	if err := remote.CheckBranch(t.Context(), clone, "trunk"); err != nil {
		t.Error(err)
	}
	says("main", "has no branch main", "only topic, trunk", "--branch")
	for i := range 12 {
		git(t, clone, "branch", "z"+string(rune('a'+i)))
	}
	says("main", "za", "and 6 more")
	if err := remote.CheckBranch(t.Context(), filepath.Join(t.TempDir(), "away"), "main"); err != nil {
		t.Errorf("a repository that does not answer may do so later: %v", err)
	}
}
