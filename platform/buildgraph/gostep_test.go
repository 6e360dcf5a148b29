package buildgraph

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
)

// moduleStep returns the version of "m [module]" at a commit, and runs its step there.
func moduleStep(f *fixture, commit string) (hash targets.Hash, green bool, output string) {
	f.Helper()
	tree, err := f.repo.TreeOf(f.Context(), commit)
	if err != nil {
		f.Fatal(err)
	}
	graph, err := NewLoader(configuration.Queue{Analysis: goes}, nil).Graph(f.Context(), f.repo, tree)
	if err != nil {
		f.Fatal(err)
	}
	target, ok := graph.Target("m [module]")
	if !ok || len(target.Commands) != 1 {
		f.Fatalf("m [module] is verified by %+v", target.Commands)
	}
	f.git("checkout", "--quiet", "--detach", commit)
	cmd := exec.CommandContext(f.Context(), target.Commands[0].Argv[0], target.Commands[0].Argv[1:]...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=")
	out, err := cmd.CombinedOutput()
	return target.Hash, err == nil, string(out)
}

// twoModules is a module m that is built with another one of the repository.
var twoModules = files{
	"go.mod": "module m\n\ngo 1.26\n\nrequire q v1.0.0\n\nreplace q => ./q\n", "p/p.go": "package p\n\nimport _ \"q\"\n",
	"q/go.mod": "module q\n\ngo 1.26\n", "q/q.go": "package q\n", "r/go.mod": "module r\n", "r/r.go": "package r\n",
}

const vendored = "# q v1.0.0 => ./q\n## explicit; go 1.26\nq\n# q => ./q\n"

// TestTheModuleStepSeesOnlyWhatItsVersionCovers: whatever go says of folders and packages, the step of a module says
// what it said before, unless its version is another one.
func TestTheModuleStepSeesOnlyWhatItsVersionCovers(t *testing.T) {
	f := newFixture(t)
	plain := f.commits("", twoModules)[0]
	inVendor := f.commits(plain, files{"vendor/modules.txt": vendored, "vendor/q/q.go": "package q\n"})[0]
	for _, base := range []string{plain, inVendor} {
		before, green, output := moduleStep(f, base)
		if !green {
			t.Fatalf("the base is red:\n%s", output)
		}
		for name, edit := range map[string]files{
			"a folder with a space":             {"a b/x.go": "package b\n"},
			"folders that differ by case":       {"P/p.go": "package p\n", "s/s.go": "package s\n\nimport (\n\t_ \"m/P\"\n\t_ \"m/p\"\n)\n"},
			"an import of nothing":              {"s/s.go": "package s\n\nimport _ \"m/none\"\n"},
			"an import of no required module":   {"s/s.go": "package s\n\nimport _ \"example.com/none\"\n"},
			"packages that import each other":   {"s/s.go": "package s\n\nimport _ \"m/u\"\n", "u/u.go": "package u\n\nimport _ \"m/s\"\n"},
			"two packages in a folder":          {"p/other.go": "package other\n"},
			"a file that is no Go":              {"p/other.go": "pack\n"},
			"a pattern that nothing fits":       {"p/e.go": "package p\n\nimport _ \"embed\"\n\n//go:embed none\nvar none string\n"},
			"an import of somebody's internals": {"q/internal/i/i.go": "package i\n", "s/s.go": "package s\n\nimport _ \"q/internal/i\"\n"},
			"no package at all":                 {"p/p.go": "-"},
			"a module that nobody has":          {"w/go.mod": "module w\n\nrequire example.com/none v1.0.0\n"},
		} {
			after, green, output := moduleStep(f, f.commits(base, edit)[0])
			if after != before {
				t.Errorf("%s: the module has another version", name)
			}
			if !green {
				t.Errorf("%s: the version of the module is the same, and red:\n%s", name, output)
			}
		}
	}
}

// TestTheModuleStepFindsWhatNoPackageDoes: requirements that cannot be met are a new version, which is red.
func TestTheModuleStepFindsWhatNoPackageDoes(t *testing.T) {
	f := newFixture(t)
	base := f.commits("", twoModules)[0]
	inVendor := f.commits(base, files{"vendor/modules.txt": vendored, "vendor/q/q.go": "package q\n"})[0]
	for name, c := range map[string]struct {
		base string
		edit files
	}{
		"a version that is nowhere":               {base, files{"go.mod": strings.Replace(twoModules["go.mod"], "require q", "require example.com/none v1.0.0\n\nrequire q", 1)}},
		"a replacement that is nowhere":           {base, files{"go.mod": strings.Replace(twoModules["go.mod"], "./q", "./none", 1)}},
		"a replacement that goes":                 {base, files{"q/go.mod": "-"}},
		"a replacement that wants a newer go":     {base, files{"q/go.mod": "module q\n\ngo 1.99\n"}},
		"a replacement that wants more than m":    {base, files{"q/go.mod": "module q\n\ngo 1.26\n\nrequire r v1.2.0\n", "go.mod": twoModules["go.mod"] + "\nrequire r v1.1.0\n\nreplace r => ./r\n"}},
		"a workspace that uses what is not there": {base, files{"go.work": "go 1.26\n\nuse .\n\nuse ./none\n"}},
		"a vendor folder of other requirements":   {inVendor, files{"vendor/modules.txt": strings.Replace(vendored, "v1.0.0", "v1.1.0", 1)}},
		"requirements of another vendor folder":   {inVendor, files{"go.mod": strings.Replace(twoModules["go.mod"], "v1.0.0", "v1.1.0", 1)}},
	} {
		before, _, _ := moduleStep(f, c.base)
		after, green, _ := moduleStep(f, f.commits(c.base, c.edit)[0])
		if after == before || green {
			t.Errorf("%s: another version %v, green %v", name, after != before, green)
		}
	}
}

// TestTheModuleStepOfAWorkspaceAsksNobodyForItsOwnModules: one of a workspace that another requires at the version v0.0.0 has none that a
// proxy could give, and go list -m all asks for it all the same; nothing else of the go command that builds does.
func TestTheModuleStepOfAWorkspaceAsksNobodyForItsOwnModules(t *testing.T) {
	f := newFixture(t)
	tree := func(required, more string) files {
		return files{
			"go.work": "go 1.26\n\nuse (\n\t.\n\t./q\n)\n" + more, "go.mod": "module m\n\ngo 1.26\n\nrequire example.com/q " + required + "\n",
			"p/p.go": "package p\n\nimport _ \"example.com/q\"\n", "q/go.mod": "module example.com/q\n\ngo 1.26\n", "q/q.go": "package q\n",
		}
	}
	replaced := "\nreplace example.com/q v0.0.0 => ./q\n"
	hashes := map[targets.Hash]bool{}
	for _, c := range []struct {
		why            string
		required, more string
		green          bool
	}{
		{"a version that nobody has", "v0.0.0", "", true},
		{"what go writes where it has no version", "v0.0.0-00010101000000-000000000000", "", true},
		{"a version of a proxy, which must have it", "v1.2.3", "", false},
		{"a replaced version", "v0.0.0", replaced, true},
	} {
		hash, green, output := moduleStep(f, f.commits("", tree(c.required, c.more))[0])
		if green != c.green || hashes[hash] {
			t.Errorf("%s: green %v, want %v; its version is that of another: %v\n%s", c.why, green, c.green, hashes[hash], output)
		}
		hashes[hash] = true
	}
	edit := tree("v0.0.0", "")
	edit["go.work"] = "go 1.25\n\nuse (\n\t.\n\t./q\n)\n"
	if _, green, _ := moduleStep(f, f.commits("", edit)[0]); green {
		t.Error("a module that wants a newer go than the workspace has is green")
	}
}
