package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"landfall.build/platform/sandbox"
)

// restricted is the first argument of a process that makes no namespaces, nor do those that it starts. It becomes the program
// that follows.
const restricted = "test-without-namespaces"

func init() {
	if len(os.Args) < 3 || os.Args[1] != restricted {
		return
	}
	err := sandbox.Restrict()
	if err == nil {
		err = syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// upWithoutNamespaces runs landfall doctor and then the service on a system without namespaces, and ends the service once it
// has logged a text. It returns all that the two have said.
func upWithoutNamespaces(t *testing.T, uid int, isolation, until string) (said string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "landfall-isolation-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, bare, work := built(t, "landfall", "."), filepath.Join(dir, "repo.git"), filepath.Join(dir, "work")
	git(t, dir, "init", "-q", "--bare", "-b", "main", bare)
	git(t, dir, "clone", "-q", bare, work)
	write(t, work, map[string]string{"file": "text\n"})
	git(t, work, "checkout", "-q", "-B", "main")
	git(t, work, "add", "--all")
	git(t, work, "commit", "-q", "-m", "first")
	git(t, work, "push", "-q", "origin", "main")
	write(t, dir, map[string]string{"config.yaml": fmt.Sprintf("version: 1\ndata: %[1]s/data\nrepositories: {shop: {url: %[1]s/repo.git}}\n"+
		"gateway: {listen: \"127.0.0.1:0\"}\nqueues: {shop: {repository: shop, steps: {isolation: %[2]s}}}\n", dir, isolation)})
	if out, err := exec.Command("chown", "-R", strconv.Itoa(uid), dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v\n%s", err, out)
	}
	landfall := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{restricted, binary}, args...)...)
		c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if uid != os.Geteuid() {
			c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		}
		return c
	}
	config := filepath.Join(dir, "config.yaml")
	found, _ := landfall("doctor", "--config", config).Output() // its exit code depends on more than isolation
	said = string(found)
	command := landfall("up", "--config", config)
	output, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said += lines.Text() + "\n"
		if until != "" && strings.Contains(lines.Text(), until) {
			_ = command.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := command.Wait(); err == nil != (until != "") {
		t.Errorf("it ended with %v", err)
	}
	return said
}

func TestWithoutNamespacesRequiredIsolationRefusesToRun(t *testing.T) {
	eachUser(t, func(t *testing.T, uid int) {
		said := upWithoutNamespaces(t, uid, "required", "")
		if !strings.Contains(said, "queue shop has steps.isolation: required, and this system cannot isolate steps") {
			t.Errorf("it said\n%s", said)
		}
		if !strings.Contains(said, "error isolation_refused: queue shop:") {
			t.Errorf("landfall doctor found\n%s", said)
		}
	})
}

func TestWithoutNamespacesTheBestIsolationIsNoneAndTheServiceWarns(t *testing.T) {
	const warning = `level=WARN msg="this system cannot isolate steps`
	if said := upWithoutNamespaces(t, os.Geteuid(), "best", warning); !strings.Contains(said, warning) || !strings.Contains(said, "warning isolation_unavailable: queue shop:") {
		t.Errorf("it said\n%s", said)
	}
}
