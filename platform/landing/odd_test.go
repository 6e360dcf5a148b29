package landing

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// object writes a commit as it is given, also one that git commit would not make, to a branch, and returns its id.
func (p *project) object(branch, body string) string {
	p.t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	cmd.Dir, cmd.Stdin = p.work, strings.NewReader(body)
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	id := strings.TrimSpace(string(out))
	p.git("update-ref", "refs/heads/"+branch, id)
	return id
}

// TestWhatAnAuthorWroteNeverKeepsACommitFromBeingMade: what git keeps in a commit, and would not be taken from us, is left out.
func TestWhatAnAuthorWroteNeverKeepsACommitFromBeingMade(t *testing.T) {
	p := newProject(t)
	mainline := p.commit("start", "a=1\n")
	tree := p.git("rev-parse", p.commit("other", "a=2\n")+":")
	const ada = "Ada <ada@example.com> 1700000000 +0100"
	for name, c := range map[string]struct {
		author, encoding, message string
		// wantAuthor is "name|email|date".
		wantAuthor, wantEncoding string
	}{
		"an encoding":                {ada, "ISO-8859-1", "m", "Ada|ada@example.com|1700000000 +0100", "ISO-8859-1"},
		"an encoding of two words":   {ada, "latin 1", "m", "Ada|ada@example.com|1700000000 +0100", ""},
		"an encoding that is binary": {ada, "\xfc\x01", "m", "Ada|ada@example.com|1700000000 +0100", ""},
		"a name that is no text":     {"\xff\x01\x7f <a\xfe> 1 +0000", "", "m", "\xff|a\xfe|1 +0000", ""},
		"no name":                    {" <> 1 +0000", "", "m", "||1 +0000", ""},
		"no address":                 {"Ada", "", "m", "Ada||0 +0000", ""},
		"a date that is none":        {"A <a> 99999999999999999999 +0000", "", "m", "A|a|0 +0000", ""},
		"a date before 1970":         {"A <a> -5 +0000", "", "m", "A|a|0 +0000", ""},
		"a zone that is none":        {"A <a> 5 +99999", "", "m", "A|a|0 +0000", ""},
		"a message with a NUL":       {ada, "", "one\x00two", "Ada|ada@example.com|1700000000 +0100", ""},
		"a subject of 5 MB":          {ada, "", strings.Repeat("long ", 1<<20), "Ada|ada@example.com|1700000000 +0100", ""},
		"a body of 4 MB":             {ada, "", "title\n\n" + strings.Repeat("\xff\n", 2<<20), "Ada|ada@example.com|1700000000 +0100", ""},
	} {
		t.Run(name, func(t *testing.T) {
			header := fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n", tree, mainline, c.author, ada)
			if c.encoding != "" {
				header += "encoding " + c.encoding + "\n"
			}
			head := p.object("odd", header+"\n"+c.message)
			p.sync()
			landed, conflict, err := Commits(p.ctx, p.repo, mainline, []Pick{{Head: head, Base: mainline}}, meta)
			if err != nil || conflict != nil {
				t.Fatal(err, conflict)
			}
			got, err := p.repo.CommitInfo(p.ctx, landed.Commits[0])
			if err != nil {
				t.Fatal(err)
			}
			if author := got.AuthorName + "|" + got.AuthorEmail + "|" + got.AuthorDate; author != c.wantAuthor || got.Encoding != c.wantEncoding {
				t.Errorf("it is by %q in %q, want %q in %q", author, got.Encoding, c.wantAuthor, c.wantEncoding)
			}
			if !strings.HasSuffix(got.Message, "Landfall-Part: 1/1\n") || len(got.Message) > 2*maxMessage+1000 {
				t.Errorf("a message of %d bytes ends in %q", len(got.Message), got.Message[max(0, len(got.Message)-100):])
			}
		})
	}
}

// TestASquashOfMoreCommitsThanAreListedLands, with the message of its head.
func TestASquashOfMoreCommitsThanAreListedLands(t *testing.T) {
	p := newProject(t)
	mainline := p.commit("start", "a=1\n")
	tree := p.git("rev-parse", p.commit("other", "a=2\n")+":")
	var stream strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&stream, "commit refs/heads/long\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata 1\nx\n")
		if i == 0 {
			fmt.Fprintf(&stream, "from %s\n", mainline)
		}
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = p.work, strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const ada = "Ada <ada@example.com> 1700000000 +0100"
	head := p.object("long", fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter %s\n\nthe last one\n", tree, p.git("rev-parse", "long"), ada, ada))
	p.sync()
	picks, err := Expand(p.ctx, p.repo, Squash, mainline, []string{head})
	if err != nil {
		t.Fatal(err)
	}
	landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
	if err != nil || conflict != nil {
		t.Fatal(err, conflict)
	}
	if got, err := p.repo.CommitInfo(p.ctx, landed.Commits[0]); err != nil || !strings.HasPrefix(got.Message, "the last one\n") {
		t.Errorf("%q, %v", got.Message, err)
	}
}
