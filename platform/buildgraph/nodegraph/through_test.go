package nodegraph

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAToolThatGoesThroughThePackageReadsWhatPackagesBelowHold: a script such as node --test, jest or eslint . does not end where
// another package.json stands.
func TestAToolThatGoesThroughThePackageReadsWhatPackagesBelowHold(t *testing.T) {
	nested := memoryTree{
		"package.json": `{"name": "lib", "scripts": {"test": "node --test"}}`, "index.test.js": "1\n",
		"functions/package.json": `{"name": "functions", "scripts": {"test": "node --test"}}`, "functions/yarn.lock": "# yarn lockfile v1\n", "functions/index.js": "1\n",
		"functions/deep/er/package.json": `{"name": "deep"}`, "functions/deep/er/yarn.lock": "# yarn lockfile v1\n", "functions/deep/er/x.js": "1\n",
	}
	script := func(line string) memoryTree {
		return memoryTree{"package.json": `{"name": "lib", "scripts": ` + line + `}`}
	}
	member := sample.with(memoryTree{
		"package.json": strings.Replace(sample["package.json"], `"packages/*"`, `"packages/*", "packages/*/examples/*"`, 1), "packages/util/examples/one/package.json": `{"name": "one"}`,
		"packages/util/examples/one/x.js": "1\n",
	})
	const lock = "# yarn lockfile v1\n"
	tests := func(folder, scripts string) memoryTree {
		return memoryTree{"package.json": `{"name": "app", "scripts": {"test": "node --test src/"}}`, "package-lock.json": `{"lockfileVersion": 3, "packages": {}}`,
			folder + "/package.json": `{"name": "e2e", "scripts": ` + scripts + `}`, folder + "/yarn.lock": lock, folder + "/x.js": "1\n"}
	}
	for name, c := range map[string]struct {
		tree memoryTree
		file string
		want string
	}{
		"tests with an install of their own": {tests("tests/e2e", `{"test": "playwright test"}`), "tests/e2e/x.js", ". [test], tests/e2e, tests/e2e [test]"},
		"the folder of tests itself":         {tests("tests", `{"test": "playwright test"}`), "tests/x.js", ". [test], tests, tests [test]"},
		"data of tests":                      {tests("tests/cases/one", `{"test": "jest"}`), "tests/cases/one/x.js", "., . [test]"},
		"data of tests with a lock file":     {tests("tests/one", `{"build": "tsc"}`), "tests/one/x.js", "., . [test]"},
		"a nested project":                   {nested, "functions/index.js", ". [test], functions, functions [test]"},
		"one in that":                        {nested, "functions/deep/er/x.js", ". [test], functions [test], functions/deep/er"},
		"a build":                            {nested.with(script(`{"build": "tsc"}`)), "functions/index.js", "., functions, functions [test]"},
		"a check of types":                   {nested.with(script(`{"typecheck": "tsc"}`)), "functions/index.js", "., functions, functions [test]"},
		"no script":                          {nested.with(script(`{"start": "node x.js"}`)), "functions/index.js", "functions, functions [test]"},
		"a member of a member":               {member, "packages/util/examples/one/x.js", "packages/util [test], packages/util/examples/one"},
		"a root that has members' run":       {sample, "packages/tool/build.js", "packages/tool"},
		"a root with a test, and a project that is no member": {sample.with(sample.replaced(t, "package.json", "npm test -ws", "jest")).with(memoryTree{"web/package.json": "{}", "web/yarn.lock": "# yarn lockfile v1\n"}),
			"web/x.js", ". [test], web"},
	} {
		if got := delta(t, c.tree, c.tree.with(memoryTree{c.file: "2\n"})); got != c.want {
			t.Errorf("%s: an edit of %s affects %q, want %q", name, c.file, got, c.want)
		}
	}
}

// TestTheRealNodeGoesIntoPackagesBelow runs a step of the root in what a closed workspace of it holds.
func TestTheRealNodeGoesIntoPackagesBelow(t *testing.T) {
	program(t, npm)
	tree := memoryTree{
		"package.json": `{"name": "lib", "version": "1.0.0", "scripts": {"test": "node --test"}}`, "index.test.js": "require('node:test')('one', () => {})\n",
		"functions/package.json": `{"name": "functions", "version": "1.0.0", "scripts": {"test": "node --test"}}`, "functions/package-lock.json": `{"lockfileVersion": 3, "packages": {"": {"name": "functions", "version": "1.0.0"}}}`,
		"functions/index.test.js": "require('node:test')('rates', () => { require('node:fs').readFileSync('data/rates.json') })\n", "functions/data/rates.json": "{}\n",
	}
	graph := loadWith(t, Options{Closed: true}, tree)
	for name, fails := range map[string]bool{"node://. [test]": true, "node://functions [test]": false} {
		target, _ := graph.Target(name)
		space := graph.Workspace(name)
		if space == nil {
			t.Fatalf("%s is not closed", name)
		}
		found := memoryTree{}
		for path, whole := range space.Files {
			if found[path] = tree[path]; !whole {
				found[path] = ""
			}
		}
		if out, err := runStep(t, found, target.Commands[0], os.Getenv("PATH")); (err != nil) != fails {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestWhoListsAFolderAboveDependsOnAllBelowIt(t *testing.T) {
	for code, want := range map[string]bool{
		"for (const p of readdirSync('..')) read(join('..', p, 'src', 'x.js'))":                                         true,
		"for (const p of readdirSync('../')) read(p)":                                                                   true,
		"const all = path.resolve(import.meta.dirname, '..')\nfor (const p of fs.readdirSync(all)) read(all, p, 'src')": true,
		"const all = path.resolve(\n  here,\n  '..',\n)\nreaddirSync(all)":                                              true,
		"readdirSync(__dirname + '/..')":                                                                                true,
		"readdirSync(`${__dirname}/..`)":                                                                                true,
		"readdirSync(path.join(__dirname, '..', '..', 'packages'))":                                                     true,
		"const root = path.join(__dirname, '..', '..')\nwalk(root)":                                                     true,
		"const root = path.join(__dirname, '../..')\nglobSync('**/*.js', {cwd: root})":                                  true,
		"const root = path.join(__dirname, '../..')\nglobSync(path.join(root, '*/*.js'))":                               true,
		"const root = path.join(__dirname, '../..')\nreaddirSync(path.join(root, 'packages'))":                          true,
		"const root = path.join(__dirname, '../..')\nreaddirSync(root, 'utf8')":                                         true,
		"const root = path.join(__dirname, '../..')\nreaddirSync(`${root}/packages`)":                                   true,
		"import.meta.glob('../*/src/*.js')":                                                                             true,
		"module.exports = {content: ['../*/src/*.js']}":                                                                 true,
		"module.exports = {content: ['../../packages/*/src/*.js']}":                                                     true,
		"execSync('grep -r x .', {cwd: '..'})":                                                                          true,
		"readdirSync('.')":                                                                                              false,
		"const x = require('..'); readdirSync('data')":                                                                  false,
		"const root = path.join(__dirname, '../..')\nreaddirSync(path.join(root, 'data'))":                              false,
		"const root = path.join(__dirname, '../..')\nreaddirSync(`${root}/data`)":                                       false,
		"const root = path.join(__dirname, '../..')\nreadFileSync(path.join(root, 'x.json'))":                           false,
		"const root = path.join(__dirname, '../..')\nglobalThis.x = read(root)":                                         false,
		"const data = path.join(__dirname, '..', '..', 'data')\nreaddirSync(data)":                                      false,
		"const here = path.dirname(fileURLToPath(import.meta.url))\nread(path.join(here, '..', '..', 'x.json'))":        false,
	} {
		base := sample.with(memoryTree{"packages/tool/a.test.js": code + "\n", "data/x.json": "1\n"})
		got := slices.Contains(strings.Split(delta(t, base, base.with(memoryTree{"packages/util/src/x.js": "2\n"})), ", "), "packages/tool")
		if got != want {
			t.Errorf("%s: a file of another package affects it: %v", code, got)
		}
	}
	// A test is run in the folder of its package, wherever its file is.
	for code, want := range map[string]bool{"readdirSync('..')": true, "readdirSync(join(process.cwd(), '..'))": true, "readdirSync(join(__dirname, '..'))": false,
		"readdirSync(new URL('..', import.meta.url))": false, "readdirSync(join(__dirname, '../..'))": false, "readdirSync(join(__dirname, '../../..'))": true} {
		base := sample.with(memoryTree{"packages/tool/test/deep/a.test.js": code + "\n"})
		got := slices.Contains(strings.Split(delta(t, base, base.with(memoryTree{"packages/util/src/x.js": "2\n"})), ", "), "packages/tool")
		if got != want {
			t.Errorf("%s in a folder of tests: a file of another package affects it: %v", code, got)
		}
	}
	for name, edit := range map[string]memoryTree{
		"a script":                {"packages/tool/package.json": `{"name": "tool", "scripts": {"test": "eslint '../*/src'"}}`},
		"a script of the shell":   {"packages/tool/check.sh": "for p in ../*; do cat $p/src/x.js; done\n"},
		"the compiler's settings": {"packages/tool/tsconfig.json": `{"include": ["../*/src"]}`},
		"what it runs":            {"packages/tool/a.test.js": "require('../../scripts/walk')\n", "scripts/walk.js": "const root = join(__dirname, '..')\nwalk(root)\n"},
	} {
		base := sample.with(edit)
		if got := delta(t, base, base.with(memoryTree{"packages/util/src/x.js": "2\n"})); !strings.Contains(got, "packages/tool") {
			t.Errorf("%s: a file of another package affects %s alone", name, got)
		}
	}
}

func TestAScriptThatGivesAFolderAboveToAToolDependsOnAllBelowIt(t *testing.T) {
	for line, want := range map[string]bool{
		"eslint ..": true, "prettier --check '../'": true, "jest --rootDir=..": true, "cd .. && eslint .": true, "cd ../.. && prettier --check \"./\"": true,
		"cd .. && node tool/x.js": false, "npm --prefix ../.. run lint": false, "git -C .. status": false, "eslint .": false, "eslint . && cd ..": false,
	} {
		manifest := `{"name": "tool", "scripts": {"test": ` + strconv.Quote(line) + `}}`
		base := sample.with(memoryTree{"packages/tool/package.json": manifest})
		got := strings.Contains(delta(t, base, base.with(memoryTree{"packages/util/src/x.js": "2\n"})), "packages/tool [test]")
		if got != want {
			t.Errorf("%s: a file of another package affects it: %v", line, got)
		}
	}
}

// TestAClosedWorkspaceHoldsWhatATestListsAbove runs the real node in it.
func TestAClosedWorkspaceHoldsWhatATestListsAbove(t *testing.T) {
	tree := sample.with(memoryTree{"packages/tool/a.test.js": `const packages = require('path').resolve(__dirname, '..')
for (const name of require('fs').readdirSync(packages)) {
	const file = require('path').join(packages, name, 'src', 'x.js')
	if (require('fs').existsSync(file) && !/Copyright/.test(require('fs').readFileSync(file, 'utf8'))) process.exit(1)
}
`, "packages/tool/package.json": `{"name": "tool", "scripts": {"test": "node a.test.js"}}`, "packages/util/src/x.js": "no rights\n"})
	graph := loadWith(t, Options{Closed: true}, tree)
	dir := t.TempDir()
	found := memoryTree{}
	for path := range graph.Workspace("node://packages/tool [test]").Files {
		found[path] = tree[path]
	}
	found.write(t, dir)
	program(t, npm)
	if out, err := command(t, filepath.Join(dir, "packages/tool"), "node", "a.test.js"); err == nil {
		t.Errorf("the test finds nothing to complain of: %s", out)
	}
}

// A path can go on computed behind folders above, behind a folder that it names, and behind the scope of names.
func TestAComputedPathCountsByTheFolderBeforeIt(t *testing.T) {
	files := []string{"packages/util/package.json", "packages/util/data.json", "packages/util/new.js", "packages/lib/src/lib.ts", "data/x.json"}
	const manifests, all, none = "packages/util/package.json", "packages/util/package.json, packages/util/data.json, packages/util/new.js, packages/lib/src/lib.ts", ""
	root := "const root = path.join(__dirname, '../..')\n"
	above := "const up = path.join(__dirname, '..')\n"
	for code, want := range map[string]string{
		"require(`../${n}/package.json`)":                                     manifests,
		"readFileSync(`../${n}/package.json`)":                                manifests,
		"import(`../${n}/package.json`, {with: {type: 'json'}})":              manifests,
		"require(`../${f({a: `b`})}/package.json`)":                           manifests,
		"require(`../../packages/${n}/package.json`)":                         manifests,
		"readFileSync(`../../packages/${n}/package.json`)":                    manifests,
		"readFileSync(`${__dirname}/../${n}/package.json`)":                   manifests,
		root + "readFileSync(`${root}/packages/${n}/package.json`)":           manifests,
		"require(`../${n}/data.json`)":                                        all,
		"require(`../${n}`)":                                                  all,
		"import(`../../packages/${n}/index.js`)":                              all,
		"readFileSync(`../${n}/data.json`)":                                   all,
		"readFileSync(`${__dirname}/../${n}/data.json`)":                      all,
		"readFileSync('../' + n + '/data.json')":                              all,
		"readFileSync('../../packages/' + n + '/data.json')":                  all,
		"require('../' + n)":                                                  all,
		"require(`@s/${n}/package.json`)":                                     all,
		"require(`@s/${n}`)":                                                  all,
		"require(`@s/lib/${n}`)":                                              all,
		"require(`@other/${n}`)":                                              none,
		"require(`util-${n}/data.json`)":                                      "packages/util/package.json, packages/util/data.json, packages/util/new.js",
		"require.resolve('@s/' + n)":                                          all,
		root + "readFileSync(path.join(root, 'packages', n, 'package.json'))": manifests,
		root + "readFileSync(path.join(root, 'packages', n, 'data.json'))":    all,
		root + "readFileSync(join(root, 'packages', `${n}`, 'data.json'))":    all,
		root + "readFileSync(`${root}/packages/${n}/data.json`)":              all,
		root + "readFileSync(root + '/packages/' + n)":                        all,
		"readFileSync(join(__dirname, '..', n, 'data.json'))":                 all,
		"readFileSync(join(__dirname, '../../packages', n, 'data.json'))":     all,
		"readFileSync(join('..', '..', 'packages', n, 'data.json'))":          all,
		above + "readFileSync(`${up}/${n}/package.json`)":                     manifests,
		above + "readFileSync(join(up, n, 'package.json'))":                   manifests,
		above + "readFileSync(`${up}/${n}/data.json`)":                        all,
		above + "readFileSync(join(up, n.name, 'data.json'))":                 all,
		above + "readFileSync(up + '/' + n)":                                  all,
		above + "readFileSync(up + '/x.json')":                                none,
		above + "check(up, n)":                                                none,
		above + "require.resolve('..', {paths})":                              none,
		"import('../a.mjs?' + Date.now())":                                    none,
		"import x from '../a.svg?raw'":                                        none,
		"import(`../util-${n}/data.json`)":                                    all,
		"readFileSync(`../util-${n}/package.json`)":                           manifests,
		"const from = ['..', '../../data/*']":                                 "data/x.json",
		root + "describe('packages', () => {})":                               none,
		root + "readFileSync(join(root, 'data', n))":                          "data/x.json",
		"require(`../../data/${n}.json`)":                                     "data/x.json",
		"require(`./${n}`)":                                                   none,
		"require(`${n}/package.json`)":                                        none,
		"x = `../${n}`.length":                                                all,
	} {
		base := sample.with(memoryTree{"packages/tool/a.test.js": code + "\n", "packages/util/data.json": "1\n", "data/x.json": "1\n"})
		var got []string
		for _, file := range files {
			head := base.with(memoryTree{file: base[file] + "\n"})
			if slices.Contains(strings.Split(delta(t, base, head), ", "), "packages/tool") {
				got = append(got, file)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s is affected by\n     %s\nwant %s", code, got, want)
		}
	}
}

// TestTheYarnOfARepositoryTiesNoPackageToOthers: a committed release of yarn goes through folders, as each step's install has it do; it
// is part of all packages, and what it may go through is not part of the root's.
func TestTheYarnOfARepositoryTiesNoPackageToOthers(t *testing.T) {
	const release = ".yarn/releases/yarn-4.9.2.cjs"
	tree := memoryTree{
		"package.json": `{"name": "shop", "packageManager": "yarn@4.9.2", "workspaces": ["packages/*"], "scripts": {"test": "yarn workspaces foreach -A run test"}}`,
		".yarnrc.yml":  "yarnPath: " + release + "\n", "yarn.lock": "__metadata:\n  version: 8\n", "README.md": "1\n",
		release:                   "const p = require('path'), fs = require('fs')\nfor (let at = process.cwd(); at !== p.dirname(at); at = p.dirname(at)) fs.readdirSync(at)\n",
		"packages/a/package.json": `{"name": "a", "scripts": {"test": "node --test"}}`, "packages/a/a.js": "1\n",
		"packages/b/package.json": `{"name": "b", "scripts": {"test": "node --test"}}`, "packages/b/b.js": "1\n",
	}
	for file, want := range map[string]string{
		"packages/a/a.js": "packages/a, packages/a [test]",
		"README.md":       ".",
		release:           "., . [install], packages/a, packages/a [test], packages/b, packages/b [test]",
	} {
		if got := delta(t, tree, tree.with(memoryTree{file: "2\n"})); got != want {
			t.Errorf("an edit of %s affects %q, want %q", file, got, want)
		}
	}
}
