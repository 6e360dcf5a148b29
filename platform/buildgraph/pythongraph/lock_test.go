package pythongraph

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// workspace is a uv workspace whose members need packages of the index.
var workspace = memoryTree{
	"pyproject.toml": "[project]\nname = \"shop\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = [\"cart\"]\n" +
		"[dependency-groups]\ndev = [\"pytest==8.3.4\"]\n[tool.uv.sources]\ncart = { workspace = true }\nmoney = { workspace = true }\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n",
	"main.py":            "import cart\n",
	"tests/test_main.py": "import main\n\ndef test():\n    assert main.cart.page() == '1.00 EUR'\n",
	"packages/cart/pyproject.toml": "[project]\nname = \"cart\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = [\"money\", \"jinja2==3.1.6\"]\n" +
		"[project.optional-dependencies]\nweb = [\"flask==3.1.0\"]\n[dependency-groups]\ndev = [\"pytest==8.3.4\", { include-group = \"lint\" }]\nlint = [\"attrs==25.3.0\"]\n" +
		"[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n",
	"packages/cart/src/cart/__init__.py": "import jinja2, money\n\ndef page():\n    return jinja2.Template('{{ m }}').render(m=money.euro(1))\n",
	"packages/cart/tests/test_cart.py":   "import attr, cart\n\ndef test():\n    assert cart.page()\n",
	"packages/money/pyproject.toml": "[project]\nname = \"money\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = [\"idna==3.10\"]\n" +
		"[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n",
	"packages/money/src/money/__init__.py": "def euro(n):\n    return f'{n:.2f} EUR'\n",
}

// poetry is a Poetry project that needs another one of the repository.
var poetry = memoryTree{
	"cart/pyproject.toml": "[tool.poetry]\nname = \"cart\"\nversion = \"1\"\ndescription = \"\"\nauthors = []\npackages = [{ include = \"cart\", from = \"src\" }]\n" +
		"[tool.poetry.dependencies]\npython = \"^3.11\"\njinja2 = \"3.1.6\"\nmoney = { path = \"../money\", develop = true }\n[tool.poetry.group.dev.dependencies]\npytest = \"8.3.4\"\n" +
		"[build-system]\nrequires = [\"poetry-core\"]\nbuild-backend = \"poetry.core.masonry.api\"\n",
	"cart/src/cart/__init__.py": workspace["packages/cart/src/cart/__init__.py"],
	"cart/tests/test_cart.py":   "import cart\n\ndef test():\n    assert cart.page()\n",
	"money/pyproject.toml": "[tool.poetry]\nname = \"money\"\nversion = \"1\"\ndescription = \"\"\nauthors = []\npackages = [{ include = \"money\", from = \"src\" }]\n" +
		"[tool.poetry.dependencies]\npython = \"^3.11\"\nidna = \"3.10\"\n[build-system]\nrequires = [\"poetry-core\"]\nbuild-backend = \"poetry.core.masonry.api\"\n",
	"money/src/money/__init__.py": workspace["packages/money/src/money/__init__.py"],
}

// write puts a tree into a new folder.
func (m memoryTree) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range m {
		file := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, []byte(content), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// indexOf serves wheels of distributions, and of what they need, as an index of packages, and returns its address.
func indexOf(t *testing.T, tools string, wanted ...string) string {
	t.Helper()
	wheels := filepath.Join(tools, "wheels")
	if _, err := command(t.Context(), tools, nil, append([]string{filepath.Join(tools, "venv/bin/pip"), "download", "-q", "--only-binary", ":all:", "-d", wheels}, wanted...)...); err != nil {
		lacking(t, "%v", err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".whl") {
			http.ServeFile(w, r, filepath.Join(wheels, filepath.Base(r.URL.Path)))
			return
		}
		files, _ := filepath.Glob(filepath.Join(wheels, "*.whl"))
		known := false
		for _, file := range files {
			name, _, _ := strings.Cut(filepath.Base(file), "-")
			content, err := os.ReadFile(file)
			if err != nil || normalName(name) != filepath.Base(r.URL.Path) {
				continue
			}
			if !known {
				w.Header().Set("content-type", "text/html")
			}
			known = true
			fmt.Fprintf(w, "<a href=\"/files/%s#sha256=%x\">%s</a>\n", filepath.Base(file), sha256.Sum256(content), filepath.Base(file))
		}
		if !known {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/simple/"
}

// stepVariables are those of steps, with caches that outlive them and an empty HOME.
func stepVariables(t *testing.T, tools string, env []string) []string {
	return append(slices.Clone(env), "HOME="+t.TempDir(), "UV_CACHE_DIR="+filepath.Join(tools, "uv"), "POETRY_CACHE_DIR="+filepath.Join(tools, "poetry"),
		"UV_PYTHON_DOWNLOADS=never", "VIRTUAL_ENV=")
}

// lockWith makes a lock file by its tool.
func lockWith(t *testing.T, tools, dir string, env []string, argv ...string) {
	t.Helper()
	if _, err := command(t.Context(), dir, stepVariables(t, tools, env), argv...); err != nil {
		lacking(t, "%v", err)
	}
}

func readText(t *testing.T, dir, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compareExports holds the targets of a workspace's members, their folders by name, to what uv exports for each: all of that is
// reached, and another pin of it, or another definition of a member, makes another version. It returns how many were compared.
func compareExports(t *testing.T, dir string, env []string, tree folderTree, graph *targets.Graph, members map[string]string) (compared int) {
	t.Helper()
	lockText := readText(t, dir, "uv.lock")
	heads := map[string]*targets.Graph{}
	// differs reports whether the target of a member has another hash once what is exported is another.
	differs := func(member, exported string, edited func() folderTree) bool {
		if heads[exported] == nil {
			heads[exported] = load(t, edited())
		}
		before, _ := graph.Target("python://" + member)
		now, there := heads[exported].Target("python://" + member)
		return there && now.Hash != before.Hash
	}
	for name, member := range members {
		out, err := command(t.Context(), dir, env, "uv", "export", "--frozen", "--package", name, "--no-hashes", "--no-header", "--no-annotate", "--all-extras", "--all-groups")
		if err != nil {
			t.Fatal(err)
		}
		reached := reaches(graph, "python://"+member)
		for line := range strings.Lines(out) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " ;")
			if local, is := strings.CutPrefix(line, "-e "); is {
				if local = filepath.Clean(local); local == "." || local == member {
					continue
				}
				compared++
				file := local + "/" + pyprojectFile
				if !reached["def:python:project "+file] {
					t.Errorf("%s does not reach %s", name, local)
				}
				if !differs(member, file, func() folderTree { return tree.altered(file) }) {
					t.Errorf("%s is the same with another %s", name, file)
				}
				continue
			}
			other, version, found := strings.Cut(line, "==")
			if !found {
				continue
			}
			compared++
			if !reached["ext:"+lockedName("uv.lock", normalName(other))] {
				t.Errorf("%s does not reach %s", name, other)
			}
			pin := "name = \"" + other + "\"\nversion = \""
			if !strings.Contains(lockText, pin+version) {
				t.Errorf("uv.lock does not pin %s", line)
			}
			if !differs(member, line, func() folderTree {
				return tree.with("uv.lock", strings.ReplaceAll(lockText, pin+version, pin+"9"+version))
			}) {
				t.Errorf("%s is the same with another %s", name, line)
			}
		}
	}
	return compared
}

// TestAProjectIsReachedThroughAPackageThatIsNotHere: where the repository holds what a package of the registry needs, tests that use the
// package run the repository's.
func TestAProjectIsReachedThroughAPackageThatIsNotHere(t *testing.T) {
	const project = "[project]\nname = %q\nversion = \"1\"\n"
	tree := memoryTree{
		"pyproject.toml": "[tool.uv.workspace]\nmembers = [\"*\"]\n", "app/pyproject.toml": fmt.Sprintf(project, "app") + "[dependency-groups]\ndev = [\"tool\"]\n", "app/test_app.py": "import tool\n",
		"core/pyproject.toml": fmt.Sprintf(project, "core"), "core/core.py": "x = 1\n", "other/pyproject.toml": fmt.Sprintf(project, "other"), "other/test_other.py": "x = 1\n",
		"uv.lock": "version = 1\n[[package]]\nname = \"app\"\nsource = { editable = \"app\" }\n[package.dev-dependencies]\ndev = [{ name = \"tool\" }]\n[[package]]\nname = \"core\"\nsource = { editable = \"core\" }\n" +
			"[[package]]\nname = \"other\"\nsource = { editable = \"other\" }\n[[package]]\nname = \"tool\"\nversion = \"1\"\ndependencies = [{ name = \"part\" }]\n[[package]]\nname = \"part\"\nversion = \"1\"\ndependencies = [{ name = \"core\" }]\n",
	}
	touched := targets.Delta(load(t, tree), load(t, tree.with(memoryTree{"core/core.py": "x = 2\n"}))).Touched()
	if !slices.Contains(touched, "python://app [test]") || slices.Contains(touched, "python://other [test]") {
		t.Errorf("a change of core touches %q", touched)
	}
}

// workspaces are releases of well-known packages that are members of one workspace, oldest first. Some need others.
var workspaces = []string{
	"flask==2.3.3 werkzeug==3.0.6 jinja2==3.1.4 click==8.1.8 itsdangerous==2.2.0 blinker==1.7.0 packaging==23.2 idna==3.6 attrs==23.2.0 more-itertools==10.2.0",
	"flask==3.0.3 werkzeug==3.0.6 jinja2==3.1.5 click==8.1.8 itsdangerous==2.2.0 blinker==1.8.2 packaging==24.2 idna==3.7 attrs==24.3.0 more-itertools==10.5.0",
	"flask==3.1.0 werkzeug==3.1.3 jinja2==3.1.6 click==8.1.8 itsdangerous==2.2.0 blinker==1.9.0 packaging==25.0 idna==3.10 attrs==25.3.0 more-itertools==10.7.0 pluggy==1.6.0",
}

// TestEveryDependencyThatUVReportsIsAnEdge makes one workspace of releases of well-known packages: the newest, or all with
// LANDFALL_TEST_SLOW.
func TestEveryDependencyThatUVReportsIsAnEdge(t *testing.T) {
	tools, env := tools(t)
	tried := workspaces
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		tried = tried[len(tried)-1:]
	}
	for _, members := range tried {
		dir := t.TempDir()
		var sources strings.Builder
		folders := map[string]string{}
		for release := range strings.FieldsSeq(members) {
			name, _, _ := strings.Cut(release, "==")
			folders[name] = "packages/" + name
			fmt.Fprintf(&sources, "%s = { workspace = true }\n", name)
			if err := os.CopyFS(filepath.Join(dir, folders[name]), os.DirFS(unpack(t, tools, release))); err != nil {
				t.Fatal(err)
			}
		}
		root := "[project]\nname = \"top\"\nversion = \"1\"\nrequires-python = \">=3.11\"\n\n[tool.uv.workspace]\nmembers = [\"packages/*\"]\n\n[tool.uv.sources]\n" + sources.String()
		if err := os.WriteFile(filepath.Join(dir, pyprojectFile), []byte(root), 0o666); err != nil {
			t.Fatal(err)
		}
		lockWith(t, tools, dir, env, "uv", "lock")
		tree := readFolder(t, dir)
		graph := load(t, tree)
		if unknown := graph.Unknown(); len(unknown) > 0 {
			t.Errorf("the graph is not whole: %q", unknown)
		}
		compared := compareExports(t, dir, stepVariables(t, tools, env), tree, graph, folders)
		if t.Logf("%s: %d dependencies", members, compared); compared < 5*len(folders) {
			t.Errorf("only %d dependencies were compared", compared)
		}
	}
}

func TestWhatUVExportsIsReachedAndItsStepsPass(t *testing.T) {
	tools, env := tools(t)
	dir := workspace.write(t)
	lockWith(t, tools, dir, env, "uv", "lock")
	tree := readFolder(t, dir)
	graph := load(t, tree)
	if compared := compareExports(t, dir, stepVariables(t, tools, env), tree, graph, map[string]string{"shop": ".", "cart": "packages/cart", "money": "packages/money"}); compared < 15 {
		t.Errorf("only %d dependencies were compared", compared)
	}
	// A pin that only one member reaches leaves the others alone.
	d := targets.Delta(graph, load(t, tree.with("uv.lock", strings.Replace(readText(t, dir, "uv.lock"), "name = \"flask\"\nversion = \"", "name = \"flask\"\nversion = \"9", 1))))
	if slices.Contains(d.Touched(), "python://packages/money") {
		t.Error("a pin of cart alters money")
	}
	runSteps(t, tools, env, dir, graph)
}

// TestWhatPoetryShowsIsReachedAndItsStepsPass locks and installs by Poetry, which takes minutes: LANDFALL_TEST_SLOW runs it.
func TestWhatPoetryShowsIsReachedAndItsStepsPass(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("it is slow: set LANDFALL_TEST_SLOW")
	}
	tools, env := tools(t)
	// An index of its own: Poetry asks the public one in a way that mirrors seldom know.
	source := "\n[[tool.poetry.source]]\nname = \"here\"\nurl = \"" + indexOf(t, tools, "jinja2==3.1.6", "idna==3.10", "pytest==8.3.4", "poetry-core", "colorama") + "\"\npriority = \"primary\"\n"
	projects := memoryTree{"cart/pyproject.toml": poetry["cart/pyproject.toml"] + source, "money/pyproject.toml": poetry["money/pyproject.toml"] + source}
	dir := poetry.with(projects).write(t)
	lockWith(t, tools, filepath.Join(dir, "money"), env, "poetry", "lock")
	lockWith(t, tools, filepath.Join(dir, "cart"), env, "poetry", "lock")
	graph := load(t, readFolder(t, dir))
	out, err := command(t.Context(), filepath.Join(dir, "cart"), stepVariables(t, tools, env), "poetry", "show", "--no-ansi", "--no-truncate")
	if err != nil {
		t.Fatal(err)
	}
	reached := reaches(graph, "python://cart")
	compared := 0
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		compared++
		if !reached["ext:"+lockedName("cart/poetry.lock", normalName(fields[0]))] {
			t.Errorf("cart does not reach %s", fields[0])
		}
	}
	if compared < 6 {
		t.Errorf("only %d packages were compared:\n%s", compared, out)
	}
	if !reached["def:"+projectName("money")] || !reaches(graph, "python://cart/tests [test]")["file:money/src/money/__init__.py"] {
		t.Error("cart does not reach the project money")
	}
	runSteps(t, tools, env, dir, graph)
}

// runSteps runs the commands of all targets, each in a copy of the tree.
func runSteps(t *testing.T, tools string, env []string, dir string, graph *targets.Graph) {
	t.Helper()
	ran := 0
	for target := range graph.Targets() {
		for _, c := range target.Commands {
			checkout := t.TempDir()
			if err := os.CopyFS(checkout, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			ran++
			if out, err := command(t.Context(), filepath.Join(checkout, c.Dir), append(stepVariables(t, tools, env), c.Env...), c.Argv...); err != nil {
				t.Errorf("%s, %s: %v\n%s", target.Name, c.Name, err, out)
			}
		}
	}
	if ran == 0 {
		t.Error("no target has a command")
	}
	t.Logf("%d steps ran", ran)
}

// with returns the tree with another text in a file.
func (d folderTree) with(file, content string) folderTree {
	tree := d.without(file)
	tree.blobs = map[string][]byte{objectOf(content): []byte(content)}
	for id, known := range d.blobs {
		tree.blobs[id] = known
	}
	for _, e := range d.entries {
		if e.Path == file {
			e.Object = objectOf(content)
			tree.entries = append(tree.entries, e)
		}
	}
	return tree
}

func TestAPlainProjectsStepsPass(t *testing.T) {
	tools, env := tools(t)
	tree := memoryTree{
		"app/setup.py":            "from setuptools import setup\nsetup(name='app', install_requires=['lib'])\n",
		"app/app.py":              "import lib\n",
		"app/test_app.py":         "import app\n\ndef test():\n    assert app.lib.one() == 1\n",
		"app/deep/test_not.py":    "# no test after all\n",
		"lib/pyproject.toml":      "[project]\nname = \"lib\"\n",
		"lib/src/lib/__init__.py": "def one():\n    return 1\n",
		"lib/test/test_lib.py":    "from lib import one\n\ndef test():\n    assert one() == 1\n",
	}
	runSteps(t, tools, env, tree.write(t), load(t, tree))
}

// TestTestsOfAMemberTakePytestFromAGroupOfTheirWorkspace, whether or not its folder is a project itself.
func TestTestsOfAMemberTakePytestFromAGroupOfTheirWorkspace(t *testing.T) {
	tools, env := tools(t)
	const project = "[project]\nname = \"shop\"\nversion = \"1\"\nrequires-python = \">=3.11\"\n"
	const members = "[tool.uv.workspace]\nmembers = [\"packages/*\"]\n"
	for name, root := range map[string]string{
		"a project":                project + "[dependency-groups]\ndev = [\"pytest==8.3.4\"]\n" + members,
		"a group by another name":  project + "[dependency-groups]\nchecks = [\"pytest==8.3.4\"]\n" + members,
		"uv's own list":            project + "[tool.uv]\ndev-dependencies = [\"pytest==8.3.4\"]\n" + members,
		"a folder without project": "[dependency-groups]\ndev = [\"pytest==8.3.4\"]\n" + members,
	} {
		t.Run(name, func(t *testing.T) {
			dir := memoryTree{"pyproject.toml": root,
				"packages/money/pyproject.toml":      "[project]\nname = \"money\"\nversion = \"1\"\nrequires-python = \">=3.11\"\n",
				"packages/money/money.py":            "ONE = 1\n",
				"packages/money/tests/test_money.py": "import money\n\ndef test():\n    assert money.ONE == 1\n",
			}.write(t)
			lockWith(t, tools, dir, env, "uv", "lock")
			tree := readFolder(t, dir)
			graph := load(t, tree)
			runSteps(t, tools, env, dir, graph)
			lockText, err := os.ReadFile(filepath.Join(dir, "uv.lock"))
			if err != nil {
				t.Fatal(err)
			}
			bumped := strings.Replace(string(lockText), "name = \"iniconfig\"\nversion = \"", "name = \"iniconfig\"\nversion = \"9", 1)
			for what, head := range map[string]gittree.Tree{"another version in the lock file": tree.with("uv.lock", bumped), "no pytest in the root": tree.with("pyproject.toml", project+members)} {
				if !slices.Contains(targets.Delta(graph, load(t, head)).Touched(), "python://packages/money/tests [test]") {
					t.Errorf("with %s the tests of money are the same", what)
				}
			}
		})
	}
}
