package pythongraph

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatATestNamesOutsideOfItsFolderIsAnInput(t *testing.T) {
	project := func(name string) string { return "[project]\nname = \"" + name + "\"\nversion = \"1\"\n" }
	base := memoryTree{
		"pkg_a/pyproject.toml": project("a"), "pkg_a/tests/deep/x.txt": "1\n", "pkg_a/data/x.json": "1\n",
		"pkg_b/pyproject.toml": project("b"), "pkg_b/x.json": "1\n", "pkg_b/data/y.json": "1\n", "pkg_b/test_b.py": "",
		"shared/z.json": "1\n", "away/f": "1\n", "link": "mode 120000 away",
	}
	for code, c := range map[string]struct {
		edit, other memoryTree
	}{
		`open("../pkg_b/x.json")`:              {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"pkg_b/data/y.json": "2\n"}},
		`open("../../pkg_b/x.json")`:           {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`open("../../pkg_b/" + name)`:          {memoryTree{"pkg_b/data/new": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`open("../../pkg_b/data/y-%s" % name)`: {memoryTree{"pkg_b/data/y-1": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`open(f"../../pkg_b/{name}")`:          {memoryTree{"pkg_b/data/new": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`glob("../../pkg_b/*.json")`:           {memoryTree{"pkg_b/new.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`run("cat ../shared/z.json")`:          {memoryTree{"shared/z.json": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`open("../absent/x")`:                  {memoryTree{"absent/x": "2\n"}, memoryTree{"other": "2\n"}},
		`open("../../absent/x") #`:             {memoryTree{"absent": "mode 120000 shared"}, memoryTree{"other": "2\n"}},
		`open("../link/f")`:                    {memoryTree{"away/f": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`os.path.join(os.path.dirname(__file__), "..", "..", "pkg_b", "x.json")`: {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`os.path.join(os.path.dirname(__file__), "..", "data", name)`:            {memoryTree{"pkg_a/data/new": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`Path(__file__).parents[2] / "pkg_b" / "x.json"`:                         {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`Path(__file__).parents[1] / "data"`:                                     {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`ROOT = Path(__file__).resolve().parents[2]`:                             {memoryTree{"shared/z.json": "2\n"}, nil},
		`ROOT = Path(__file__).parent.parent.parent`:                             {memoryTree{"shared/z.json": "2\n"}, nil},
		`ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))`:     {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
	} {
		tree := base.with(memoryTree{"pkg_a/tests/test_a.py": code + "\n"})
		affected := func(edit memoryTree) bool {
			return slices.Contains(strings.Split(delta(t, tree, tree.with(edit)), ", "), "pkg_a/tests [test]")
		}
		if !affected(c.edit) {
			t.Errorf("%s: %v does not affect the test", code, c.edit)
		}
		if c.other != nil && affected(c.other) {
			t.Errorf("%s: %v affects the test", code, c.other)
		}
	}
}
