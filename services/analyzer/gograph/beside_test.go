package gograph

import (
	"slices"
	"testing"

	"landfall.build/services/analyzer/targets"
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
		if conflict, _ := targets.Conflict(a, b); !conflict {
			t.Errorf("%s: an importer and what it imports are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}
