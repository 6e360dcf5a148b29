package adopt_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
)

// asked is a change that somebody asks for once a repository has a queue.
type asked struct {
	name string
	// on is the change before it, which it is made on and requires; "" for the mainline as it is.
	on    string
	edits []mixedEdit
	// wrong is what the first three lines of its rejection hold, such as file and line; "" where it lands.
	wrong string
	// slow changes are asked for with LANDFALL_TEST_SLOW alone.
	slow bool
}

// skipUnlessSlow leaves a test of some minutes to make test-all.
func skipUnlessSlow(t *testing.T) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("it is slow: set LANDFALL_TEST_SLOW")
	}
}

// decides runs a repository from its clone to the decision of each change, with isolated steps: after init --yes nothing lacks,
// what is green lands, and what is red is rejected with what is wrong in the first three lines that people read. A change is
// asked for once those before it have ended, but for the one that it is made on.
func decides(t *testing.T, r *repository, changes []asked) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		changes = slices.DeleteFunc(changes, func(c asked) bool { return c.slow })
	}
	said, err := r.init("--yes")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s\n%s", said, r.read("landfall.config.yaml"))
	if out, err := r.init("--check"); err != nil {
		t.Errorf("after init something lacks: %v\n%s", err, out)
	}
	queue := r.up(t, func(q *configuration.Queue) { q.Steps.Isolation = configuration.IsolationRequired })
	// Where changes are made, without what init wrote.
	work := &mixed{repository: &repository{t, r.bare, r.clone + "-work", r.home}}
	r.run("", "git", "clone", "-q", r.bare, work.clone)
	want := r.mainline()
	for i, c := range changes {
		if c.on == "" {
			work.run(work.clone, "git", "fetch", "-q")
			work.run(work.clone, "git", "checkout", "-q", "--detach", "origin/main")
		}
		work.edit(c.name, c.edits)
		work.run(work.clone, "git", "push", "-q", "origin", "HEAD:refs/heads/"+c.name)
		body := api.LandBody{Change: c.name, Entries: []api.LandEntry{{Ref: c.name}}}
		if c.on != "" {
			body.Requires = []string{c.on}
		}
		if reply, err := clienttest.Land(t.Context(), queue, "shop", body); err != nil || reply.Outcome != api.OutcomeAdmitted {
			t.Fatalf("land %s: %+v, %v", c.name, reply, err)
		}
		if i+1 < len(changes) && changes[i+1].on == c.name {
			continue
		}
		if c.on != "" {
			want = append(want, work.ended(queue, changes[i-1])...)
		}
		want = append(want, work.ended(queue, c)...)
	}
	if got := r.mainline(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the mainline is %q, not %q", got, want)
	}
}

// ended waits for the end of a change and returns its name if it has landed.
func (m *mixed) ended(queue *client.Client, c asked) (landed []string) {
	m.Helper()
	e := m.end(queue, c.name)
	var out strings.Builder
	client.WriteExplanation(&out, time.Now(), e)
	lines := strings.SplitN(out.String(), "\n", 4)
	head := strings.Join(lines[:min(3, len(lines))], "\n")
	if e.State == view.StateLanded {
		landed = []string{c.name}
	}
	switch {
	case c.wrong == "" && e.State == view.StateLanded:
	case c.wrong == "" || e.State != view.StateRejected:
		m.Errorf("%s is %s:\n%s", c.name, e.State, out.String())
	case !strings.Contains(head, c.wrong):
		m.Errorf("%s: the first three lines do not hold %q:\n%s", c.name, c.wrong, out.String())
	}
	m.Logf("%s: %s\n%s", c.name, e.State, head)
	return landed
}

// npmTools puts programs of npm packages on PATH, as npm install --global does.
func npmTools(t *testing.T, packages ...string) {
	t.Helper()
	need(t, "node", "npm")
	prefix := filepath.Join(t.TempDir(), "global")
	fetch(t, "", append([]string{"npm", "install", "--global", "--silent", "--no-audit", "--no-fund", "--prefix", prefix}, packages...)...)
	t.Setenv("PATH", filepath.Join(prefix, "bin")+":"+os.Getenv("PATH"))
}

// packageJSON returns a package.json.
func packageJSON(t *testing.T, fields map[string]any) string {
	t.Helper()
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// lockedBy commits a repository with the lock file that a package manager makes for it.
func lockedBy(t *testing.T, r *repository, all files, lock string, argv ...string) {
	t.Helper()
	folder := t.TempDir()
	put(t, folder, all)
	fetch(t, folder, argv...)
	text, err := os.ReadFile(filepath.Join(folder, lock))
	if err != nil {
		t.Fatal(err)
	}
	all[lock] = string(text)
	r.commit("first", all)
	r.push()
}

type object = map[string]any

// TestAYarnWorkspaceWithoutNodeModulesIsAdopted: yarn's Plug'n'Play, in which only what a package declares can be loaded.
func TestAYarnWorkspaceWithoutNodeModulesIsAdopted(t *testing.T) {
	skipUnlessSlow(t)
	npmTools(t, "@yarnpkg/cli-dist@4.6.0")
	r := newRepository(t)
	node := object{"test": "node --test"}
	all := files{
		"README.md": "# shop\n", ".gitignore": ".yarn/*\n.pnp.*\n",
		".yarnrc.yml":                  "enableTelemetry: false\n",
		"package.json":                 packageJSON(t, object{"name": "shop", "private": true, "workspaces": []string{"packages/*"}, "packageManager": "yarn@4.6.0"}),
		"packages/clock/package.json":  packageJSON(t, object{"name": "@shop/clock", "version": "1.0.0", "main": "clock.js", "dependencies": object{"ms": "2.1.3"}, "scripts": node}),
		"packages/clock/clock.js":      "const ms = require('ms');\n\nexports.seconds = (text) => ms(text) / 1000;\nexports.days = (text) => ms(text) / 86400000;\n",
		"packages/clock/clock.test.js": "const assert = require('node:assert');\nconst { days } = require('./clock');\n\nrequire('node:test')('a week', () => {\n  assert.equal(days('1w'), 7);\n});\n",
		"packages/bill/package.json":   packageJSON(t, object{"name": "@shop/bill", "version": "1.0.0", "main": "bill.js", "dependencies": object{"@shop/clock": "workspace:^", "bytes": "3.1.2"}, "scripts": object{"test": "jest"}, "devDependencies": object{"jest": "29.7.0"}}),
		"packages/bill/bill.js":        "const bytes = require('bytes');\nconst { seconds } = require('@shop/clock');\n\nexports.bill = (time, size) => seconds(time) + bytes(size);\n",
		"packages/bill/bill.test.js":   "const { bill } = require('./bill');\n\ntest('an hour and a kilobyte', () => {\n  expect(bill('1h', '1kb')).toBe(3600 + 1024);\n});\n",
		"packages/words/package.json":  packageJSON(t, object{"name": "@shop/words", "version": "1.0.0", "scripts": node}),
		"packages/words/words.js":      "exports.one = 'one';\n",
		"packages/words/words.test.js": "require('node:test')('one', () => require('node:assert').equal(require('./words').one.length, 3));\n",
	}
	lockedBy(t, r, all, "yarn.lock", "yarn", "install", "--mode=update-lockfile", "--no-immutable")
	const clock, bill, words = "packages/clock/clock.js", "packages/bill/bill.js", "packages/words/words.js"
	decides(t, r, []asked{
		{name: "minutes", edits: []mixedEdit{{clock, "/ 86400000;\n", "/ 86400000;\nexports.minutes = (text) => ms(text) / 60000;\n"}}},
		{name: "uses-minutes", on: "minutes", edits: []mixedEdit{{bill, "{ seconds }", "{ minutes }"}, {bill, "seconds(time)", "minutes(time) * 60"}}},
		{name: "slow", edits: []mixedEdit{{clock, "/ 86400000", "/ 8640000"}}, wrong: "packages/clock/clock.test.js:5", slow: true},
		{name: "hours", edits: []mixedEdit{{clock, "/ 60000", "/ 3600000"}}, wrong: "packages/bill/bill.test.js:4"},
		{name: "undeclared", edits: []mixedEdit{{words, "exports", "require('ms');\nexports"}}, wrong: words + ":1"},
	})
}

// TestAnNpmWorkspaceOfTypeScriptIsAdopted: members are tested by ts-jest, which compiles them and those that they import.
func TestAnNpmWorkspaceOfTypeScriptIsAdopted(t *testing.T) {
	skipUnlessSlow(t)
	need(t, "node", "npm")
	r := newRepository(t)
	member := func(name string, scripts, needs object) string {
		return packageJSON(t, object{"name": name, "version": "1.0.0", "main": "src/index.ts", "scripts": scripts, "dependencies": needs, "jest": object{"preset": "ts-jest", "testEnvironment": "node"}})
	}
	const compiler = `{"extends": "../../tsconfig.base.json", "include": ["src"]}` + "\n"
	all := files{
		"README.md": "# shop\n", ".gitignore": "node_modules\n",
		"tsconfig.base.json": `{"compilerOptions": {"target": "es2022", "module": "commonjs", "strict": true, "esModuleInterop": true, "skipLibCheck": true, "types": ["jest", "node"]}}` + "\n",
		"package.json": packageJSON(t, object{"name": "shop", "private": true, "workspaces": []string{"packages/*"}, "scripts": object{"test": "npm test --workspaces"},
			"devDependencies": object{"jest": "29.7.0", "ts-jest": "29.2.5", "typescript": "5.6.3", "@types/jest": "29.5.14", "@types/node": "20.17.0"}}),
		"packages/money/package.json":      member("@shop/money", object{"test": "jest"}, object{}),
		"packages/money/tsconfig.json":     compiler,
		"packages/money/src/index.ts":      "export interface Money {\n  cents: number;\n  currency: string;\n}\n\nexport function add(a: Money, b: Money): Money {\n  return { ...a, cents: a.cents + b.cents };\n}\n\nexport function negate(a: Money): Money {\n  return { ...a, cents: -a.cents };\n}\n",
		"packages/money/src/index.test.ts": "import { negate } from './index';\n\ntest('a debt', () => {\n  const one = { cents: 1, currency: 'EUR' };\n  expect(negate(one).cents).toBe(-1);\n});\n",
		"packages/cart/package.json":       member("@shop/cart", object{"test": "jest"}, object{"@shop/money": "^1.0.0"}),
		"packages/cart/tsconfig.json":      compiler,
		"packages/cart/src/index.ts":       "import { add, Money } from '@shop/money';\n\nexport function total(prices: Money[]): Money {\n  return prices.reduce(add, { cents: 0, currency: 'EUR' });\n}\n",
		"packages/cart/src/index.test.ts":  "import { total } from './index';\n\ntest('a cart has a total', () => {\n  const price = { cents: 150, currency: 'EUR' };\n  expect(total([price, price]).cents).toBe(300);\n});\n",
		"packages/words/package.json":      member("@shop/words", object{"typecheck": "tsc --noEmit"}, object{}),
		"packages/words/tsconfig.json":     compiler,
		"packages/words/src/index.ts":      "export const one = 'one';\n",
	}
	lockedBy(t, r, all, "package-lock.json", "npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
	const money, cart, words = "packages/money/src/index.ts", "packages/cart/src/index.ts", "packages/words/src/index.ts"
	decides(t, r, []asked{
		{name: "times", edits: []mixedEdit{{money, "-a.cents };\n}\n", "-a.cents };\n}\n\nexport function times(a: Money, n: number): Money {\n  return { ...a, cents: a.cents * n };\n}\n"}}},
		{name: "uses-times", on: "times", edits: []mixedEdit{{cart, "{ add,", "{ add, times,"}, {cart, "prices.reduce", "prices.map((p) => times(p, 1)).reduce"}}},
		{name: "owes", edits: []mixedEdit{{money, "-a.cents", "a.cents"}}, wrong: "packages/money/src/index.test.ts:5", slow: true},
		{name: "text", edits: []mixedEdit{{words, "one = 'one'", "one: string = 111"}}, wrong: words + ":1", slow: true},
		{name: "doubles", edits: []mixedEdit{{money, "a.cents * n", "a.cents * n * 2"}}, wrong: "packages/cart/src/index.test.ts:5"},
		{name: "misses", edits: []mixedEdit{{cart, "{ add, times", "{ plus, times"}}, wrong: cart + ":1", slow: true},
	})
}

// poetryTools puts a poetry on PATH, and returns the address of pip's index.
func poetryTools(t *testing.T) (index string) {
	t.Helper()
	need(t, "python3")
	tools := filepath.Join(t.TempDir(), "tools")
	fetch(t, "", "python3", "-m", "venv", tools)
	fetch(t, "", filepath.Join(tools, "bin", "pip"), "install", "--quiet", "poetry==2.1.4")
	t.Setenv("PATH", filepath.Join(tools, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("POETRY_CACHE_DIR", t.TempDir())
	if index = os.Getenv("PIP_INDEX_URL"); index != "" {
		return index
	}
	return fetch(t, "", filepath.Join(tools, "bin", "python3"), "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
}

// TestAPoetryRepositoryIsAdopted: two projects, of which one uses the other by its path.
func TestAPoetryRepositoryIsAdopted(t *testing.T) {
	skipUnlessSlow(t)
	index := poetryTools(t)
	r := newRepository(t)
	project := func(name, needs string) string {
		return fmt.Sprintf("[tool.poetry]\nname = %q\nversion = \"1.0.0\"\ndescription = \"\"\nauthors = [\"A <a@example.com>\"]\n\n[tool.poetry.dependencies]\npython = \"^3.9\"\n%s\n[tool.poetry.group.dev.dependencies]\npytest = \"8.3.4\"\n\n[build-system]\nrequires = [\"poetry-core\"]\nbuild-backend = \"poetry.core.masonry.api\"\n\n"+
			"[[tool.poetry.source]]\nname = \"index\"\nurl = %q\npriority = \"primary\"\n", name, needs, index)
	}
	all := files{
		"README.md": "# shop\n", ".gitignore": "__pycache__\n",
		"money/pyproject.toml":      project("money", ""),
		"money/money/__init__.py":   "def add(a, b):\n    return a + b\n\n\ndef half(a):\n    return a / 2\n",
		"money/tests/test_money.py": "from money import half\n\n\ndef test_half():\n    assert half(4) == 2\n",
		"cart/pyproject.toml":       project("cart", "six = \"1.17.0\"\nmoney = { path = \"../money\", develop = true }\n"),
		"cart/cart/__init__.py":     "import six\n\nfrom money import add\n\n\ndef total(prices):\n    result = 0\n    for price in six.moves.map(int, prices):\n        result = add(result, price)\n    return result\n",
		"cart/tests/test_cart.py":   "from cart import total\n\n\ndef test_total():\n    assert total([\"100\", \"50\"]) == 150\n",
	}
	folder := t.TempDir()
	put(t, folder, all)
	for _, project := range []string{"money", "cart"} {
		fetch(t, filepath.Join(folder, project), "poetry", "lock", "--no-interaction")
		all[project+"/poetry.lock"] = filesBelow(t, folder)[project+"/poetry.lock"]
	}
	r.commit("first", all)
	r.push()
	const money, cart = "money/money/__init__.py", "cart/cart/__init__.py"
	decides(t, r, []asked{
		{name: "twice", edits: []mixedEdit{{money, "a / 2\n", "a / 2\n\n\ndef twice(a):\n    return add(a, a)\n"}}},
		{name: "uses-twice", on: "twice", edits: []mixedEdit{{cart, "import add\n", "import add, twice\n"}, {cart, "return result\n", "return result\n\n\ndef pair(price):\n    return twice(price)\n"},
			{"cart/tests/test_pair.py", "", "from cart import pair\n\n\ndef test_pair():\n    assert pair(2) == 4\n"}}},
		{name: "third", edits: []mixedEdit{{money, "a / 2", "a / 3"}}, wrong: "money/tests/test_money.py:5", slow: true},
		{name: "renames", edits: []mixedEdit{{money, "def twice", "def double"}}, wrong: cart + ":3", slow: true},
		{name: "thrice", edits: []mixedEdit{{money, "add(a, a)", "add(a, add(a, a))"}}, wrong: "cart/tests/test_pair.py:5"},
		{name: "stale", edits: []mixedEdit{{"cart/pyproject.toml", "six = \"1.17.0\"", "six = \"1.17.0\"\nattrs = \"24.2.0\""}}, wrong: "poetry.lock"},
	})
}
