package nodegraph

import (
	"strings"
	"testing"
)

// TestWhatClimbsByDirnameReadsWhatIsAbove: tests of packages/site go through folders above theirs, and a schema of another package is
// added.
func TestWhatClimbsByDirnameReadsWhatIsAbove(t *testing.T) {
	const reads = "fs.readdirSync(root).forEach(check)\n"
	base := memoryTree{
		"package.json": `{"name": "shop", "private": true, "workspaces": ["packages/*"]}`, "package-lock.json": `{"lockfileVersion": 3, "packages": {}}`,
		"packages/site/package.json":      `{"name": "site", "scripts": {"test": "jest"}}`,
		"packages/contracts/package.json": `{"name": "contracts", "scripts": {"test": "jest"}}`, "packages/contracts/index.js": "1\n", "docs/guide.txt": "1\n",
	}
	const packages, all, none = "packages", "everything", "nothing"
	for _, c := range []struct{ name, code, reaches string }{
		{"its own folder", "const root = path.dirname(__filename)", none},
		{"its own folder, as a module", "const root = path.dirname(fileURLToPath(import.meta.url))", none},
		{"its own package", "const root = path.dirname(path.dirname(__filename))", none},
		{"the packages", "const root = path.dirname(path.dirname(__dirname))", packages},
		{"the packages, as a module", "const root = dirname(dirname(dirname(url.fileURLToPath(import.meta.url))))", packages},
		{"the packages, by the newer name", "const root = dirname(dirname(import.meta.dirname))", packages},
		{"by a name", "const here = path.dirname(fileURLToPath(import.meta.url))\nconst root = path.dirname(path.dirname(here))", packages},
		{"by two names", "const __filename = fileURLToPath(import.meta.url)\nconst own = path.dirname(path.dirname(__filename))\nconst root = path.dirname(own)", packages},
		{"from where it is run", "const root = path.dirname(process.cwd())", packages},
		{"the root", "const root = path.dirname(path.dirname(path.dirname(__dirname)))", all},
		{"a loop", "let root = __dirname\nwhile (!fs.existsSync(path.join(root, 'package-lock.json'))) root = path.dirname(root)", all},
		{"a loop by another name", "let dir = __dirname\nfor (;;) {\n  const parent = path.dirname(dir)\n  if (parent === dir) break\n  dir = parent\n}", all},
		{"a loop in a function", "const find = (dir) => {\n  const parent = path.dirname(dir)\n  dir = parent\n}\nconst root = find(__dirname)", all},
		{"the folder of some file", "const out = path.dirname(file)\nconst root = __dirname", none},
	} {
		tree := base.with(memoryTree{"packages/site/test/schemas.test.js": c.code + "\n" + reads})
		affects := func(file string) bool {
			return strings.Contains(delta(t, tree, tree.with(memoryTree{file: "2\n"})), "packages/site [test]")
		}
		got := none
		switch inPackages, inDocs := affects("packages/contracts/schemas/item.json"), affects("docs/guide.txt"); {
		case inPackages && inDocs:
			got = all
		case inPackages:
			got = packages
		case inDocs:
			got = "documents alone"
		}
		if got != c.reaches {
			t.Errorf("%s: it reaches %s, want %s", c.name, got, c.reaches)
		}
	}
}
