package nodegraph

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

const (
	everyApp  = "packages/app, packages/app [test]"
	everyLib  = everyApp + ", packages/lib"
	everyUtil = everyLib + ", packages/util, packages/util [test]"
	everyone  = "., " + everyUtil + ", packages/tool"
)

// inOrder sorts names, those of deleted targets last, as delta gives them.
func inOrder(names string) string {
	list := strings.Split(names, ", ")
	slices.SortFunc(list, func(x, y string) int {
		return cmp.Or(cmp.Compare(strings.Count(x[:min(len(x), 1)], "-"), strings.Count(y[:min(len(y), 1)], "-")), strings.Compare(x, y))
	})
	return strings.Join(list, ", ")
}

func TestAVersionChangesExactlyWithWhatItCovers(t *testing.T) {
	lock := func(old, new string) memoryTree { return sample.replaced(t, "package-lock.json", old, new) }
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a source":                         {memoryTree{"packages/app/src/index.ts": "export {}\n"}, everyApp},
		"a source's mode":                  {memoryTree{"packages/lib/src/lib.ts": "mode 100755 " + sample["packages/lib/src/lib.ts"]}, everyLib},
		"a source of a dependency":         {memoryTree{"packages/lib/src/lib.ts": "export {}\n"}, everyLib},
		"a source of a deep dependency":    {memoryTree{"packages/util/index.js": "\n"}, everyUtil},
		"a new file":                       {memoryTree{"packages/tool/new/file.txt": "1\n"}, "packages/tool"},
		"a deleted file":                   {memoryTree{"packages/lib/src/lib.ts": ""}, everyLib},
		"a file of no member":              {memoryTree{"packages/notes.txt": "other\n"}, "."},
		"a document of the root":           {memoryTree{"README.md": "other\n"}, "."},
		"a script that a build names":      {memoryTree{"scripts/build.js": "\n"}, "., " + everyApp},
		"what that script requires":        {memoryTree{"scripts/lib/steps.js": "\n"}, "., " + everyApp},
		"another script":                   {memoryTree{"scripts/other.js": "1\n"}, "."},
		"a base configuration":             {memoryTree{"tsconfig.base.json": "{}"}, everyone},
		"a new configuration of the root":  {memoryTree{".eslintrc.json": "{}"}, everyone},
		"the version of node":              {memoryTree{".nvmrc": "22\n"}, everyone},
		"what an alias and a path name":    {memoryTree{"shared/colors/src/x.ts": "export {}\n"}, "., " + everyUtil},
		"beside what an alias names":       {memoryTree{"shared/colors/src/index.ts": "export {}\n"}, "., " + everyUtil},
		"the manifest of the root":         {sample.replaced(t, "package.json", `"root"`, `"other"`), everyone + ", . [install]"},
		"a manifest":                       {sample.replaced(t, "packages/tool/package.json", `node build.js`, `node other.js`), "packages/tool"},
		"a dependency in a manifest":       {sample.replaced(t, "packages/tool/package.json", `^1.0.0`, `^1.0.1`), "packages/tool, . [install]"},
		"a version that app has":           {lock("sha512-left", "sha512-other"), everyApp + ", . [install]"},
		"a version that lib has":           {lock("sha512-right", "sha512-other"), everyLib + ", . [install]"},
		"a version below and imported":     {lock("sha512-b1", "sha512-b2"), everyApp + ", packages/tool, . [install]"},
		"a version that a nested one has":  {lock("sha512-m2", "sha512-m3"), "packages/tool, . [install]"},
		"a version that the root has":      {lock("sha512-ts", "sha512-ts2"), everyone + ", . [install]"},
		"a setting of the lock file":       {lock(`"lockfileVersion": 3`, `"lockfileVersion": 2`), everyone + ", . [install]"},
		"a nested version for one member":  {lock(`"node_modules/deep":`, `"packages/app/node_modules/left-pad": {"version": "1.0.0"}, "node_modules/deep":`), everyApp + ", . [install]"},
		"a new member":                     {memoryTree{"packages/new/package.json": `{"name": "new"}`}, "., . [install], packages/new"},
		"a member that takes a name":       {memoryTree{"packages/new/package.json": `{"name": "left-pad"}`}, "., . [install], packages/new, " + everyApp},
		"a deleted member":                 {memoryTree{"packages/util/package.json": ""}, "., . [install], " + everyLib + ", -packages/util, -packages/util [test]"},
		"a package without a lock file":    {memoryTree{"examples/one/package.json": `{"name": "one"}`}, "."},
		"a project of its own":             {memoryTree{"examples/one/package.json": `{"name": "one"}`, "examples/one/yarn.lock": "# yarn lockfile v1\n"}, "., examples/one, examples/one [install]"},
		"a lock file among fixtures":       {memoryTree{"packages/tool/fixtures/one/package.json": `{`, "packages/tool/fixtures/one/yarn.lock": "# yarn lockfile v1\n"}, "packages/tool"},
		"another package manager":          {memoryTree{"yarn.lock": "# yarn lockfile v1\n"}, everyone + ", . [install]"},
		"a patch":                          {memoryTree{"patches/left-pad.patch": "1\n"}, everyone + ", . [install]"},
		"modules of the root in the tree":  {memoryTree{"node_modules/x/index.js": "1\n"}, everyone},
		"a test script":                    {sample.replaced(t, "packages/tool/package.json", `"build":`, `"test": "node --test", "build":`), "packages/tool, packages/tool [test]"},
		"the index of an imported package": {memoryTree{"packages/util/lib/index.js": "1\n"}, everyUtil},
		"a file that is a folder of none":  {memoryTree{"docs/x.md": "1\n"}, "."},
	} {
		if got := delta(t, sample, sample.with(c.edit)); got != inOrder(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, inOrder(c.want))
		}
	}
}

func TestTargetsAreTheMembersAndTheirTests(t *testing.T) {
	var got []string
	for target := range load(t, sample).Targets() {
		line := strings.TrimPrefix(target.Name, "node://") + ": " + target.Kind
		for _, c := range target.Commands {
			line += " (" + c.Dir + ") " + c.Name + " " + strings.Join(c.Argv[min(3, len(c.Argv)):], " ")
		}
		got = append(got, strings.TrimRight(line, " "))
	}
	want := `.: package
. [install]: install () install
packages/app: package () build landfall packages/lib:build packages/app:build
packages/app [test]: test () test landfall packages/lib:build packages/app:build packages/app:test
packages/lib: package () build landfall packages/lib:build
packages/tool: package () build landfall packages/tool:build packages/tool:typecheck
packages/util: package
packages/util [test]: test () test landfall packages/util:test`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
