package pythongraph

import (
	"slices"
	"strings"
	"testing"
)

// TestProgramsThatGoThroughFoldersDependOnThem: what a test starts reads files of which the test says nothing.
func TestProgramsThatGoThroughFoldersDependOnThem(t *testing.T) {
	project := func(name string) string { return "[project]\nname = \"" + name + "\"\nversion = \"1\"\n" }
	base := memoryTree{
		"pyproject.toml": project("root"), "uv.lock": "version = 1\n", "NOTICE": "1\n",
		"a/pyproject.toml": project("a"), "a/CHANGES": "1\n", "a/lib/x/y.py": "1\n", "b/pyproject.toml": project("b"), "b/z.py": "1\n",
	}
	const launch = "import subprocess\nsubprocess."
	below := memoryTree{"a/CHANGES": "2\n"}
	outside := memoryTree{"b/z.py": "2\n"}
	manifest := memoryTree{"b/pyproject.toml": project("b") + "# more\n"}
	for code, c := range map[string]struct{ affected, not []memoryTree }{
		launch + `run(["grep", "-rn", "x", "."])`:                              {[]memoryTree{below, {"a/lib/new.py": "1\n"}}, []memoryTree{outside}},
		launch + `run(["tool", "./"])`:                                         {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(["tool", ".."])`:                                         {[]memoryTree{outside, {"NOTICE": "2\n"}}, nil},
		launch + `run("tool --all .", shell=True)`:                             {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(("tool", "."))`:                                          {[]memoryTree{below}, []memoryTree{outside}},
		"from subprocess import run\ndef go(*x):\n    run(x)\ngo('tool', '.')": {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(["ruff", "check"])`:                                      {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(["git", "ls-files"])`:                                    {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(["python", "-m", "mypy"])`:                               {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run("cat x | grep -r y", shell=True)`:                        {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run("uv run ruff check", shell=True)`:                        {[]memoryTree{below, manifest}, []memoryTree{outside}},
		launch + `run(f"git -C {x} grep y", shell=True)`:                       {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run([str(bin) + "/black"])`:                                  {[]memoryTree{below}, []memoryTree{outside}},
		launch + `run(["uv", "tree"])`:                                         {[]memoryTree{manifest, {"uv.lock": "version = 1\nrevision = 2\n"}}, []memoryTree{outside, below}},
		launch + `run("uv export", shell=True)`:                                {[]memoryTree{manifest}, []memoryTree{outside, below}},
		launch + `run(["python", "-m", "pip", "list"])`:                        {[]memoryTree{manifest}, []memoryTree{outside, below}},
		launch + `run(["poetry", "show"])`:                                     {[]memoryTree{manifest}, []memoryTree{outside, below}},
		// No programs, and no arguments of programs.
		`x = ["ruff", ".", "uv"]`:                                      {nil, []memoryTree{below, outside, manifest}},
		launch + `run(["echo"]); x.split("."), ".".join(y)`:            {nil, []memoryTree{below, outside, manifest}},
		launch + `run(["echo"]); assert x[0] == ".", "cannot find it"`: {nil, []memoryTree{below, outside, manifest}},
	} {
		tree := base.with(memoryTree{"a/tests/test_a.py": code + "\n"})
		affected := func(edit memoryTree) bool {
			return slices.Contains(strings.Split(delta(t, tree, tree.with(edit)), ", "), "a/tests [test]")
		}
		for _, edit := range c.affected {
			if !affected(edit) {
				t.Errorf("%s: %v does not affect the test", code, edit)
			}
		}
		for _, edit := range c.not {
			if affected(edit) {
				t.Errorf("%s: %v affects the test", code, edit)
			}
		}
	}
}
