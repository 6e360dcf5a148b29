package execution

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"landfall.build/platform/sandbox/lookups"
)

// TestWhatAStepLooksForInVain has commands look for files of a tree in each of the ways that programs have, in a worktree that lacks
// some of them.
func TestWhatAStepLooksForInVain(t *testing.T) {
	t.Parallel()
	if problem := LookupsAvailable(t.Context()); problem != nil {
		t.Skipf("this system cannot watch lookups: %v", problem)
	}
	tree := []string{"docs/a.md", "docs/deep/b.md", "lib/c.md", "lib/x.py", "lib/y.py", "lib/sub/z.py", "manifest", "shown/a.md", "shown/b.md", "shown/c.md", "shown/deep/__init__.py", "shown/deep/d.md", "shown/deep/e.md", "top.txt", "web/index.html"}
	held := map[string]bool{"lib/x.py": true, "manifest": false, "shown/a.md": true, "web/index.html": true}
	missing := lookups.Of(tree, held, func(folder string) (names, alone bool) {
		return folder == "shown" || folder == "docs", folder == "docs"
	}, func(name string) bool { return name == "c.md" })
	if want := (lookups.Missing{Absent: []string{"docs", "lib/sub", "lib/y.py", "top.txt"}, Empty: []string{"lib/c.md", "manifest", "shown/b.md", "shown/c.md", "shown/deep/__init__.py"},
		Hollow: []string{"shown/deep"}, Shown: []string{"shown"}}); !reflect.DeepEqual(missing, want) {
		t.Fatalf("the worktree lacks %+v, want %+v", missing, want)
	}
	held["web/package.json"], held["far/package.json"], held["far/Cargo.toml"] = true, true, true
	missing.Tools = map[string]bool{"web/package.json": true, "far/package.json": false, "far/Cargo.toml": false}
	python := `cd shown && python3 -c 'import os, pathlib, sys; sys.dont_write_bytecode = True; %s'`
	outside := t.TempDir()
	for _, c := range []struct {
		name, script string
		want         []string
	}{
		{"nothing", "cat lib/x.py; test -e manifest; ls web; test -e other; test -e lib/none; echo made > made; cat made", nil},
		{"is there", "test -e top.txt || true", []string{"top.txt"}},
		{"is there, of a link", "test -L top.txt || true", []string{"top.txt"}},
		{"reads", "cat top.txt || true", []string{"top.txt"}},
		{"below a folder", "cat docs/deep/b.md || true", []string{"docs/deep/b.md"}},
		{"below a folder, and nothing there", "cat docs/none || true", []string{"docs/none"}},
		{"folder", "test -d lib/sub || true", []string{"lib/sub"}},
		{"from elsewhere", "cd lib && cat ../top.txt || true", []string{"top.txt"}},
		{"from outside", `cd / && cat "${OLDPWD#/}/lib/../lib/y.py" || true`, []string{"lib/y.py"}},
		{"empty", "cat manifest", []string{"manifest"}},
		{"by a link", "ln -s docs/a.md link; cat link || true", []string{"docs/a.md"}},
		{"by a link to a folder", "ln -s .. web/up; cat web/up/top.txt || true", []string{"top.txt"}},
		{"the link itself", "ln -s top.txt link; readlink link; test -L link", nil},
		{"lists", "ls lib", []string{"lib/"}},
		{"lists all", "find . -name '*.md'", []string{"./", "lib/", "shown/", "shown/deep/"}},
		{"lists names", "ls shown; test -d shown/deep; test -e shown/c.md", []string{"shown/"}},
		{"reads by name", "cat shown/[b-c].md", []string{"shown/", "shown/b.md", "shown/c.md"}},
		{"goes through names", "find shown -name '*.md'", []string{"shown/", "shown/deep/"}},
		{"below a name", "test -e shown/deep/e.md || true", []string{"shown/deep/e.md"}},
		{"makes a folder above", "mkdir -p docs/out; test -f docs/a.md || true", []string{"docs/a.md"}},
		{"lists a folder that it has made", "mkdir docs; ls docs", []string{"docs/"}},
		{"makes anew", "mkdir docs; echo mine > docs/a.md; cat docs/a.md; rm -rf docs lib/sub", nil},
		{"writes what has a name alone", "echo mine > manifest; cat manifest; cp lib/x.py shown/c.md; cat shown/c.md; echo mine > shown/deep/d.md; cat shown/deep/d.md", nil},
		{"a file that becomes a link", "test -e web/index.html; ln -sf ../top.txt web/index.html; test -e web/index.html || true", []string{"top.txt"}},
		{"copies over", "mkdir -p docs && cp lib/x.py docs/a.md", nil},
		{"makes what is not there", "test -d docs || mkdir docs", nil},
		{"deletes", "rm -rf docs", nil},
		{"starts", "docs/a.md 2>/dev/null || true", []string{"docs/a.md"}},
		{"enters", "cd docs 2>/dev/null || true", []string{"docs"}},
		{"goes back", "test -e docs/../web/index.html || true", []string{"docs"}},
		{"by a link from outside", `ln -s "$PWD" "` + outside + `/here"; test -e "` + outside + `/here/top.txt" || true`, []string{"top.txt"}},
		{"by a link that is made later", "test -e web/l; ln -s ../top.txt web/l; test -e web/l || true", []string{"top.txt"}},
		{"by its own process", "cat /proc/self/cwd/top.txt || true", []string{"top.txt"}},
		{"changes", "chmod +x top.txt 2>/dev/null || true", []string{"top.txt"}},
		{"appends", "echo more >> lib/y.py", nil},
		{"package of others", "test -e shown/deep/__init__.py", nil},
		{"reads a package of others", "cat shown/deep/__init__.py", []string{"shown/deep/__init__.py"}},
		{"in a process that lives on", "(sleep 0.05; test -e top.txt) & wait", []string{"top.txt"}},
		{"writes", "mkdir docs; echo mine > docs/a.md; cat docs/a.md; echo mine > top.txt", nil},
		{"asks for a manifest", "test -e far/package.json; test -e web/package.json; ls far", nil},
		{"reads manifests", "cat web/package.json far/*.toml", []string{"far/Cargo.toml", "web/package.json"}},
		{"python reads manifests", strings.ReplaceAll(python, "%s", `[open("../" + of + "/package.json").read() for of in ("web", "far")]`), []string{"far/package.json"}},
		{"make lists", "cd shown && printf 'all:\n\ttrue\n' > Makefile && make all", nil},
		{"python imports", strings.ReplaceAll(python, "%s", `os.listdir("."); os.path.exists("b.md")`), nil},
		{"python goes through names", strings.ReplaceAll(python, "%s", `list(pathlib.Path(".").rglob("*.md"))`), []string{"shown/deep/"}},
		{"python reads by name", strings.ReplaceAll(python, "%s", `[p.read_text() for p in pathlib.Path(".").glob("*.md")]`), []string{"shown/b.md", "shown/c.md"}},
		{"python lists what is no folder", strings.ReplaceAll(python, "%s", `os.listdir("b.md")`) + " 2>/dev/null || true", nil},
		{"python lists what is not there", strings.ReplaceAll(python, "%s", `os.listdir("../docs")`) + " 2>/dev/null || true", []string{"docs"}},
		{"python stat", strings.ReplaceAll(python, "%s", `os.path.exists("../docs/a.md")`), []string{"docs/a.md"}},
		{"python listing", strings.ReplaceAll(python, "%s", `[p for p in pathlib.Path("../lib").glob("**/*.py")]`), []string{"lib/"}},
		{"python glob", strings.ReplaceAll(python, "%s", `list(pathlib.Path("..").glob("docs/*.md"))`), []string{"docs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if tool, _, _ := strings.Cut(c.name, " "); tool == "python" && !has("python3") || tool == "make" && !has("make") {
				t.Skip("no " + tool)
			}
			request := step(t, shell(c.script))
			request.Missing = &missing
			for name, whole := range held {
				content := "x"
				if !whole {
					content = ""
				}
				write(t, filepath.Join(request.Worktree, name), content)
			}
			result := Run(t.Context(), request)
			mustEnd(t, result, Passed, "")
			if got := pathsOf(result); !reflect.DeepEqual(got, c.want) {
				t.Errorf("looked for %q, want %q", got, c.want)
			}
		})
	}
}

// TestSomeToolsMayListWhoeverStartsThem: a copy of ls stands for them, and find is a program that starts them.
func TestSomeToolsMayListWhoeverStartsThem(t *testing.T) {
	if problem := LookupsAvailable(t.Context()); problem != nil {
		t.Skipf("this system cannot watch lookups: %v", problem)
	}
	tools := t.TempDir()
	copies := ""
	for name, of := range map[string]string{"cargo": "ls", "go": "ls", "node_modules/esbuild": "ls", "npm": "cat", "uv": "find", "reads/go": "cat", "node_modules/linux/bin/turbo": "cat",
		"builds/ls/python": "ls", "builds-v0/.tmp1/ls/python": "ls", "builds-v0/.tmp1/cat/python": "cat", "node/ls/node": "ls", "node/cat/node": "cat", "node/sh/node": "sh", "sh/go": "sh"} {
		copies += fmt.Sprintf("mkdir -p $(dirname %[1]s/%[2]s); cp \"$(readlink -f \"$(command -v %[3]s)\")\" %[1]s/%[2]s; ", tools, name, of)
	}
	if out, err := exec.Command("sh", "-c", copies).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		script string
		want   []string
	}{
		{"ls lib", []string{"lib/"}},
		{"./cargo lib", nil},
		{`find near -maxdepth 0 -exec ./cargo lib \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./cargo metadata lib \;`, nil},
		{`find near -maxdepth 0 -exec ./cargo locate-project lib \;`, nil},
		{`./cargo build -p app far/tests far/src/bin far/examples/x`, nil},
		{`find near -maxdepth 0 -exec ./cargo clippy -papp -p other@1.2.0 far/tests \;`, nil},
		{`find near -maxdepth 0 -exec ./cargo build -p app far/src \;`, []string{"far/src/"}},
		{`find near -maxdepth 0 -exec ./cargo build -p far far/tests \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo build -p 'f*' far/tests \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo build -qp far far/tests \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo build --all -p app far/tests \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo install -p app far/tests \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo build far/tests -- -p app \;`, []string{"far/tests/"}},
		{`find near -maxdepth 0 -exec ./cargo build -p app strange/tests \;`, []string{"strange/tests/"}},
		{`cd app && find . -maxdepth 0 -exec ./cargo build ../far/tests \;`, nil},
		{`cd far && find . -maxdepth 0 -exec ./cargo build tests \;`, []string{"far/tests/"}},
		{"cat far/Cargo.toml near/Cargo.toml", []string{"far/Cargo.toml"}},
		{`find near -maxdepth 0 -exec ./go build lib \;`, nil},
		{`find near -maxdepth 0 -exec ./go build lib ./... \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./go vet lib \;`, []string{"lib/"}},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, nil},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > test; find . -maxdepth 0 -exec ./sh/go test -count=1 ./sub . \;`, nil},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ../dep \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./../dep \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet example.com/dep \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > test; find . -maxdepth 0 -exec ./sh/go test -coverpkg=./... . \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > test; find . -maxdepth 0 -exec ./sh/go test -coverpkg=all . \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../embeds/data/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, []string{"embeds/data/"}},
		{`cd work; echo 'for f in ../embeds/other/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, nil},
		{`cd work; echo 'for f in ../embedsall/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, nil},
		{`cd work; rm ../embedsall/x.go; mkfifo ../embedsall/x.go; echo 'for f in ../embedsall/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, nil},
		{`find near -maxdepth 0 -exec ./go build embeds/data \;`, []string{"embeds/data/"}},
		{`find near -maxdepth 0 -exec ./go build embeds/other \;`, nil},
		{`find near -maxdepth 0 -exec ./go build embedsall \;`, nil},
		{`cd work; echo 'for f in ../dep/*; do true; done; true' > list; find . -maxdepth 0 -exec ./sh/go list ./... \;`, []string{"dep/"}},
		{`cd work; echo 'for f in ../dep2/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, []string{"dep2/"}},
		{`cd work; echo 'for f in sub/*; do true; done; true' > vet; find . -maxdepth 0 -exec ./sh/go vet ./... \;`, []string{"work/sub/"}},
		{`find near -maxdepth 0 -exec ./reads/go build far/go.mod \;`, nil},
		{`find near -maxdepth 0 -exec ./reads/go vet far/go.mod \;`, nil},
		{`find near -maxdepth 0 -exec ./reads/go list far/go.mod \;`, nil},
		{`find near -maxdepth 0 -exec ./reads/go list far/go.mod -- -m \;`, []string{"far/go.mod"}},
		{`find near -maxdepth 0 -exec ./reads/go list far/go.mod -- -m=true \;`, []string{"far/go.mod"}},
		{`find near -maxdepth 0 -exec ./cargo --color=never +nightly metadata lib \;`, nil},
		{`find near -maxdepth 0 -exec ./cargo test metadata lib \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo build far/pnpm-lock.yaml \;`, nil},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo prune far/pnpm-lock.yaml \;`, []string{"far/pnpm-lock.yaml"}},
		{`echo > setup.py; ./uv near -maxdepth 0 -exec ./builds-v0/.tmp1/ls/python lib tool/other.js \;`, []string{"lib/", "tool/other.js"}},
		{"rm tool/package.json; mkfifo tool/package.json; ./npm tool/cli.js", []string{"tool/cli.js"}},
		{"./npm whole/any.js", []string{"whole/any.js"}},
		{`find near -maxdepth 0 -exec ./reads/go mod far/go.mod \;`, []string{"far/go.mod"}},
		{`find near -maxdepth 0 -exec ./reads/go build far/Cargo.toml \;`, []string{"far/Cargo.toml"}},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo run far/pnpm-lock.yaml \;`, nil},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo ls far/pnpm-lock.yaml \;`, []string{"far/pnpm-lock.yaml"}},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo run far/pnpm-lock.yaml -- --dry=json \;`, []string{"far/pnpm-lock.yaml"}},
		{`find near -maxdepth 0 -exec ./node_modules/linux/bin/turbo run tool/other.js far/Cargo.toml \;`, []string{"far/Cargo.toml", "tool/other.js"}},
		{`mkdir -p node_modules/nx; cd node_modules/nx; find . -maxdepth 0 -exec ./node/ls/node ./bin/post-install ../../lib ../../tool/other.js \;`, nil},
		{`find near -maxdepth 0 -exec ./node/ls/node node_modules/.bin/nx build @n/a lib \;`, nil},
		{`find near -maxdepth 0 -exec ./node/ls/node node_modules/.bin/nx run-many lib \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./node/cat/node node_modules/nx/bin/nx.js build far/pnpm-lock.yaml far/go.mod tool/other.js \;`, []string{"far/go.mod", "tool/other.js"}},
		{`find near -maxdepth 0 -exec ./node/ls/node node_modules/.bin/nx show lib \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./node/ls/node node_modules/.bin/nx format:check lib \;`, []string{"lib/"}},
		{`find near -maxdepth 0 -exec ./node/cat/node node_modules/nx/src/project-graph/plugins/isolation/plugin-worker.js far/pnpm-lock.yaml \;`, []string{"far/pnpm-lock.yaml"}},
		{`mkdir -p node_modules/nx/bin; echo './node/cat/node /x/node_modules/nx/src/project-graph/plugins/isolation/plugin-worker.js far/pnpm-lock.yaml; true' > node_modules/nx/bin/nx.js; find near -maxdepth 0 -exec ./node/sh/node node_modules/nx/bin/nx.js build \;`, nil},
		{`mkdir -p node_modules/nx/bin; echo './node/cat/node /x/node_modules/nx/src/project-graph/plugins/isolation/plugin-worker.js far/pnpm-lock.yaml; true' > node_modules/nx/bin/nx.js; find near -maxdepth 0 -exec ./node/sh/node node_modules/nx/bin/nx.js graph \;`, []string{"far/pnpm-lock.yaml"}},
		{`mkdir -p node_modules/nx/bin; echo './npm far/pnpm-lock.yaml far/go.mod; true' > node_modules/nx/bin/run-executor.js; ./node/sh/node node_modules/nx/bin/run-executor.js`, nil},
		{`mkdir -p node_modules/other; echo './npm far/pnpm-lock.yaml; true' > node_modules/other/run-executor.js; ./node/sh/node node_modules/other/run-executor.js`, []string{"far/pnpm-lock.yaml"}},
		{`mkdir -p node_modules/turbo/bin node_modules/.bin; echo './npm far/pnpm-lock.yaml; true' > node_modules/turbo/bin/turbo; ./node/sh/node $PWD/node_modules/.bin/../turbo/bin/turbo`, nil},
		{`mkdir -p node_modules/.bin; echo './npm far/pnpm-lock.yaml; true' > node_modules/.bin/turbo; ./node/sh/node node_modules/.bin/turbo`, nil},
		{`mkdir -p node_modules/nx/bin node_modules/.bin; echo './npm far/pnpm-lock.yaml; true' > node_modules/nx/bin/nx.js; ./node/sh/node $PWD/node_modules/.bin/../nx/bin/nx.js`, nil},
		{`mkdir -p node_modules/other/turbo; echo './npm far/pnpm-lock.yaml; true' > node_modules/other/turbo.js; ./node/sh/node node_modules/other/turbo.js`, []string{"far/pnpm-lock.yaml"}},
		{`find near -maxdepth 0 -exec ./node/ls/node other/bin/post-install lib \;`, []string{"lib/"}},
		{"cd lib/deep && ./node_modules/esbuild . ..", nil},
		{"./node_modules/esbuild lib", []string{"lib/"}},
		{"./npm tool/cli.js tools/bin/any.js", nil},
		{"cat tool/cli.js", []string{"tool/cli.js"}},
		{"./npm tool/other.js lib/y", []string{"lib/y", "tool/other.js"}},
		{`find near -maxdepth 0 -exec ./npm tool/cli.js \;`, []string{"tool/cli.js"}},
		{`./uv near -maxdepth 0 -exec ./builds-v0/.tmp1/ls/python lib tool/other.js \;`, nil},
		{`./uv near -maxdepth 0 -exec ./builds-v0/.tmp1/cat/python tool/other.js \;`, []string{"tool/other.js"}},
		{`./uv near -maxdepth 0 -exec ./builds/ls/python lib tool/other.js \;`, []string{"lib/", "tool/other.js"}},
		{`find near -maxdepth 0 -exec ./builds-v0/.tmp1/ls/python lib tool/other.js \;`, []string{"lib/", "tool/other.js"}},
	} {
		script := regexp.MustCompile(`\./(cargo|go|npm|uv|node_modules|node|builds|reads|sh/go)`).ReplaceAllString(c.script, tools+"/$1")
		request := step(t, shell(script+" 2>/dev/null || true"))
		request.Missing = &lookups.Missing{Absent: []string{"lib/y", "tool/cli.js", "tool/other.js", "tools/bin", "whole/any.js", "far/tests/x", "far/src/bin/x", "far/src/x", "far/examples/x/main.rs", "strange/tests/x", "dep/x_test.go", "dep/testdata", "dep/README.md", "embeds/data/new.sql", "embeds/other/new.sql", "embedsall/x_test.go", "dep2/y.go", "work/sub/x_test.go"}, Crates: []string{".", "app", "far"}, Believe: true, Tools: map[string]bool{"far/Cargo.toml": false, "far/go.mod": false, "far/pnpm-lock.yaml": false, "near/Cargo.toml": true}}
		for name, content := range map[string]string{"lib/x": "x", "lib/deep/z": "x", "Cargo.toml": "[workspace]\n", "app/Cargo.toml": "[package]\nname = 'app'\n", "far/Cargo.toml": "[package]\nname = 'far'\n", "strange/Cargo.toml": "[package]\nname = 'strange'\n",
			"far/tests/y": "x", "far/src/bin/y": "x", "far/src/y": "x", "far/examples/x/y": "x", "strange/tests/y": "x", "dep/x.go": "x", "embeds/x.go": "package x\n\n//go:embed data\nvar x embed.FS\n", "embeds/data/old.sql": "x", "embeds/other/old.sql": "x", "embedsall/x.go": "package x\n\n//go:embed x.go\nvar x string\n", "dep2/x.go": "x", "work/sub/x.go": "x", "far/go.mod": "x", "far/pnpm-lock.yaml": "x", "near/Cargo.toml": "x",
			"tool/package.json": `{"bin": {"tool": "./cli.js"}}`, "tools/package.json": `{"directories": {"bin": "bin"}}`, "whole/package.json": `{"directories": {"bin": "."}}`} {
			write(t, filepath.Join(request.Worktree, name), content)
		}
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		if got := pathsOf(result); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: looked for %q, want %q", c.script, got, c.want)
		}
	}
}

// pathsOf returns the paths that a step looked for, with a slash behind those that it listed.
func pathsOf(result Result) (paths []string) {
	for _, l := range result.Lookups {
		if l.Listed {
			l.Path += "/"
		}
		paths = append(paths, l.Path)
	}
	return paths
}

func has(program string) bool {
	for _, folder := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		if _, err := os.Stat(filepath.Join(folder, program)); err == nil {
			return true
		}
	}
	return false
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLookups measures a step that looks up 20,000 paths, in a worktree that lacks nothing and in one that is watched.
func BenchmarkLookups(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(map[bool]string{false: "unseen", true: "watched"}[watched], func(b *testing.B) {
			request := step(b, Command{Name: "look", Argv: []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do test -e other; i=$((i+1)); done"}})
			if watched {
				request.Missing = &lookups.Missing{Absent: []string{"docs"}}
			}
			for b.Loop() {
				if result := Run(b.Context(), request); result.Outcome != Passed {
					b.Fatal(result.Reason)
				}
			}
		})
	}
}
