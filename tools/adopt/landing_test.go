package adopt_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

// adopts runs a repository from its clone to a landing and a rejection: init asks nothing, nothing lacks once what it
// wrote has landed, good changes move the mainline, and bad is rejected.
func adopts(t *testing.T, r *repository, vary func(*configuration.Queue), good []string, bad string) {
	t.Helper()
	said, err := r.init("--yes")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Log(said)
	t.Log(r.read("landfall.config.yaml"))
	c := r.up(t, vary)
	before := r.mainline()
	if untracked := r.run(r.clone, "git", "ls-files", "--others", "--", "*landfall.yaml"); untracked != "" {
		// As a person does: what init wrote is a change.
		r.run(r.clone, "git", "checkout", "-q", "-b", "targets")
		r.run(r.clone, append([]string{"git", "add", "--"}, strings.Split(untracked, "\n")...)...)
		r.run(r.clone, "git", "commit", "-q", "-m", "targets")
		r.run(r.clone, "git", "push", "-q", "origin", "targets")
		if ended := r.land(c, "targets")["targets"]; ended.State != "landed" {
			t.Fatalf("the manifests are %s: %+v", ended.State, ended)
		}
		before = r.mainline()
	}
	if out, err := r.init("--check"); err != nil {
		t.Errorf("after init something lacks: %v\n%s", err, out)
	}
	ended := r.land(c, append(slices.Clone(good), bad)...)
	for _, name := range good {
		if ended[name].State != "landed" {
			t.Errorf("%s is %s: %s", name, ended[name].State, ended[name].Why)
		}
	}
	if ended[bad].State != "rejected" {
		t.Errorf("%s is %s: %s", bad, ended[bad].State, ended[bad].Why)
	}
	after := r.mainline()
	if len(after) != len(before)+len(good) || slices.Contains(after, bad) {
		t.Errorf("the mainline was %q and is %q", before, after)
	}
}

// ownCache has steps find the compiled standard library of whoever runs the tests.
func ownCache(t *testing.T) func(*configuration.Queue) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return func(queue *configuration.Queue) {
		if queue.Steps.Environment.Variables == nil {
			queue.Steps.Environment.Variables = map[string]string{}
		}
		queue.Steps.Environment.Variables["GOCACHE"] = strings.TrimSpace(string(out))
		queue.Steps.Write = append(queue.Steps.Write, strings.TrimSpace(string(out)))
	}
}

// goModule returns the files of a version of a module, as the go command fetches it.
func goModule(t *testing.T, version string) files {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", version)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		missing(t, "no module proxy gives "+version)
	}
	return filesBelow(t, module.Dir)
}

// filesBelow returns the files of a folder.
func filesBelow(t *testing.T, folder string) files {
	t.Helper()
	all := files{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		all[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// become makes the repository hold these files and no others.
func (r *repository) become(message string, now files) {
	r.Helper()
	edit := files{}
	for name := range filesOf(r) {
		if _, stays := now[name]; !stays {
			edit[name] = ""
		}
	}
	for name, text := range now {
		if text != "" {
			edit[name] = text
		}
	}
	r.commit(message, edit)
}

func filesOf(r *repository) files {
	now := files{}
	for name := range strings.SplitSeq(r.run(r.clone, "git", "ls-files", "-z"), "\x00") {
		if name != "" {
			now[name] = ""
		}
	}
	return now
}

func TestAGoRepositoryIsAdopted(t *testing.T) {
	need(t, "go")
	r := newRepository(t)
	for _, version := range []string{"v1.3.0", "v1.4.0", "v1.6.0"} {
		r.become("uuid "+version, goModule(t, "github.com/google/uuid@"+version))
	}
	r.push()
	r.branch("words", files{"words/words.go": "package words\n\nfunc One() int { return 1 }\n", "words/words_test.go": "package words\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(One())\n\t}\n}\n"})
	text := r.read("version4.go")
	broken := strings.Replace(text, "0x40", "0x50", 1)
	if broken == text {
		t.Fatal("the module is another than the test was written for")
	}
	r.branch("broken", files{"version4.go": broken})
	adopts(t, r, ownCache(t), []string{"words"}, "broken")
}

func TestARepositoryOfMakefilesAndScriptsIsAdopted(t *testing.T) {
	need(t, "make")
	r := newRepository(t)
	r.commit("site", files{"site/Makefile": "build:\n\ttrue\n\ntest:\n\tgrep -q '<p>' index.html\n", "site/index.html": "<p>\n", "README.md": "# shop\n"})
	r.commit("scripts", files{"scripts/deploy.sh": "#!/bin/sh\necho deploy\n", "LICENSE": "free\n"})
	r.push()
	r.branch("page", files{"site/index.html": "<p>more\n"})
	r.branch("script", files{"scripts/build.sh": "#!/bin/sh\nif true; then echo build; fi\n"})
	r.branch("broken", files{"scripts/deploy.sh": "#!/bin/sh\nif true; then echo deploy\n"})
	adopts(t, r, nil, []string{"page", "script"}, "broken")
}

func TestAMixedRepositoryIsAdopted(t *testing.T) {
	need(t, "go", "make")
	r := newRepository(t)
	api := files{"README.md": "# shop\n", "site/Makefile": "test:\n\tgrep -q '<p>' index.html\n", "site/index.html": "<p>\n"}
	for name, text := range goModule(t, "github.com/google/uuid@v1.6.0") {
		api["api/"+name] = text
	}
	r.commit("first", api)
	r.commit("script", files{"tools/run.sh": "#!/bin/bash\n[[ -n $1 ]] || exit 1\n"})
	r.push()
	r.branch("page", files{"site/index.html": "<p>more\n"})
	r.branch("words", files{"api/words/words.go": "package words\n"})
	r.branch("broken", files{"site/index.html": "nothing\n"})
	adopts(t, r, ownCache(t), []string{"page", "words"}, "broken")
}

func TestABazelRepositoryIsAdopted(t *testing.T) {
	// A Bazel has to start for every step: a minute.
	required := os.Getenv("LANDFALL_TEST_BAZEL") == "required"
	if !required && os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("it is slow: set LANDFALL_TEST_SLOW")
	}
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install"
		if required {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	r := newRepository(t)
	uuid := goModule(t, "github.com/google/uuid@v1.6.0")
	r.commit("workspace", files{"WORKSPACE": "workspace(name = \"shop\")\n", ".bazelrc": "build --spawn_strategy=local\n", "README.md": "# shop\n"})
	r.commit("uuid", files{
		"uuid/version4.go": uuid["version4.go"],
		"uuid/BUILD":       "genrule(name = \"uuid\", srcs = glob([\"*.go\"]), outs = [\"checked\"], cmd = \"! grep -q 0x50 $(SRCS) && touch $@\", visibility = [\"//visibility:public\"])\n",
	})
	r.commit("size", files{"size/BUILD": "genrule(name = \"size\", srcs = [\"//uuid\"], outs = [\"size.txt\"], cmd = \"cat $(SRCS) | wc -c > $@\")\n"})
	r.push()
	r.branch("words", files{"words/BUILD": "genrule(name = \"words\", outs = [\"words.txt\"], cmd = \"echo words > $@\")\n"})
	r.branch("broken", files{"uuid/version4.go": strings.Replace(uuid["version4.go"], "0x40", "0x50", 1)})
	adopts(t, r, nil, []string{"words"}, "broken")
}

// TestATestRunsAgainIfAFileOutsideOfItsModuleChanges: the go command takes such files for no part of what it has cached.
func TestATestRunsAgainIfAFileOutsideOfItsModuleChanges(t *testing.T) {
	need(t, "go")
	r := newRepository(t)
	r.commit("first", files{
		"README.md": "# shop\n", "api/go.mod": "module example.com/shop/api\n\ngo 1.26\n", "api/store/store.go": "package store\n", "db/orders.sql": "create table orders (id int, note text);\n", "db/goods.sql": "create table goods (id int);\n",
		"api/store/store_test.go": "package store\n\nimport (\n\t\"os\"\n\t\"strings\"\n\t\"testing\"\n)\n\nfunc TestOrdersHaveANote(t *testing.T) {\n\ttext, err := os.ReadFile(\"../../db/orders.sql\")\n\tos.ReadFile(\"../../db/goods.sql\")\n\tif err != nil || !strings.Contains(string(text), \"note\") {\n\t\tt.Fatalf(\"column note is missing: %v\", err)\n\t}\n}\n",
	})
	r.push()
	r.branch("price", files{"db/goods.sql": "create table goods (id int, price int);\n"})
	r.branch("drop", files{"db/orders.sql": "create table orders (id int);\n"})
	if out, err := r.init("--yes", "--workers", "1"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := r.up(t, ownCache(t))
	for _, name := range []string{"price", "drop"} {
		ended := r.land(c, name)[name]
		if want := map[string]string{"price": "landed", "drop": "rejected"}[name]; ended.State != want {
			t.Errorf("%s is %s: %s", name, ended.State, ended.Why)
		}
	}
}

// TestAManifestThatInitWritesIsRead also if it is only an example until somebody completes it.
func TestAManifestThatInitWritesIsRead(t *testing.T) {
	r := newRepository(t)
	r.commit("first", files{"go.mod": "module example.com/shop\n\ngo 1.26\n", "api/api.go": "package api\n", "db/orders.sql": "select 1;\n"})
	r.push()
	if out, err := r.init("--yes", "--queue", "shop"); err != nil || !slices.Contains(r.uses("shop"), configuration.AdapterManifest) {
		t.Errorf("the adapters are %v: %v\n%s", r.uses("shop"), err, out)
	}
	// A configuration that was written before there were manifests does not read them.
	text := strings.Replace(strings.Replace(r.read("landfall.config.yaml"), "        - adapter: manifest\n", "", 1), "        - adapter: go\n", "        - adapter: go\n", 1)
	if err := os.WriteFile(filepath.Join(r.clone, "landfall.config.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	manifest := strings.ReplaceAll(r.read("db/landfall.yaml"), "\n# ", "\n")
	if _, manifest, _ = strings.Cut(manifest, "\ntargets:"); manifest == "" {
		t.Fatalf("the example is %q", r.read("db/landfall.yaml"))
	}
	manifest, _, _ = strings.Cut(manifest, "# edges:")
	r.commit("targets", files{"db/landfall.yaml": "targets:" + manifest})
	r.push()
	out, _ := r.init("--check", "--json")
	if !strings.Contains(out, `"manifest_unread"`) {
		t.Errorf("what lacks is %s", out)
	}
}

// uses returns the adapters of a queue, as configured.
func (r *repository) uses(queue string) (names []configuration.Adapter) {
	for _, use := range r.configured().Queues[queue].Analysis.Uses() {
		names = append(names, use.Adapter)
	}
	return names
}
