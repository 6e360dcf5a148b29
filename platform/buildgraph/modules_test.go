package buildgraph

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"landfall.build/platform/buildgraph/gograph"
	"landfall.build/platform/configuration"
)

// proxy is a module proxy that knows some go.mod files, by what a client asks for.
type proxy struct {
	*httptest.Server
	asked  atomic.Int32
	status atomic.Int32
}

func newProxy(t *testing.T, known map[string]string) *proxy {
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if status := p.status.Load(); status != 0 {
			http.Error(w, "no", int(status))
			return
		}
		content, ok := known[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, content)
	}))
	t.Cleanup(p.Close)
	return p
}

func TestAModuleProxyIsAskedOnceForEachVersion(t *testing.T) {
	p := newProxy(t, map[string]string{"/example.com/!a/@v/v1.2.3.mod": "module example.com/A\n"})
	kept := t.TempDir()
	for range 2 {
		requirements, err := modulesFrom(p.URL+"/", kept)
		if err != nil {
			t.Fatal(err)
		}
		content, err := requirements.GoMod(t.Context(), "example.com/A", "v1.2.3")
		if err != nil || string(content) != "module example.com/A\n" {
			t.Fatalf("%q, %v", content, err)
		}
	}
	if n := p.asked.Load(); n != 1 {
		t.Errorf("the proxy was asked %d times", n)
	}
	folder, err := modulesFrom("file://"+filepath.ToSlash(kept), "")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := folder.GoMod(t.Context(), "example.com/A", "v1.2.3"); err != nil || string(content) != "module example.com/A\n" {
		t.Errorf("as a folder: %q, %v", content, err)
	}
}

func TestWhatAModuleProxyDoesNotHaveIsUnknownAndItsTroublesAreNot(t *testing.T) {
	p := newProxy(t, nil)
	requirements, err := modulesFrom(p.URL, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := requirements.GoMod(t.Context(), "example.com/a", "v1.0.0"); !errors.Is(err, gograph.ErrUnknownModule) {
		t.Errorf("a version that the proxy does not have: %v", err)
	}
	if _, err := requirements.GoMod(t.Context(), "../x", "v1.0.0"); !errors.Is(err, gograph.ErrUnknownModule) {
		t.Errorf("no module path: %v", err)
	}
	p.status.Store(http.StatusBadGateway)
	if _, err := requirements.GoMod(t.Context(), "example.com/a", "v1.0.0"); err == nil || errors.Is(err, gograph.ErrUnknownModule) || !strings.Contains(err.Error(), "502") {
		t.Errorf("a proxy in trouble: %v", err)
	}
	p.Close()
	if _, err := requirements.GoMod(t.Context(), "example.com/a", "v1.0.0"); err == nil || errors.Is(err, gograph.ErrUnknownModule) {
		t.Errorf("no proxy: %v", err)
	}
}

// TestAModuleProxySaysWhomANewVersionReaches: of two external modules that have nothing to do with each other a new
// version of one affects its users alone; without a proxy both's.
func TestAModuleProxySaysWhomANewVersionReaches(t *testing.T) {
	p := newProxy(t, map[string]string{
		"/example.com/x/@v/v1.0.0.mod": "module example.com/x\n", "/example.com/x/@v/v1.1.0.mod": "module example.com/x\n",
		"/example.com/y/@v/v1.0.0.mod": "module example.com/y\n",
	})
	f := newFixture(t)
	mod := func(x string) string {
		return "module m\n\ngo 1.26\n\nrequire (\n\texample.com/x " + x + "\n\texample.com/y v1.0.0\n)\n"
	}
	base := f.commits("", files{
		"go.mod": mod("v1.0.0"), "a/a.go": "package a\n\nimport _ \"example.com/x\"\n", "b/b.go": "package b\n\nimport _ \"example.com/y\"\n",
	})[0]
	edit := files{"go.mod": mod("v1.1.0")}
	if got := versions(f.analyze(goes, base, edit)); !strings.Contains(got, "m/b@1") {
		t.Errorf("without requirements %s", got)
	}
	settings := goes
	settings.ModuleProxy = p.URL
	if got := versions(f.analyze(settings, base, edit)); got != "m [module]@1 m/a@1" {
		t.Errorf("with a proxy %s", got)
	}
}

func TestTheToolchainIsPartOfGoVersions(t *testing.T) {
	f := newFixture(t)
	tree, err := f.repo.TreeOf(t.Context(), goBase(f))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, toolchain := range []string{"", "go1.26.1", "go1.26.2"} {
		settings := goes
		settings.Toolchain = toolchain
		graph, err := NewLoader(configuration.Queue{Analysis: settings}, nil).Graph(t.Context(), f.repo, tree)
		if err != nil {
			t.Fatal(err)
		}
		target, _ := graph.Target("m/a")
		if other, twice := seen[target.Hash.String()]; twice {
			t.Errorf("built with %q m/a has the hash that it has with %q", toolchain, other)
		}
		seen[target.Hash.String()] = toolchain
	}
}

func TestTheGoCommandOfStepsSaysItsVersion(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) configuration.Environment {
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return configuration.Environment{Path: "/nowhere:" + dir + ":/usr/bin:/bin", Variables: map[string]string{"GOTOOLCHAIN": "go1.99.1"}}
	}
	if got, err := Toolchain(t.Context(), write("test \"$*\" = 'env GOVERSION' && test -n \"$HOME\" && echo $GOTOOLCHAIN"), "go", "env", "GOVERSION"); got != "go1.99.1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Toolchain(t.Context(), write("echo this is broken >&2; exit 3"), "go", "env", "GOVERSION"); err == nil || !strings.Contains(err.Error(), "this is broken") {
		t.Errorf("a go command that fails: %v", err)
	}
	if _, err := Toolchain(t.Context(), write("printf 'a\\033b'"), "go", "env", "GOVERSION"); err == nil {
		t.Error("a version that is none is taken")
	}
	if _, err := Toolchain(t.Context(), configuration.Environment{Path: "/nowhere"}, "go", "env", "GOVERSION"); err == nil || !strings.Contains(err.Error(), "there is no go on the PATH") {
		t.Errorf("no go command: %v", err)
	}
}

// TestAToolIsAskedWhereNobodyElseTellsItWhatToRun: rustup, yarn and others run what a file names in the folder that they are started in, or in
// one above it.
func TestAToolIsAskedWhereNobodyElseTellsItWhatToRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rustc"), []byte("#!/bin/sh\npwd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := Toolchain(t.Context(), configuration.Environment{Path: dir}, "rustc", "--version")
	if err != nil {
		t.Fatal(err)
	}
	for folder := at; ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err == nil && info.Mode().Perm()&0o002 != 0 {
			t.Errorf("it is started in %s, and everybody may write to %s", at, folder)
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
}
