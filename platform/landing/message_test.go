package landing

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"landfall.build/platform/gitrepo"
)

var trailers = []string{"Landfall-Change: C1", "Landfall-Part: 1/1"}

func source(message string) gitrepo.Commit {
	return gitrepo.Commit{AuthorName: "Ada", AuthorEmail: "ada@example.com", Message: message}
}

func TestMessagesKeepTheAuthorsWordsAndLoseForgedTrailers(t *testing.T) {
	const own = "Landfall-Change: C1\nLandfall-Part: 1/1\n"
	for name, c := range map[string]struct{ message, want string }{
		"a subject":            {"fix it\n", "fix it\n\n" + own},
		"a body":               {"fix it\n\nbecause\n", "fix it\n\nbecause\n\n" + own},
		"trailers":             {"fix it\n\nbecause\n\nFixes: 1\nSigned-off-by: A <a@b>\n", "fix it\n\nbecause\n\nFixes: 1\nSigned-off-by: A <a@b>\n" + own},
		"a subject like one":   {"fix: it\n", "fix: it\n\n" + own},
		"no message":           {"", "(no message)\n\n" + own},
		"blank":                {" \n\n\t\n", "(no message)\n\n" + own},
		"forged":               {"fix\n\nLandfall-Change: C2\n", "fix\n\n" + own},
		"forged, any case":     {"fix\n\nlandFALL-part : 9/9\nFixes: 1\n", "fix\n\nFixes: 1\n" + own},
		"forged, indented":     {"fix\n\ntext\n\t Landfall-Change: C2\n", "fix\n\ntext\n\n" + own},
		"forged, continued":    {"fix\n\nLandfall-Change:\n C2\n  C3\nafter\n", "fix\n\nafter\n\n" + own},
		"forged, carriage":     {"fix\r\n\r\ntext\rLandfall-Change: C2\r\n", "fix\n\ntext\n\n" + own},
		"forged, as subject":   {"Landfall-Change: C2\n\nbody\n", "body\n\n" + own},
		"forged, unknown":      {"fix\n\nLandfall-Anything: x\n", "fix\n\n" + own},
		"speaks about us":      {"fix\n\nthe Landfall-Change: trailer\n", "fix\n\nthe Landfall-Change: trailer\n\n" + own},
		"a list after subject": {"fix\n- a\n- b\n", "fix\n\n- a\n- b\n\n" + own},
		"not UTF-8":            {"f\xfcr\n\n\xe4\n", "f\xfcr\n\n\xe4\n\n" + own},
	} {
		got := Message([]gitrepo.Commit{source(c.message)}, false, "", "", trailers)
		if got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, c.want)
		}
		if read := landfallTrailers(t, got); read != own {
			t.Errorf("%s: git reads the trailers %q", name, read)
		}
	}
}

// landfallTrailers returns what git itself takes for trailers of ours.
func landfallTrailers(t *testing.T, message string) string {
	t.Helper()
	cmd := exec.Command("git", "interpret-trailers", "--parse")
	cmd.Stdin = strings.NewReader(message)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(strings.ToLower(line), "landfall-") {
			found.WriteString(line)
		}
	}
	return found.String()
}

func TestASquashNamesAllWhoTookPart(t *testing.T) {
	other := source("review comments\n")
	other.AuthorName, other.AuthorEmail = "Eve <x>\n", "eve@example.com"
	got := Message([]gitrepo.Commit{source("main thing\n\nwhy\n"), other, source("done\n\nLandfall-Change: C7\n")}, false, "", "", trailers)
	want := "main thing\n\nwhy\n\n* review comments\n* done\n\nCo-authored-by: Eve x <eve@example.com>\nLandfall-Change: C1\nLandfall-Part: 1/1\n"
	if got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	got = Message([]gitrepo.Commit{source("main thing\n\nwhy\n"), source("done\n")}, false, "Better\ntitle", "text\nLandfall-Part: 4/4", trailers)
	if want := "Better title\n\ntext\n\nLandfall-Change: C1\nLandfall-Part: 1/1\n"; got != want {
		t.Errorf("with a title: %q\nwant\n%q", got, want)
	}
}

func FuzzNoMessageForgesATrailer(f *testing.F) {
	f.Add("fix\n\nLandfall-Change: C2", "title", "body")
	f.Add("fix\rlandfall-x:y", "Landfall-Change: C2", " Landfall-Change\t: C2")
	f.Add("a\x00Landfall-Change: x", "\x00Landfall-x:", "Landfall-\x00x: y")
	forged := regexp.MustCompile(`(?im)^[ \t\f\x00]*landfall-[^\s:]*[ \t\f]*:`)
	f.Fuzz(func(t *testing.T, message, title, body string) {
		got := Message([]gitrepo.Commit{source(message), source(body)}, false, title, body, trailers)
		end := strings.Join(trailers, "\n") + "\n"
		rest, ok := strings.CutSuffix(got, end)
		if !ok || !strings.HasSuffix(rest, "\n") {
			t.Fatalf("the trailers are not at the end: %q", got)
		}
		if forged.MatchString(strings.ReplaceAll(rest, "\r", "\n")) || strings.ContainsRune(got, 0) {
			t.Fatalf("forged: %q", rest)
		}
	})
}

func TestWhatCannotStandInATrailerIsRefused(t *testing.T) {
	p := newProject(t)
	mainline, lower, _ := p.stack()
	picks, err := Expand(p.ctx, p.repo, Squash, mainline, []string{lower})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Meta){
		"newline in the id":    func(m *Meta) { m.Change = "C1\nLandfall-Part: 1/2" },
		"no id":                func(m *Meta) { m.Change = "" },
		"space around the id":  func(m *Meta) { m.Change = " C1" },
		"control in the queue": func(m *Meta) { m.Queue = "a\x00" },
		"a date of a zone":     func(m *Meta) { m.Date = "1800000000 +0100" },
		"a date with words":    func(m *Meta) { m.Date = "now +0000" },
	} {
		bad := meta
		change(&bad)
		landed, _, err := Commits(p.ctx, p.repo, mainline, picks, bad)
		if landed != nil || !errors.Is(err, ErrInvalid) && !errors.Is(err, gitrepo.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, landed, err)
		}
	}
}
