package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"landfall.build/services/builder/execution"
	"landfall.build/tools/embedded/stack"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	code := m.Run()
	os.RemoveAll(programs.folder)
	os.Exit(code)
}

// programs are those that tests have built, in a folder that everybody can read and that TestMain removes.
var programs struct {
	sync.Mutex
	folder string
}

// built returns the path of a program, which it builds once.
func built(t *testing.T, name, source string) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.folder == "" {
		folder, err := os.MkdirTemp("", "landfall-programs-")
		if err == nil {
			err = os.Chmod(folder, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		programs.folder = folder
	}
	path := filepath.Join(programs.folder, name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	build := exec.Command("go", "build", "-o", path, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", source, err, out)
	}
	return path
}

// shopFiles is a module of two packages, of which bill imports money.
var shopFiles = map[string]string{
	"go.mod":            "module example.com/shop\n\ngo 1.24\n",
	"money/money.go":    "package money\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
	"bill/bill.go":      "package bill\n\nimport \"example.com/shop/money\"\n\n// Total is of two.\nfunc Total() int { return money.Add(1, 2) }\n",
	"bill/bill_test.go": "package bill\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tt.Log(\"adding up\")\n\tif got := Total(); got != 3 {\n\t\tt.Errorf(\"got %d, want 3\", got)\n\t}\n}\n",
}

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnAuthorReadsTheCauseInTheFirstThreeLines: the whole queue, with a real compiler and real tests.
func TestAnAuthorReadsTheCauseInTheFirstThreeLines(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.Command(goCommand, "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	remote, clone, file := filepath.Join(dir, "shop.git"), filepath.Join(dir, "clone"), filepath.Join(dir, "landfall.config.yaml")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", remote)
	git(t, "", "init", "--quiet", "--initial-branch=main", clone)
	git(t, clone, "remote", "add", "origin", remote)
	commit := func(branch string, files map[string]string) {
		write(t, clone, files)
		git(t, clone, "add", "--all")
		git(t, clone, "commit", "--quiet", "-m", branch)
		git(t, clone, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	}
	commit("main", shopFiles)
	git(t, clone, "checkout", "--quiet", "-b", "compile")
	commit("compile", map[string]string{"money/money.go": strings.Replace(shopFiles["money/money.go"], "a + b", "a + currency", 1)})
	git(t, clone, "checkout", "--quiet", "-b", "sums", "main")
	commit("sums", map[string]string{"money/money.go": strings.Replace(shopFiles["money/money.go"], "a + b", "a - b", 1)})

	write(t, dir, map[string]string{filepath.Base(file): `version: 1
data: ` + filepath.Join(dir, "data") + `
repositories: {shop: {url: ` + remote + `}}
gateway: {listen: "127.0.0.1:0"}
queues:
  shop:
    repository: shop
    workers: 2
    analysis: {adapter: go}
    steps:
      write: ["` + strings.TrimSpace(string(cache)) + `"]
      environment:
        path: ` + filepath.Dir(goCommand) + `:/usr/bin:/bin
        variables: {GOCACHE: "` + strings.TrimSpace(string(cache)) + `", CGO_ENABLED: "0", GOFLAGS: -buildvcs=false, GOPROXY: "off"}
`})
	config, err := loadConfiguration(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), stack.Options{Configuration: config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Chdir(clone)
	for _, c := range []struct{ branch, place, message string }{
		{"compile", "money/money.go:5: ", "undefined: currency"},
		{"sums", "bill/bill_test.go:8: TestTotal: ", "got -1, want 3"},
	} {
		out, progress, err := run("land", c.branch, "--wait", "--server", s.URL())
		if err == nil || !strings.Contains(out, "Rejected: your change breaks ") || !strings.Contains(out, c.place+c.message) {
			t.Fatalf("%s: %v\n%s%s", c.branch, err, out, progress)
		}
		for _, command := range []string{"explain", "status"} {
			out, progress, err = run(command, c.branch, "--server", s.URL())
			if err != nil {
				t.Fatalf("%v: %s", err, progress)
			}
			first := strings.Join(strings.SplitN(out, "\n", 4)[:3], "\n")
			if want := c.place + c.message; !strings.Contains(first, want) || !strings.HasPrefix(first, c.branch+": your change breaks ") {
				t.Errorf("%s %s begins without %q:\n%s", command, c.branch, want, out)
			}
		}
		if out, _, err = run("logs", c.branch, "--server", s.URL()); err != nil || !strings.Contains(out, c.message) {
			t.Errorf("logs %s: %v\n%s", c.branch, err, out)
		}
	}
}
