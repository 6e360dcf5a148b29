package nodegraph

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// working is a workspace whose packages build and test: app needs lib built, and lib needs an external package.
var working = memoryTree{
	"package.json":                  `{"name": "root", "private": true, "workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces"}}`,
	"packages/app/package.json":     `{"name": "app", "version": "1.0.0", "scripts": {"test": "node test.js"}, "dependencies": {"@s/lib": "1.0.0"}}`,
	"packages/app/test.js":          "if (require('@s/lib').answer !== 42) process.exit(1)\n",
	"packages/lib/package.json":     `{"name": "@s/lib", "version": "1.0.0", "main": "dist/lib.js", "scripts": {"build": "node build.js", "typecheck": "node -e 0"}, "dependencies": {"isexe": "2.0.0"}}`,
	"packages/lib/build.js":         "require('isexe'); require('fs').mkdirSync('dist'); require('fs').copyFileSync('src/lib.js', 'dist/lib.js')\n",
	"packages/lib/src/lib.js":       "exports.answer = 42\n",
	"packages/my tool/package.json": `{"name": "tool", "version": "1.0.0", "scripts": {"build": "node build.js"}}`,
	"packages/my tool/build.js":     "\n",
}

// write puts a tree into an empty folder.
func (m memoryTree) write(t testing.TB, dir string) {
	t.Helper()
	for path, content := range m {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// runStep runs a command as the builder does: in a fresh checkout, with an empty HOME, nothing of the test's environment.
func runStep(t *testing.T, tree memoryTree, c targets.Command, path string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	tree.write(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir = filepath.Join(dir, c.Dir)
	cmd.Env = []string{"PATH=" + path, "HOME=" + t.TempDir(), "npm_config_cache=" + os.Getenv("npm_config_cache"), "YARN_ENABLE_TELEMETRY=0"}
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_USERCONFIG", "HTTPS_PROXY", "https_proxy", "NODE_EXTRA_CA_CERTS", "YARN_NPM_REGISTRY_SERVER"} {
		if value := os.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheDefaultCommandsWorkInAFreshCheckout(t *testing.T) {
	for _, manager := range managers() {
		t.Run(manager, func(t *testing.T) {
			argv := program(t, manager)
			path := os.Getenv("PATH")
			tree := working
			if manager != npm {
				shims := t.TempDir()
				name := "yarn"
				if manager == "pnpm" {
					name = "pnpm"
				}
				memoryTree{name: "#!/bin/sh\nexec " + strings.Join(argv, " ") + " \"$@\"\n"}.write(t, shims)
				if err := os.Chmod(filepath.Join(shims, name), 0o755); err != nil {
					t.Fatal(err)
				}
				path = shims + ":" + path
			}
			lockFile := map[string]string{npm: "package-lock.json", "pnpm": "pnpm-lock.yaml", "classic": "yarn.lock", "berry": "yarn.lock"}[manager]
			switch manager {
			case "pnpm":
				tree = tree.with(memoryTree{pnpmWorkspace: "packages:\n  - packages/*\n"}).with(tree.replaced(t, "packages/app/package.json", `"1.0.0"}}`, `"workspace:*"}}`))
			case "berry":
				tree = tree.with(memoryTree{".yarnrc.yml": "nodeLinker: node-modules\nenableGlobalCache: true\n"})
			}
			dir := t.TempDir()
			tree.with(memoryTree{"packages/.keep": ""}).write(t, dir)
			if manager == "berry" {
				memoryTree{"yarn.lock": ""}.write(t, dir)
			}
			install := append(slices.Clone(argv), "install")
			if manager == "pnpm" {
				install = append(install, "--no-frozen-lockfile")
			}
			if _, err := command(t, dir, install...); err != nil {
				lacking(t, "an install fails: %v", err)
			}
			lock, err := os.ReadFile(filepath.Join(dir, lockFile))
			if err != nil {
				t.Fatal(err)
			}
			tree = tree.with(memoryTree{lockFile: string(lock)})
			graph := load(t, tree)
			if got, want := targetNames(graph), ". [install], ., packages/app [test], packages/app, packages/lib, packages/my tool"; !slices.Equal(sortedList(got), sortedList(want)) {
				t.Fatalf("targets are %s", got)
			}
			for target := range graph.Targets() {
				for _, c := range target.Commands {
					if out, err := runStep(t, tree, c, path); err != nil {
						t.Errorf("%s: %q: %v\n%s", target.Name, c.Argv, err, out)
					}
				}
			}
			broken := tree.with(tree.replaced(t, "packages/lib/src/lib.js", "42", "41"))
			target, _ := load(t, broken).Target("node://packages/app [test]")
			if out, err := runStep(t, broken, target.Commands[0], path); err == nil {
				t.Errorf("a broken member passes:\n%s", out)
			}
			if manager == "classic" {
				return // yarn 1 installs what a member's manifest asks for and the lock file lacks, frozen or not.
			}
			stale := tree.with(tree.replaced(t, "packages/lib/package.json", `"isexe": "2.0.0"`, `"isexe": "3.1.1"`))
			target, _ = load(t, stale).Target("node://. [install]")
			if out, err := runStep(t, stale, target.Commands[0], path); err == nil {
				t.Errorf("a lock file that does not fit the manifests passes:\n%s", out)
			}
		})
	}
}

func sortedList(names string) []string {
	return slices.Sorted(slices.Values(strings.Split(names, ", ")))
}

func TestScriptsThatOnlyRunThoseOfMembersAreDelegated(t *testing.T) {
	for script, want := range map[string]bool{
		"turbo run test":                        true,
		"npx turbo run test -- --ci":            true,
		"nx run-many -t test":                   true,
		"lerna run test && npm test -ws":        true,
		"npm test --workspaces --if-present":    true,
		"npm run other":                         true,
		"npm run tools":                         false,
		"pnpm -r test":                          true,
		"pnpm --filter './packages/*' test":     true,
		"pnpm -r exec tsc":                      false,
		"yarn workspaces foreach -A run test":   true,
		"yarn turbo run test":                   true,
		"CI=1 cross-env X=1 turbo run test":     true,
		"jest":                                  false,
		"turbo run test && jest":                false,
		"turbo run test | cat":                  false,
		"npm test -ws --include-workspace-root": false,
		"npm run loop":                          false,
		"":                                      false,
		"echo `jest`":                           false,
	} {
		file := &packageFile{scripts: map[string]string{"test": script, "other": "turbo run test", "tools": "node x.js", "loop": "npm run loop"}}
		p := &project{members: []*pack{{dir: "a"}}}
		p.root = &pack{file: file, project: p}
		p.members = append(p.members, p.root)
		if got := p.root.delegates("test"); got != want {
			t.Errorf("%q: delegated is %v", script, got)
		}
	}
}

func TestARootScriptThatMayReadEverythingDependsOnAllMembers(t *testing.T) {
	tree := sample.with(sample.replaced(t, "package.json", "npm test -ws", "jest"))
	if got, want := delta(t, tree, tree.with(memoryTree{"packages/tool/build.js": "1\n"})), ". [test], packages/tool"; got != want {
		t.Errorf("an edit of a member affects %s, want %s", got, want)
	}
	tree = sample.with(sample.replaced(t, "package.json", "turbo run build", "tsc -b"))
	if got, want := delta(t, tree, tree.with(memoryTree{"packages/tool/build.js": "1\n"})), "., packages/tool"; got != want {
		t.Errorf("an edit of a member affects %s, want %s", got, want)
	}
}

func TestCommandsAreSetForEachKind(t *testing.T) {
	graph := loadWith(t, Options{Commands: Commands{
		Install: []Template{},
		Package: []Template{{Name: "make", Argv: []string{"make", "{dir}", "{name}", "{runs}", "-in-{project}", "{manager}"}, Dir: "packages", Timeout: 7}},
		Test:    []Template{{Name: "one", Argv: []string{"one"}, Dir: "."}, {Name: "two", Argv: []string{"two"}}},
	}}, sample)
	got := map[string]string{}
	for target := range graph.Targets() {
		for _, c := range target.Commands {
			got[target.Name+" "+c.Name] = c.Dir + "> " + strings.Join(c.Argv, " ")
		}
	}
	want := map[string]string{
		"node://packages/app make":        "packages> make packages/app app packages/lib:build packages/app:build -in-. npm",
		"node://packages/lib make":        "packages> make packages/lib @s/lib packages/lib:build -in-. npm",
		"node://packages/tool make":       "packages> make packages/tool tool packages/tool:build packages/tool:typecheck -in-. npm",
		"node://packages/app [test] one":  "> one",
		"node://packages/app [test] two":  "> two",
		"node://packages/util [test] one": "> one",
		"node://packages/util [test] two": "> two",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
