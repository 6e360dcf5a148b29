package pythongraph

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// releases are versions of well-known packages whose source distributions hold their tests, one package a line. The last of
// each is tested where it can be had, all with LANDFALL_TEST_SLOW, as in make test-all.
var releases = []string{
	"click==8.0.4", "click==8.1.7", "click==8.1.8",
	"flask==2.3.3", "flask==3.0.3", "flask==3.1.0",
	"werkzeug==2.3.8", "werkzeug==3.0.6", "werkzeug==3.1.3",
	"jinja2==3.0.3", "jinja2==3.1.4", "jinja2==3.1.6",
	"itsdangerous==2.0.1", "itsdangerous==2.1.2", "itsdangerous==2.2.0",
	"requests==2.31.0", "requests==2.32.3", "requests==2.32.5",
	"attrs==23.2.0", "attrs==24.3.0", "attrs==25.3.0",
	"packaging==23.2", "packaging==24.2", "packaging==25.0",
	"idna==3.6", "idna==3.7", "idna==3.10",
	"markupsafe==2.1.5", "markupsafe==3.0.2",
	"blinker==1.7.0", "blinker==1.8.2", "blinker==1.9.0",
	"h11==0.14.0", "h11==0.16.0",
	"more-itertools==10.2.0", "more-itertools==10.5.0", "more-itertools==10.7.0",
	"pluggy==1.5.0", "pluggy==1.6.0",
}

// installed is what the tests of these packages, and the builds of their metadata, need.
var installed = []string{
	"pytest==8.3.4", "setuptools==75.8.0", "wheel", "flit_core<4", "hatchling", "hatch-vcs", "hatch-fancy-pypi-readme", "setuptools_scm", "poetry-core",
	"blinker", "markupsafe", "itsdangerous", "jinja2", "werkzeug", "click", "asgiref", "certifi", "charset-normalizer", "urllib3", "idna", "pretend",
	"hypothesis", "cloudpickle", "pytest-httpbin", "pytest-mock", "ephemeral-port-reserve", "uv==0.13.9", "poetry==2.5.1",
}

// lacking skips a test for something that cannot be had here, unless LANDFALL_TEST_MODULES=required.
func lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// command runs a program in a folder and returns what it prints.
func command(ctx context.Context, dir string, env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	// Which program it is goes by the PATH of env.
	cmd := exec.CommandContext(ctx, "env", argv...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%q: %w\n%s%s", argv, err, out, complaint.String())
	}
	return string(out), err
}

// toolFolder holds Python's tools and what they fetched. LANDFALL_PYTHONGRAPH_TOOLS keeps it from run to run.
var toolFolder = sync.OnceValues(func() (string, error) {
	dir := os.Getenv("LANDFALL_PYTHONGRAPH_TOOLS")
	if dir == "" {
		made, err := os.MkdirTemp("", "pythongraph-")
		if err != nil {
			return "", err
		}
		dir, madeFolder = made, made
	}
	done := filepath.Join(dir, "done")
	if text, err := os.ReadFile(done); err == nil && string(text) == strings.Join(installed, " ") {
		return dir, nil
	}
	if _, err := command(context.Background(), dir, nil, "python3", "-m", "venv", filepath.Join(dir, "venv")); err != nil {
		return dir, err
	}
	argv := append([]string{filepath.Join(dir, "venv/bin/pip"), "install", "-q"}, installed...)
	if _, err := command(context.Background(), dir, nil, argv...); err != nil {
		return dir, err
	}
	return dir, os.WriteFile(done, []byte(strings.Join(installed, " ")), 0o666)
})

// madeFolder is the folder of the tools if it is to be removed.
var madeFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	if madeFolder != "" {
		os.RemoveAll(madeFolder)
	}
	os.Exit(code)
}

// tools returns the folder of the tools, and a PATH with them.
func tools(t testing.TB) (dir string, env []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("fetches packages")
	}
	dir, err := toolFolder()
	if err != nil {
		lacking(t, "no Python tools: %v", err)
	}
	return dir, []string{"PATH=" + filepath.Join(dir, "venv/bin") + ":" + os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1"}
}

// toolsWithoutPlugins are tools whose pytest loads none of the plugins that real packages need: it starts in a sixth of the time.
func toolsWithoutPlugins(t testing.TB) (dir string, env []string) {
	t.Helper()
	dir, env = tools(t)
	return dir, append(env, "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")
}

// unpack returns a folder with a source distribution of a release.
func unpack(t *testing.T, dir, release string) string {
	t.Helper()
	name, version, _ := strings.Cut(release, "==")
	sdists := filepath.Join(dir, "sdists", release)
	archives, _ := filepath.Glob(filepath.Join(sdists, "*.tar.gz"))
	if len(archives) == 0 {
		_, err := command(t.Context(), dir, nil, filepath.Join(dir, "venv/bin/pip"), "download", "-q", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", sdists, release)
		if err != nil {
			lacking(t, "%s: %v", release, err)
		}
		archives, _ = filepath.Glob(filepath.Join(sdists, "*.tar.gz"))
	}
	into := t.TempDir()
	if err := untar(archives[0], into); err != nil {
		t.Fatal(err)
	}
	folders, _ := filepath.Glob(filepath.Join(into, "*"))
	if len(folders) != 1 {
		t.Fatalf("%s %s holds %q", name, version, folders)
	}
	return folders[0]
}

func untar(archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		to := filepath.Join(into, filepath.Clean("/"+h.Name))
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.WriteFile(to, content, 0o666))
		}
		if err != nil {
			return err
		}
	}
}

// readBy returns the files of a project that pytest reads and imports for the tests of a folder.
func readBy(t *testing.T, dir, project, folder string) []string {
	t.Helper()
	if os.Getenv("LANDFALL_PYTHONGRAPH_RUN") != "" {
		return readAs(t, dir, project, folder, "run")
	}
	return readAs(t, dir, project, folder, "collect")
}

// readAs collects the tests or runs them.
func readAs(t *testing.T, dir, project, folder, how string) []string {
	t.Helper()
	script, err := filepath.Abs("testdata/reads.py")
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{filepath.Join(dir, "venv/bin/python"), script, how, folder, "src"}
	out, err := command(t.Context(), project, []string{"PYTHONDONTWRITEBYTECODE=1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD="}, argv...)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for line := range strings.Lines(out) {
		if file, is := strings.CutPrefix(strings.TrimSpace(line), "READ "); is {
			files = append(files, file)
		}
	}
	return files
}

// covering returns the labels of which a target must reach one if it rests on a file.
func covering(file string) []string {
	labels := []string{targets.Label(targets.KindFile, file)}
	if nameOf(file) == pyprojectFile {
		labels = append(labels, "def:"+projectName(folderOf(file)))
	}
	return append(labels, "def:"+requirementsName(file))
}

// Every file that pytest reads or imports for the tests of a folder is part of their target, and altering or deleting it
// makes another version of it.
func TestWhatPytestReadsIsPartOfTheTarget(t *testing.T) {
	dir, _ := tools(t)
	for i, release := range releases {
		name, _, _ := strings.Cut(release, "==")
		if os.Getenv("LANDFALL_TEST_SLOW") == "" && i+1 < len(releases) && strings.HasPrefix(releases[i+1], name+"==") {
			continue
		}
		t.Run(release, func(t *testing.T) {
			project := unpack(t, dir, release)
			tree := readFolder(t, project)
			loader := newLoader(t, Options{})
			graph, err := loader.Load(t.Context(), "", tree)
			if err != nil {
				t.Fatal(err)
			}
			if graph.Unknown() != nil {
				t.Errorf("not known: %q", graph.Unknown())
			}
			folders, compared, altered := 0, 0, 0
			for target := range graph.Targets() {
				folder, is := strings.CutSuffix(strings.TrimPrefix(target.Name, "python://"), " [test]")
				if !is {
					continue
				}
				folders++
				reached := reaches(graph, target.Name)
				for _, file := range readBy(t, dir, project, folder) {
					if !slices.ContainsFunc(tree.entries, func(e gittree.Entry) bool { return e.Path == file }) {
						continue // Hypothesis makes files of its own.
					}
					compared++
					if !slices.ContainsFunc(covering(file), func(label string) bool { return reached[label] }) {
						t.Errorf("%s reads %s", target.Name, file)
						continue
					}
					for _, mutant := range []folderTree{tree.altered(file), tree.without(file)} {
						head, err := loader.Load(t.Context(), "", mutant)
						if _, invalid := errors.AsType[*Invalid](err); invalid || errors.Is(err, ErrNoProject) {
							continue
						}
						if err != nil {
							t.Fatal(err)
						}
						altered++
						if now, there := head.Target(target.Name); there && now.Hash == target.Hash {
							t.Errorf("%s is the same whatever is in %s", target.Name, file)
						}
					}
				}
			}
			if folders == 0 || compared == 0 {
				t.Errorf("nothing was compared: %d folders, %d files", folders, compared)
			}
			t.Logf("%d folders of tests, %d files read, %d altered or deleted", folders, compared, altered)
		})
	}
}

// altered returns the tree with a line more in a file that means something.
func (d folderTree) altered(file string) folderTree {
	tree := folderTree{entries: slices.Clone(d.entries), blobs: map[string][]byte{}}
	for id, content := range d.blobs {
		tree.blobs[id] = content
	}
	for i, e := range tree.entries {
		if e.Path == file {
			content := append(slices.Clone(d.blobs[e.Object]), "\n[tool.altered]\nx = 1\n"...)
			tree.entries[i].Object = objectOf(string(content))
			tree.blobs[tree.entries[i].Object] = content
		}
	}
	return tree
}

// without returns the tree without a file.
func (d folderTree) without(file string) folderTree {
	tree := folderTree{blobs: d.blobs}
	for _, e := range d.entries {
		if e.Path != file {
			tree.entries = append(tree.entries, e)
		}
	}
	return tree
}
