package pythongraph

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatATestNamesOutsideOfItsFolderIsAnInput(t *testing.T) {
	project := func(name string) string { return "[project]\nname = \"" + name + "\"\nversion = \"1\"\n" }
	base := memoryTree{
		"pkg_a/pyproject.toml": project("a"), "pkg_a/tests/deep/x.txt": "1\n", "pkg_a/data/x.json": "1\n", "pkg_a/README.md": "1\n", "pkg_a/CHANGES": "1\n", "pkg_a/lib/x/y.py": "1\n",
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
		`os.path.join(os.path.dirname(__file__), "..", "..", "pkg_b", "x.json")`:             {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`os.path.join(os.path.dirname(__file__), "..", "data", name)`:                        {memoryTree{"pkg_a/data/new": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`Path(__file__).parents[2] / "pkg_b" / "x.json"`:                                     {memoryTree{"pkg_b/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		`Path(__file__).parents[1] / "data"`:                                                 {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`ROOT = Path(__file__).resolve().parents[2]`:                                         {memoryTree{"shared/z.json": "2\n"}, nil},
		`ROOT = Path(__file__).parent.parent.parent`:                                         {memoryTree{"shared/z.json": "2\n"}, nil},
		`ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))`:                 {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"shared/z.json": "2\n"}},
		"HERE = Path(__file__).resolve().parent\nP = HERE.parent.parent\nP.glob('*/*.json')": {memoryTree{"pkg_b/new.json": "2\n"}, nil},
		"for f in Path(__file__).resolve().parents:\n    if (f / 'uv.lock').exists(): break": {memoryTree{"shared/z.json": "2\n"}, nil},
		"os.path.join(os.getcwd(), '..', 'shared', 'z.json')":                                {memoryTree{"shared/z.json": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		// From where pytest runs.
		`Path("README.md").read_text()`:               {memoryTree{"pkg_a/README.md": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`run("cat README.md")`:                        {memoryTree{"pkg_a/README.md": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`open("CHANGES")`:                             {memoryTree{"pkg_a/CHANGES": "2\n"}, memoryTree{"pkg_a/README.md": "2\n"}},
		`open("READ" + "ME" ".md")`:                   {memoryTree{"pkg_a/README.md": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`(Path.cwd() / "README.md").read_text()`:      {memoryTree{"pkg_a/README.md": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`os.path.join(os.getcwd(), "data", "x.json")`: {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"pkg_a/data/new": "2\n"}},
		`os.path.join("data", name)`:                  {memoryTree{"pkg_a/data/new": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`Path("data") / "x.json"`:                     {memoryTree{"pkg_a/data/x.json": "2\n"}, memoryTree{"pkg_a/data/new": "2\n"}},
		`open("data/" + name)`:                        {memoryTree{"pkg_a/data/new": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`open(f"data/{name}")`:                        {memoryTree{"pkg_a/data/new": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`Path("lib").rglob("*.py")`:                   {memoryTree{"pkg_a/lib/x/y.py": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`glob.glob("lib/**/*.py")`:                    {memoryTree{"pkg_a/lib/x/new.py": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`glob.glob("*.md")`:                           {memoryTree{"pkg_a/README.md": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`Path(".").rglob("*")`:                        {memoryTree{"pkg_a/CHANGES": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`os.listdir()`:                                {memoryTree{"pkg_a/CHANGES": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`for x in Path.cwd().iterdir(): pass`:         {memoryTree{"pkg_a/CHANGES": "2\n"}, memoryTree{"pkg_b/x.json": "2\n"}},
		`(tmp_path / "a").glob("*")`:                  {memoryTree{"pkg_a/tests/test_a.py": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`open(f"{here}/x.py"), "a.b".split(".")`:      {memoryTree{"pkg_a/tests/test_a.py": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`open("later/x.json")`:                        {memoryTree{"pkg_a/later/x.json": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
		`(HERE / "helpers/run.py").read_text()`:       {memoryTree{"pkg_a/tests/helpers/run.py": "2\n"}, memoryTree{"pkg_a/CHANGES": "2\n"}},
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

func TestAClimbByNamesIsFollowed(t *testing.T) {
	const here = "HERE = Path(__file__).resolve().parent\n"
	for code, want := range map[string]string{
		here:                                   "",
		here + "PACKAGES = HERE.parent.parent": "../..",
		here + "ROOT = HERE.parent":            "..",
		here + "(HERE.parents[1] / 'b' / 'x.json').read_text()":          "../../b/x.json",
		here + "A = HERE\nB = A\nopen(B.parent / 'x')":                   "../x",
		"H = os.path.dirname(__file__)\nR = os.path.dirname(H)":          "..",
		"H = os.path.dirname(__file__)\nR = os.path.join(H, '..', '..')": "..|../..",
		"def root():\n  return Path(__file__).parent\nroot":              "",
		"(Path(__file__).parent / 'data' / name).read_text()":            "",
		"node.parent.parent": "..",
		"for f in Path(__file__).resolve().parents:\n  pass":                  "whole",
		here + "next(p for p in HERE.parents if p)":                           "whole",
		here + "Path(HERE).parents[n]":                                        "whole",
		"p = Path(__file__)\nwhile not (p / 'x').exists():\n  p = p.parent\n": "whole",
		"d = os.path.dirname(__file__)\nwhile x:\n  d = os.path.dirname(d)\n": "whole",
		"run(['git', 'rev-parse', '--show-toplevel'])":                        "whole",
		"request.config.rootpath / 'x'":                                       "whole",
		"from conftest import HERE\nHERE.parent":                              "whole",
		"import helper\nhelper.HERE.parent":                                   "whole",
		"def up(p):\n  return p.parent\nup(up(Path(__file__)))":               "whole",
		here + "open(f'{HERE}/../x')":                                         "whole",
		"import pathlib\ndef f(p):\n  for q in p.parents: pass":               "whole",
	} {
		f := parseFacts([]byte(code))
		got := strings.Join(f.climbs, "|")
		if f.whole {
			got = "whole"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", code, got, want)
		}
	}
}

func TestAFileOfDataIsNoDocumentByItsName(t *testing.T) {
	for name, want := range map[string]bool{
		"README": true, "readme.md": true, "README.de.md": true, "CHANGES.rst": true, "changelog.md": true, "LICENSE-MIT": true, "LICENSE.APACHE2": true, "AUTHORS": true,
		"CODE_OF_CONDUCT.md": true, "CONTRIBUTING.rst": true, ".gitignore": true, ".pre-commit-config.yaml": true, ".readthedocs.yml": true, "CITATION.cff": true,
		"changes.csv": false, "news.json": false, "security.yaml": false, "Newsletter.txt": false, "history.sql": false, "readme_template.html": false, "notices.db": false,
	} {
		if isDocument(name) != want {
			t.Errorf("%s is a document: %v", name, !want)
		}
	}
}
