package codeowners_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/platform/buildgraph/codeowners"
)

// The examples of GitHub's documentation.
const githubs = `# This is a comment.
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/* docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
/apps/github2 @doctocat
`

func TestPatternsMeanWhatGitHubSays(t *testing.T) {
	f := codeowners.Parse([]byte(githubs))
	for _, c := range []struct{ file, want string }{
		{"README", "@global-owner1 @global-owner2"},
		{"web/src/a.js", "@js-owner"},
		{"main.go", "docs@example.com"},
		{"a/b/c.txt", "@octo-org/octocats"},
		{"build/logs", "@octocat"},
		{"build/logs/x/y.log", "@octocat"},
		{"deeply/nested/logs/x", "@octocat"},
		{"docs/getting-started.md", "@doctocat"},
		{"lib/docs/x", "@global-owner1 @global-owner2"},
		{"scripts/deep/x.sh", "@doctocat @octocat"},
		{"x/apps/y", "@octocat"},
		{"apps", "@global-owner1 @global-owner2"},
		{"apps/x", "@octocat"},
		{"apps/github", ""},
		{"apps/github/deep/x", ""},
		{"apps/github2/x", "@doctocat"},
	} {
		if got := strings.Join(f.Owners(c.file), " "); got != c.want {
			t.Errorf("%s is owned by %q, want %q", c.file, got, c.want)
		}
	}
	one := codeowners.Parse([]byte("docs/* @docs\n/*.md @root\n/a[b].c @bracket\nspaced\\ name @spaced\n"))
	for file, want := range map[string]string{
		"docs/x": "@docs", "docs/deep/x": "", "docs": "", "x.md": "@root", "deep/x.md": "", "a[b].c": "@bracket", "ab.c": "",
		"x/spaced name/y": "@spaced", "spaced": "",
	} {
		if got := strings.Join(one.Owners(file), " "); got != want {
			t.Errorf("%s is owned by %q, want %q", file, got, want)
		}
	}
}

func TestEachSectionOfGitLabsHasItsOwnLastMatch(t *testing.T) {
	f := codeowners.Parse([]byte(`* @all
[Docs][2] @docs
*.md
docs/ @writers
^[Data Base]
model/ @db @all
!model/generated/
[docs]
docs/legal/ @lawyers
`))
	for file, want := range map[string]string{
		"x": "@all", "x.md": "@all @docs", "docs/x": "@all @writers", "docs/legal/x": "@all @lawyers", "model/x": "@all @db",
		"model/generated/x": "@all", "model/x.md": "@all @docs @db",
	} {
		if got := strings.Join(f.Owners(file), " "); got != want {
			t.Errorf("%s is owned by %q, want %q", file, got, want)
		}
	}
}

func TestALineThatIsWrongIsSkipped(t *testing.T) {
	f := codeowners.Parse([]byte("* @all\n*.go nobody\n/ @x\n*.c @\n*.h @a\x01b\n\xff\xfe @y\n"))
	for _, file := range []string{"a.go", "a.c", "a.h"} {
		if got := f.Owners(file); !slices.Equal(got, []string{"@all"}) {
			t.Errorf("%s is owned by %q", file, got)
		}
	}
	long := strings.Repeat("a", codeowners.MaxBytes) // a line of any length takes time in proportion
	if got := codeowners.Parse([]byte(long + " @x")).Owners(long); !slices.Equal(got, []string{"@x"}) {
		t.Errorf("a long name is owned by %q", got)
	}
	var none *codeowners.File
	if none.Owners("x") != nil {
		t.Error("no file has owners")
	}
}

// TestPatternsMatchAsGitsDo holds patterns to git itself, whose rules for .gitignore GitHub refers to. What GitHub excepts, a
// name * at the end, is left out.
func TestPatternsMatchAsGitsDo(t *testing.T) {
	random := seedtest.Random(t)
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		out, err := cmd.Output()
		if exit, is := err.(*exec.ExitError); err != nil && !(is && exit.ExitCode() == 1) {
			t.Fatal(err)
		}
		return string(out)
	}
	git("", "init", "-q")
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var files []string
	for range 200 {
		file := pick("a", "b", "ab", "a.c")
		for range random.IntN(4) {
			file += "/" + pick("a", "b", "ab", "a.c")
		}
		files = append(files, file)
	}
	for range 60 {
		pattern := pick("", "/")
		for range 1 + random.IntN(3) {
			pattern += pick("a", "b", "*b", "a?", "**", "*.c") + "/"
		}
		if pattern = pick(pattern, strings.TrimSuffix(pattern, "/")); strings.HasSuffix(strings.TrimSuffix(pattern, "/"), "**") {
			continue // git wants a folder before it
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(pattern+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		ignored := map[string]bool{}
		for line := range strings.Lines(git(strings.Join(files, "\n")+"\n", "check-ignore", "--no-index", "--stdin")) {
			ignored[strings.TrimSpace(line)] = true
		}
		f := codeowners.Parse([]byte(pattern + " @x\n"))
		for _, file := range files {
			if got := len(f.Owners(file)) > 0; got != ignored[file] {
				t.Errorf("%s matches %s: %v, to git %v", pattern, file, got, ignored[file])
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(githubs), "a/b.js")
	f.Add([]byte("^[x][2] @a\n\\ \\\\ @b\n!a/**/ @c"), "a")
	f.Fuzz(func(t *testing.T, content []byte, file string) {
		owners := codeowners.Parse(content).Owners(file)
		if len(owners) > codeowners.MaxOwners {
			t.Errorf("%d owners", len(owners))
		}
		for _, o := range owners {
			if !strings.Contains(o, "@") || strings.ContainsAny(o, " \t\n") {
				t.Errorf("owner %q", o)
			}
		}
	})
}

func BenchmarkOwners(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "/team%d/service/**/*.go @team%d\n", i, i)
	}
	f := codeowners.Parse([]byte(text.String()))
	for b.Loop() {
		f.Owners("team3/service/a/b/c.go")
	}
}
