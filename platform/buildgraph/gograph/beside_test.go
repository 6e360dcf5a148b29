package gograph

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// TestWhatABuildReadsBesideItsPackageIsAnInput: an edit of it is a new version of the package.
func TestWhatABuildReadsBesideItsPackageIsAnInput(t *testing.T) {
	module := memoryTree{"go.mod": "module m\n\ngo 1.26\n", "x.go": "package m\n"}
	const native = "package p\n\n// #include \"../inc/a.h\"\n// #include \"native/n.h\"\nimport \"C\"\n"
	c := module.with(memoryTree{
		"p/x.go": native, "inc/a.h": "#include \"b.h\"\n", "inc/b.h": "\n", "p/native/go.mod": "module n\n", "p/native/n.h": "\n",
	})
	program := module.with(memoryTree{"cmd/x.go": "package main\n\nfunc main() {}\n"})
	for name, c := range map[string]struct {
		base, edit memoryTree
		target     string
	}{
		"a profile that comes": {program, memoryTree{"cmd/default.pgo": "x\n"}, "m/cmd"},
		"a profile":            {program.with(memoryTree{"cmd/default.pgo": "x\n"}), memoryTree{"cmd/default.pgo": "y\n"}, "m/cmd"},
		"a header that a header elsewhere includes": {c, memoryTree{"inc/b.h": "// new\n"}, "m/p"},
		"a header below, in a module of its own":    {c, memoryTree{"p/native/n.h": "// new\n"}, "m/p"},
	} {
		delta := targets.Delta(load(t, c.base), load(t, c.base.with(c.edit)))
		if !slices.ContainsFunc(delta.Affected, func(v targets.TargetVersion) bool { return v.Name == c.target }) {
			t.Errorf("%s: %s is not affected: %+v", name, c.target, delta)
		}
	}
}

// TestAVendorFolderBehindALinkIsNotLookedInto: nobody may be called independent because of what stands there.
func TestAVendorFolderBehindALinkIsNotLookedInto(t *testing.T) {
	base := memoryTree{
		"go.mod": "module m\n\ngo 1.26\n\nrequire q.com/q v1.0.0\n", "a/x.go": "package a\n\nimport _ \"q.com/q\"\n",
		"deps/modules.txt": "# q.com/q v1.0.0\n## explicit; go 1.26\nq.com/q\n", "deps/q.com/q/q.go": "package q\n",
	}
	inner := memoryTree{"vendor/modules.txt": base["deps/modules.txt"], "vendor/q.com/q": "mode 120000 ../../deps/q.com/q"}
	for name, links := range map[string]memoryTree{"the folder": {"vendor": "mode 120000 deps"}, "one in it": inner} {
		linked := base.with(links)
		a := targets.Delta(load(t, linked), load(t, linked.with(memoryTree{"deps/q.com/q/q.go": "package q\n\nvar New int\n"})))
		b := targets.Delta(load(t, linked), load(t, linked.with(memoryTree{"a/x.go": "package a\n\nimport _ \"q.com/q\"\n\nvar New int\n"})))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s: an importer and what it imports are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}

// far is a package in C whose headers lie all over a repository, most of them reached through another header only.
var far = memoryTree{
	"go.mod": "module m\n\ngo 1.26\n", "x.go": "package m\n",
	"p/x.go":       "package p\n\n// #cgo CFLAGS: -I${SRCDIR}/../inc -I ../more -Iown\n// #include \"../one/a.h\"\n// #include <b.h>\nimport \"C\"\n",
	"p/deep/n.h":   "#include \"../../two/n.h\"\n",
	"p/x.c":        "#include \"deep/n.h\"\n#include NAMED\n#define NAMED \"../three/m.inc\"\n",
	"p/own/o.h":    "# include_next <../link/o.h>\n",
	"one/a.h":      "#include \"sub/a.h\"\n",
	"one/sub/a.h":  "\t#include \"../../four/a.h\" // far away\n",
	"four/a.h":     "#import \"../five/a\"\n",
	"five/a":       "int five;\n",
	"inc/b.h":      "#include \"o.h\"\n",
	"two/n.h":      "asm(\".incbin \\\"../six/data\\\"\");\n#include \"n.h\"\n",
	"six/data":     "\x00\n",
	"three/m.inc":  "#include \"..\\\n/seven/x.h\"\n",
	"seven/x.h":    "#include \"../more/way.h\"\n",
	"more/way.h":   "#include \"x/../../link/y.h\"\n",
	"link":         "mode 120000 eight",
	"eight/y.h":    "#include \"../nine/y.h\"\n",
	"nine/y.h":     "#include \"../none/y.h\"\n",
	"apart/y.h":    "int apart;\n",
	"ten/other.h":  "int other;\n",
	"q/x.go":       "package q\n",
	"q/x_amd64.s":  "#include \"textflag.h\"\n",
	"three/eleven": "#include \"../apart/y.h\"\n",
}

// TestHeadersAreFollowedWhereverTheyLead: what one includes that another one included counts, there or not, in folders
// of its own or behind links; what nobody names does not.
func TestHeadersAreFollowedWhereverTheyLead(t *testing.T) {
	for _, file := range []string{"one/a.h", "one/sub/a.h", "four/a.h", "five/a", "two/n.h", "six/data", "three/m.inc", "seven/x.h", "more/way.h", "eight/y.h", "nine/y.h", "none/y.h"} {
		if got := delta(t, far, far.with(memoryTree{file: "int edited;\n"})); got != "m/p" {
			t.Errorf("an edit of %s affects %q, want m/p alone", file, got)
		}
	}
	for _, file := range []string{"apart/y.h", "ten/other.h", "none/z.h"} {
		if got := delta(t, far, far.with(memoryTree{file: "int edited;\n"})); got != "" {
			t.Errorf("an edit of %s affects %q", file, got)
		}
	}
}

// TestAHeaderAndWhatItComesToIncludeConflict has pairs of which one makes a header lead to what the other one edits.
func TestAHeaderAndWhatItComesToIncludeConflict(t *testing.T) {
	for name, pair := range map[string][2]memoryTree{
		"a header far away and a file":            {{"nine/y.h": "#include \"../ten/other.h\"\n"}, {"ten/other.h": "int edited;\n"}},
		"a file of no known suffix and a file":    {{"five/a": "#include \"../ten/other.h\"\n"}, {"ten/other.h": "int edited;\n"}},
		"a header that was not there and a file":  {{"none/y.h": "#include \"../ten/other.h\"\n"}, {"ten/other.h": "int edited;\n"}},
		"a header and a file that was not there":  {{"nine/y.h": "#include \"../new/x.h\"\n"}, {"new/x.h": "int new;\n"}},
		"a link on the way and a file behind it":  {{"link": "mode 120000 ten"}, {"ten/y.h": "int new;\n"}},
		"an include and what its header includes": {{"q/x_amd64.s": "#include \"../nine/y.h\"\n"}, {"none/y.h": "int new;\n"}},
	} {
		base := load(t, far)
		a, b := targets.Delta(base, load(t, far.with(pair[0]))), targets.Delta(base, load(t, far.with(pair[1])))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}

// TestALoaderSeesThatAHeaderOfAnySuffixSaysOtherThings: such a tree is not derived from the one before it.
func TestALoaderSeesThatAHeaderOfAnySuffixSaysOtherThings(t *testing.T) {
	loader := newLoader(t, Options{})
	tree := far
	for _, edit := range []memoryTree{
		{}, {"five/a": "int other;\n"}, {"five/a": "#include \"../ten/other.h\"\n"}, {"six/data": "#include \"../apart/y.h\"\n"}, {"ten/other.h": "#include \"../three/eleven\"\n"},
		{"three/eleven": "#include \"../q/x.go\"\n"},
	} {
		tree = tree.with(edit)
		graph, err := loader.Load(t.Context(), "", tree)
		if err != nil {
			t.Fatal(err)
		}
		if !same(graph, load(t, tree)) {
			t.Errorf("after %v the graph is not the one that is made from nothing", edit)
		}
	}
	if loader.recent.derived == 0 {
		t.Error("no tree was derived from another")
	}
}

// TestEndlessHeadersAreBounded: names times folders are counted, and a tree that has too many conflicts with everything.
func TestEndlessHeadersAreBounded(t *testing.T) {
	var flags, names strings.Builder
	for i := range 500 {
		fmt.Fprintf(&flags, "// #cgo CFLAGS: -I../f%d\n", i)
		fmt.Fprintf(&names, "#include \"d%d/x.h\"\n", i)
	}
	tree := memoryTree{"go.mod": "module m\n\ngo 1.26\n", "p/x.go": "package p\n\n" + flags.String() + "import \"C\"\n", "p/x.c": names.String()}
	if reasons := load(t, tree).Unknown(); len(reasons) == 0 {
		t.Error("the graph is called whole")
	}
}

// TestWhatTheCompilerReadsIsAnInput asks a C compiler what it reads of random trees of headers: each of these files is
// one that the package depends on.
func TestWhatTheCompilerReadsIsAnInput(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	random := seedtest.Random(t)
	read := 0
	for range 15 {
		tree, flags := randomHeaders(random)
		r := newFolder(t)
		r.write(tree)
		cmd := exec.CommandContext(t.Context(), cc, append(flags, "-M", "-MG", "x.c")...)
		cmd.Dir = filepath.Join(r.dir, "p")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		graph := load(t, tree)
		for _, name := range strings.Fields(strings.ReplaceAll(string(out), "\\\n", " ")) {
			file, ok := join("p", name)
			if _, there := tree[file]; !ok || !there {
				continue
			}
			read++
			if !dependsOn(graph, "m/p", targets.Label(targets.KindFile, file)) {
				t.Errorf("%s is no input of the package, whose flags are %v:\n%v", file, flags, tree)
			}
		}
	}
	if read < 50 {
		t.Errorf("the compiler read %d files, which shows little", read)
	}
}

// randomHeaders returns a package in the folder p of which headers include each other across folders, by their own place or
// by one of the flags.
func randomHeaders(random *rand.Rand) (tree memoryTree, flags []string) {
	dirs := []string{"p", "p/in", "a", "a/b", "a/b/c", "d", "d/e", "f"}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	bases := []string{"p"}
	var directives strings.Builder
	for range random.IntN(3) {
		base := pick(dirs)
		relative, _ := filepath.Rel("p", base)
		flag := pick([]string{"-I", "-iquote", "-idirafter"}) + relative
		bases, flags = append(bases, base), append(flags, flag)
		fmt.Fprintf(&directives, "// #cgo CFLAGS: %s\n", flag)
	}
	var files []string
	for i := range 14 {
		files = append(files, fmt.Sprintf("%s/h%d%s", pick(dirs), i, pick([]string{".h", ".inc", ""})))
	}
	includes := func(dir string) string {
		var text strings.Builder
		for i := range 1 + random.IntN(3) {
			name, _ := filepath.Rel(pick(append(bases, dir, dir)), pick(files))
			switch random.IntN(4) {
			case 0:
				fmt.Fprintf(&text, "#define N%d \"%s\"\n#include N%d\n#undef N%d\n", i, name, i, i)
			case 1:
				fmt.Fprintf(&text, "# \tinclude <%s> // text\n", name)
			default:
				fmt.Fprintf(&text, "#include \"%s\"\n", name)
			}
		}
		return text.String()
	}
	tree = memoryTree{"go.mod": "module m\n\ngo 1.26\n", "p/x.go": "package p\n\n" + directives.String() + "import \"C\"\n", "p/x.c": includes("p")}
	for _, file := range files {
		tree[file] = "#pragma once\n" + includes(folderOf(file))
	}
	return tree, flags
}
