package nodegraph

import (
	"slices"
	"strings"
	"testing"
)

// reached returns which packages besides its own reach a file that is edited.
func reached(t *testing.T, tree memoryTree, path string) string {
	t.Helper()
	names := strings.Split(delta(t, tree, tree.with(memoryTree{path: tree[path] + "\n"})), ", ")
	return strings.Join(slices.DeleteFunc(names, func(name string) bool { return name == "." || name == "" }), ", ")
}

func TestWhateverNamesAFileReachesIt(t *testing.T) {
	tool := func(file, content string) memoryTree { return memoryTree{"packages/tool/" + file: content} }
	for name, c := range map[string]struct {
		edit memoryTree
		file string
	}{
		"an import":                     {tool("x.mjs", "import x from '../../data/x.js'"), "data/x.js"},
		"an import for its effects":     {tool("x.mjs", "import\n'../../data/x'"), "data/x.js"},
		"an export":                     {tool("x.ts", "export type { X } from \"../../data/x\""), "data/x.d.ts"},
		"an import of another ending":   {tool("x.ts", "import '../../data/x.js'"), "data/x.ts"},
		"a comment before":              {tool("x.js", "import(/* webpackChunkName: \"x\" */ '../../data/x')"), "data/x.js"},
		"an apostrophe before":          {tool("x.js", "// don't\nrequire('../../data/x')"), "data/x.js"},
		"a single file component":       {tool("x.vue", "<template>it's</template><script>import x from '../../data/x.vue'</script>"), "data/x.vue"},
		"a style":                       {tool("x.scss", "@use '../../data/x';"), "data/_x.scss"},
		"an address in a style":         {tool("x.css", "a { background: url(../../data/x.png) }"), "data/x.png"},
		"a folder's index":              {tool("x.js", "require('../../data')"), "data/index.js"},
		"a folder's manifest":           {tool("x.js", "require('../../data')"), "data/package.json"},
		"a file deep in a folder":       {tool("x.js", "fs.readdirSync(__dirname + '/../../data')"), "data/deep/x.json"},
		"parts of a path":               {tool("x.js", "path.join(__dirname, '..', '..', 'data', 'x.json')"), "data/x.json"},
		"a template":                    {tool("x.js", "fs.readFileSync(`${__dirname}/../../data/${name}.json`)"), "data/x.json"},
		"an address of a module":        {tool("x.js", "new URL('../../data/x.wasm', import.meta.url)"), "data/x.wasm"},
		"a folder of the tests' root":   {tool("jest.config.js", "module.exports = {roots: ['<rootDir>/../../data']}"), "data/x.js"},
		"a blank in the path":           {tool("x.js", "require('../../my data/x')"), "my data/x.js"},
		"a configuration's base":        {tool("tsconfig.json", `{"extends": "../../data/tsconfig"}`), "data/tsconfig.json"},
		"the base of the base":          {tool("tsconfig.json", `{"extends": ["../../tsconfig.base", "../../a.json"]}`).with(memoryTree{"a.json": `{"extends": "./b.json"}`}), "b.json"},
		"sources of a configuration":    {tool("tsconfig.json", `{"include": ["src", "../../data/**/*.ts"]}`), "data/deep/x.ts"},
		"a project referred to":         {tool("tsconfig.json", `{"references": [{"path": "../../data"}]}`), "data/tsconfig.json"},
		"an alias of a base":            {tool("x.ts", "import '@alias/new/deep'"), "shared/new/deep/src/x.ts"},
		"an alias of the base folder":   {tool("tsconfig.json", `{"compilerOptions": {"baseUrl": "../../data"}}`).with(tool("x.ts", "import 'lib/x'")), "data/lib/x.ts"},
		"a script":                      {sample.replaced(t, "packages/tool/package.json", "node build.js", "node ../../data/x.js --check"), "data/x.js"},
		"what a script's file requires": {sample.replaced(t, "packages/tool/package.json", "node build.js", "node ../../data/x.js").with(memoryTree{"data/x.js": "require('../y')\n"}), "y.js"},
		"a script in the root":          {sample.replaced(t, "packages/tool/package.json", "node build.js", "cd ../.. && node y.js"), "y.js"},
		"a script in the folder above":  {sample.replaced(t, "packages/tool/package.json", "node build.js", "cd .. && node data/check.js"), "packages/data/check.js"},
		"a script of another package":   {sample.replaced(t, "packages/tool/package.json", "node build.js", "cd .. && node util/check.js"), "packages/util/check.js"},
		"a folder with a name":          {tool("x.js", "const root = path.resolve(__dirname, \"../..\")\nfs.readFileSync(path.join(root, \"packages/util/data.json\"))"), "packages/util/data.json"},
		"a folder by parts":             {tool("x.js", "const root = path.resolve(__dirname, '..', '..')\nfs.readFileSync(path.join(root, 'packages', 'util', 'data.json'))"), "packages/util/data.json"},
		"a folder and one name":         {tool("x.js", "const root = new URL('../../', import.meta.url)\nfs.readdirSync(path.join(root, 'data'))"), "data/deep/x.json"},
		"a folder in a template":        {tool("x.js", "const root = `${__dirname}/../..`\nfs.readFileSync(`${root}/data/${name}.json`)"), "data/x.json"},
		"a folder in a sum":             {tool("x.js", "const root = path.join(__dirname, '../..')\nfs.readFileSync(root + '/data/' + name)"), "data/x.json"},
		"a dependency on a folder":      {sample.replaced(t, "packages/tool/package.json", `{"deep"`, `{"x": "file:../../data", "deep"`), "data/deep/x.js"},
		"a dependency on an archive":    {sample.replaced(t, "packages/tool/package.json", `{"deep"`, `{"x": "file:../../x.tgz", "deep"`), "x.tgz"},
		"a link":                        {tool("x.js", "mode 120000 ../../data/x.js"), "data/x.js"},
		"a link to a folder":            {tool("x", "mode 120000 ../../data"), "data/deep/x.js"},
		"a path through a link":         {tool("x.js", "require('../../linked/x')").with(memoryTree{"linked": "mode 120000 data"}), "data/x.js"},
		"configuration above":           {memoryTree{"packages/babel.config.js": "module.exports = require('../data/x')\n"}, "data/x.js"},
		"a file without a manifest":     {memoryTree{"packages/util/y.js": "require('./z')"}, "packages/util/z.js"},
	} {
		tree := sample.with(c.edit).with(memoryTree{c.file: "1\n"})
		if content, ok := c.edit[c.file]; ok {
			tree[c.file] = content
		}
		want := "packages/tool"
		if c.file == "packages/util/z.js" {
			want = "packages/util"
		}
		if got := reached(t, tree, c.file); !slices.Contains(strings.Split(got, ", "), want) {
			t.Errorf("%s: an edit of %s reaches %q only", name, c.file, got)
		}
	}
}

func TestWhatAMemberListsInTheRootIsNoDependencyOfAll(t *testing.T) {
	tree := sample.with(memoryTree{
		"tsconfig.json":  `{"files": [], "references": [{"path": "packages/app"}, {"path": "packages/tool"}]}`,
		"jest.config.js": "module.exports = {projects: ['./packages/app', '<rootDir>/packages/*']}\n",
	})
	if got := reached(t, tree, "packages/tool/build.js"); got != "packages/tool" {
		t.Errorf("an edit of a member reaches %s", got)
	}
}

func TestPackageManagersAreChosenAsTheirFilesSay(t *testing.T) {
	for name, c := range map[string]struct {
		tree memoryTree
		want string
	}{
		"nothing":          {memoryTree{"package.json": "{}"}, "unset npm_config_store_dir; npm install --no-audit --no-fund --no-package-lock --ignore-scripts"},
		"npm":              {memoryTree{"package.json": "{}", "package-lock.json": npmLockText}, "unset npm_config_store_dir; npm ci --no-audit --no-fund --ignore-scripts"},
		"pnpm":             {memoryTree{"package.json": "{}", "pnpm-lock.yaml": pnpmText, "package-lock.json": npmLockText}, "pnpm install --frozen-lockfile --ignore-scripts"},
		"pnpm's workspace": {memoryTree{"pnpm-workspace.yaml": "packages: [a]\n", "a/package.json": "{}"}, "pnpm install --no-frozen-lockfile --no-lockfile --ignore-scripts"},
		"yarn 1":           {memoryTree{"package.json": "{}", "yarn.lock": classicText}, "yarn install --frozen-lockfile --non-interactive --ignore-scripts"},
		"yarn 4":           {memoryTree{"package.json": "{}", "yarn.lock": berryText}, "yarn install --immutable --mode=skip-build"},
		"bun":              {memoryTree{"package.json": "{}", "bun.lock": "{}"}, "bun install --frozen-lockfile --ignore-scripts"},
		"what it says":     {memoryTree{"package.json": `{"packageManager": "yarn@1.22.0"}`, "package-lock.json": npmLockText}, "yarn install --no-lockfile --non-interactive --ignore-scripts"},
	} {
		target, ok := load(t, c.tree).Target("node://. [install]")
		if !ok || len(target.Commands) != 1 || target.Commands[0].Argv[2] != "export CI=true; "+c.want {
			t.Errorf("%s: %+v", name, target)
		}
	}
}

func TestMembersAreThoseThatThePatternsTake(t *testing.T) {
	files := memoryTree{}
	for _, dir := range []string{"a", "b", "b/c", "b/c/d", ".h", "b/.h", "x/node_modules/y", "b/test/z"} {
		files[dir+"/package.json"] = `{"name": "` + nameOf(dir) + `"}`
	}
	for patterns, want := range map[string]string{
		`["*"]`:                           "., a, b",
		`["b/*"]`:                         "., b/c",
		`["**"]`:                          "., a, b, b/c, b/c/d, b/test/z",
		`["b/**"]`:                        "., b, b/c, b/c/d, b/test/z",
		`["./a/", "b/{c,x}"]`:             "., a, b/c",
		`["**", "!**/test/**"]`:           "., a, b, b/c, b/c/d",
		`["!a", "*"]`:                     "., a, b",
		`["*", "!a", "b/c/package.json"]`: "., b, b/c",
		`["[ab]", ".h"]`:                  "., .h, a, b",
		`{"packages": ["a"]}`:             "., a",
		`[]`:                              ".",
		`["none/*"]`:                      ".",
	} {
		tree := files.with(memoryTree{"package.json": `{"workspaces": ` + patterns + `}`})
		var got []string
		for target := range load(t, tree).Targets() {
			if target.Kind == "package" {
				got = append(got, strings.TrimPrefix(target.Name, "node://"))
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s takes %s, want %s", patterns, strings.Join(got, ", "), want)
		}
	}
}
