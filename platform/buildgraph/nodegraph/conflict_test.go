package nodegraph

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

func TestChangesThatMatterToEachOtherConflict(t *testing.T) {
	manifest := func(old, new string) memoryTree { return sample.replaced(t, "packages/tool/package.json", old, new) }
	lock := func(old, new string) memoryTree { return sample.replaced(t, "package-lock.json", old, new) }
	importing := func(spec string) memoryTree {
		return memoryTree{"packages/tool/new.js": "import '" + spec + "'\n"}
	}
	for name, c := range map[string]struct{ a, b memoryTree }{
		"a dependency and an edit of the member":        {manifest(`{"deep"`, `{"util-x": "*", "deep"`), memoryTree{"packages/util/index.js": "\n"}},
		"a dependency and the member that it lacks":     {manifest(`{"deep"`, `{"new": "*", "deep"`), memoryTree{"packages/new/package.json": `{"name": "new"}`}},
		"an import and an edit of the member":           {importing("util-x/deep"), memoryTree{"packages/util/index.js": "\n"}},
		"an import and the member that it lacks":        {importing("new"), memoryTree{"packages/new/package.json": `{"name": "new"}`}},
		"an import and the version that it reaches":     {importing("left-pad"), lock("sha512-b1", "sha512-b2")},
		"an import and the version that it lacks":       {importing("fresh"), lock(`"node_modules/deep":`, `"node_modules/fresh": {"version": "1.0.0"}, "node_modules/deep":`)},
		"an import and a version that comes before":     {importing("left-pad"), lock(`"node_modules/deep":`, `"packages/tool/node_modules/left-pad": {"version": "1.0.0"}, "node_modules/deep":`)},
		"a path and the file that it leads to":          {importing("../../scripts/other"), memoryTree{"scripts/other.js": "1\n"}},
		"a path and the file that it lacks":             {importing("../../scripts/new"), memoryTree{"scripts/new.ts": "1\n"}},
		"a path and the index that it lacks":            {importing("../../new"), memoryTree{"new/index.js": "1\n"}},
		"a path and a file below":                       {importing("../../scripts"), memoryTree{"scripts/lib/steps.js": "1\n"}},
		"a path into a package and its edit":            {importing("../util/lib/x"), memoryTree{"packages/util/index.js": "1\n"}},
		"a path and what becomes a package":             {importing("../../shared/colors/src/x"), memoryTree{"shared/colors/package.json": "{}", "shared/colors/yarn.lock": "# yarn lockfile v1\n"}},
		"what a path leads to and what that requires":   {importing("../../scripts/other"), memoryTree{"scripts/other.js": "require('../shared/y')\n", "shared/y.js": "1\n"}},
		"an alias and what it leads to":                 {memoryTree{"tsconfig.base.json": `{"compilerOptions": {"paths": {"middle": ["./scripts/other.js"]}}}`}, memoryTree{"scripts/other.js": "1\n"}},
		"two dependencies":                              {manifest("^1.0.0", "^1.0.1"), sample.replaced(t, "packages/lib/package.json", `"right-pad": "1.0.0"`, `"right-pad": "1.0.1"`)},
		"two versions":                                  {lock("sha512-left", "sha512-new"), lock("sha512-right", "sha512-new")},
		"a new package and configuration above it":      {memoryTree{"solo/one/package.json": `{}`, "solo/one/yarn.lock": "# yarn lockfile v1\n"}, memoryTree{"solo/.npmrc": "x=1\n"}},
		"a new package and a file of it":                {memoryTree{"packages/new/package.json": `{"name": "new"}`}, memoryTree{"packages/new/src/x.js": "1\n"}},
		"a link and what it leads to":                   {memoryTree{"packages/tool/link.js": "mode 120000 ../../shared/colors/src/x.ts"}, memoryTree{"shared/colors/src/x.ts": "1\n"}},
		"a path and the link on its way":                {importing("../../other/x"), memoryTree{"other": "mode 120000 scripts"}},
		"a configuration and what it builds on":         {memoryTree{"packages/tool/tsconfig.json": `{"extends": "../../config/new.json"}`}, memoryTree{"config/new.json": `{}`}},
		"the root's configuration and what it requires": {memoryTree{"babel.config.js": "module.exports = require('./scripts/other')\n"}, memoryTree{"scripts/other.js": "1\n"}},
		"a path computed and a file in its folder":      {memoryTree{"packages/tool/new.js": "import(`../../data/${x}.js`)\n"}, memoryTree{"data/x.js": "1\n"}},
		"a computed path and a file of a package there": {memoryTree{"packages/tool/new.js": "import(`../${x}/index.js`)\n"}, memoryTree{"packages/util/index.js": "1\n"}},
		"a computed path and a new package there":       {memoryTree{"packages/tool/new.js": "import(`../../packages/${x}/index.js`)\n"}, memoryTree{"packages/new/package.json": `{"name": "new"}`}},
		"computed manifests and a new one":              {memoryTree{"packages/tool/new.js": "require(`../${x}/package.json`)\n"}, memoryTree{"packages/new/package.json": `{"name": "new"}`}},
		"a computed name and a file of a member":        {memoryTree{"packages/tool/new.js": "import(`util-${x}`)\n"}, memoryTree{"packages/util/index.js": "1\n"}},
		"a computed name and a new member":              {memoryTree{"packages/tool/new.js": "import(`@new/${x}`)\n"}, memoryTree{"packages/new/package.json": `{"name": "@new/x"}`}},
		"a computed name and a version":                 {memoryTree{"packages/tool/new.js": "import(`left-${x}`)\n"}, lock("sha512-left", "sha512-new")},
		"a folder that is listed and a new package":     {memoryTree{"packages/tool/new.js": "readdirSync('../..')\n"}, memoryTree{"libs/x/package.json": `{"workspaces": []}`}},
		"a folder that is listed and a file of another": {memoryTree{"packages/tool/new.js": "readdirSync('..')\n"}, memoryTree{"packages/util/index.js": "1\n"}},
		"a test and a package below it":                 {manifest(`"build": "node build.js"`, `"test": "jest"`), memoryTree{"packages/tool/sub/package.json": `{"workspaces": []}`}},
		"parts of a path and the file":                  {memoryTree{"packages/tool/new.js": "path.join(__dirname, '..', '..', 'data')\n"}, memoryTree{"data/x.js": "1\n"}},
	} {
		a := targets.Delta(load(t, sample), load(t, sample.with(c.a)))
		b := targets.Delta(load(t, sample), load(t, sample.with(c.b)))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}

func TestChangesOfSeparatePackagesAreIndependent(t *testing.T) {
	for name, c := range map[string]struct{ a, b memoryTree }{
		"two packages":                  {memoryTree{"packages/app/new.ts": "1\n"}, memoryTree{"packages/tool/new.js": "1\n"}},
		"a package and a document":      {memoryTree{"packages/app/new.ts": "1\n"}, memoryTree{"README.md": "1\n"}},
		"two projects":                  {memoryTree{"web/package.json": `{}`, "web/yarn.lock": "# yarn lockfile v1\n"}, memoryTree{"packages/tool/new.js": "1\n"}},
		"a version and another package": {sample.replaced(t, "package-lock.json", "sha512-left", "sha512-new"), memoryTree{"packages/tool/new.js": "1\n"}},
		"two scripts":                   {sample.replaced(t, "packages/tool/package.json", "node build.js", "node x.js"), sample.replaced(t, "packages/app/package.json", "jest", "jest --ci")},
		"two importers of one package":  {memoryTree{"packages/app/new.ts": "import 'util-x'\n"}, memoryTree{"packages/tool/new.js": "import 'util-x'\n"}},
	} {
		a := targets.Delta(load(t, sample), load(t, sample.with(c.a)))
		b := targets.Delta(load(t, sample), load(t, sample.with(c.b)))
		if why := a.Footprint().Meets(b.Footprint(), nil); why.Conflict() {
			t.Errorf("%s conflict: %+v", name, why)
		}
	}
}

// small is a repository in which nearly every edit matters to others: a project of its own in a folder, none around it.
var small = memoryTree{
	"x.js":             "1\n",
	"a/package.json":   `{"name": "a", "dependencies": {"b": "*", "x": "1"}}`,
	"a/x.js":           "import '../c/x'\n",
	"b/package.json":   `{"name": "b"}`,
	"b/yarn.lock":      "# yarn lockfile v1\n\nx@1:\n  version \"1.0.0\"\n",
	"b/x.js":           "import '../x'\n",
	"c/x.js":           "import 'b'\n",
	"d/package.json":   `{"name": "d", "workspaces": ["*"]}`,
	"d/b/package.json": `{"name": "b"}`,
	"d/c/package.json": `{"name": "c", "devDependencies": {"b": "^1.0.0"}, "scripts": {"test": "x"}}`,
}

// randomEdit makes a few edits, of which many touch what decides about edges. prefix is the folder of most packages.
func randomEdit(prefix string, dirs ...string) func(*rand.Rand) memoryTree {
	return func(random *rand.Rand) memoryTree {
		pick := func(list ...string) string { return list[random.IntN(len(list))] }
		dir := func() string { return below(prefix, pick(dirs...)) }
		name := func() string {
			return pick("app", "@s/lib", "util-x", "tool", "new", "left-pad", "middle", "a", "b", "c", "x", "@alias/colors")
		}
		path := func() string {
			return pick("./", "../", "../../", "../../../") + pick("x", "a/x", "b", "c/x", "scripts", "scripts/other", "shared/colors", "packages/util", "util/index", "new", "new/x", "..", "*/x", "tsconfig.base.json")
		}
		manifest := func() string {
			text := `{"name": "` + name() + `"`
			if random.IntN(2) == 0 {
				text += `, "dependencies": {"` + name() + `": "` + pick("*", "1", "^1.0.0", "file:"+path(), "workspace:*") + `"}`
			}
			if random.IntN(3) == 0 {
				text += `, "scripts": {"` + pick("test", "build") + `": "` + pick("", "cd .. && ", "cd ../.. && ") + `node ` + pick(path(), "x.js", "util/index.js", "packages/util/index.js") + `"}`
			}
			if random.IntN(5) == 0 {
				text += `, "workspaces": ["` + pick("*", "packages/*", "**", "a", "!b", "shared/*") + `"]`
			}
			return text + "}"
		}
		edit := memoryTree{}
		for range 1 + random.IntN(3) {
			switch random.IntN(13) {
			case 0, 1:
				edit[dir()+"/"+pick("x.js", "y.ts", "sub/z.vue", "index.js")] = pick("import '"+pick(name(), path(), name()+"/deep")+"'\n",
					"root = resolve('"+pick("..", "../..")+"')\njoin(root, '"+pick("x.js", "packages/util", "util/index.js", "scripts', 'other.js", "new")+"')\n",
					"readdirSync("+pick("'..'", "'../..'", "join(__dirname, '..')", "'../*'", "join('..', '..', 'packages')")+")\n", "execSync('npm query .workspace')\n",
					"require(`"+pick("@s/", "util-", "m", "@s/lib/", "../", "../../", "../../packages/", "../util-")+"${n}"+pick("", "/package.json", "/x.js")+"`)\n",
					"root = resolve('"+pick("..", "../..")+"')\njoin(root, "+pick("n", "'packages', n", "'scripts', n")+pick("", ", 'package.json'", ", 'x.js'")+")\n", "read('../' + n)\n")
			case 2:
				edit[dir()+"/"+manifestName] = manifest()
			case 3:
				edit[below(pick("", prefix, dir()), pick("package-lock.json", "yarn.lock", "pnpm-lock.yaml"))] = pick("# yarn lockfile v1\n\nx@1:\n  version \"1.0.1\"\n", npmLockText,
					strings.Replace(npmLockText, "sha512-m1", "sha512-new", 1), "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      x:\n        version: 1.0.0\nsnapshots:\n  x@1.0.0: {}\n", `{"lockfileVersion": 1}`)
			case 4:
				edit[below(pick("", prefix, dir()), manifestName)] = manifest()
			case 5:
				edit[below(pick("", prefix), pick("tsconfig.json", "tsconfig.base.json"))] = `{"compilerOptions": {"paths": {"` + pick("x", "middle", "*", "@alias/*") + `": ["` + pick("./shared/*", "./x.js", "c/x", "scripts/*") + `"]}}}`
			case 6:
				edit[dir()+"/tsconfig.json"] = `{"extends": "` + pick("../tsconfig.json", "../../tsconfig.base.json", "../../scripts/tsconfig.json", "b") + `", "references": [{"path": "` + path() + `"}]}`
			case 7:
				edit[pick("scripts/x.js", "scripts/other.js", "scripts/tsconfig.json", "shared/colors/src/x.ts", "c/x.js", "x.js", "x.ts", "new/x.js")] = pick("1\n", "import '"+path()+"'\n", "import '"+name()+"'\n")
			case 8, 9:
				edit[dir()+"/"+pick("x.js", "y.ts", "data.txt", "src/index.ts", "sub/package.json")] = pick("1\n", "{}\n")
			case 10:
				edit[dir()+"/"+pick("link", "x.js", "sub")] = "mode " + pick("120000 "+path(), "120000 x.js", "160000 commit")
			case 11:
				edit[pick(slices.Sorted(maps.Keys(sample.with(small)))...)] = ""
			case 12:
				edit[below(pick("", prefix), pick(".npmrc", ".eslintrc.js", "babel.config.js", "pnpm-workspace.yaml", "node_modules/x/index.js"))] = pick("1\n", "require('"+path()+"')\n", "packages: ['*']\n")
			}
		}
		return edit
	}
}

// TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone holds the adapter to the engine's contract: of two changes that
// M1 calls independent, each target version of the union is one that one of them makes alone (equation 6).
func TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone(t *testing.T) {
	seed := seedtest.Of(t)
	for i, c := range []struct {
		name string
		tree memoryTree
		edit func(*rand.Rand) memoryTree
	}{
		{"a workspace", sample, randomEdit("packages", "app", "lib", "util", "tool", "new")},
		{"projects of their own", small, randomEdit("", "a", "b", "c", "d", "d/b", "d/c", "new")},
		{"a workspace in a folder", folderOfSample(), randomEdit("web/packages", "app", "lib", "tool", "new", "../../c")},
	} {
		t.Run(c.name, func(t *testing.T) { independentChangesAddUp(t, c.tree, c.edit, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
}

// folderOfSample is the sample below the folder web, with files of nobody around it.
func folderOfSample() memoryTree {
	tree := memoryTree{"x.js": "1\n", "c/x.js": "1\n", "tsconfig.json": "{}"}
	for path, content := range sample {
		tree["web/"+path] = content
	}
	return tree
}

// pairs returns how many pairs of random edits each kind of repository gets: enough to notice that something broke.
// LANDFALL_NODEGRAPH_PAIRS asks for a search.
func pairs(t *testing.T) int {
	text := os.Getenv("LANDFALL_NODEGRAPH_PAIRS")
	if text == "" {
		return 300
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LANDFALL_NODEGRAPH_PAIRS: %v", err)
	}
	return n
}

func independentChangesAddUp(t *testing.T, sample memoryTree, edit func(*rand.Rand) memoryTree, random *rand.Rand) {
	loader := newLoader(t, Options{})
	graphOf := func(tree memoryTree) *targets.Graph {
		graph, err := loader.Load(t.Context(), "", tree)
		if _, invalid := errors.AsType[*Invalid](err); err != nil && !invalid && !errors.Is(err, ErrNoPackage) {
			t.Fatalf("%q: %v", tree, err)
		}
		return graph
	}
	base := graphOf(sample)
	independent := 0
	for range pairs(t) {
		first, second := edit(random), edit(random)
		if !disjoint(first, second) {
			continue
		}
		trees := []memoryTree{sample.with(first), sample.with(second), sample.with(first).with(second)}
		if slices.ContainsFunc(trees, func(m memoryTree) bool { return !m.sound() }) {
			continue
		}
		graphs := []*targets.Graph{graphOf(trees[0]), graphOf(trees[1]), graphOf(trees[2])}
		if slices.Contains(graphs, nil) {
			continue
		}
		a, b, union := targets.Delta(base, graphs[0]), targets.Delta(base, graphs[1]), targets.Delta(base, graphs[2])
		if a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			continue
		}
		independent++
		if want, got := versions(a, b), versions(union); want != got {
			t.Fatalf("called independent:\n%q\n%q\nonly alone or only together they make\n%s\ntogether unknown: %q", first, second, difference(want, got), graphs[2].Unknown())
		}
	}
	if independent < 5 {
		t.Errorf("only %d pairs were independent", independent)
	}
	t.Logf("%d independent pairs", independent)
}

func disjoint(x, y memoryTree) bool {
	for path := range x {
		if _, ok := y[path]; ok {
			return false
		}
	}
	return true
}

// versions lists what analyses make and delete.
func versions(analyses ...targets.Analysis) string {
	set := map[string]bool{}
	for _, a := range analyses {
		if a.All {
			set["all"] = true
		}
		for _, v := range a.Affected {
			set[fmt.Sprintf("%s %s", v.Name, v.Hash)] = true
		}
		for _, name := range a.Deleted {
			set["-"+name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n")
}

// difference returns the lines that only one of two texts has.
func difference(x, y string) string {
	var only []string
	for _, line := range strings.Split(x+"\n"+y, "\n") {
		if strings.Contains(x, line) != strings.Contains(y, line) {
			only = append(only, line)
		}
	}
	return strings.Join(only, "\n")
}
