package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/services/builder/execution"
	"landfall.build/tools/audit/audittest"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

// planted is a history of targets a and b in which commits 2 and 3 are red in a.
type planted struct {
	*audittest.Repository
	commits []string
}

func plant(t *testing.T) *planted {
	t.Helper()
	p := &planted{Repository: audittest.New(t)}
	files := audittest.Target("a")
	maps.Copy(files, audittest.Target("b"))
	for _, step := range []struct {
		title string
		files map[string]string
	}{
		{"begin", files},
		{"other b", map[string]string{"b/b.txt": "very good\n"}},
		{"spoil a", map[string]string{"a/a.txt": "bad\n"}},
		{"another b", map[string]string{"b/b.txt": "still good\n"}},
		{"repair a", map[string]string{"a/a.txt": "good again\n"}},
	} {
		p.commits = append(p.commits, p.Commit(step.title, step.files))
	}
	return p
}

// run runs the command and returns what it printed.
func run(t *testing.T, args ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := Command(slog.New(slog.NewTextHandler(io.Discard, nil)))
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	c.SilenceErrors = true
	err = c.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestPlantedRedCommitsAreNamedWithTargetCommandAndOutput(t *testing.T) {
	p := plant(t)
	out, _, err := run(t, "--repo", p.Dir)
	var red NotGreen
	if !errors.As(err, &red) || red != (NotGreen{2, 5}) || red.ExitCode() != 1 {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{
		p.commits[2][:12] + "  spoil a (Ada)", p.commits[3][:12] + "  another b", "red      //a (version ", `: Command "check" ended with exit code 1.`, "    | bad\n",
		"): inherited from " + p.commits[2][:12] + "\n", "3 of 5 commits are green: 6 target versions,",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "| bad"); n != 1 {
		t.Errorf("the output is shown %d times:\n%s", n, out)
	}
	for _, green := range []int{0, 1, 4} {
		if strings.Contains(out, p.commits[green][:12]) {
			t.Errorf("commit %d is named:\n%s", green, out)
		}
	}
	if strings.Contains(out, "//b") {
		t.Errorf("the green target is named:\n%s", out)
	}
}

// TestM24aWhatALandingNamesAsQuarantinedIsListedApart, as long as it is that version; what nobody names is red.
func TestM24aWhatALandingNamesAsQuarantinedIsListedApart(t *testing.T) {
	p := plant(t)
	says := "\n\nSome words.\n\nLandfall-Change: c\nLandfall-Quarantined: //x\nLandfall-Quarantined: //a"
	spoiled := p.Commit("spoil a again"+says, map[string]string{"a/a.txt": "bad again\n"})
	after := p.Commit("b goes on", map[string]string{"b/b.txt": "good for long\n"})
	out, progress, err := run(t, "--repo", p.Dir, "--from", p.commits[4])
	if err != nil {
		t.Errorf("what is quarantined is not green: %v\n%s", err, out)
	}
	for _, want := range []string{
		spoiled[:12] + "  spoil a again (Ada)\n  red in quarantined targets: //a\n", after[:12] + "  b goes on (Ada)\n  red in quarantined targets: //a\n",
		"2 of 2 commits are green but for quarantined targets in 2: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(progress, "NOT GREEN") {
		t.Errorf("the progress counts it:\n%s", progress)
	}
	worse := p.Commit("and worse\n\nLandfall-Quarantined: //a is only told here\n\nThe end.", map[string]string{"a/a.txt": "worse\n"})
	out, _, err = run(t, "--repo", p.Dir, "--from", p.commits[4], "--json")
	var red NotGreen
	if !errors.As(err, &red) || red != (NotGreen{1, 3}) {
		t.Errorf("a new version that nobody excuses: %v", err)
	}
	var got summary
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.NotGreen) != 1 || got.NotGreen[0].ID != worse || len(got.RedInQuarantined) != 2 || got.RedInQuarantined[0].ID != spoiled || got.RedInQuarantined[0].Quarantined[0].Target != "//a" {
		t.Errorf("the summary is %s", out)
	}
	if out, _, err = run(t, "--repo", p.Dir, "--from", spoiled, "--to", after); !errors.As(err, &NotGreen{}) {
		t.Errorf("without the commit that names it: %v\n%s", err, out)
	}
}

func TestAGreenRangeIsGreen(t *testing.T) {
	p := plant(t)
	for _, args := range [][]string{{"--to", p.commits[1]}, {"--from", p.commits[3]}, {"--from", "main~1"}, {"--to", "main~3"}, {"--from", p.commits[0][:10], "--to", p.commits[1][:10]}} {
		if out, _, err := run(t, append(args, "--repo", p.Dir)...); err != nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if _, _, err := run(t, "--repo", p.Dir, "--from", p.commits[1], "--to", p.commits[2]); !errors.As(err, &NotGreen{}) {
		t.Errorf("the range with the red commit alone: %v", err)
	}
}

func TestAGreenVersionIsRunOnceAndWithFullAtEveryCommit(t *testing.T) {
	p := plant(t)
	for _, c := range []struct {
		args  []string
		steps int
		// The bad one is run at the first of its two commits, too.
	}{{[]string{"--retries", "0"}, 7}, {[]string{"--retries", "1"}, 9}, {[]string{"--full", "--retries", "0"}, 10}} {
		out, _, err := run(t, append(c.args, "--json", "--repo", p.Dir, "--workers", "3")...)
		if !errors.As(err, &NotGreen{}) {
			t.Fatalf("%q: %v", c.args, err)
		}
		var got summary
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%q: %v in %s", c.args, err, out)
		}
		// a: good, bad, good again; b: good, very good, still good.
		if got.Steps != c.steps || got.Versions != 6 || got.Commits != 5 || got.Green != 3 {
			t.Errorf("%q: %+v, want %d steps", c.args, got, c.steps)
		}
		if len(got.NotGreen) != 2 || got.NotGreen[0].ID != p.commits[2] || got.NotGreen[0].Bad[0].Target != "//a" || got.NotGreen[0].Bad[0].Tail != "bad\n" || got.NotGreen[1].Bad[0].First != p.commits[2] {
			t.Errorf("%q: not green: %+v", c.args, got.NotGreen)
		}
	}
}

// TestTheDecisiveLinesAreShown, as of a rejection: the end of what npm prints is how to call it.
func TestTheDecisiveLinesAreShown(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "grep -q good a.txt", "grep -q good a.txt || { cat npm.txt; exit 1; }", 1)
	files["a/package.json"] = "{\n  \"dependencies\": {\"words\": \"^9.0.0\"}\n}\n"
	files["a/npm.txt"] = "npm error code EUSAGE\nnpm error Missing: words@9.0.0 from lock file\nnpm error Usage:\n" + strings.Repeat("npm error   --option\n", 40)
	r.Commit("begin", files)
	red := r.Commit("next", map[string]string{"a/a.txt": "bad\n"})
	out, _, err := run(t, "--repo", r.Dir, "--from", red+"~1")
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, "\n    a/package.json:2: Missing: words@9.0.0 from lock file\n    | npm error") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestACommitThatNoHashSeesIsRed: //a reads a file that is none of its sources, and a commit breaks it there. The commits from that one on
// are red, and none before. What was red all along is not told otherwise.
func TestACommitThatNoHashSeesIsRed(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "cat a.txt", "cat ../NOTES; grep -q good ../NOTES", 1)
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "; grep -q good a.txt", " && grep -q good a.txt", 1)
	files["NOTES"] = "good\n"
	maps.Copy(files, audittest.Target("b"))
	commits := []string{r.Commit("begin", files)}
	for _, step := range []map[string]string{{"b/b.txt": "very good\n"}, {"c.txt": "1"}, {"NOTES": "gone\n"}, {"b/b.txt": "bad\n"}, {"c.txt": "2"}} {
		commits = append(commits, r.Commit("next", step))
	}
	out, _, err := run(t, "--repo", r.Dir)
	var red NotGreen
	if !errors.As(err, &red) || red != (NotGreen{3, 6}) {
		t.Errorf("the error is %v\n%s", err, out)
	}
	for _, want := range []string{
		commits[3][:12] + "  next (Ada)\n  red      //a (version ",
		"\n    not before: the same version passes at " + commits[2][:12] + ", so something has changed that its hash does not cover\n",
		"): inherited from " + commits[3][:12] + "\n", "3 of 6 commits are green: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "not before"); n != 1 {
		t.Errorf("%d are said to be red by what no hash covers:\n%s", n, out)
	}
}

func TestATreeWithoutValidTargetsIsRed(t *testing.T) {
	p := plant(t)
	p.Commit("typo", map[string]string{"c/landfall.yaml": "targets:\n  - name: c\n    deps: [//nowhere]\n"})
	out, _, err := run(t, "--repo", p.Dir, "--from", p.commits[4])
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, "red      //:repository") || !strings.Contains(out, "//nowhere") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestARepositoryThatNothingVerifiesIsUnproven(t *testing.T) {
	r := audittest.New(t)
	r.Commit("no targets", map[string]string{"main.c": "hello\n"})
	out, _, err := run(t, "--repo", r.Dir)
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, "unproven //:repository") || !strings.Contains(out, "whole_repository_steps") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestACommitWithoutTargetsIsVerifiedAsTheQueueVerifiesIt: by the steps of the whole repository, and not at all if it alters only what
// the queue ignores. One that removes the last definition is red.
func TestACommitWithoutTargetsIsVerifiedAsTheQueueVerifiesIt(t *testing.T) {
	const steps = "      whole_repository_steps: [{name: whole, run: [sh, -c, \"! grep -rn bad .\"]}]\n"
	const documents = "      uncovered: {ignore: [\"**/*.md\"]}\n"
	type files = map[string]string
	for name, c := range map[string]struct {
		analysis string
		edits    []files
		want     []string
	}{
		"of an adapter that finds nothing yet": {"      adapter: go\n" + steps, []files{{"a.txt": "good\n"}, {"a.txt": "bad\n"}, {"a.txt": "good again\n"}, {"go.mod": "module m\n\ngo 1.26\n"}}, []string{"", "red", "", ""}},
		"of a repository that is one target":   {steps + documents, []files{{"a.txt": "good\n"}, {"README.md": "bad\n"}}, []string{"", "red"}},
		"without steps":                        {documents, []files{{"README.md": "1\n"}, {"main.c": "1\n"}, {"README.md": "2\n"}}, []string{"", "unproven", ""}},
		"of an adapter, without steps":         {"      adapter: go\n" + documents, []files{{"README.md": "1\n"}, {"main.c": "1\n"}, {"README.md": "2\n"}}, []string{"", "unproven", ""}},
		"the last definition goes":             {"      adapter: go\n" + steps, []files{{"go.mod": "module m\n\ngo 1.26\n"}, {"go.mod": ""}}, []string{"", "red"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := audittest.New(t)
			var commits []string
			for _, edit := range c.edits {
				if text, is := edit["go.mod"]; is && text == "" {
					r.Git("rm", "--quiet", "go.mod")
					edit = nil
				}
				commits = append(commits, r.Commit("next", edit))
			}
			config := filepath.Join(t.TempDir(), "config.yaml")
			text := "version: 1\nrepositories:\n  r:\n    url: " + r.Dir + "\nqueues:\n  q:\n    repository: r\n    analysis:\n" + c.analysis
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, _, err := run(t, "--repo", r.Dir, "--config", config, "--json", "--retries", "0")
			var got summary
			if jsonErr := json.Unmarshal([]byte(out), &got); jsonErr != nil {
				t.Fatalf("%v %v in %s", err, jsonErr, out)
			}
			verdicts := make([]string, len(commits))
			for _, bad := range got.NotGreen {
				verdicts[slices.Index(commits, bad.ID)] = "red"
				if bad.Bad[0].Outcome == "unverifiable" {
					verdicts[slices.Index(commits, bad.ID)] = "unproven"
				}
			}
			if !slices.Equal(verdicts, c.want) {
				t.Errorf("the commits are %q, want %q\n%s", verdicts, c.want, out)
			}
		})
	}
}

// TestAVersionThatFailsAndPassesAtOneCommitIsFlaky: no commit made the difference, so no hash is said to miss something.
func TestAVersionThatFailsAndPassesAtOneCommitIsFlaky(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	// The first of the runs fails, which is at the last commit, and every second one after it.
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "cat a.txt; grep -q good a.txt", "echo x >> $RUNS; test $(($(wc -l < $RUNS) % 2)) -eq 0", 1)
	r.Commit("flaky", files)
	r.Commit("next", map[string]string{"c.txt": "1"})
	r.Commit("last", map[string]string{"c.txt": "2"})
	runs := filepath.Join(t.TempDir(), "runs")
	out, _, err := run(t, "--repo", r.Dir, "--env", "RUNS="+runs, "--retries", "0", "--workers", "1")
	if err != nil || !strings.Contains(out, "flaky: //a") || strings.Contains(out, "hash does not cover") || !strings.Contains(out, "3 of 3 commits are green") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAStepThatPassesOnlyTheSecondTimeIsFlakyNotRed(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "cat a.txt; grep -q good a.txt", "echo x >> $RUNS; test $(wc -l < $RUNS) -gt 1", 1)
	r.Commit("flaky", files)
	runs := filepath.Join(t.TempDir(), "runs")
	out, _, err := run(t, "--repo", r.Dir, "--env", "RUNS="+runs)
	if err != nil || !strings.Contains(out, "flaky: //a") || !strings.Contains(out, "2 steps run") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAStepThatRunsTooLongIsUnproven(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], `run: [sh, -c, "cat a.txt; grep -q good a.txt"]`, "run: [sleep, \"600\"]\n        timeout: 1s", 1)
	r.Commit("slow", files)
	out, _, err := run(t, "--repo", r.Dir, "--retries", "0")
	if !errors.As(err, &NotGreen{}) || !strings.Contains(out, "unproven //a") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOnlyFirstParentsAreAudited(t *testing.T) {
	p := plant(t)
	p.Git("checkout", "--quiet", "-b", "side", p.commits[4])
	p.Commit("spoil b on the side", map[string]string{"b/b.txt": "bad\n"})
	p.Commit("repair b on the side", map[string]string{"b/b.txt": "good, merged\n"})
	p.Git("checkout", "--quiet", "main")
	p.Git("merge", "--quiet", "--no-ff", "-m", "merge the side", "side")
	if out, _, err := run(t, "--repo", p.Dir, "--from", p.commits[4]); err != nil || !strings.Contains(out, "1 of 1 commits are green") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestWhatCannotBeAuditedIsAnErrorAndNoVerdict(t *testing.T) {
	p := plant(t)
	for name, args := range map[string][]string{
		"no such branch":     {"--repo", p.Dir, "--branch", "nowhere"},
		"no such repository": {"--repo", filepath.Join(t.TempDir(), "nothing")},
		"no such commit":     {"--repo", p.Dir, "--from", strings.Repeat("0", 40)},
		"before the first":   {"--repo", p.Dir, "--from", "main~5"},
		"no number":          {"--repo", p.Dir, "--from", "main~x"},
		"the wrong order":    {"--repo", p.Dir, "--from", p.commits[3], "--to", p.commits[1]},
		"no such file":       {"--repo", p.Dir, "--config", filepath.Join(t.TempDir(), "none.yaml")},
		"a queue of nothing": {"--repo", p.Dir, "--queue", "main"},
	} {
		out, _, err := run(t, args...)
		if err == nil || errors.As(err, &NotGreen{}) || out != "" {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
}

// TestAnAuditOfAStaleCloneSaysToFetch: a landed commit that the clone has not is no mistake in its name.
func TestAnAuditOfAStaleCloneSaysToFetch(t *testing.T) {
	p := plant(t)
	clone := filepath.Join(t.TempDir(), "clone")
	p.Git("clone", "--quiet", p.Dir, clone)
	p.Commit("landed since", map[string]string{"b/b.txt": "good, later\n"})
	head := p.Git("rev-parse", "HEAD")
	for name, args := range map[string][]string{"to": {"--to", head}, "from": {"--from", head}, "abbreviated": {"--to", head[:12]}} {
		if _, _, err := run(t, append([]string{"--repo", clone}, args...)...); err == nil || !strings.Contains(err.Error(), "git -C "+clone+" pull") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheConfigurationGivesEnvironmentAndLimits(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	files["a/landfall.yaml"] = strings.Replace(files["a/landfall.yaml"], "cat a.txt; grep -q good a.txt", "test \\\"$COLOUR\\\" = blue", 1)
	r.Commit("needs a variable", files)
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := "version: 1\nrepositories:\n  r:\n    url: " + r.Dir + "\nqueues:\n  q:\n    repository: r\n    steps:\n      environment:\n        variables:\n          COLOUR: blue\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _, err := run(t, "--repo", r.Dir, "--config", config); err != nil {
		t.Errorf("with the configuration: %v\n%s", err, out)
	}
	if _, _, err := run(t, "--repo", r.Dir); !errors.As(err, &NotGreen{}) {
		t.Errorf("without: %v", err)
	}
	if _, _, err := run(t, "--repo", r.Dir, "--config", config, "--env", "COLOUR=red"); !errors.As(err, &NotGreen{}) {
		t.Errorf("--env does not win: %v", err)
	}
}

func TestColdBeginsWithAnEmptyCacheAndEnvWinsOtherwise(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		cold  bool
		given string
		want  string
	}{{true, "/elsewhere", filepath.Join(dir, "gocache")}, {false, "/elsewhere", "/elsewhere"}, {false, "", "/own"}} {
		t.Setenv("GOCACHE", "/own")
		variables := map[string]string{}
		if c.given != "" {
			variables["GOCACHE"] = c.given
		}
		(&flags{cold: c.cold}).setCaches(variables, dir)
		if got := variables["GOCACHE"]; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestProgressIsALineForEachTenthWhereThereIsNoTerminal(t *testing.T) {
	p := plant(t)
	_, progress, _ := run(t, "--repo", p.Dir, "--to", p.commits[1])
	lines := strings.Split(strings.TrimSpace(progress), "\n")
	if len(lines) != 3 || lines[2] != "audit: 3 of 3 target versions" {
		t.Errorf("%q", lines)
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "\x1b") }) {
		t.Errorf("a terminal is steered: %q", lines)
	}
}

// TestNumbersThatMakeNoSenseAreRefused before anything is fetched.
func TestNumbersThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--workers", "-3"}, {"--workers", "0"}, {"--retries", "-1"}, {"--retries", "1000000"}} {
		if _, _, err := run(t, append(args, "--repo", filepath.Join(t.TempDir(), "nothing"))...); err == nil || !strings.Contains(err.Error(), args[0]+" is "+args[1]) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// goClone returns a clone of a bare repository of a Go module whose mainline has two commits.
func goClone(t *testing.T) (clone *audittest.Repository, bare string) {
	t.Helper()
	clone = audittest.New(t)
	clone.Commit("one", map[string]string{"go.mod": "module example.com/shop\n\ngo 1.26\n", "shop.go": "package shop\n"})
	clone.Commit("two", map[string]string{"shop_test.go": "package shop\n\nimport \"testing\"\n\nfunc TestOne(*testing.T) {}\n"})
	bare = filepath.Join(t.TempDir(), "shop.git")
	clone.Git("clone", "--quiet", "--bare", ".", bare)
	clone.Git("remote", "add", "origin", bare)
	return clone, bare
}

func configurationOf(url, queue, branch, adapter string) string {
	return "version: 1\nrepositories:\n  r:\n    url: " + url + "\nqueues:\n  " + queue + ":\n    repository: r\n    branch: " + branch + "\n    analysis:\n      adapter: " + adapter + "\n"
}

func TestACloneIsAuditedByTheAdaptersThatFit(t *testing.T) {
	clone, _ := goClone(t)
	t.Chdir(clone.Dir)
	if out, _, err := run(t); err != nil || !strings.HasPrefix(out, "2 of 2 commits are green: ") || strings.Contains(out, ": 0 target versions") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestACloneIsAuditedByItsConfiguration(t *testing.T) {
	clone, bare := goClone(t)
	clone.Git("branch", "-m", "main", "trunk")
	folder := filepath.Join(clone.Dir, "below")
	if err := errors.Join(os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(clone.Dir, "landfall.config.yaml"), []byte(configurationOf(bare, "shop", "trunk", "go")), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{clone.Dir, folder} {
		t.Chdir(dir)
		if out, _, err := run(t, "--from", "trunk~1"); err != nil || !strings.HasPrefix(out, "1 of 1 commits are green: ") {
			t.Errorf("in %s: %v\n%s", dir, err, out)
		}
	}
}

// TestTheQueueOfACloneIsTheOneOfItsOrigin among several, however the address is written.
func TestTheQueueOfACloneIsTheOneOfItsOrigin(t *testing.T) {
	clone, bare := goClone(t)
	t.Chdir(clone.Dir)
	for _, url := range []string{bare, strings.TrimSuffix(bare, ".git") + "/"} {
		text := configurationOf(url, "shop", "main", "go") + "  other:\n    repository: s\n"
		text = strings.Replace(text, "repositories:\n", "repositories:\n  s:\n    url: /srv/other.git\n", 1)
		config := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, _, err := run(t, "--config", config, "--from", "main~1"); err != nil || !strings.HasPrefix(out, "1 of 1 commits are green: ") {
			t.Errorf("%s: %v\n%s", url, err, out)
		}
	}
}

func TestACloneThatIsBehindIsSaidToBe(t *testing.T) {
	clone, bare := goClone(t)
	if _, progress, err := run(t, "--repo", clone.Dir); err != nil || strings.Contains(progress, "lacks") {
		t.Errorf("a clone that has all: %v\n%s", err, progress)
	}
	three := clone.Commit("three", map[string]string{"README.md": "# shop\n"})
	clone.Git("push", "--quiet", "origin", "main")
	clone.Git("reset", "--quiet", "--hard", "HEAD~1")
	_, progress, err := run(t, "--repo", clone.Dir)
	if err != nil || !strings.Contains(progress, "main of this clone lacks what has landed since: the remote's is at "+three[:12]) || !strings.Contains(progress, "--repo "+bare) {
		t.Errorf("%v\n%s", err, progress)
	}
}
