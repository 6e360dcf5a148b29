package graphview

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
)

func TestTargetsAreListedWithHashAndDirectDependencies(t *testing.T) {
	f := newFixture(t, shop)
	var l Listing
	f.read(&l, "targets", "--rev", "main")
	var got []string
	for _, target := range l.Targets {
		if len(target.Hash) != 64 {
			t.Errorf("%s has the hash %q", target.Name, target.Hash)
		}
		got = append(got, fmt.Sprintf("%s %s %v", target.Kind, target.Name, target.Deps))
	}
	want := []string{
		"module shop [module] []", "library shop/app [shop/store]", "test shop/app [test] [shop/app]", "library shop/docs []",
		"library shop/mail []", "library shop/money []", "library shop/store [shop/money]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(l.Rev) != 40 || len(l.Tree) != 40 || l.Rev == l.Tree {
		t.Errorf("rev %q, tree %q", l.Rev, l.Tree)
	}
	if out, err := f.run("targets", "--rev", "main"); err != nil || !strings.Contains(out, "7 targets at "+l.Rev[:12]) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTargetsAreListedWithTheirOwners(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("owned", "main", files{".github/CODEOWNERS": "/money/ @shop/payments ada@example.com\n*_test.go @testers\n"})
	var l Listing
	f.read(&l, "targets", "--rev", "owned")
	got := map[string]string{}
	for _, target := range l.Targets {
		got[target.Name] = strings.Join(target.Owners, " ")
	}
	if len(got) != 7 || got["shop/money"] != "@shop/payments ada@example.com" || got["shop/app [test]"] != "@testers" || got["shop/app"] != "" {
		t.Errorf("owners are %q", got)
	}
	if out, err := f.run("targets", "--rev", "owned"); err != nil || !strings.Contains(out, "shop/money       0 deps  @shop/payments ada@example.com\n") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestAffectedSaysWhatCameWentAndChanged(t *testing.T) {
	f := newFixture(t, shop)
	for name, c := range map[string]struct {
		edit       files
		want       string
		structural bool
	}{
		"edit":     {files{"money/money.go": "package money // 2\n"}, "modified shop/app, modified shop/app [test], modified shop/money, modified shop/store", false},
		"file":     {files{"docs/more.go": "package docs\n"}, "modified shop/docs", false},
		"import":   {files{"docs/docs.go": "package docs\n\nimport _ \"shop/mail\"\n"}, "modified shop/docs", true},
		"moved":    {files{"mail/mail.go": "-", "post/post.go": "package post\n"}, "removed shop/mail, added shop/post", true},
		"document": {files{"README.md": "new\n"}, "", false},
	} {
		f.branch(name, "main", c.edit)
		var a Affected
		f.read(&a, "affected", "--base", "main", "--head", name)
		var got []string
		for _, target := range a.Affected {
			got = append(got, target.Change+" "+target.Name)
		}
		if strings.Join(got, ", ") != c.want || a.Structural != c.structural || a.All || len(a.Reasons) > 0 {
			t.Errorf("%s: %+v, want %s, structural %v", name, a, c.want, c.structural)
		}
	}
}

// TestTheFirstManifestAffectsItsOwnTargets: the adapters that fit are those of both commits.
func TestTheFirstManifestAffectsItsOwnTargets(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("t2", "main", files{"hack/verify.sh": "true\n", "hack/landfall.yaml": "targets:\n- name: hack\n  sources: ['*.sh']\n  steps: [{name: verify, run: [./verify.sh]}]\n"})
	var a Affected
	f.read(&a, "affected", "--base", "main", "--head", "t2")
	if len(a.Affected) != 1 || a.Affected[0] != (AffectedTarget{Name: "//hack", Change: "added"}) || a.All {
		t.Errorf("%+v", a)
	}
}

// TestAffectedLeavesOutWhatTheBaseHasGained since the branch left it: that is no doing of the branch.
func TestAffectedLeavesOutWhatTheBaseHasGained(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("edit", "main", files{"docs/docs.go": "package docs // 2\n"})
	f.branch("later", "main", files{"money/money.go": "package money // 2\n"})
	var a Affected
	f.read(&a, "affected", "--base", "later", "--head", "edit")
	if len(a.Affected) != 1 || a.Affected[0] != (AffectedTarget{Name: "shop/docs", Change: "modified"}) {
		t.Errorf("it affects %+v", a.Affected)
	}
	f.branch("alone", "", files{"go.mod": "module shop\n", "docs/docs.go": "package docs\n"})
	f.read(&a, "affected", "--base", "alone", "--head", "main")
	if len(a.Affected) < 3 {
		t.Errorf("without a common ancestor it compares the commits; it found %+v", a.Affected)
	}
}

func TestWhatCannotBeToldConflictsWithEverythingOrIsRefused(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("linked", "main", files{"docs/go.mod": "link ../go.mod"})
	f.branch("broken", "main", files{"go.mod": "module shop\n\nrequire x\n"})
	f.branch("edit", "main", files{"mail/mail.go": "package mail // 2\n"})
	var a Affected
	f.read(&a, "affected", "--base", "main", "--head", "linked")
	if !a.All || !a.Structural || len(a.Reasons) != 1 || !strings.Contains(a.Reasons[0], "symbolic link") {
		t.Errorf("a go.mod that is a link: %+v", a)
	}
	if _, err := f.run("affected", "--base", "main", "--head", "broken"); err == nil || !strings.Contains(err.Error(), "go.mod:3:") {
		t.Errorf("a broken go.mod: %v", err)
	}
	if _, err := f.run("targets", "--rev", "linked"); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("targets that are not known: %v", err)
	}
	var m Matrix
	f.read(&m, "conflicts", "--change", "linked", "--change", "edit", "--change", "broken")
	if len(m.Conflicts) != 1 || len(m.Independent) != 0 || len(m.Conflicts[0].Targets) != 0 || !strings.Contains(m.Conflicts[0].Why, "linked conflicts with everything: ") {
		t.Errorf("%+v", m)
	}
	if len(m.Refused) != 1 || m.Refused[0].Change != "broken" || !strings.Contains(m.Refused[0].Why, "go.mod:3:") {
		t.Errorf("refused: %+v", m.Refused)
	}
}

func TestEachConflictSaysWhy(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("money", "main", files{"money/money.go": "package money // 2\n"})
	f.branch("store", "main", files{"store/store.go": "package store\n"})
	f.branch("docs", "main", files{"docs/docs.go": "package docs\n\nimport _ \"shop/mail\"\n"})
	f.branch("mail", "main", files{"mail/mail.go": "package mail // 2\n"})
	f.branch("readme1", "main", files{"README.md": "one\nTWO\nthree\nfour\nfive\n"})
	f.branch("readme2", "main", files{"README.md": "one\n2\nthree\nfour\nfive\n"})
	f.branch("readme3", "main", files{"README.md": "one\ntwo\nthree\nfour\nfive\nsix\n"})
	// Once more, from a mainline that went on.
	f.branch("next", "main", files{"mail/mail.go": "package mail // next\n"})
	var m Matrix
	names := []string{"money", "store", "docs", "mail", "readme1", "readme2", "readme3"}
	args := []string{"conflicts", "--base", "main"}
	for _, name := range names {
		args = append(args, "--change", name)
	}
	f.read(&m, args...)
	var got []string
	for _, p := range m.Conflicts {
		got = append(got, fmt.Sprintf("%s %s %v: %s", p.A, p.B, p.Targets, strings.SplitN(p.Why, "\n", 2)[0]))
	}
	want := []string{
		"money store [shop/app shop/app [test] shop/store]: both change shop/app and 2 more",
		"docs mail []: docs makes shop/docs depend on shop/mail, which mail changes",
		"readme1 readme2 []: readme2 does not merge after readme1: CONFLICT (content): Merge conflict in README.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(m.Conflicts)+len(m.Independent) != len(names)*(len(names)-1)/2 {
		t.Errorf("%d pairs conflict and %d are independent, of %d changes", len(m.Conflicts), len(m.Independent), len(names))
	}
	var on Matrix
	f.read(&on, "conflicts", "--base", "next", "--change", "mail", "--change", "docs")
	if len(on.Refused) != 1 || !strings.Contains(on.Refused[0].Why, "does not merge with the base") {
		t.Errorf("on a mainline that went on: %+v", on)
	}
	out, err := f.run(args...)
	if err != nil || !strings.Contains(out, "conflict     docs × mail: docs makes") || !strings.Contains(out, "3 pairs conflict, 18 are independent") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestWhatMergesToDifferentTreesConflicts: back does on main what is there already, and takes back what
// forth does if that came first. Alone it changes nothing, so no target meets.
func TestWhatMergesToDifferentTreesConflicts(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("next", "main", files{"docs/docs.go": "package docs // next\n"})
	f.branch("back", "main", files{"docs/docs.go": "package docs // next\n", "mail/notes.txt": "1\n"})
	f.branch("forth", "next", files{"docs/docs.go": shop["docs/docs.go"]})
	var m Matrix
	f.read(&m, "conflicts", "--base", "next", "--change", "forth", "--change", "back")
	if len(m.Conflicts) != 1 || len(m.Conflicts[0].Targets) != 0 || m.Conflicts[0].Why != "back after forth gives another tree than forth after back" {
		t.Errorf("%+v", m)
	}
}

func TestTheAdapterIsTheOneThatFits(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("manifest", "main", files{"landfall.yaml": "targets:\n  - {name: all, sources: [README.md]}\n"})
	f.branch("fixture", "main", files{"x/testdata/landfall.yaml": "nonsense\n"})
	f.branch("deeper", "main", files{"sample/_tree/landfall.yaml": "nonsense\n"})
	f.branch("nothing", "main", files{"go.mod": "-"})
	for rev, want := range map[string]string{"main": "shop [module]", "fixture": "shop [module]", "deeper": "shop [module]", "manifest": "//:all", "nothing": "//:repository"} {
		var l Listing
		f.read(&l, "targets", "--rev", rev)
		if l.Targets[0].Name != want {
			t.Errorf("%s begins with %s, want %s", rev, l.Targets[0].Name, want)
		}
	}
	var l Listing
	f.read(&l, "targets", "--rev", "manifest", "--adapter", "go")
	if len(l.Targets) != 7 {
		t.Errorf("--adapter go finds %+v", l.Targets)
	}
	before := l.Targets[0].Hash
	l = Listing{}
	f.read(&l, "targets", "--rev", "manifest", "--adapter", "go", "--env", "GOFLAGS=-tags=x")
	if l.Targets[0].Hash == before {
		t.Error("--env GOFLAGS is no part of the hashes")
	}
	if _, err := f.run("targets", "--adapter", "buck"); err == nil || !strings.Contains(err.Error(), "whole-repository") {
		t.Errorf("an unknown adapter: %v", err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("one", "main", files{"README.md": "1\n"})
	for _, c := range []struct{ want, args string }{
		{"names no commit", "targets --rev none"},
		{"names no commit", "targets --rev --help"},
		{"say --rev main", "targets main"},
		{"say --head one", "affected --base main one"},
		{"say --change one", "conflicts one"},
		{"--base names no commit", "affected"},
		{"at least twice", "conflicts --change one"},
		{"given twice", "conflicts --change one --change one"},
		{"--input \"docs=README.md,../x\": \"../x\" is no pattern", "targets --adapter go --input docs=README.md,../x"},
		{"--input \"=\": \"\" is no pattern", "targets --adapter go --input ="},
		{"--timeout is -1s", "targets --timeout -1s"},
	} {
		if _, err := f.run(strings.Fields(strings.ReplaceAll(c.args, "--rev ", "--rev="))...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
	whole := f.dir
	f.dir = f.TempDir()
	if _, err := f.run("targets"); err == nil || !strings.Contains(err.Error(), f.dir+" is no git repository") {
		t.Errorf("a folder that is no repository: %v", err)
	}
	f.mirror = filepath.Join(f.TempDir(), "mirror")
	f.git("", "clone", "--quiet", "--depth=1", "--branch=one", "file://"+whole, ".")
	for _, args := range []string{"affected --base=HEAD~1", "conflicts --base HEAD --change HEAD~1 --change HEAD"} {
		if _, err := f.run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "fetch --unshallow") {
			t.Errorf("%s in a shallow clone: %v", args, err)
		}
	}
	f.dir += "-none"
	if _, err := f.run("targets"); err == nil || !strings.Contains(err.Error(), "there is no repository") {
		t.Errorf("no repository: %v", err)
	}
}

// TestAChangeThatCannotLandIsRefusedAndTheOthersAreCompared whatever is the matter with it.
func TestAChangeThatCannotLandIsRefusedAndTheOthersAreCompared(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("one", "main", files{"README.md": "1\n"})
	f.branch("two", "main", files{"docs/docs.go": "package docs // 2\n"})
	f.branch("empty", "main", files{})
	f.branch("apart", "", files{"README.md": "apart\n"})
	var m Matrix
	f.read(&m, "conflicts", "--change", "main", "--change", "one", "--change", "empty", "--change", "two", "--change", "apart")
	var got []string
	for _, r := range m.Refused {
		got = append(got, r.Change+": "+r.Why)
	}
	const want = "main: already part of the mainline; there is nothing to land\nempty: changes nothing; there is nothing to land\napart: shares no history with the mainline; start it from the mainline"
	if strings.Join(got, "\n") != want || len(m.Independent) != 1 || m.Independent[0][0] != "one" || m.Independent[0][1] != "two" {
		t.Errorf("%+v", m)
	}
	if _, err := f.run("conflicts", "--change", "one", "--change", "none"); err == nil || !strings.Contains(err.Error(), "\"none\" names no commit") {
		t.Errorf("a change that is no commit: %v", err)
	}
}

// TestWithJSONAnErrorIsTheOneValue that is printed, as by the commands of a queue.
func TestWithJSONAnErrorIsTheOneValue(t *testing.T) {
	f := newFixture(t, shop)
	for _, args := range []string{"targets --rev=none", "affected", "conflicts --change one", "targets --config none.yaml"} {
		out, err := f.run(append(strings.Fields(args), "--json")...)
		if code, told := client.ExitCode(err); code != client.ExitFailed || !told {
			t.Errorf("%s: exit code %d, told %v: %v", args, code, told, err)
		}
		var printed api.Failure
		decoder := json.NewDecoder(strings.NewReader(out))
		decoder.DisallowUnknownFields()
		if decoder.Decode(&printed) != nil || printed.Error.Code != "failed" || printed.Error.Message != err.Error() || decoder.More() {
			t.Errorf("%s printed %q for %v", args, out, err)
		}
	}
}

// TestAManifestThatIsNotCommittedIsNamed: a target of it is missed in the list otherwise.
func TestAManifestThatIsNotCommittedIsNamed(t *testing.T) {
	f := newFixture(t, files{"landfall.yaml": "targets: [{name: a, sources: [a.txt]}]\n", "a.txt": "1\n", ".gitignore": "out\n"})
	for _, folder := range []string{"db", "out", "."} {
		if err := os.MkdirAll(filepath.Join(f.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.dir, folder, "landfall.yaml"), []byte("targets: []\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.git("", "reset", "--quiet")
	if err := os.WriteFile(filepath.Join(f.dir, ".gitignore"), []byte("out\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for rev, want := range map[string]string{"HEAD": "db/landfall.yaml is not committed, so it is no part of HEAD\n", "main": ""} {
		said := f.said("targets", "--rev", rev)
		if lines := slices.DeleteFunc(strings.SplitAfter(said, "\n"), func(l string) bool { return !strings.Contains(l, "not committed") }); strings.Join(lines, "") != want {
			t.Errorf("of %s it says %q, want %q", rev, said, want)
		}
	}
	// Where the commit has no target, that is why.
	none := newFixture(t, files{"landfall.config.yaml": "version: 1\nrepositories: {shop: {url: shop.git}}\nqueues: {shop: {repository: shop, analysis: {adapter: manifest}}}\n"})
	if err := os.WriteFile(filepath.Join(none.dir, "landfall.yaml"), []byte("targets: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, err := none.both("targets"); err == nil || !strings.Contains(said, "landfall.yaml is not committed, so it is no part of HEAD\n") || !strings.HasPrefix(err.Error(), "HEAD has no targets:\n") {
		t.Errorf("%v, and it says %q", err, said)
	}
}

// Names of files come from whoever made the commit.
func TestNamesOfFilesDoNotSteerTheTerminal(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("odd", "main", files{"a\x1b[2Jb\x1b]0;title\x07.txt": "one\n"})
	for _, args := range [][]string{{"targets", "--rev", "odd", "--uncovered"}, {"affected", "--base", "main", "--head", "odd"}} {
		if out, err := f.run(args...); err != nil || strings.ContainsAny(out, "\x1b\x07") || !strings.Contains(out, ".txt") {
			t.Errorf("%q: %v\n%q", args, err, out)
		}
	}
}
