package bazelgraph

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// boxed returns options with which Bazel runs in a sandbox, and skips the test where there is none.
func boxed(t *testing.T, options Options, read ...string) Options {
	t.Helper()
	options.Sandbox, options.SandboxRequired = &sandbox.Spec{Read: read, Network: sandbox.None}, true
	if err := outbound.Try(t.Context(), *options.Sandbox); err != nil {
		t.Skip(err)
	}
	return options
}

// The program stands for Bazel with the repository rules of a tree, which say in p/a what to do.
func TestATreeLeavesNothingForTheNextUnlessItIsTheMainlines(t *testing.T) {
	shown := t.TempDir()
	w := fakeWorld(t, `case $(cat p/a) in
fill) echo kept >$HOME/kept; mkdir $HOME/folder; echo kept >$HOME/folder/kept;;
forge) test "$(cat $HOME/kept)" = kept || { echo nothing is kept >&2; exit 33; }
	echo forged >$HOME/forged; echo forged >$HOME/kept; rm -r $HOME/folder; mkdir $HOME/folder; echo forged >$PWD/../../forged
	echo forged >p/b; ( trap '' TERM; sleep 1000 ) & echo $! >$HOME/pid;;
look) test ! -e $HOME/forged || { echo FOUND forged >&2; exit 33; }
	test "$(cat $HOME/kept $HOME/folder/kept p/b)" = "$(printf 'kept\nkept\n1\n')" || { echo FOUND $(cat $HOME/kept p/b) >&2; exit 33; };;
esac
cat `+shown+`/answer`, twoTargets(), boxed(t, Options{Limit: time.Minute}, shown))
	if err := os.WriteFile(filepath.Join(shown, "answer"), twoTargets(), 0o644); err != nil {
		t.Fatal(err)
	}
	// Each changes a BUILD file, so that Bazel is asked.
	of := func(what string) files {
		return onePackage.with(files{"p/a": what + "\n", "p/BUILD": onePackage["p/BUILD"] + "# " + what + "\n"})
	}
	w.mainline = w.tree(t, of("fill"))
	w.load(t, of("fill"))
	w.load(t, of("forge"))
	w.load(t, of("look"))
	if left, _ := filepath.Glob(filepath.Join(w.dir, "..", "*", "forged")); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := os.Stat(filepath.Join(w.loader.place.Dir, callFolder)); err == nil {
		t.Error("what a call has written is left")
	}
}

func TestWithoutASandboxBazelIsNotAskedWhereOneIsRequired(t *testing.T) {
	for _, required := range []bool{false, true} {
		w := fakeWorld(t, "cat $OUT", twoTargets(), Options{Sandbox: &sandbox.Spec{Write: []string{"/nowhere"}}, SandboxRequired: required})
		err := loadError(t, w, onePackage)
		failure, is := errors.AsType[*Failure](err)
		if is != required || is && !strings.Contains(failure.Reason, "steps.isolation: required") {
			t.Errorf("required %v: %v", required, err)
		}
	}
}

// A repository rule looks for what it must not have, and names a target for what it has found.
func TestARepositoryRuleFindsNothing(t *testing.T) {
	realBazel(t) // whether there is one
	secrets := t.TempDir()
	if err := os.WriteFile(filepath.Join(secrets, "token"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("SECRET_OF_THE_SERVICE", "secret")
	options := Options{Env: []string{"PATH=/usr/bin:/bin"}, Limit: 8 * time.Minute, Heap: 512 << 20,
		StartupFlags: []string{"--host_jvm_args=-XX:+UseSerialGC", "--host_jvm_args=-XX:TieredStopAtLevel=1"}}
	everywhere, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	hosts := "127.0.0.1"
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip := a.(*net.IPNet).IP; !ip.IsLinkLocalUnicast() {
			hosts += " " + ip.String()
		}
	}
	for _, network := range []sandbox.Network{sandbox.Outbound, sandbox.None, ""} {
		isolated := network != ""
		if isolated {
			options = boxed(t, options)
			options.Sandbox.Network = network
			if err := outbound.Try(t.Context(), *options.Sandbox); err != nil {
				t.Skip(err)
			}
		} else {
			options.Sandbox = nil
		}
		w := newWorld(t, options)
		graph := w.load(t, files{
			"WORKSPACE": "load(\"//:probe.bzl\", \"probe\")\nprobe(name = \"probe\")\n",
			"probe.bzl": fmt.Sprintf(`def _impl(ctx):
    found = ctx.execute(["sh", "-c", """
test -e %[1]s/token && printf ' path'
test -e %[2]s && printf ' mirror'
echo x >%[1]s/planted 2>/dev/null && printf ' write'
test "$SECRET_OF_THE_SERVICE" && printf ' environment'
kill -0 %[4]d 2>/dev/null && printf ' process'
for host in %[5]s; do for port in %[3]d %[6]d; do
	timeout 5 python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])))' $host $port 2>/dev/null && printf ' port'
done; done
true"""]).stdout
    ctx.file("BUILD", "")
    ctx.file("found.bzl", "FOUND = %%s" %% repr(found.split(" ")[1:]))
probe = repository_rule(_impl, local = True)
`, secrets, w.repo.Dir(), listener.Addr().(*net.TCPAddr).Port, os.Getpid(), hosts, everywhere.Addr().(*net.TCPAddr).Port),
			"BUILD": "load(\"@probe//:found.bzl\", \"FOUND\")\nfilegroup(name = \"looked\")\n[filegroup(name = \"found_\" + f) for f in {f: 0 for f in FOUND}]\n",
		})
		var found []string
		looked := false
		for target := range graph.Targets() {
			if what, is := strings.CutPrefix(target.Name, "//:found_"); is {
				found = append(found, what)
			}
			looked = looked || target.Name == "//:looked"
		}
		if isolated && len(found) > 0 || !isolated && len(found) < 4 || !looked {
			t.Errorf("network %q: found %q", network, found)
		}
	}
}

// The programs stand for Bazel with repository rules that take all they can. Each stops by itself at a bound of its own.
func TestWhatBazelRunsIsBounded(t *testing.T) {
	for script, reason := range map[string]string{
		"head -c 600000000 /dev/zero | tail >/dev/null; sleep 1000":                           "it used more than 128 MiB of memory (analysis.bazel.heap)",
		"i=0; while test $i -lt 1000; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done; wait": "it had more than 200 processes and threads at once (analysis.bazel.heap)",
	} {
		w := fakeWorld(t, script, twoTargets(), boxed(t, Options{
			Limit: time.Minute, Limits: bounds.Limits{Memory: 128 << 20, Processes: 200, Setting: "analysis.bazel.heap"},
		}))
		err := loadError(t, w, onePackage)
		if failure, is := errors.AsType[*Failure](err); !is || !strings.Contains(failure.Reason, reason) {
			t.Errorf("%v, want %q", err, reason)
		}
	}
}
