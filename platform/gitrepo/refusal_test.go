package gitrepo

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// status is what git prints of a push that the remote refused.
func status(why string) string { return "[remote rejected] (" + why + ")" }

// TestWhomARefusalConcerns, by the texts of the common hosts.
func TestWhomARefusalConcerns(t *testing.T) {
	const declined = "pre-receive hook declined"
	hung := "\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n"
	for _, c := range []struct {
		host, summary, stderr string
		everybody             bool
		sentence              string
	}{
		// Those of the branch, and of whoever pushes.
		{"GitHub, a review", status("protected branch hook declined"),
			"remote: error: GH006: Protected branch update failed for refs/heads/main.        \nremote: \nremote: - At least 1 approving review is required by reviewers with write access.        \n",
			true, "GH006: Protected branch update failed for refs/heads/main. - At least 1 approving review is required by reviewers with write access."},
		{"GitHub, nobody may push", status("protected branch hook declined"),
			"remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: You're not authorized to push to this branch. Visit https://docs.github.com/articles/about-protected-branches/ for more information.\n",
			true, "GH006: Protected branch update failed for refs/heads/main. You're not authorized to push to this branch. Visit https://docs.github.com/articles/about-protected-branches/ for more information."},
		{"GitHub, a rule set", status("push declined due to repository rule violations"),
			"remote: error: GH013: Repository rule violations found for refs/heads/main.\nremote: Review all repository rules at https://github.com/o/r/rules?ref=refs%2Fheads%2Fmain\nremote: \nremote: - Changes must be made through a pull request.\nremote: \n",
			true, "GH013: Repository rule violations found for refs/heads/main. Review all repository rules at https://github.com/o/r/rules?ref=refs%2Fheads%2Fmain - Changes must be made through a pull request."},
		{"GitHub, a rule set on the ref", status("push declined due to repository rule violations"),
			"remote: error: GH013: Repository rule violations found for refs/heads/main.\nremote: - Cannot update this protected ref.\n",
			true, "GH013: Repository rule violations found for refs/heads/main. - Cannot update this protected ref."},
		{"GitHub over HTTPS", "", "remote: Permission to o/r.git denied to bot.\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403\n",
			true, "Permission to o/r.git denied to bot."},
		{"GitHub over SSH", "", "ERROR: Permission to o/r.git denied to bot." + hung, true, "Permission to o/r.git denied to bot."},
		{"GitHub, a token", "", "remote: Write access to repository not granted.\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403\n",
			true, "Write access to repository not granted."},
		{"GitHub, a deploy key", "", "ERROR: The key you are authenticating with has been marked as read only." + hung, true, "The key you are authenticating with has been marked as read only."},
		{"GitHub, archived", "", "remote: This repository was archived so it is read-only.\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403\n",
			true, "This repository was archived so it is read-only."},
		{"GitHub, archived, over SSH", "", "ERROR: This repository was archived so it is read-only." + hung, true, "This repository was archived so it is read-only."},
		{"GitLab, a protected branch", status(declined), "remote: GitLab: You are not allowed to push code to protected branches on this project.\n",
			true, "GitLab: You are not allowed to push code to protected branches on this project."},
		{"GitLab over SSH", "", "remote: \nremote: ========================================================================\nremote: \nremote: ERROR: You are not allowed to push code to this project.\nremote: \nremote: ========================================================================\nremote: " + hung,
			true, "You are not allowed to push code to this project."},
		{"GitLab over HTTPS", "", "remote: You are not allowed to push code to this project.\nfatal: unable to access 'https://gitlab.com/o/r.git/': The requested URL returned error: 403\n",
			true, "You are not allowed to push code to this project."},
		{"GitLab, read-only", "", "remote: You can't push code to a read-only GitLab instance.\nfatal: unable to access 'https://gitlab.com/o/r.git/': The requested URL returned error: 403\n",
			true, "You can't push code to a read-only GitLab instance."},
		{"Gitea", status(declined), "remote: Gitea: Not allowed to push to protected branch main\n", true, "Gitea: Not allowed to push to protected branch main"},
		{"Gitea over SSH", "", "Gitea: User permission denied for writing." + hung, true, "Gitea: User permission denied for writing."},
		{"Forgejo, archived", status(declined), "remote: Forgejo: repository is archived\n", true, "Forgejo: repository is archived"},
		{"Gerrit", status("prohibited by Gerrit: not permitted: update"), "remote: error: branch refs/heads/main:\nremote: To push into this reference you need 'Push' rights.\nremote: User: bot\n",
			true, "branch refs/heads/main: To push into this reference you need 'Push' rights. User: bot"},
		{"Gerrit, without words", status("prohibited by Gerrit"), "error: failed to push some refs to 'ssh://bot@gerrit:29418/r'\n", true, "prohibited by Gerrit"},
		{"Gerrit, a closed project", status("prohibited by Gerrit: project state does not permit write"), "", true, "prohibited by Gerrit: project state does not permit write"},
		{"Bitbucket", status(declined), "remote: Branch refs/heads/main can only be modified through pull requests.\n", true, "Branch refs/heads/main can only be modified through pull requests."},
		{"Azure", status("TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch."), "",
			true, "TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch."},
		{"Azure, no right", status("TF401027: You need the Git 'GenericContribute' permission to perform this action."), "", true, "TF401027: You need the Git 'GenericContribute' permission to perform this action."},
		{"OpenSSH", "", "git@host: Permission denied (publickey)." + hung, true, "git@host: Permission denied (publickey)."},
		{"HTTPS without a password", "", "fatal: could not read Username for 'https://host': terminal prompts disabled\n", true, "could not read Username for 'https://host': terminal prompts disabled"},
		{"HTTPS with a wrong one", "", "remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://host/r.git/'\n", true, "HTTP Basic: Access denied"},
		{"git daemon", "", "fatal: remote error: access denied or repository not exported: /r.git\n", true, "remote error: access denied or repository not exported: /r.git"},
		{"a folder that cannot be written", status("unpacker error"), "error: remote unpack failed: unable to create temporary object directory\nerror: failed to push some refs to '/r.git'\n", true, "unable to create temporary object directory"},
		{"a hook that freezes", status(declined), "remote: main is frozen until Monday\n", true, "main is frozen until Monday"},

		{"a lock", status("failed to update ref"), "remote: error: cannot lock ref 'refs/heads/main': Unable to create '/r.git/./refs/heads/main.lock': File exists.        \nremote: \nremote: Another git process seems to be running in this repository\n",
			true, "the branch is locked by /r.git/refs/heads/main.lock; if no git runs in that repository, one that was killed has left this file: remove it"},

		// Those of a commit, and those of which it is not known.
		{"a hook without words", status(declined), "error: failed to push some refs to 'https://host/read-only/archived.git'\n", false, declined},
		{"a hook", status("hook declined"), "remote: no docs please        \nremote: error: hook declined to update refs/heads/main        \n", false, "no docs please"},
		{"GitHub, a secret", status("push declined due to repository rule violations"),
			"remote: error: GH013: Repository rule violations found for refs/heads/main.\nremote: - GITHUB PUSH PROTECTION\nremote:     - Push cannot contain secrets\n",
			false, "GH013: Repository rule violations found for refs/heads/main. - GITHUB PUSH PROTECTION - Push cannot contain secrets"},
		{"GitHub, a large file", status(declined), "remote: error: GH001: Large files detected. You may want to try Git Large File Storage.\nremote: error: File big.bin is 101.00 MB; this exceeds GitHub's file size limit of 100.00 MB\n",
			false, "GH001: Large files detected. You may want to try Git Large File Storage. File big.bin is 101.00 MB; this exceeds GitHub's file size limit of 100.00 MB"},
		{"GitLab, a message", status(declined), "remote: GitLab: Commit message does not follow the pattern 'JIRA-[0-9]+'\n", false, "GitLab: Commit message does not follow the pattern 'JIRA-[0-9]+'"},
		{"GitLab, an author", status(declined), "remote: GitLab: Author 'a@b.c' is not a member of team\n", false, "GitLab: Author 'a@b.c' is not a member of team"},
		{"Gerrit, an author", status("prohibited by Gerrit: not permitted: forge author"), "", false, "prohibited by Gerrit: not permitted: forge author"},
		{"a pack too large", status("unpacker error"), "remote: fatal: pack exceeds maximum allowed size        \nerror: remote unpack failed: unpack-objects abnormal exit\n", false, "pack exceeds maximum allowed size"},
	} {
		refused := refusal(c.summary, &CommandError{Stderr: c.stderr})
		if refused == nil {
			t.Errorf("%s: it is no refusal", c.host)
		} else if refused.Everybody != c.everybody || refused.Sentence != c.sentence {
			t.Errorf("%s: everybody %v, want %v: %q, want %q", c.host, refused.Everybody, c.everybody, refused.Sentence, c.sentence)
		}
	}
	for what, c := range map[string][2]string{
		"a hook that was killed":          {status(declined), "error: hooks/pre-receive died of signal 15\nerror: failed to push some refs to 'x'\n"},
		"a hook that was killed far away": {status(declined), "remote: error: hooks/pre-receive died of signal 9\n"},
		"an unpacker that was killed":     {status("unpacker error"), "error: index-pack died of signal 9\nerror: remote unpack failed: index-pack abnormal exit\nerror: failed to push some refs to 'x'\n"},
		"an unpacker killed far away":     {status("unpacker error"), "error: remote unpack failed: unpack-objects abnormal exit\nerror: failed to push some refs to 'x'\n"},
		"a disk that is full":             {status("unpacker error"), "remote: fatal: write error: No space left on device\n"},
		"objects that cannot be kept":     {status("unable to migrate objects to permanent storage"), ""},
		"a server that fell over":         {status("Internal Server Error"), ""},
		"no status":                       {"[remote failure] (remote failed to report status)", ""},
		"a host that is away":             {"", "fatal: unable to access 'https://host/read-only/archived.git/': Could not resolve host: host\n"},
		"a connection that breaks":        {"", "send-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly\n"},
		"a server that is overloaded":     {"", "fatal: unable to access 'https://host/r.git/': The requested URL returned error: 503\n"},
	} {
		if refused := refusal(c[0], &CommandError{Stderr: c[1]}); refused != nil {
			t.Errorf("%s is taken for a refusal: %+v", what, refused)
		}
	}
}

// TestARemoteThatVanishesDuringAPushIsUnreachable: its hook is stopped, or it is itself.
func TestARemoteThatVanishesDuringAPushIsUnreachable(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	id := f.children(head, 1)[0]
	for what, body := range map[string]string{
		"its hook is stopped": "kill -TERM $$", "its hook is killed": "echo checking >&2; kill -9 $$", "it is killed": "echo checking >&2; kill -9 $PPID",
	} {
		f.hook("pre-receive", body)
		if err := f.repo.Push(t.Context(), "main", head, id); errors.Is(err, ErrRefused) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", what, err)
		}
	}
}

// TestARemoteWhoseUnpackerIsKilledIsUnreachable: git's own server over HTTP, whose processes are killed at the first file that is
// larger than a limit. git shows that as a refusal.
func TestARemoteWhoseUnpackerIsKilledIsUnreachable(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	large := make([]byte, 300<<10)
	rand.Read(large)
	f.write("large", string(large))
	id := f.commit("two")
	limited := filepath.Join(t.TempDir(), "limited")
	if err := os.WriteFile(limited, []byte("#!/bin/sh\nulimit -f 100\nexec '"+httpBackend(t)+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&cgi.Handler{Path: limited, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.remote), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot"}})
	defer server.Close()
	f.repo = openMirror(t, server.URL+"/remote.git", filepath.Join(t.TempDir(), "mirror.git"))
	plainGit(t, f.repo.Dir(), "fetch", "--quiet", f.work, id)
	if err := f.repo.Push(t.Context(), "main", head, id); errors.Is(err, ErrRefused) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v, want ErrUnreachable", err)
	}
}

// httpBackend returns the path of git's own server for HTTP.
func httpBackend(t *testing.T) string {
	folder, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(strings.TrimSpace(string(folder)), "git-http-backend")
	if _, err := os.Stat(program); err != nil {
		t.Skip("this git has no http-backend")
	}
	return program
}

// TestAHookMayPrintAnything: a megabyte, and characters that move the cursor.
func TestAHookMayPrintAnything(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	id := f.children(head, 1)[0]
	f.hook("pre-receive", `printf 'no \033[31mred\033[0m files\r\n' >&2; head -c 1000000 /dev/zero | tr '\0' x >&2; exit 1`)
	err := f.repo.Push(t.Context(), "main", head, id)
	refused, is := errors.AsType[*RefusedError](err)
	if !is || !strings.HasPrefix(refused.Sentence, "no ") || strings.ContainsAny(refused.Sentence, "\x1b\r\n") || len(refused.Sentence) > maxSentence {
		t.Errorf("refused with %v", err)
	}
}

// TestWhoMayOnlyReadIsRefused over HTTP, by git's own server.
func TestWhoMayOnlyReadIsRefused(t *testing.T) {
	program := httpBackend(t)
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	writable := false
	serve := &cgi.Handler{Path: program, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(f.remote), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bot"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !writable && strings.Contains(r.URL.String(), "receive-pack") {
			http.Error(w, "Permission to o/r.git denied to bot.", http.StatusForbidden)
			return
		}
		serve.ServeHTTP(w, r)
	}))
	defer server.Close()
	f.repo = openMirror(t, server.URL+"/remote.git", filepath.Join(t.TempDir(), "mirror.git"))
	if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}}); err != nil {
		t.Fatal(err)
	}
	id := f.children(head, 1)[0]
	err := f.repo.Push(t.Context(), "main", head, id)
	if refused, is := errors.AsType[*RefusedError](err); !is || !errors.Is(err, ErrRefused) || !refused.Everybody || refused.Sentence != "Permission to o/r.git denied to bot." {
		t.Fatalf("refused with %v", err)
	}
	writable = true
	if err := f.repo.Push(t.Context(), "main", head, id); err != nil {
		t.Fatal(err)
	}
}

// hook installs a hook of the remote.
func (f *fixture) hook(name, body string) {
	f.t.Helper()
	path := filepath.Join(f.remote, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o777); err != nil {
		f.t.Fatal(err)
	}
}
