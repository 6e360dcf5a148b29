package adopt_test

// A mixedEdit changes the one place of a file that has old; without old it makes the file.
type mixedEdit struct{ path, old, new string }

// A mixedChange is what somebody asks to land in the mixed repository.
type mixedChange struct {
	name string
	// commits stand on the first head of the mainline; those of a change with several are a stack.
	commits [][]mixedEdit
	// fault is the file, and a text that one line of it has, which the rejection has to name; "" for a change that lands.
	path, line string
	// Of two changes with the same rival one lands, and the other is rejected as path and line say.
	rival string
	// small changes are those that are landed without LANDFALL_TEST_SLOW.
	small bool
}

func one(edits ...mixedEdit) [][]mixedEdit { return [][]mixedEdit{edits} }

// mixedFiles is a shop in Go, TypeScript, Python and SQL. A client in TypeScript is generated from Go, and tests in Python read
// the tables of the database.
var mixedFiles = files{
	"landfall.yaml": "edges:\n  - from: node://web/client\n    to: [example.com/shop/gen]\n",
	"README.md":     "# The shop\n", "docs/guide.md": "# Guide\n", "rates.csv": "EUR,1\n", ".gitignore": "node_modules\ndist\n__pycache__\n/web/client/src/api.ts\n",

	"go.mod":         "module example.com/shop\n\ngo 1.26\n",
	"money/money.go": "// Package money reckons in cents.\npackage money\n\n// Add returns a sum.\nfunc Add(a, b int) int { return a + b }\n\n// Discount takes some percent off.\nfunc Discount(cents, percent int) int {\n\treturn cents - cents*percent/100\n}\n",
	"money/money_test.go": `package money

import "testing"

func TestAdd(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("1 + 2 = %d", got)
	}
}

func TestDiscount(t *testing.T) {
	if got := Discount(200, 10); got != 180 {
		t.Errorf("200 less 10 %% = %d", got)
	}
}
`,
	"cart/cart.go":        "// Package cart holds what is bought.\npackage cart\n\nimport \"example.com/shop/money\"\n\n// Total is what all cost.\nfunc Total(cents ...int) (sum int) {\n\tfor _, c := range cents {\n\t\tsum = money.Add(sum, c)\n\t}\n\treturn sum\n}\n",
	"cart/cart_test.go":   "package cart\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif got := Total(1, 2, 3); got != 6 {\n\t\tt.Fatalf(\"total %d\", got)\n\t}\n}\n",
	"stock/stock.go":      "// Package stock counts.\npackage stock\n\n// Low is how few are few.\nconst Low = 3\n\n// Few reports whether few are left.\nfunc Few(left int) bool { return left < Low }\n",
	"stock/stock_test.go": "package stock\n\nimport \"testing\"\n\nfunc TestFew(t *testing.T) {\n\tif !Few(1) || Few(100) {\n\t\tt.Fatal(\"few are many\")\n\t}\n}\n",
	"text/text.go":        "// Package text cuts texts.\npackage text\n\n// First returns the first byte of a text.\nfunc First(s string) string {\n\tif s == \"\" {\n\t\treturn \"\"\n\t}\n\treturn s[:1]\n}\n",
	"text/text_test.go":   "package text\n\nimport \"testing\"\n\nfunc TestFirst(t *testing.T) {\n\tif First(\"\") != \"\" || First(\"ab\") != \"a\" {\n\t\tt.Fatal(\"not the first\")\n\t}\n}\n",
	"api/api.go":          "// Package api is what clients of the shop see.\npackage api\n\n// Item can be bought.\ntype Item struct {\n\tName  string `json:\"name\"`\n\tCents int    `json:\"cents\"`\n}\n",
	"gen/main.go": `// Command gen prints the types of the API in TypeScript.
package main

import (
	"fmt"
	"reflect"

	"example.com/shop/api"
)

func main() {
	of := reflect.TypeFor[api.Item]()
	fmt.Printf("export interface %s {\n", of.Name())
	for i := range of.NumField() {
		kind := "string"
		if of.Field(i).Type.Kind() == reflect.Int {
			kind = "number"
		}
		fmt.Printf("  %s: %s;\n", of.Field(i).Tag.Get("json"), kind)
	}
	fmt.Println("}")
}
`,

	"web/package.json":         `{"name": "web", "private": true, "workspaces": ["client", "app", "words"], "devDependencies": {"typescript": "5.9.3"}}` + "\n",
	"web/client/package.json":  `{"name": "client", "version": "1.0.0", "main": "dist/index.js", "types": "dist/index.d.ts", "scripts": {"build": "(cd ../.. && go run ./gen) > src/api.ts && tsc -p ."}}` + "\n",
	"web/client/tsconfig.json": mixedCompiler,
	"web/client/src/index.ts":  "import { Item } from \"./api\";\n\nexport * from \"./api\";\n\nexport function show(item: Item): string {\n  return `${item.name}: ${item.cents}`;\n}\n",
	"web/app/package.json":     `{"name": "app", "version": "1.0.0", "dependencies": {"client": "1.0.0"}, "scripts": {"build": "tsc -p .", "test": "node --test"}}` + "\n",
	"web/app/tsconfig.json":    mixedCompiler,
	"web/app/src/app.ts":       "import { Item, show } from \"client\";\n\nexport function bill(items: Item[]): string {\n  return items.map(show).join(\", \");\n}\n",
	"web/app/test/app.test.js": "const test = require(\"node:test\");\nconst assert = require(\"node:assert\");\nconst { bill } = require(\"../dist/app.js\");\n\ntest(\"a bill\", () => {\n  assert.equal(bill([{ name: \"tea\", cents: 250 }]), \"tea: 250\");\n});\n",
	"web/words/package.json":   `{"name": "words", "version": "1.0.0", "scripts": {"test": "node --test"}}` + "\n",
	"web/words/index.js":       "exports.thanks = \"thank you\";\n",
	"web/words/index.test.js":  "const assert = require(\"node:assert\");\n\nrequire(\"node:test\")(\"thanks\", () => {\n  assert.match(require(\"./index.js\").thanks, /you/);\n});\n",

	"py/pyproject.toml":       "[project]\nname = \"reports\"\nversion = \"1.0\"\n",
	"py/reports/__init__.py":  "# Reports.\n",
	"py/reports/tax.py":       "RATE = 19\n\n\ndef tax(cents):\n    return cents * RATE // 100\n",
	"py/reports/table.py":     "def row(*cells):\n    return \" | \".join(str(c) for c in cells)\n",
	"py/tests/test_tax.py":    "from reports.tax import tax\n\n\ndef test_tax():\n    assert tax(1000) == 190\n",
	"py/tests/test_table.py":  "from reports.table import row\n\n\ndef test_row():\n    assert row(\"a\", 1) == \"a | 1\"\n",
	"py/checks/test_items.py": "import pathlib\nimport sqlite3\n\n\ndef test_items():\n    db = sqlite3.connect(\":memory:\")\n    for path in sorted((pathlib.Path(__file__).parents[2] / \"db\").glob(\"*.sql\")):\n        db.executescript(path.read_text())\n    assert [row[1] for row in db.execute(\"pragma table_info(items)\")][:3] == [\"id\", \"name\", \"cents\"]\n",

	"db/landfall.yaml": "targets:\n  - name: db\n    sources: [\"*.sql\", check.py]\n    steps:\n      - name: check\n        run: [python3, db/check.py]\nedges:\n  - from: \"python://py/checks [test]\"\n    to: [\":db\"]\n",
	"db/001.sql":       "create table items (id integer primary key, name text, cents integer);\n",
	"db/002.sql":       "create table orders (\n  id integer primary key,\n  item integer references items (id)\n);\n",
	"db/check.py": `"""Runs all files of SQL, in order, on an empty SQLite."""
import pathlib
import sqlite3
import sys

db = sqlite3.connect(":memory:")
for path in sorted(pathlib.Path("db").glob("*.sql")):
    statement, start = "", 1
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if not statement.strip():
            statement, start = "", number
        statement += line
        if sqlite3.complete_statement(statement):
            try:
                db.execute(statement)
            except sqlite3.Error as error:
                sys.exit(f"{path}:{start}: {error}")
            statement = ""
    if statement.strip():
        sys.exit(f"{path}:{start}: the statement does not end")
`,
}

const mixedCompiler = `{"compilerOptions": {"strict": true, "module": "commonjs", "target": "es2022", "declaration": true, "rootDir": "src", "outDir": "dist", "types": []}, "include": ["src"]}` + "\n"

// mixedChanges are 40, of all kinds.
var mixedChanges = []mixedChange{
	{name: "go-subtract", small: true, commits: one(mixedEdit{"money/sub.go", "", "package money\n\n// Sub returns a difference.\nfunc Sub(a, b int) int { return a - b }\n"})},
	{name: "go-many", commits: one(mixedEdit{"stock/many.go", "", "package stock\n\n// Many reports whether many are left.\nfunc Many(left int) bool { return left > 10*Low }\n"})},
	{name: "go-last", commits: one(mixedEdit{"text/last.go", "", "package text\n\n// Last returns the last byte of a text.\nfunc Last(s string) string { return s[max(0, len(s)-1):] }\n"})},
	{name: "go-api-weight", commits: one(mixedEdit{"api/api.go", "type Item struct {\n", "type Item struct {\n\tGrams int    `json:\"grams\"`\n"}, mixedEdit{"web/app/test/app.test.js", "cents: 250 }", "cents: 250, grams: 100 }"})},

	{name: "go-undefined", small: true, commits: one(mixedEdit{"cart/cart.go", "money.Add(sum, c)", "money.Plus(sum, c)"}), path: "cart/cart.go", line: "money.Plus"},
	{name: "go-wrong", commits: one(mixedEdit{"money/money.go", "percent/100", "percent/10"}), path: "money/money_test.go", line: "200 less 10"},
	{name: "go-panics", commits: one(mixedEdit{"text/text.go", "\tif s == \"\" {\n\t\treturn \"\"\n\t}\n", ""}), path: "text/text.go", line: "s[:1]"},
	{name: "go-verb", commits: one(mixedEdit{"stock/say.go", "", "package stock\n\nimport \"fmt\"\n\n// Say returns how many are left.\nfunc Say(left int) string { return fmt.Sprintf(\"%s left\", left) }\n"}), path: "stock/say.go", line: "Sprintf"},
	{name: "go-unused", commits: one(mixedEdit{"cart/cart.go", "import \"example.com/shop/money\"", "import (\n\t\"os\"\n\n\t\"example.com/shop/money\"\n)"}), path: "cart/cart.go", line: "\"os\""},

	{name: "ts-count", commits: one(mixedEdit{"web/app/src/count.ts", "", "import { Item } from \"client\";\n\nexport const count = (items: Item[]): number => items.length;\n"})},
	{name: "ts-short", commits: one(mixedEdit{"web/client/src/short.ts", "", "export const short = (text: string): string => text.slice(0, 10);\n"})},
	{name: "js-thanks", commits: one(mixedEdit{"web/words/bye.js", "", "exports.bye = \"good bye\";\n"})},

	{name: "ts-type", small: true, commits: one(mixedEdit{"web/app/src/sum.ts", "", "import { Item } from \"client\";\n\nexport function first(items: Item[]): number {\n  return items[0].name;\n}\n"}), path: "web/app/src/sum.ts", line: "items[0].name"},
	{name: "ts-bill", commits: one(mixedEdit{"web/app/src/app.ts", "\", \"", "\"; \" + "}), path: "web/app/src/app.ts", line: "\"; \" + "},
	{name: "ts-client-shows-less", commits: one(mixedEdit{"web/client/src/index.ts", "${item.name}: ${item.cents}", "${item.name}"}), path: "web/app/test/app.test.js", line: "assert.equal(bill"},
	{name: "js-no-thanks", commits: one(mixedEdit{"web/words/index.js", "thank you", "thanks"}), path: "web/words/index.test.js", line: "assert.match"},

	{name: "go-api-renames-cents", small: true, commits: one(mixedEdit{"api/api.go", "json:\"cents\"", "json:\"price\""}), path: "web/client/src/index.ts", line: "item.cents"},

	{name: "py-reduced", commits: one(mixedEdit{"py/reports/reduced.py", "", "from reports.tax import tax\n\n\ndef reduced(cents):\n    return tax(cents) // 2\n"}, mixedEdit{"py/tests/test_reduced.py", "", "from reports.reduced import reduced\n\n\ndef test_reduced():\n    assert reduced(1000) == 95\n"})},
	{name: "py-head", commits: one(mixedEdit{"py/reports/head.py", "", "from reports.table import row\n\n\ndef head(*names):\n    return row(*names).upper()\n"})},
	{name: "py-more-tests", commits: one(mixedEdit{"py/tests/test_zero.py", "", "from reports.tax import tax\n\n\ndef test_nothing_is_free_of_tax():\n    assert tax(0) == 0\n"})},

	{name: "py-rate", small: true, commits: one(mixedEdit{"py/reports/tax.py", "RATE = 19", "RATE = 20"}), path: "py/tests/test_tax.py", line: "assert tax(1000)"},
	{name: "py-syntax", commits: one(mixedEdit{"py/reports/tax.py", "def tax(cents):", "def tax(cents)"}), path: "py/reports/tax.py", line: "def tax(cents)"},
	{name: "py-import", commits: one(mixedEdit{"py/reports/table.py", "def row", "import nothing_of_that_name\n\n\ndef row"}), path: "py/reports/table.py", line: "nothing_of_that_name"},

	{name: "sql-index", commits: one(mixedEdit{"db/003.sql", "", "create index orders_by_item on orders (item);\n"})},
	{name: "sql-view", commits: one(mixedEdit{"db/004.sql", "", "create view dear as\n  select name from items where cents > 10000;\n"})},

	{name: "sql-typo", small: true, commits: one(mixedEdit{"db/005.sql", "", "create index items_by_name on items (name);\n\ncreate tabel users (id integer);\n"}), path: "db/005.sql", line: "create tabel"},
	{name: "sql-missing", commits: one(mixedEdit{"db/006.sql", "", "insert into nobody values (1);\n"}), path: "db/006.sql", line: "nobody"},
	{name: "sql-renames-cents", commits: one(mixedEdit{"db/007.sql", "", "alter table items rename column cents to price;\n"}), path: "py/checks/test_items.py", line: "pragma table_info"},

	{name: "docs-guide", small: true, commits: one(mixedEdit{"docs/guide.md", "# Guide\n", "# Guide\n\nBuy something.\n"})},
	{name: "docs-readme", commits: one(mixedEdit{"README.md", "# The shop\n", "# The shop\n\nSells tea.\n"})},

	{name: "rates", commits: one(mixedEdit{"rates.csv", "EUR,1\n", "EUR,1\nCHF,1.06\n"})},

	{name: "few-is-two", rival: "few", commits: one(mixedEdit{"stock/stock.go", "Low = 3", "Low = 2"}), path: "stock/stock.go", line: "const Low"},
	{name: "few-is-four", rival: "few", commits: one(mixedEdit{"stock/stock.go", "Low = 3", "Low = 4"}), path: "stock/stock.go", line: "const Low"},
	{name: "go-renames-add", rival: "add", small: true, commits: one(mixedEdit{"money/money.go", "// Add returns a sum.\nfunc Add", "// Sum returns a sum.\nfunc Sum"}, mixedEdit{"money/money_test.go", "got := Add(", "got := Sum("}, mixedEdit{"cart/cart.go", "money.Add", "money.Sum"}), path: "fee/fee.go", line: "money.Add"},
	{name: "go-adds-fee", rival: "add", small: true, commits: one(mixedEdit{"fee/fee.go", "", "// Package fee adds fees.\npackage fee\n\nimport \"example.com/shop/money\"\n\n// With adds the fee.\nfunc With(cents int) int { return money.Add(cents, 99) }\n"}), path: "fee/fee.go", line: "money.Add"},
	{name: "py-renames-row", rival: "row", commits: one(mixedEdit{"py/reports/table.py", "def row", "def line"}, mixedEdit{"py/tests/test_table.py", "import row\n\n\ndef test_row():\n    assert row", "import line\n\n\ndef test_line():\n    assert line"}), path: "py/tests/test_wide.py", line: "import row"},
	{name: "py-wide-row", rival: "row", commits: one(mixedEdit{"py/tests/test_wide.py", "", "from reports.table import row\n\n\ndef test_wide():\n    assert len(row(*range(9))) == 33\n"}), path: "py/tests/test_wide.py", line: "import row"},

	{name: "stack-good", commits: [][]mixedEdit{
		{{"clock/clock.go", "", "// Package clock tells the time.\npackage clock\n\n// Noon is an hour.\nconst Noon = 12\n"}},
		{{"clock/clock_test.go", "", "package clock\n\nimport \"testing\"\n\nfunc TestNoon(t *testing.T) {\n\tif Noon != 12 {\n\t\tt.Fatal(Noon)\n\t}\n}\n"}},
	}},
	{name: "stack-bad", commits: [][]mixedEdit{
		{{"bell/bell.go", "", "// Package bell rings.\npackage bell\n\n// Rings is how often.\nconst Rings = 3\n"}},
		{{"bell/bell_test.go", "", "package bell\n\nimport \"testing\"\n\nfunc TestRings(t *testing.T) {\n\tif Rings != 4 {\n\t\tt.Fatal(Rings)\n\t}\n}\n"}},
	}, path: "bell/bell_test.go", line: "t.Fatal"},

	{name: "manifest", commits: one(mixedEdit{"db/landfall.yaml", "    sources:", "    source:"}), path: "db/landfall.yaml", line: "source:"},
}
