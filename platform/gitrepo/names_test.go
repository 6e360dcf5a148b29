package gitrepo

import (
	"errors"
	"strings"
	"testing"
)

func FuzzABranchNameIsTakenOnlyIfGitWould(f *testing.F) {
	for _, name := range append([]string{"main", "a/b", "feature/x.y", "a//b", "/a", "a/", ".a", "a/.b", "a..b", "x.lock", "x.lock/y", "@", "a@{b", "é", "a."}, hostileNames...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.Contains(name, "\x00") || len(name) > 300 {
			return
		}
		_, failed := tryGit(t.TempDir(), "check-ref-format", "refs/heads/"+name)
		err := checkRefName(name)
		// We are stricter about "-" and about "@" alone, never more lenient.
		if err == nil && failed != nil {
			t.Errorf("%q: taken, and git refuses it", name)
		}
		strict := name == "@" || strings.HasPrefix(name, "-") || strings.Contains(name, "/-")
		if err != nil && failed == nil && !strict {
			t.Errorf("%q: %v, and git takes it", name, err)
		}
	})
}

func TestCredentialsAreTakenOutOfURLs(t *testing.T) {
	for remote, want := range map[string]string{
		"https://user:pw@host/x.git":  "https://host/x.git",
		"https://token@host/x.git":    "https://host/x.git",
		"https://host/a@b.git":        "https://host/a@b.git",
		"ssh://git@host/x.git":        "ssh://git@host/x.git",
		"ssh://git:pw@host/x.git":     "ssh://host/x.git",
		"git@host:x.git":              "git@host:x.git",
		"/srv/git/x.git":              "/srv/git/x.git",
		"https://user:p%40w@host?a@b": "https://host?a@b",
	} {
		if got := redactURL(remote); got != want {
			t.Errorf("%s is shown as %s, want %s", remote, got, want)
		}
	}
}

func TestACommitIsWrittenAsGitWritesIt(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	parent := f.commit("one")
	f.write("a", "2")
	want := f.commit("two\n\nwith a body")
	f.publish("main")
	info, err := f.repo.CommitInfo(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	if info.AuthorName != "Ada" || info.AuthorEmail != "ada@example.com" || info.AuthorDate != "1700000000 +0100" || info.Message != "two\n\nwith a body\n" || len(info.Parents) != 1 || info.Parents[0] != parent {
		t.Errorf("read %+v", info)
	}
	spec := CommitSpec{
		Tree: info.Tree, Parents: info.Parents, Message: info.Message,
		Author:    Identity{Name: "Ada", Email: "ada@example.com", Date: "1700000000 +0100"},
		Committer: Identity{Name: "Bob", Email: "bob@example.com", Date: "1700000100 +0000"},
	}
	for range 2 {
		if got, err := f.repo.WriteCommit(t.Context(), spec); err != nil || got != want {
			t.Errorf("wrote %s, %v; git's is %s", got, err, want)
		}
	}
	fresh := spec
	fresh.Message = "three\n"
	id, err := f.repo.WriteCommit(t.Context(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tryGit(f.repo.Dir(), "fsck", "--strict", "--no-dangling", id); err != nil {
		t.Errorf("fsck: %s", out)
	}
	fresh.Message = strings.Repeat("long enough for several blocks\n", 10_000)
	if id, err = f.repo.WriteCommit(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	if got := plainGit(t, f.repo.Dir(), "log", "-1", "--format=%B", id); got+"\n" != fresh.Message {
		t.Errorf("a long message comes back with %d bytes", len(got))
	}
	for name, change := range map[string]func(*CommitSpec){
		"newline in a name":        func(s *CommitSpec) { s.Author.Name = "Ada\nparent 1" },
		"bracket in an address":    func(s *CommitSpec) { s.Author.Email = "a> 1 +0000\ncommitter <x" },
		"control in a name":        func(s *CommitSpec) { s.Committer.Name = "Bob\x01" },
		"date with words":          func(s *CommitSpec) { s.Author.Date = "yesterday" },
		"date with a newline":      func(s *CommitSpec) { s.Committer.Date = "1 +0000\nx" },
		"NUL in the message":       func(s *CommitSpec) { s.Message = "a\x00b" },
		"newline in the encoding":  func(s *CommitSpec) { s.Encoding = "x\ny" },
		"tree that is an option":   func(s *CommitSpec) { s.Tree = "--help" },
		"tree that is a commit":    func(s *CommitSpec) { s.Tree = parent },
		"parent that is no commit": func(s *CommitSpec) { s.Parents = []string{info.Tree} },
		"parent that is missing":   func(s *CommitSpec) { s.Parents = []string{strings.Repeat("1", 40)} },
	} {
		bad := spec
		change(&bad)
		if id, err := f.repo.WriteCommit(t.Context(), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %s, %v", name, id, err)
		}
	}
}

func FuzzACommitParsesOrIsRefused(f *testing.F) {
	f.Add([]byte("tree " + emptyTree + "\nauthor A <a@b> 1 +0000\ngpgsig x\n y\n\nmessage"))
	f.Add([]byte("tree " + emptyTree + "\nauthor > < <\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		commit, err := parseCommit("x", body)
		if err != nil {
			return
		}
		if !IsID(commit.Tree) || !isDate(commit.AuthorDate) || strings.Contains(commit.AuthorName+commit.AuthorEmail, "\n") {
			t.Fatalf("%+v", commit)
		}
	})
}
