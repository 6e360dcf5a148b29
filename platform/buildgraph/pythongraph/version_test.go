package pythongraph

import (
	"slices"
	"strings"
	"testing"
)

// sample is a workspace of uv with two members, and a project beside it.
var sample = memoryTree{
	"pyproject.toml": `[project]
name = "shop"
version = "1"
dependencies = ["cart"]

[tool.uv.sources]
cart = { workspace = true }

[tool.uv.workspace]
members = ["packages/*"]
`,
	"uv.lock": `version = 1
requires-python = ">=3.11"

[manifest]
members = ["cart", "shop", "money"]

[[package]]
name = "cart"
version = "1"
source = { editable = "packages/cart" }
dependencies = [{ name = "money" }, { name = "attrs" }]

[[package]]
name = "money"
version = "1"
source = { editable = "packages/money" }
dependencies = [{ name = "idna" }]

[package.dev-dependencies]
dev = [{ name = "pytest" }]

[[package]]
name = "shop"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "cart" }]

[[package]]
name = "attrs"
version = "23"
source = { registry = "https://example.org" }

[[package]]
name = "idna"
version = "3"
source = { registry = "https://example.org" }

[[package]]
name = "pytest"
version = "8"
source = { registry = "https://example.org" }
`,
	"README.md":                               "shop\n",
	"shop/__init__.py":                        "",
	"shop/main.py":                            "import cart.basket\n",
	"tests/test_shop.py":                      "from shop import main\n",
	"packages/cart/pyproject.toml":            "[project]\nname = \"cart\"\nversion = \"1\"\ndependencies = [\"money\", \"attrs\"]\n[build-system]\nbuild-backend = \"hatchling.build\"\n",
	"packages/cart/src/cart/__init__.py":      "",
	"packages/cart/src/cart/basket.py":        "from money import amount\nfrom . import items\n",
	"packages/cart/src/cart/items.py":         "import attrs\n",
	"packages/cart/src/cart/unused.py":        "",
	"packages/cart/src/cart/names.json":       "{}\n",
	"packages/cart/tests/conftest.py":         "import helpers\n",
	"packages/cart/tests/helpers.py":          "",
	"packages/cart/tests/test_items.py":       "import cart.items\n",
	"packages/cart/tests/data/items.json":     "{}\n",
	"packages/cart/tests/deep/test_basket.py": "import cart.basket\n",
	"packages/money/pyproject.toml":           "[project]\nname = \"money\"\nversion = \"1\"\ndependencies = [\"idna\"]\n[dependency-groups]\ndev = [\"pytest\"]\n",
	"packages/money/src/money/__init__.py":    "from .amount import Amount\n",
	"packages/money/src/money/amount.py":      "class Amount: ...\n",
	"packages/money/src/money/rare.py":        "",
	"packages/money/tests/test_amount.py":     "from unittest import mock\nmock.patch('money.amount.Amount')\n",
	"other/setup.py":                          "from setuptools import setup\nsetup(name='other', install_requires=['idna'])\n",
	"other/other.py":                          "",
	"other/test_other.py":                     "import other\n",
}

func edited(t *testing.T, file, old, new string) memoryTree {
	t.Helper()
	if !strings.Contains(sample[file], old) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	return memoryTree{file: strings.Replace(sample[file], old, new, 1)}
}

func TestAVersionChangesExactlyWithWhatItCovers(t *testing.T) {
	const (
		shop  = "., tests [test]"
		cart  = "packages/cart, packages/cart/tests [test], packages/cart/tests/deep [test]"
		money = "packages/money, packages/money/tests [test]"
		other = "other, other [test]"
	)
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a test":                             {memoryTree{"tests/test_shop.py": "import shop.main\n"}, "tests [test]"},
		"a module":                           {memoryTree{"packages/cart/src/cart/items.py": "import attr\n"}, shop + ", " + cart},
		"a module that one test imports":     {memoryTree{"packages/cart/src/cart/basket.py": "x = 1\n"}, shop + ", packages/cart, packages/cart/tests/deep [test]"},
		"a module that nothing imports":      {memoryTree{"packages/cart/src/cart/unused.py": "x = 1\n"}, "packages/cart"},
		"a new module":                       {memoryTree{"packages/cart/src/cart/new.py": "x = 1\n"}, "packages/cart"},
		"a module of a dependency":           {memoryTree{"packages/money/src/money/amount.py": "x = 1\n"}, shop + ", packages/cart, packages/cart/tests/deep [test], " + money},
		"an unused module of a dependency":   {memoryTree{"packages/money/src/money/rare.py": "x = 1\n"}, "packages/money"},
		"data of a package":                  {memoryTree{"packages/cart/src/cart/names.json": "[]\n"}, shop + ", " + cart},
		"data of a test":                     {memoryTree{"packages/cart/tests/data/items.json": "[]\n"}, "packages/cart/tests [test], packages/cart/tests/deep [test]"},
		"a helper of a conftest.py":          {memoryTree{"packages/cart/tests/helpers.py": "x = 1\n"}, "packages/cart/tests [test], packages/cart/tests/deep [test]"},
		"a helper that comes to be":          {memoryTree{"packages/cart/tests/attrs.py": "x = 1\n"}, shop + ", " + cart},
		"a conftest.py above":                {memoryTree{"conftest.py": "x = 1\n"}, "., other [test], packages/cart/tests [test], packages/cart/tests/deep [test], packages/money/tests [test], tests [test]"},
		"a package that comes to be":         {memoryTree{"packages/cart/tests/deep/__init__.py": "x = 1\n"}, "packages/cart, packages/cart/tests [test], packages/cart/tests/deep [test]"},
		"a comment in a pyproject.toml":      {memoryTree{"packages/cart/pyproject.toml": "# cart\n" + sample["packages/cart/pyproject.toml"]}, ""},
		"a version of a project":             {edited(t, "packages/cart/pyproject.toml", `version = "1"`, `version = "2"`), ". [lock], " + shop + ", " + cart},
		"a pin that one needs":               {edited(t, "uv.lock", `version = "23"`, `version = "24"`), ". [lock], " + shop + ", " + cart},
		"a pin that all members need":        {edited(t, "uv.lock", `version = "3"`, `version = "4"`), ". [lock], " + shop + ", " + cart + ", " + money},
		"a pin for work on a project":        {edited(t, "uv.lock", `version = "8"`, `version = "9"`), ". [lock], " + money},
		"a comment in a lock file":           {memoryTree{"uv.lock": "# lock\n" + sample["uv.lock"]}, ". [lock]"},
		"the versions of Python":             {edited(t, "uv.lock", "3.11", "3.12"), ". [lock], " + shop + ", " + cart + ", " + money},
		"the interpreter":                    {memoryTree{".python-version": "3.12\n"}, ". [lock], " + shop + ", " + cart + ", " + money + ", " + other},
		"the interpreter of one":             {memoryTree{"packages/cart/.python-version": "3.12\n"}, ". [lock], " + shop + ", " + cart},
		"a document":                         {memoryTree{"README.md": "new\n"}, ""},
		"settings of pytest":                 {memoryTree{"packages/money/pytest.ini": "[pytest]\naddopts = -q\n"}, ". [lock], " + shop + ", " + cart + ", " + money},
		"settings of pytest above":           {memoryTree{"tox.ini": "[pytest]\naddopts = -q\n"}, ". [lock], " + shop + ", " + cart + ", " + money + ", " + other}, // It hides those above it.
		"what is under a string":             {memoryTree{"packages/money/src/money/__init__.py": ""}, shop + ", packages/cart, packages/cart/tests/deep [test], " + money},
		"a member that comes to be":          {memoryTree{"packages/new/pyproject.toml": "[project]\nname = \"new\"\n"}, ". [lock], " + shop + ", packages/new"},
		"a member that is none":              {memoryTree{"packages/new/x": "x\n"}, ". [lock], " + shop + ", " + cart + ", " + money},
		"a plain project's module":           {memoryTree{"other/other.py": "x = 1\n"}, other},
		"a plain project's requirements":     {memoryTree{"other/requirements-dev.txt": "-e ../packages/money\n"}, other},
		"a module that shadows another's":    {memoryTree{"tests/cart.py": "x = 1\n"}, shop},
		"a module of a name used everywhere": {memoryTree{"other/money.py": "x = 1\n"}, "other, other [test]"},
	} {
		if got := delta(t, sample, sample.with(c.edit)); got != inOrder(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, inOrder(c.want))
		}
	}
}

func inOrder(names string) string {
	list := strings.Split(names, ", ")
	slices.Sort(list)
	return strings.Join(list, ", ")
}
