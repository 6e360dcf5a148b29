package nodegraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// releases are versions of well-known packages, oldest first. Some depend on others, so that members reach each other
// where the ranges allow it.
var releases = []map[string]string{
	{"express": "4.18.2", "body-parser": "1.20.1", "send": "0.18.0", "serve-static": "1.15.0", "finalhandler": "1.2.0", "debug": "2.6.9", "ms": "2.0.0",
		"semver": "7.5.4", "minimatch": "9.0.3", "brace-expansion": "2.0.1", "glob": "10.3.10", "yargs": "17.7.1", "axios": "1.6.0"},
	{"express": "4.19.2", "body-parser": "1.20.2", "send": "0.18.0", "serve-static": "1.15.0", "finalhandler": "1.2.0", "debug": "2.6.9", "ms": "2.0.0",
		"semver": "7.6.3", "minimatch": "9.0.5", "brace-expansion": "2.0.1", "glob": "10.4.5", "yargs": "17.7.2", "axios": "1.7.2"},
	{"express": "4.21.2", "body-parser": "1.20.3", "send": "0.19.0", "serve-static": "1.16.2", "finalhandler": "1.3.1", "debug": "2.6.9", "ms": "2.1.3",
		"semver": "7.7.1", "minimatch": "9.0.5", "brace-expansion": "2.0.2", "glob": "10.4.5", "yargs": "17.7.2", "axios": "1.8.4"},
}

// toolTime is how long one command of a package manager may take.
const toolTime = 3 * time.Minute

// lacking skips a test for something that cannot be had here, unless LANDFALL_TEST_MODULES=required.
func lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// managers returns the package managers that tests compare with: all take minutes, and are for make test-all.
func managers() []string {
	if os.Getenv("LANDFALL_TEST_SLOW") != "" {
		return []string{npm, "pnpm", "classic", "berry"}
	}
	return []string{npm}
}

// command runs a program in a folder and returns what it prints.
func command(t testing.TB, dir string, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CI=true", "NODE_OPTIONS=", "YARN_ENABLE_TELEMETRY=0", "YARN_ENABLE_IMMUTABLE_INSTALLS=0", "YARN_ENABLE_SCRIPTS=0", "npm_config_update_notifier=false")
	cmd.WaitDelay = time.Second
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%q: %w\n%s%s", argv, err, out, complaint.String())
	}
	return string(out), err
}

// programs are the package managers besides npm, fetched once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nodegraph-")
	if err != nil {
		return "", err
	}
	for folder, pinned := range map[string]string{"pnpm": "pnpm@9.15.9", "classic": "yarn@1.22.22", "berry": "@yarnpkg/cli-dist@4.6.0"} {
		cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", filepath.Join(dir, folder), pinned)
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%s: %w\n%s", pinned, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if fetched {
		if dir, _ := programs(); dir != "" {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

var fetched bool

// program returns the script of a package manager.
func program(t testing.TB, manager string) []string {
	t.Helper()
	if manager == npm {
		if _, err := exec.LookPath("npm"); err != nil {
			lacking(t, "there is no npm: %v", err)
		}
		return []string{"npm"}
	}
	program(t, npm)
	fetched = true
	dir, err := programs()
	if err != nil {
		lacking(t, "a package manager cannot be had: %v", err)
	}
	script := map[string]string{"pnpm": "pnpm/bin/pnpm.cjs", "classic": "yarn/bin/yarn.js", "berry": "@yarnpkg/cli-dist/bin/yarn.js"}[manager]
	return []string{"node", filepath.Join(dir, manager, "node_modules", script)}
}

// fill makes a workspace of a release: each package a member, without what it needs for its own development.
func fill(t *testing.T, dir string, release map[string]string, manager string) (members []string) {
	t.Helper()
	var specs []string
	for _, name := range slices.Sorted(maps.Keys(release)) {
		specs = append(specs, name+"@"+release[name])
		members = append(members, "packages/"+name)
	}
	archives := t.TempDir()
	if _, err := command(t, archives, append([]string{"npm", "pack", "--silent"}, specs...)...); err != nil {
		lacking(t, "the registry cannot be had: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, version := range release {
		into := filepath.Join(dir, "packages", name)
		if err := os.MkdirAll(into, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := command(t, into, "tar", "xzf", filepath.Join(archives, name+"-"+version+".tgz"), "--strip-components=1"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(into, manifestName))
		var manifest map[string]any
		if err = errors.Join(err, json.Unmarshal(text, &manifest)); err != nil {
			t.Fatal(err)
		}
		delete(manifest, "devDependencies")
		text, err = json.MarshalIndent(manifest, "", "  ")
		if err = errors.Join(err, os.WriteFile(filepath.Join(into, manifestName), text, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{manifestName: `{"name": "root", "private": true, "workspaces": ["packages/*"], "devDependencies": {"isexe": "2.0.0"}}`}
	switch manager {
	case "pnpm":
		files[pnpmWorkspace] = "packages:\n  - 'packages/*'\nlinkWorkspacePackages: true\n"
		files[".npmrc"] = "link-workspace-packages=true\n"
	case "classic":
		files[".yarnrc"] = "--install.ignore-engines true\n"
	case "berry":
		files[".yarnrc.yml"] = "enableGlobalCache: true\n"
		files["yarn.lock"] = ""
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return members
}

// folderTree is a folder of the disk as a tree, without what installs leave.
func folderTree(t testing.TB, dir string) memoryTree {
	t.Helper()
	tree := memoryTree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".yarn" || d.Name() == ".git"):
			return filepath.SkipDir
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".pnp."):
			return nil
		}
		content, err := os.ReadFile(path)
		relative, _ := filepath.Rel(dir, path)
		tree[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// indexed is a memory tree whose entries and blobs are found at once.
type indexed struct {
	memoryTree
	entries []gittree.Entry
	blobs   map[string]string
}

func (m memoryTree) indexed() indexed {
	entries, _ := m.Entries(context.Background())
	tree := indexed{m, ordered(entries), make(map[string]string, len(m))}
	for _, content := range m {
		tree.blobs[objectOf(content)] = content
	}
	return tree
}

func (i indexed) Entries(context.Context) ([]gittree.Entry, error) { return i.entries, nil }

func (i indexed) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	content, ok := i.blobs[object]
	switch {
	case !ok:
		return nil, fmt.Errorf("no blob %s", object)
	case int64(len(content)) > max:
		return nil, gittree.ErrTooLarge
	}
	return []byte(content), nil
}

// install runs the package manager on a workspace and returns what each member reaches: "name@version" of installed
// packages, and folders of members.
func install(t *testing.T, dir, manager string, members []string) map[string][]string {
	t.Helper()
	argv := program(t, manager)
	switch manager {
	case npm:
		argv = append(argv, "install", "--ignore-scripts", "--no-audit", "--no-fund")
	case "pnpm":
		argv = append(argv, "install", "--ignore-scripts", "--no-frozen-lockfile")
	case "classic":
		argv = append(argv, "install", "--ignore-scripts", "--non-interactive", "--silent")
	case "berry":
		argv = append(argv, "install")
	}
	if _, err := command(t, dir, argv...); err != nil {
		lacking(t, "an install fails: %v", err)
	}
	if manager == "berry" {
		return berryReach(t, dir, members)
	}
	script, err := filepath.Abs("testdata/reach.cjs")
	if err != nil {
		t.Fatal(err)
	}
	out, err := command(t, dir, append([]string{"node", script}, members...)...)
	reach := map[string][]string{}
	if err = errors.Join(err, json.Unmarshal([]byte(out), &reach)); err != nil {
		t.Fatal(err)
	}
	return reach
}

var virtual = regexp.MustCompile(`@virtual:[^#]*#`)

// berryReach asks yarn, which installs no folders, what each member reaches.
func berryReach(t *testing.T, dir string, members []string) map[string][]string {
	t.Helper()
	out, err := command(t, dir, append(program(t, "berry"), "info", "-A", "-R", "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string][]string{}
	for line := range strings.Lines(out) {
		var one struct {
			Value    string
			Children struct{ Dependencies []struct{ Locator string } }
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		from := virtual.ReplaceAllString(one.Value, "@")
		for _, d := range one.Children.Dependencies {
			needs[from] = append(needs[from], virtual.ReplaceAllString(d.Locator, "@"))
		}
	}
	name := func(locator string) string {
		if _, folder, ok := strings.Cut(locator, "@workspace:"); ok {
			return folder
		}
		return strings.Replace(locator, "@npm:", "@", 1)
	}
	reach := map[string][]string{}
	for _, member := range members {
		found := map[string]bool{}
		for pending := []string{nameOf(member) + "@workspace:" + member}; len(pending) > 0; {
			next := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			if !found[next] {
				found[next] = true
				pending = append(pending, needs[next]...)
			}
		}
		for locator := range found {
			reach[member] = append(reach[member], name(locator))
		}
		slices.Sort(reach[member])
	}
	return reach
}

var (
	yarnHeader  = regexp.MustCompile(`^"?(.+?)"?:$`)
	yarnVersion = regexp.MustCompile(`^  version:? "?([^"]+)"?$`)
)

// versionsOf returns what the entries of a lock file install, by the names of their nodes.
func versionsOf(t testing.TB, tree memoryTree) map[string]string {
	t.Helper()
	versions := map[string]string{}
	switch {
	case tree["package-lock.json"] != "":
		var lock struct {
			Packages map[string]struct{ Name, Version string }
		}
		if err := json.Unmarshal([]byte(tree["package-lock.json"]), &lock); err != nil {
			t.Fatal(err)
		}
		for key, e := range lock.Packages {
			name := key[max(0, strings.LastIndex(key, "node_modules/")):]
			name = strings.TrimPrefix(name, "node_modules/")
			if e.Name != "" {
				name = e.Name
			}
			versions["ext:node:. "+key] = name + "@" + e.Version
		}
	case tree["pnpm-lock.yaml"] != "":
		for line := range strings.Lines(tree["pnpm-lock.yaml"]) {
			if m := regexp.MustCompile(`^  '?([^'\s]+@[^'\s(]+)(\([^']*\))?'?:`).FindStringSubmatch(line); m != nil {
				versions["ext:node:. "+m[1]+m[2]] = m[1]
			}
		}
	default:
		var keys []string
		for line := range strings.Lines(tree["yarn.lock"]) {
			line = strings.TrimRight(line, "\n")
			if m := yarnHeader.FindStringSubmatch(line); m != nil && line[0] != ' ' {
				keys = strings.Split(strings.ReplaceAll(m[1], `"`, ""), ", ")
			} else if m := yarnVersion.FindStringSubmatch(line); m != nil {
				for _, key := range keys {
					name := key[:1+strings.IndexByte(key[1:], '@')]
					if rest, _ := strings.CutPrefix(key, name+"@npm:"); strings.LastIndexByte(rest, '@') > 0 && rest != key { // an alias
						name = rest[:strings.LastIndexByte(rest, '@')]
					}
					versions["ext:node:. "+key] = name + "@" + m[1]
				}
			}
		}
	}
	return versions
}

// closure returns all that a node reaches.
func closure(g *targets.Graph, from string) map[string]bool {
	seen := map[string]bool{from: true}
	for pending := []string{from}; len(pending) > 0; {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, dep := range g.Dependencies(next) {
			if !seen[dep] {
				seen[dep] = true
				pending = append(pending, dep)
			}
		}
	}
	return seen
}

// TestEveryDependencyThatIsInstalledIsAnEdge holds the graph to the package managers: whatever a member reaches once it
// is installed, the graph has it reach, and a version that changes what a member is made of changes its hash.
func TestEveryDependencyThatIsInstalledIsAnEdge(t *testing.T) {
	for _, manager := range managers() {
		t.Run(manager, func(t *testing.T) {
			loader := newLoader(t, Options{})
			dir := filepath.Join(t.TempDir(), "repository")
			var base *targets.Graph
			var before map[string]string
			for i, release := range releases {
				members := fill(t, dir, release, manager)
				reach := install(t, dir, manager, members)
				tree := folderTree(t, dir).indexed()
				graph, err := loader.Load(t.Context(), "", tree)
				if err != nil {
					t.Fatal(err)
				}
				if len(graph.Unknown()) > 0 {
					t.Fatalf("incomplete: %q", graph.Unknown())
				}
				externals, inside, more := compareReach(t, graph, tree.memoryTree, reach)
				after := madeOf(tree.memoryTree, reach)
				changed, missed, still := 0, 0, 0
				if base != nil {
					touched := targets.Delta(base, graph).Touched()
					for member, sum := range after {
						_, found := slices.BinarySearch(touched, "node://"+member)
						switch {
						case before[member] == "" || before[member] == sum && found:
							still++
						case before[member] != sum && !found:
							missed++
							t.Errorf("release %d: %s is not affected", i, member)
						case before[member] != sum:
							changed++
						}
					}
				}
				t.Logf("release %d: %d members, %d edges to externals and %d to members compared; the graph has %d more; %d changed, %d affected without, %d missed", i, len(members), externals, inside, more, changed, still, missed)
				if externals < 100 || inside == 0 {
					t.Error("next to nothing was compared")
				}
				base, before = graph, after
			}
		})
	}
}

// compareReach reports what members reach and the graph does not have.
func compareReach(t *testing.T, graph *targets.Graph, tree memoryTree, reach map[string][]string) (externals, inside, more int) {
	t.Helper()
	versions := versionsOf(t, tree)
	for member, found := range reach {
		has := map[string]bool{}
		for label := range closure(graph, "node://"+member) {
			if version := versions[label]; version != "" {
				has[version] = true
			}
			if dir, ok := strings.CutPrefix(label, "node://"); ok {
				has[dir] = true
			}
		}
		for _, what := range found {
			if strings.HasPrefix(what, "packages/") {
				inside++
			} else {
				externals++
			}
			if !has[what] {
				t.Errorf("%s reaches %s, and the graph does not know it", member, what)
			}
		}
		more += len(has) - len(found)
	}
	return externals, inside, more
}

// madeOf returns what each member is made of once it is installed: files of members, versions of others.
func madeOf(tree memoryTree, reach map[string][]string) map[string]string {
	own := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		for member := range reach {
			if strings.HasPrefix(path, member+"/") {
				own[member] += path + " " + objectOf(tree[path]) + "\n"
			}
		}
	}
	sums := map[string]string{}
	for member, found := range reach {
		for _, what := range found {
			sums[member] += what + "\n" + own[what]
		}
		sums[member] = objectOf(sums[member])
	}
	return sums
}

// TestEveryFileThatNodeLoadsIsInTheHash changes each file that node loads for a member, and each pinned version that
// it loads files of, and looks for the hash to move.
func TestEveryFileThatNodeLoadsIsInTheHash(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repository")
	members := fill(t, dir, releases[1], npm)
	if err := os.WriteFile(filepath.Join(dir, "shared.js"), []byte("exports.x = require('./deeper/y')\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "deeper"), 0o777), os.WriteFile(filepath.Join(dir, "deeper/y.js"), []byte("require('isexe')\n"), 0o666),
		os.WriteFile(filepath.Join(dir, "packages/ms/index.js"), []byte("require('../../shared'); require('../brace-expansion')\n"), 0o666)); err != nil {
		t.Fatal(err)
	}
	install(t, dir, npm, members)
	tree := folderTree(t, dir)
	base := load(t, tree.indexed())
	loader := newLoader(t, Options{})
	script, err := filepath.Abs("testdata/loaded.cjs")
	if err != nil {
		t.Fatal(err)
	}
	loaders := map[string][]string{} // members by what they load
	for _, member := range members {
		out, err := command(t, dir, "node", script, member)
		var files []string
		if err = errors.Join(err, json.Unmarshal([]byte(out), &files)); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if at := strings.Index(file, "node_modules/"); at >= 0 {
				file = packageFolder(file)
			}
			if !slices.Contains(loaders[file], member) {
				loaders[file] = append(loaders[file], member)
			}
		}
	}
	sources, packages := 0, 0
	for _, file := range slices.Sorted(maps.Keys(loaders)) {
		edit := memoryTree{file: tree[file] + "\n"}
		if strings.Contains(file, "node_modules/") {
			packages++
			var lock map[string]any
			if err := json.Unmarshal([]byte(tree["package-lock.json"]), &lock); err != nil {
				t.Fatal(err)
			}
			entry, ok := lock["packages"].(map[string]any)[file].(map[string]any)
			if !ok {
				t.Fatalf("no entry %s", file)
			}
			entry["integrity"] = "sha512-other"
			text, _ := json.Marshal(lock)
			edit = memoryTree{"package-lock.json": string(text)}
		} else {
			sources++
		}
		head, err := loader.Load(t.Context(), "", tree.with(edit).indexed())
		if err != nil {
			t.Fatal(err)
		}
		touched := targets.Delta(base, head).Touched()
		for _, member := range loaders[file] {
			if _, found := slices.BinarySearch(touched, "node://"+member); !found {
				t.Errorf("%s loads %s, and another one leaves its hash alone", member, file)
			}
		}
	}
	if sources < 50 || packages < 20 || len(loaders["deeper/y.js"]) == 0 || len(loaders["node_modules/isexe"]) == 0 {
		t.Errorf("only %d files and %d packages are loaded", sources, packages)
	}
	t.Logf("%d files and %d packages, each changed", sources, packages)
}

// packageFolder returns the folder of the installed package that holds a file.
func packageFolder(file string) string {
	const modules = "node_modules/"
	at := strings.LastIndex(file, modules) + len(modules)
	names := strings.SplitN(file[at:], "/", 3)
	if strings.HasPrefix(names[0], "@") {
		return file[:at] + names[0] + "/" + names[1]
	}
	return file[:at] + names[0]
}
