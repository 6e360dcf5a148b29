package adopt_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/tools/adopt"
)

// result is what is read of `landfall init --json`.
type result struct {
	Queue    string
	Branch   string
	Workers  int
	Adapters []string
	Files    []struct {
		Path    string
		Content string
		Written bool
	}
	Lacks []lack
	Notes []string
	Next  []string
	Past  struct {
		Commits int
		All     int `json:"conflict_with_everything"`
	}
	Seen struct{ Uncovered []string }
}

type lack struct{ Code, Message, Advice string }

// codes returns which lacks there are, sorted.
func codes(lacks []lack) []string {
	set := map[string]bool{}
	for _, l := range lacks {
		set[l.Code] = true
	}
	return slices.Sorted(maps.Keys(set))
}

var shop = files{
	"go.mod": "module example.com/shop\n\ngo 1.26\n", "api/api.go": "package api\n", "README.md": "# shop\n",
	"site/Makefile": "check: ; true\n", "site/index.html": "<p>\n", "db/schema.sql": "select 1;\n",
}

func TestInitOverwritesNothingUnlessItIsForced(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	r.push()
	if out, err := r.init("--yes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{"landfall.config.yaml", "site/landfall.yaml", "db/landfall.yaml"} {
		written := r.read(file)
		path := filepath.Join(r.clone, file)
		if err := os.WriteFile(path, []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := r.init("--yes"); err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s is there: %v", file, err)
		}
		if r.read(file) != "mine\n" {
			t.Errorf("%s is overwritten", file)
		}
		if out, err := r.init("--yes", "--force"); err != nil || r.read(file) != written {
			t.Errorf("with --force %s is %q: %v\n%s", file, r.read(file), err, out)
		}
	}
}

func TestADryRunShowsTheFilesAndWritesNone(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	r.push()
	out, err := r.init("--yes", "--dry-run")
	if err != nil || !strings.Contains(out, "--- ") || !strings.Contains(out, "adapter: go") || !strings.Contains(out, "make check") {
		t.Errorf("%v\n%s", err, out)
	}
	if status := r.run(r.clone, "git", "status", "--porcelain", "--ignored"); status != "" {
		t.Errorf("the clone has %s", status)
	}
	if made, _ := os.ReadDir(r.home); len(made) > 0 {
		t.Errorf("the home folder has %v", made)
	}
}

func TestInitFitsTheRepositoryAndTakesFlags(t *testing.T) {
	r := newRepository(t)
	r.run(r.clone, "git", "checkout", "-q", "-b", "trunk")
	r.commit("one", shop)
	r.run(r.clone, "git", "push", "-q", "origin", "trunk")
	out, err := r.init("--json", "--branch", "trunk", "--queue", "fast", "--workers", "3")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := decode[result](t, out)
	if got.Queue != "fast" || got.Branch != "trunk" || got.Workers != 3 || !slices.Equal(got.Adapters, []string{"go", "manifest"}) {
		t.Errorf("%+v", got)
	}
	c := r.configured()
	queue := c.Queues["fast"]
	if queue.Branch != "trunk" || queue.Workers != 3 || c.Builder.Workers != 3 || c.RepositoryOf(queue).URL != r.bare {
		t.Errorf("the file says %+v of %s", queue, c.RepositoryOf(queue).URL)
	}
	for _, file := range got.Files {
		if !file.Written || file.Content != r.read(strings.TrimPrefix(file.Path, r.clone+"/")) {
			t.Errorf("%s is said to be %q", file.Path, file.Content)
		}
	}
	out, err = r.init("--json", "--force", "--branch", "trunk", "--adapter", "whole-repository", "--command", "make -C site check")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if queue := r.configured().Queues["shop"]; queue.Analysis.Adapter != configuration.AdapterWholeRepository || queue.Analysis.WholeRepositorySteps[0].Run[2] != "make -C site check" {
		t.Errorf("%+v", queue.Analysis)
	}
}

// TestAPackageInTheRootWithoutStepsKeepsNoChangesApart: it has the files of all other build systems.
func TestAPackageInTheRootWithoutStepsKeepsNoChangesApart(t *testing.T) {
	mixed := files{"go.mod": shop["go.mod"], "api/api.go": shop["api/api.go"], "package.json": `{"name": "shop", "private": true, "workspaces": ["web/*"], "scripts": {"test": "npm test --workspaces"}}`,
		"package-lock.json": `{"lockfileVersion": 3, "packages": {}}`, "web/a/package.json": `{"name": "a", "version": "1.0.0", "scripts": {"test": "node --test"}}`, "web/a/a.test.js": "require('node:test')('a', () => {})\n"}
	for want, change := range map[string]files{
		"node://.": nil,
		"":         {"package.json": strings.Replace(mixed["package.json"], `{"test"`, `{"build": "node web/a/a.test.js", "test"`, 1)},
	} {
		r := newRepository(t)
		r.commit("one", mixed)
		if change != nil {
			r.commit("two", change)
		}
		r.push()
		if out, err := r.init("--yes"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, queue := range r.configured().Queues {
			if got := strings.Join(queue.Analysis.Hubs, " "); got != want {
				t.Errorf("hubs are %q, want %q", got, want)
			}
		}
	}
	alone := newRepository(t)
	alone.commit("one", files{"package.json": mixed["package.json"], "package-lock.json": mixed["package-lock.json"], "web/a/package.json": mixed["web/a/package.json"], "web/a/a.test.js": "\n"})
	alone.push()
	if out, err := alone.init("--yes"); err != nil || strings.Contains(alone.read("landfall.config.yaml"), "hubs") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestThePathOfStepsHasTheProgramsOfManifests: what the targets of the mainline start is on the user's PATH.
func TestThePathOfStepsHasTheProgramsOfManifests(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "weave"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	r := newRepository(t)
	r.commit("one", files{"landfall.yaml": "targets: [{name: all, sources: [\"**\"], steps: [{name: weave, run: [weave, all]}]}]\n"})
	r.push()
	out, err := r.init("--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, queue := range r.configured().Queues {
		if path := queue.Steps.Environment.Path; !slices.Contains(filepath.SplitList(path), folder) {
			t.Errorf("the PATH of steps is %s, without %s", path, folder)
		}
	}
	if lacks := decode[result](t, out).Lacks; slices.ContainsFunc(lacks, func(l lack) bool { return l.Code == "tool_missing" }) {
		t.Errorf("lacks %v", lacks)
	}
}

// TestToolsThatAskGitDoWithout: a step's checkout is no repository.
func TestToolsThatAskGitDoWithout(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{
		"py/pyproject.toml": "[build-system]\nrequires = [\"setuptools\", \"setuptools-scm\"]\n", "web/package.json": `{"scripts": {"prepare": "git config core.hooksPath .githooks"}}` + "\n",
		"app/package.json": `{"scripts": {"prepare": "husky"}, "devDependencies": {"husky": "9"}}` + "\n", "docs/package.json": `{"scripts": {"prepare": "gitbook build", "test": "git status"}}` + "\n",
	})
	r.push()
	out, err := r.init("--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	notes := slices.DeleteFunc(decode[result](t, out).Notes, func(note string) bool { return !strings.Contains(note, "steps have no .git") })
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "A script of web/package.json ") {
		t.Errorf("notes %q", notes)
	}
	for _, queue := range r.configured().Queues {
		if v := queue.Steps.Environment.Variables; v["SETUPTOOLS_SCM_PRETEND_VERSION"] != "0.0.0" || v["HUSKY"] != "0" || v["LEFTHOOK"] != "" {
			t.Errorf("variables %v", v)
		}
	}
}

func TestInitAsksAndTakesAnswers(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	r.push()
	// Repository, branch, queue, workers (a wrong answer first), the command of site, and whether to write.
	if out, err := r.initOf(r.clone, "\n\nquick\nmany\n5\ntest -f index.html\nno\n"); err == nil || !strings.Contains(err.Error(), "nothing is written") {
		t.Fatalf("no is taken for yes: %v\n%s", err, out)
	}
	if status := r.run(r.clone, "git", "status", "--porcelain"); status != "" {
		t.Fatalf("the clone has %s", status)
	}
	out, err := r.initOf(r.clone, "\n\nquick\nmany\n5\ntest -f index.html\n\n")
	if err != nil || !strings.Contains(out, "Branch that they land on [main]") || !strings.Contains(out, "Command that verifies site (Make) [make check]") {
		t.Fatalf("%v\n%s", err, out)
	}
	queue, err := r.configured().Queue("quick")
	if err != nil || queue.Workers != 5 || !strings.Contains(r.read("site/landfall.yaml"), `"test -f index.html"`) {
		t.Errorf("%v, %+v\n%s", err, queue, r.read("site/landfall.yaml"))
	}
	if _, err := r.initOf(r.clone, "\n", "--force"); err == nil {
		t.Error("who goes away in the middle is taken to have answered")
	}
}

func TestInitSaysWhichOfTheLastCommitsWouldConflictWithEverything(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	r.commit("code", files{"api/api.go": "package api\n\n// One.\n"})
	r.commit("nothing covers it", files{"db/schema.sql": "select 2;\n"})
	r.commit("a document", files{"README.md": "# shop\n\nIt sells.\n"})
	r.push()
	out, err := r.init("--json")
	if err != nil {
		t.Fatal(err)
	}
	if got := decode[result](t, out); got.Past.Commits != 3 || got.Past.All != 1 || !slices.Equal(got.Seen.Uncovered, []string{"db/schema.sql"}) {
		t.Errorf("%+v, not covered: %v", got.Past, got.Seen.Uncovered)
	}
}

func TestAPasswordInAnAddressIsNotWritten(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	r.run(r.clone, "git", "remote", "set-url", "origin", "http://ada:secret@127.0.0.1:1/shop.git")
	if out, err := r.init("--yes"); err != nil || strings.Contains(out, "secret") || strings.Contains(r.read("landfall.config.yaml"), "secret") {
		t.Errorf("%v\n%s\n%s", err, out, r.read("landfall.config.yaml"))
	}
}

// Where a queue has no manifests, a file is given to a target by analysis.inputs.
func TestTheAdviceForUncoveredFilesFitsTheAdapters(t *testing.T) {
	for want, added := range map[string]files{
		"analysis.inputs if steps read them":         {"data.bin": "x\n"},
		"the sources of a target of a landfall.yaml": {"data.bin": "x\n", "site/Makefile": "test:\n\ttrue\n"},
	} {
		r := newRepository(t)
		r.commit("one", files{"go.mod": shop["go.mod"], "api/api.go": shop["api/api.go"]})
		r.commit("two", added)
		r.push()
		out, err := r.init("--yes")
		if err != nil || !strings.Contains(out, "Name them in "+want+", or in analysis.uncovered.ignore.") {
			t.Errorf("%v, want %q in\n%s", err, want, out)
		}
	}
}

func TestCheckSaysWhatLacks(t *testing.T) {
	covered := files{"go.mod": shop["go.mod"], "api/api.go": shop["api/api.go"]}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "go"), []byte("#!/bin/sh\necho no toolchain is installed >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files files
		// then changes the repository after init, and edit the configuration.
		then  func(r *repository)
		edit  func(text string) string
		codes []string
	}{
		"nothing":             {files: covered},
		"a file of no target": {files: shop, codes: []string{"files_uncovered"}, then: func(r *repository) { r.commit("targets", nil); r.push() }},
		"an adapter that finds nothing": {files: covered, codes: []string{"adapter_without_targets"}, edit: func(text string) string {
			return strings.Replace(text, "adapter: go", "adapters: [{adapter: go}, {adapter: manifest}]", 1)
		}},
		"manifests that have not landed": {files: files{"site/Makefile": "test:\n\ttrue\n"}, codes: []string{"adapter_without_targets"}},
		"a tool in a line": {files: files{"landfall.yaml": "targets:\n  - {name: a, sources: [\"**\"], steps: [{name: t, run: [sh, -c, 'mine() { true; }; mine && cd . && gradle check']}]}\n", "a.txt": "1\n"}, codes: []string{"tool_missing"}, edit: func(text string) string {
			return withPath(text, "/usr/bin:/bin")
		}},
		"a tool":           {files: covered, codes: []string{"tool_missing"}, edit: func(text string) string { return withPath(text, "/nowhere") }},
		"a tool that runs": {files: covered, codes: []string{"tool_broken"}, edit: func(text string) string { return withPath(text, broken+":/usr/bin:/bin") }},
		"a cache of its own": {files: covered, codes: []string{"cache_open"}, edit: func(text string) string {
			text = strings.Replace(text, "      environment:\n", "      write: [/tmp/cache]\n      environment:\n", 1)
			const variables = "        variables:\n"
			if !strings.Contains(text, variables) {
				text = strings.Replace(text, "        path:", variables+"        path:", 1)
			}
			return strings.Replace(text, variables, variables+"          UV_CACHE_DIR: /tmp/cache/uv\n", 1)
		}},
		"a branch": {files: covered, codes: []string{"branch_missing"}, edit: func(text string) string { return strings.Replace(text, "branch: main", "branch: other", 1) }},
		"the remote": {files: covered, codes: []string{"remote_unreachable"}, edit: func(text string) string {
			return withLine(strings.Replace(text, "shop.git", "gone.git", 1), "data:", "data: ../other")
		}},
		"a place for data": {files: covered, codes: []string{"data_in_working_folder"}, edit: func(text string) string { return withLine(text, "data:", "data: .landfall") }},
		"the right to push": {files: covered, codes: []string{"push_refused"}, edit: func(text string) string {
			return withLine(withLine(text, "    url:", "    url: ."), "data:", "data: ../other")
		}},
		"a shadow, which does not push": {files: covered, edit: func(text string) string {
			text = strings.Replace(text, "    branch: main\n", "    branch: main\n    shadow: on\n", 1)
			return withLine(withLine(text, "    url:", "    url: ."), "data:", "data: ../other")
		}},
		"attributes": {files: files{"go.mod": shop["go.mod"], "api/api.go": shop["api/api.go"], ".gitattributes": "*.txt text eol=crlf\n*.bin filter=lfs\n"}, codes: []string{"attributes_not_applied", "files_uncovered"}},
		"a submodule": {files: covered, codes: []string{"files_uncovered", "submodules_empty"}, then: func(r *repository) {
			r.run(r.clone, "git", "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",api/lib")
			r.run(r.clone, "git", "commit", "-q", "-m", "lib")
			r.push()
		}},
		"valid definitions":   {files: covered, codes: []string{"targets_invalid"}, then: func(r *repository) { r.commit("broken", files{"go.mod": "module\n"}); r.push() }},
		"a target's commands": {files: files{"site/landfall.yaml": "targets: [{name: site, sources: [index.html]}]\n", "site/index.html": "x\n"}, codes: []string{"nothing_proven", "target_without_command"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("one", c.files)
			r.push()
			if out, err := r.init("--yes"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if c.then != nil {
				c.then(r)
			}
			if c.edit != nil {
				before := r.read("landfall.config.yaml")
				after := c.edit(before)
				if after == before {
					t.Fatalf("the edit does nothing to\n%s", before)
				}
				if err := os.WriteFile(filepath.Join(r.clone, "landfall.config.yaml"), []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := r.init("--check", "--json")
			got := decode[struct{ Queues []struct{ Lacks []lack } }](t, out)
			if len(got.Queues) != 1 || !slices.Equal(codes(got.Queues[0].Lacks), c.codes) {
				t.Fatalf("it lacks %+v, want %v", got, c.codes)
			}
			lacking, is := errors.AsType[adopt.Lacking](err)
			if is != (len(c.codes) > 0) || is && lacking.ExitCode() != 1 {
				t.Errorf("the error is %v", err)
			}
			if out, err := r.init("--check"); (err == nil) != strings.Contains(out, "Nothing lacks.") || strings.Count(out, "Lacking: ") != len(got.Queues[0].Lacks) {
				t.Errorf("people are told\n%s", out)
			}
		})
	}
}

// withLine replaces the line that begins so.
func withLine(text, begin, line string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if strings.HasPrefix(lines[i], begin) {
			lines[i] = line
		}
	}
	return strings.Join(lines, "\n")
}

func withPath(text, path string) string {
	return withLine(text, "        path:", "        path: "+path)
}

func TestCheckNeedsAConfiguration(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	if _, err := r.init("--check"); err == nil || !strings.Contains(err.Error(), "landfall init writes it") {
		t.Error(err)
	}
}

func TestWhatNothingProvesIsSaid(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"notes.txt": "notes\n"})
	r.push()
	out, err := r.init("--json")
	if got := decode[result](t, out); err != nil || !slices.Equal(codes(got.Lacks), []string{"nothing_proven"}) {
		t.Errorf("%v\n%s", err, out)
	}
	r.configured() // it is valid all the same
}

func TestInitOfARepositoryWithoutACommitSaysSoInOneLine(t *testing.T) {
	r := newRepository(t)
	for _, args := range [][]string{{"--yes"}, {"--yes", "--branch", "trunk"}} {
		out, err := r.init(args...)
		if err == nil || out != "" || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "has no commit yet; push one to ") {
			t.Errorf("init %v: %v\n%s", args, err, out)
		}
	}
	r.commit("one", files{"go.mod": "module example.com/shop\n"})
	r.push()
	r.run(r.clone, "git", "checkout", "-q", "--orphan", "fresh")
	if out, err := r.init("--yes", "--branch", "trunk"); err == nil || !strings.Contains(err.Error(), "has no branch trunk, only main; name one of them with --branch") {
		t.Errorf("a branch that is not there: %v\n%s", err, out)
	}
}

// TestInitBeginsWithThePushOfAMissingMainline: the queue cannot start before the branch is there.
func TestInitBeginsWithThePushOfAMissingMainline(t *testing.T) {
	for _, c := range []struct{ checkedOut, want string }{
		{"trunk", "git push origin trunk"},
		{"mine", "git push origin HEAD:refs/heads/trunk"},
	} {
		r := newRepository(t)
		r.commit("one", shop)
		r.push()
		r.run(r.clone, "git", "checkout", "-q", "-b", c.checkedOut)
		t.Chdir(r.clone)
		out, err := r.init("--json", "--branch", "trunk")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := decode[result](t, out)
		if !slices.Contains(codes(got.Lacks), "branch_missing") || len(got.Next) < 2 || got.Next[0] != c.want || !strings.HasPrefix(got.Next[1], "landfall up") {
			t.Errorf("on %s it lacks %v, next: %q", c.checkedOut, codes(got.Lacks), got.Next)
		}
	}
}

// TestInitBeforeAndAfterTheRemoteIsThere: the clone is the repository at first, with a mirror that the remote's is not to be.
func TestInitBeforeAndAfterTheRemoteIsThere(t *testing.T) {
	r := newRepository(t)
	r.commit("one", shop)
	t.Chdir(r.clone)
	t.Setenv("HOME", r.home)
	r.run(r.clone, "git", "remote", "remove", "origin")
	out, err := r.init("--json", "--data=")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := r.configured()
	for _, command := range decode[result](t, out).Next {
		if strings.Contains(command, "origin") {
			t.Errorf("without a remote, next is %q", command)
		}
	}
	if out, err := r.init("--json", "--force", "--branch", "trunk", "--data="); err != nil || decode[result](t, out).Next[0] != "git branch trunk" {
		t.Errorf("a branch that the clone lacks: %v\n%s", err, out)
	}

	r.run(r.clone, "git", "remote", "add", "origin", r.bare)
	r.push()
	r.run(r.clone, "git", "clean", "-q", "-d", "-f", "-x")
	if out, err = r.init("--json", "--data="); err != nil {
		t.Fatalf("with the remote: %v\n%s", err, out)
	}
	after := r.configured()
	if before.Repositories[decode[result](t, out).Queue].URL == r.bare || after.RepositoryOf(after.Queues[decode[result](t, out).Queue]).URL != r.bare || before.Data == after.Data {
		t.Errorf("before: %+v in %s, after: %+v in %s", before.Repositories, before.Data, after.Repositories, after.Data)
	}
	if !slices.Contains(decode[result](t, out).Next, "git push origin targets") {
		t.Errorf("next is %q", decode[result](t, out).Next)
	}
	if _, err := r.init("--json", "--force", "--data", before.Data); err == nil || !strings.Contains(err.Error(), "mirrors another remote, "+r.clone+"; name another folder for data, or remove the directory") {
		t.Errorf("in the folder of the other repository: %v", err)
	}
	if out, err := r.init("--json", "--force", "--data="); err != nil || r.configured().Data != after.Data {
		t.Errorf("once more: %v\n%s", err, out)
	}
}

// workspace is one of npm whose root has scripts that nothing runs, and a member without build and test.
var workspace = files{
	"package.json":      `{"name": "shop", "private": true, "workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces", "lint": "node scripts/lint.mjs", "format:check": "node scripts/format.mjs", "fix": "node scripts/fix.mjs"}}`,
	"package-lock.json": `{"name": "shop", "lockfileVersion": 3, "requires": true, "packages": {}}`,
	"scripts/lint.mjs":  "process.exit(0)\n", "ops/prod.env": "a=1\n",
	"packages/core/package.json": `{"name": "core", "version": "1.0.0", "scripts": {"test": "node --test"}}`,
	"packages/data/package.json": `{"name": "data", "version": "1.0.0"}`, "packages/data/index.js": "1\n",
}

func TestScriptsThatNoStepRunsAreSaid(t *testing.T) {
	r := newRepository(t)
	r.commit("one", workspace)
	r.push()
	said := "No step runs these scripts of package.json: lint, format:check."
	out, err := r.init("--yes")
	if err != nil || !strings.Contains(out, "Note: "+said) || !strings.Contains(out, "ops/prod.env") {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := r.read("landfall.config.yaml"); !strings.Contains(text, "# - {name: lint, run: [sh, -c, \"npm ci --no-audit --no-fund && npm run lint\"]}") {
		t.Errorf("the configuration does not show how they would be run:\n%s", text)
	}
	if len(r.configured().Queues["shop"].Analysis.WholeRepositorySteps) != 1 {
		t.Error("they are run without having been asked for")
	}
	if _, err := os.Stat(filepath.Join(r.clone, "packages/data/landfall.yaml")); err == nil {
		t.Error("a manifest is written for a member without build and test")
	}
	if out, _ := r.init("--check"); !strings.Contains(out, "Note: "+said) {
		t.Errorf("--check says nothing of them:\n%s", out)
	}
	// Repository, branch, queue, workers, the scripts, and whether to write.
	if out, err := r.initOf(r.clone, "\n\n\n\n\n\n", "--force"); err != nil || !strings.Contains(out, said+" Run them where the whole repository is verified [yes]") || strings.Contains(out, "Note: "+said) {
		t.Fatalf("%v\n%s", err, out)
	}
	var names []string
	for _, step := range r.configured().Queues["shop"].Analysis.WholeRepositorySteps {
		names = append(names, step.Name)
	}
	if !slices.Equal(names, []string{"node", "lint", "format-check"}) {
		t.Errorf("the steps are %v", names)
	}
	if out, _ := r.init("--check"); strings.Contains(out, said) {
		t.Errorf("--check says that scripts are not run that are:\n%s", out)
	}
}

// TestScriptsOfMembersThatNoStepRunsAreSaid, but for those that a script of the root's has the name of: it runs them, or need not.
func TestScriptsOfMembersThatNoStepRunsAreSaid(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{
		"web/package.json":               `{"name": "web", "private": true, "workspaces": ["packages/*"], "scripts": {"style": "npm run style --workspaces"}}`,
		"web/package-lock.json":          `{"name": "web", "lockfileVersion": 3, "requires": true, "packages": {}}`,
		"web/packages/core/package.json": `{"name": "core", "version": "1.0.0", "scripts": {"test": "node --test", "lint": "node lint.js", "style": "x"}}`,
		"web/packages/ui/package.json":   `{"name": "ui", "version": "1.0.0", "scripts": {"typecheck": "tsc", "check": "npm run lint:css", "lint:css": "stylelint ."}}`,
		"web/fixture/package.json":       `{"name": "other", "version": "1.0.0", "scripts": {"verify": "x"}}`,
	})
	r.push()
	said := "No step runs these scripts of the members of web/package.json: lint, check."
	out, err := r.init("--yes")
	if err != nil || !strings.Contains(out, "Note: "+said) {
		t.Fatalf("%v\n%s", err, out)
	}
	line := "# - {name: lint-members-web, run: [sh, -c, \"npm ci --no-audit --no-fund && npm run lint --workspaces --if-present\"], dir: web}"
	if text := r.read("landfall.config.yaml"); !strings.Contains(text, line) {
		t.Errorf("the configuration does not show how they would be run:\n%s", text)
	}
	if out, err := r.initOf(r.clone, "\n\n\n\n\n\n\n", "--force"); err != nil || strings.Contains(out, "Note: "+said) {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, _ := r.init("--check"); strings.Contains(out, said) {
		t.Errorf("--check says that scripts are not run that are:\n%s", out)
	}
}

func TestScriptsWhoseNamesBeginAsThoseOfChecksAreSaid(t *testing.T) {
	for scripts, want := range map[string]string{
		`"check:exports": "attw .", "typecheck:tests": "tsc -p tests", "verify": "node v.mjs", "format:check:css": "x", "lint-css": "x"`:                          "lint-css, check:exports, typecheck:tests, verify, format:check:css",
		`"lint": "npm run lint:js && yarn lint:css", "lint:js": "eslint .", "lint:css": "stylelint ."`:                                                            "lint",
		`"lint": "run-s lint:*", "lint:js": "eslint .", "lint:css": "stylelint .", "lint:all": "npm-run-all -p lint:js lint:css"`:                                 "lint",
		`"lint:fix": "x", "lint-staged": "x", "check:watch": "x", "check:write": "x", "checkout": "x", "typecheck": "tsc", "check:types": "tsc", "verified": "x"`: "",
		`"lint:a": "npm run lint:b", "lint:b": "npm run lint:a"`:                                                                                                  "lint:b",
	} {
		r := newRepository(t)
		r.commit("one", files{"package.json": `{"name": "shop", "scripts": {` + scripts + `, "test": "node --test"}}`, "package-lock.json": `{"lockfileVersion": 3, "packages": {}}`, "a.test.js": "1\n"})
		r.push()
		out, err := r.init("--yes")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said := ""
		for line := range strings.Lines(out) {
			if _, names, is := strings.Cut(line, "No step runs these scripts of package.json: "); is {
				said = strings.TrimRight(names, ".\n")
			}
		}
		if said != want {
			t.Errorf("of %s it names %q, want %q", scripts, said, want)
		}
	}
}

// TestStepsOfTheWholeRepositoryRunInTheirFolders, so that the paths that they print are found in the tree.
func TestStepsOfTheWholeRepositoryRunInTheirFolders(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"web/go.mod": "module example.com/web\n\ngo 1.26\n", "web/web.go": "package web\n", "site/Makefile": "check: ; true\n", "site/index.html": "<p>\n"})
	r.push()
	if out, err := r.init("--yes", "--queue", "shop"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dirs := map[string]string{}
	for _, step := range r.configured().Queues["shop"].Analysis.WholeRepositorySteps {
		dirs[step.Name] = step.Dir
		if strings.Contains(step.Run[2], "cd ") {
			t.Errorf("%s runs %q", step.Name, step.Run)
		}
	}
	if want := map[string]string{"go-web": "web", "site": "site"}; !maps.Equal(dirs, want) {
		t.Errorf("the steps run in %v, want %v", dirs, want)
	}
}

func TestAnExecutableScriptIsCheckedByTheShellThatItNames(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"go.mod": "module a\n\ngo 1.24\n", "a.go": "package a\n", "scripts/release.sh": "#!/bin/bash\nall=(a b)\n"})
	r.push()
	if out, err := r.init("--yes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := r.read("scripts/landfall.yaml"); !strings.Contains(text, "bash -n") {
		t.Errorf("the script is not checked by bash:\n%s", text)
	}
}

// TestAnExampleOfAManifestCanLand: the queue has targets besides.
func TestAnExampleOfAManifestCanLand(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"go.mod": "module a\n\ngo 1.24\n", "a.go": "package a\n", "db/migrations/1.sql": "create table a (b int);\n"})
	r.push()
	out, err := r.init("--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(r.read("db/migrations/landfall.yaml"), "# targets:") || strings.Contains(out, "targets_invalid") {
		t.Errorf("%s", out)
	}
	r.run(r.clone, "git", "add", "-A")
	r.run(r.clone, "git", "commit", "-q", "-m", "example")
	r.push()
	if out, err := r.init("--check", "--json"); strings.Contains(out, "targets_invalid") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestATargetOfAMakefileThatNothingRunsIsSaid, by init and by init --check, until a step runs it.
func TestATargetOfAMakefileThatNothingRunsIsSaid(t *testing.T) {
	const said = "No step runs these targets of Makefile: lint, check."
	for name, c := range map[string]struct {
		makefile string
		said     bool
	}{
		"it checks":            {"GO := go\n.PHONY: lint\n\nall: build\n\nlint: tools\n\t$(GO) vet ./...\n\nfmt lint-all check:\n\ttrue\n", true},
		"it builds":            {"all: build\n\nbuild:\n\tgo build ./...\n# lint: later\nlint := 1\n", false},
		"check is what it has": {"check::\n\ttrue\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.commit("one", files{"go.mod": "module example.com/shop\n\ngo 1.21\n", "shop.go": "package shop\n", "Makefile": c.makefile})
			r.push()
			if out, err := r.init("--queue", "shop"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want := said
			if !strings.Contains(c.makefile, "lint: ") {
				want = strings.Replace(said, "lint, ", "", 1)
			}
			text := r.read("landfall.config.yaml")
			checked, _ := r.init("--check")
			if strings.Contains(text, want) != c.said || strings.Contains(checked, want) != c.said || strings.Contains(text, "make check") != c.said {
				t.Errorf("init wrote\n%s\nand --check says\n%s", text, checked)
			}
			if !c.said {
				return
			}
			run := strings.NewReplacer("# - {name: check,", "- {name: check,", "# - {name: lint,", "- {name: lint,").Replace(text)
			put(t, r.clone, files{"landfall.config.yaml": run})
			if checked, _ := r.init("--check"); !strings.Contains(checked, "Queue shop: 2 targets.") || strings.Contains(checked, "No step runs") {
				t.Errorf("with steps for them it says\n%s", checked)
			}
		})
	}
}

// TestWhereNothingProvesAnythingDocumentsAreIgnored: a first README lands all the same.
func TestWhereNothingProvesAnythingDocumentsAreIgnored(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{".gitignore": "bin\n"})
	r.push()
	if out, err := r.init("--yes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, queue := range r.configured().Queues {
		if ignored := queue.Analysis.Uncovered.Ignore; !slices.Contains(ignored, "**/*.md") || !slices.Contains(ignored, "**/.gitignore") {
			t.Errorf("ignored: %v", ignored)
		}
	}
}

// TestCheckNamesManifestsThatAreNotCommitted, but for those that git ignores.
func TestCheckNamesManifestsThatAreNotCommitted(t *testing.T) {
	r := newRepository(t)
	r.commit("one", files{"site/landfall.yaml": "targets: [{name: site, sources: [index.html], steps: [{name: look, run: [sh, -c, \"true\"]}]}]\n", "site/index.html": "x\n", ".gitignore": "out\n"})
	r.push()
	if out, err := r.init("--yes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, folder := range []string{"db", "out"} {
		if err := os.MkdirAll(filepath.Join(r.clone, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.clone, folder, "landfall.yaml"), []byte("targets: [{name: t}]\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := r.init("--check", "--json")
	got := decode[struct{ Queues []struct{ Notes []string } }](t, out)
	const want = "The queue does not see db/landfall.yaml: in your working folder, and not on main. Commit it, and land it."
	if len(got.Queues) != 1 || !slices.Equal(got.Queues[0].Notes, []string{want}) {
		t.Errorf("%s", out)
	}
}
