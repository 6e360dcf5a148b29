package graphview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// uncoveredFixture has, besides a Go module, files of three kinds that no target covers.
func uncoveredFixture(t *testing.T) *fixture {
	f := newFixture(t, shop)
	f.asked = nil
	f.branch("more", "main", files{"docs/guide.md": "1\n", "docs/img/a.svg": "1\n", "deploy/run.sh": "1\n"})
	return f
}

func TestUncoveredFilesAreListedWithTheirPolicies(t *testing.T) {
	f := uncoveredFixture(t)
	for _, c := range []struct {
		args, files, folders string
	}{
		{"", "README.md whole_repository, deploy/run.sh whole_repository, docs/guide.md whole_repository, docs/img/a.svg whole_repository",
			"[{. 1 0} {deploy 1 0} {docs 2 0}]"},
		{"--ignore **/*.md --ignore docs/img/**", "README.md ignore, deploy/run.sh whole_repository, docs/guide.md ignore, docs/img/a.svg ignore",
			"[{. 1 1} {deploy 1 0} {docs 2 2}]"},
		{"--adapter whole-repository", "", "[]"},
	} {
		var u Uncovered
		f.read(&u, append([]string{"targets", "--rev", "more", "--uncovered"}, strings.Fields(c.args)...)...)
		var got []string
		for _, file := range u.Files {
			got = append(got, file.Path+" "+file.Policy)
		}
		if strings.Join(got, ", ") != c.files || fmt.Sprint(u.Folders) != c.folders || u.FilesTotal != len(shop)+3 || len(u.Rev) != 40 {
			t.Errorf("%s: %+v", c.args, u)
		}
	}
	config := f.configure("  main: {repository: shop, analysis: {adapter: go, uncovered: {policy: warn, ignore: ['**/*.md']}}}\n")
	out, err := f.run("targets", "--rev", "more", "--uncovered", "--config", config)
	for _, line := range []string{"warn    deploy/run.sh\n", "ignore  README.md\n", "files  ignored  folder\n", "2      1        docs\n", "no target covers 4 of 11 files at ",
		"warn (analysis.uncovered): 2; nothing is built for them, with a warning\n", "ignore (analysis.uncovered): 2; nothing is built for them\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("%v: %q is not in\n%s", err, line, out)
		}
	}
	if _, err := f.run("targets", "--rev", "more", "--uncovered", "--ignore", "../x"); err == nil || !strings.Contains(err.Error(), "is no pattern of paths") {
		t.Errorf("a pattern that is none: %v", err)
	}
}

func TestAffectedAndConflictsSayWhatAnUncoveredFileMeans(t *testing.T) {
	f := uncoveredFixture(t)
	f.branch("script", "more", files{"deploy/run.sh": "2\n"})
	f.branch("guide", "more", files{"docs/guide.md": "2\n", "mail/mail.go": "package mail // 2\n"})
	affected := func(head string, args ...string) (Affected, string) {
		var a Affected
		args = append([]string{"affected", "--base", "more", "--head", head}, args...)
		f.read(&a, args...)
		out, err := f.run(args...)
		if err != nil {
			t.Fatal(err)
		}
		return a, out
	}
	a, out := affected("script", "--ignore", "**/*.md")
	if !a.All || fmt.Sprint(a.Affected) != "[{//:repository modified}]" || fmt.Sprint(a.Uncovered) != "[{deploy/run.sh whole_repository}]" ||
		!strings.Contains(out, "the change conflicts with everything: no target covers deploy/run.sh, so the whole repository is verified") {
		t.Errorf("%+v\n%s", a, out)
	}
	a, out = affected("guide", "--ignore", "**/*.md")
	if a.All || fmt.Sprint(a.Affected) != "[{shop/mail modified}]" || fmt.Sprint(a.Uncovered) != "[{docs/guide.md ignore}]" ||
		!strings.Contains(out, "no target covers docs/guide.md; nothing is built for that (analysis.uncovered)\n") {
		t.Errorf("%+v\n%s", a, out)
	}
	var m Matrix
	args := []string{"conflicts", "--base", "more", "--change", "script", "--change", "guide"}
	f.read(&m, args...)
	if len(m.Conflicts) != 1 || !strings.Contains(m.Conflicts[0].Why, "script conflicts with everything: no target covers deploy/run.sh") {
		t.Errorf("%+v", m)
	}
	m = Matrix{}
	f.read(&m, slices.Concat(args, []string{"--ignore", "**/*.md", "--ignore", "deploy/**"})...)
	if len(m.Conflicts) != 0 || len(m.Independent) != 1 {
		t.Errorf("with both ignored: %+v", m)
	}
}
