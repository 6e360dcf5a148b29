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
	cmd.Env = []string{"PATH=" + path, "HOME=" + t.TempDir(), "npm_config_cache=" + os.Getenv("npm_config_cache"), "npm_config_store_dir=" + t.TempDir(), "YARN_ENABLE_TELEMETRY=0"}
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
		"npm run unit -w e":                     false,
		"npm run test -w e":                     true,
		"npm -w e run-script test":              true,
		"npm exec -w a -- node x.js":            false,
		"turbo run lint":                        false,
		"turbo run build test --concurrency 4":  true,
		"turbo run test lint":                   false,
		"nx run-many --targets=build,test":      true,
		"nx run-many --targets=lint,test":       false,
		"nx exec -- jest":                       false,
		"lerna exec -- jest":                    false,
		"lerna run test --stream -- --ci":       true,
		"pnpm -r run lint":                      false,
		"pnpm --filter e unit":                  false,
		"yarn workspace e run test":             true,
		"yarn workspace e unit":                 false,
		"wireit":                                false,
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

func TestAScriptThatRunsBeforeOrAfterAnotherIsNotDelegated(t *testing.T) {
	for hook, script := range map[string]string{"pretest": "node lint.js", "posttest": "node lint.js"} {
		tree := sample.with(sample.replaced(t, "package.json", `"test": "npm test -ws"`, `"test": "npm test -ws", "`+hook+`": "`+script+`"`)).with(memoryTree{"lint.js": "1\n"})
		if got := delta(t, tree, tree.with(memoryTree{"lint.js": "2\n"})); got != "., . [test]" {
			t.Errorf("%s: an edit of what it runs affects %s", hook, got)
		}
	}
	tree := sample.with(sample.replaced(t, "package.json", `"test": "npm test -ws"`, `"test": "npm test -ws", "pretest": "npm run build -ws"`))
	if _, is := load(t, tree).Target("node://. [test]"); is {
		t.Error("the root has a test of its own, though both scripts run those of members alone")
	}
}

func TestWhatAnInstallRunsIsVerifiedByItAndReachesAllOfTheProject(t *testing.T) {
	manifest := func(script string) memoryTree {
		return sample.replaced(t, "packages/lib/package.json", `"build": "tsc"`, `"`+script+`": "node setup.js"`)
	}
	root := func(script, line string) memoryTree {
		return sample.replaced(t, "package.json", `"build": "turbo run build"`, `"`+script+`": "`+line+`", "gen": "node scripts/other.js"`)
	}
	all := "., . [install], packages/app, packages/app [test], packages/lib, packages/tool, packages/util, packages/util [test]"
	for name, c := range map[string]struct {
		edit memoryTree
		file string
	}{
		"preinstall":              {manifest("preinstall"), "packages/lib/setup.js"},
		"install":                 {manifest("install"), "packages/lib/setup.js"},
		"postinstall":             {manifest("postinstall"), "packages/lib/setup.js"},
		"prepare":                 {manifest("prepare"), "packages/lib/setup.js"},
		"an addon in C++":         {memoryTree{"packages/lib/binding.gyp": "{}"}, "packages/lib/src/x.cc"},
		"the root's":              {root("postinstall", "node scripts/build.js"), "scripts/build.js"},
		"what that requires":      {root("postinstall", "node scripts/build.js"), "scripts/lib/steps.js"},
		"a script that that runs": {root("prepare", "husky && npm run gen"), "scripts/other.js"},
	} {
		tree := sample.with(c.edit)
		if got := delta(t, tree, tree.with(memoryTree{c.file: "2\n"})); !slices.Equal(sortedList(got), sortedList(all)) {
			t.Errorf("%s: an edit of what it runs affects %s, want all", name, got)
		}
		install, _ := load(t, tree).Target("node://. [install]")
		if line := install.Commands[0].Argv[2]; strings.Contains(line, "--ignore-scripts") {
			t.Errorf("%s: the install runs no scripts: %s", name, line)
		}
	}
	tree := sample.with(root("prepare", "husky"))
	if got := delta(t, tree, tree.with(memoryTree{"ops/prod.env": "2\n"})); got != "." {
		t.Errorf("an edit of a file that the root's script does not name affects %s", got)
	}
}

// TestAnInstallFailsByTheScriptsOfMembers runs the real npm.
func TestAnInstallFailsByTheScriptsOfMembers(t *testing.T) {
	program(t, npm)
	tree := memoryTree{
		"package.json":            `{"name": "root", "private": true, "workspaces": ["packages/*"]}`,
		"package-lock.json":       `{"name": "root", "lockfileVersion": 3, "requires": true, "packages": {"": {"name": "root", "workspaces": ["packages/*"]}, "node_modules/a": {"resolved": "packages/a", "link": true}, "packages/a": {"version": "1.0.0"}}}`,
		"packages/a/package.json": `{"name": "a", "version": "1.0.0"}`,
		"packages/a/setup.js":     "process.exit(1)\n",
	}
	for _, script := range []string{"", "preinstall", "install", "postinstall", "prepare"} {
		edited := tree
		if script != "" {
			edited = tree.with(tree.replaced(t, "packages/a/package.json", `"1.0.0"`, `"1.0.0", "scripts": {"`+script+`": "node setup.js"}`))
			if script != "prepare" {
				edited = edited.with(tree.replaced(t, "package-lock.json", `"version": "1.0.0"`, `"version": "1.0.0", "hasInstallScript": true`))
			}
		}
		target, _ := load(t, edited).Target("node://. [install]")
		out, err := runStep(t, edited, target.Commands[0], os.Getenv("PATH"))
		if (err != nil) != (script != "") {
			t.Errorf("%q: %v\n%s", script, err, out)
		}
		if strings.Contains(out, "npm warn Unknown env config") {
			t.Errorf("npm warns of the step's environment:\n%s", out)
		}
	}
}

func TestAProgramOfAMemberReachesWhoeverRunsIt(t *testing.T) {
	tree := sample
	with := func(bin string) memoryTree {
		return tree.with(tree.replaced(t, "packages/lib/package.json", `"version": "1.0.0",`, `"version": "1.0.0", "bin": `+bin+`,`))
	}
	all := "., . [install], packages/app, packages/app [test], packages/lib, packages/tool, packages/util, packages/util [test]"
	if got := delta(t, tree, with(`{"node": "src/node.js"}`)); !slices.Equal(sortedList(got), sortedList(all)) {
		t.Errorf("a program of that name affects %s, want all", got)
	}
	tree = with(`{"node": "src/node.js"}`)
	if got := reached(t, tree, "packages/lib/src/node.js"); !strings.Contains(got, "packages/util [test]") || !strings.Contains(got, "packages/tool") {
		t.Errorf("an edit of it reaches %s, want those whose scripts run it", got)
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
