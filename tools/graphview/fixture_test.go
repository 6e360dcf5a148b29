package graphview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files are contents by path; "-" deletes, "link TEXT" is a symbolic link.
type files map[string]string

// fixture is a repository whose branches are written by one git process each.
type fixture struct {
	testing.TB
	dir, mirror string
	// asked are arguments of every command. At first they ignore each file that no target covers.
	asked []string
}

// newFixture has the files on main.
func newFixture(t testing.TB, main files) *fixture {
	f := &fixture{TB: t, dir: t.TempDir(), mirror: filepath.Join(t.TempDir(), "mirror.git"), asked: []string{"--ignore", "**"}}
	f.git("", "init", "--quiet", "--initial-branch=main", ".")
	f.branch("main", "", main)
	return f
}

func (f *fixture) git(input string, args ...string) {
	f.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = f.dir, strings.NewReader(input)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// branch makes a branch of one commit on another one, or on nothing.
func (f *fixture) branch(name, on string, edit files) {
	f.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter Ada <ada@example.com> 1700000000 +0100\ndata 4\nedit\n", name)
	if on != "" {
		fmt.Fprintf(&b, "from refs/heads/%s\n", on)
	}
	for _, path := range slices.Sorted(maps.Keys(edit)) {
		text := edit[path]
		link, isLink := strings.CutPrefix(text, "link ")
		switch {
		case text == "-":
			fmt.Fprintf(&b, "D %s\n", path)
		case isLink:
			fmt.Fprintf(&b, "M 120000 inline %s\ndata %d\n%s\n", path, len(link), link)
		default:
			fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
		}
	}
	f.git(b.String(), "fast-import", "--quiet")
}

// run runs a command on the repository.
func (f *fixture) run(args ...string) (out string, err error) {
	f.Helper()
	out, _, err = f.both(args...)
	return out, err
}

// said returns what a command prints besides its result.
func (f *fixture) said(args ...string) string {
	f.Helper()
	_, said, err := f.both(args...)
	if err != nil {
		f.Fatal(err)
	}
	return said
}

func (f *fixture) both(args ...string) (out, said string, err error) {
	f.Helper()
	for _, c := range Commands(slog.New(slog.DiscardHandler)) {
		if c.Name() != args[0] {
			continue
		}
		var stdout, stderr bytes.Buffer
		c.SetOut(&stdout)
		c.SetErr(&stderr)
		c.SilenceErrors = true
		c.SetArgs(slices.Concat(args[1:], []string{"--repo", f.dir, "--mirror", f.mirror}, f.asked))
		err := c.ExecuteContext(f.Context())
		return stdout.String(), stderr.String(), err
	}
	f.Fatalf("no command %s", args[0])
	return "", "", nil
}

// read runs a command with --json into a value that has no other fields.
func (f *fixture) read(into any, args ...string) {
	f.Helper()
	out, err := f.run(append(args, "--json")...)
	if err != nil {
		f.Fatalf("%q: %v", args, err)
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		f.Fatalf("%q printed %s: %v", args, out, err)
	}
}

// shop is a Go module: app needs store, which needs money; docs nobody.
var shop = files{
	"go.mod": "module shop\n\ngo 1.26\n", "README.md": "one\ntwo\nthree\nfour\nfive\n",
	"app/app.go": "package app\n\nimport _ \"shop/store\"\n", "app/app_test.go": "package app\n",
	"store/store.go": "package store\n\nimport _ \"shop/money\"\n",
	"money/money.go": "package money\n", "docs/docs.go": "package docs\n", "mail/mail.go": "package mail\n",
}
