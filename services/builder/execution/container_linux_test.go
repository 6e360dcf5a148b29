package execution

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/bounds"
)

// fakeRuntime is a client that notes its arguments, one a line, and runs the
// command without a container, with the variables that it was given for it. No
// test here has a real one: what docker and podman make of the arguments is
// theirs.
const fakeRuntime = `#!/bin/bash
calls=$(dirname "$0")/calls
printf '%s\n' "--- $1" "${@:2}" >>"$calls"
echo "PATH=$PATH" >>"$calls.path"
export -p >>"$calls.variables"
[ "$1" = ps ] && cat "$(dirname "$0")/left" 2>/dev/null
[ "$1" = run ] || exit 0
[ ! -e "$(dirname "$0")/broken" ] || { echo "cannot connect to the daemon" >&2; exit 125; }
shift
given=(PATH=/usr/bin:/bin IN_CONTAINER=yes)
while [ $# -gt 0 ]; do
	case "$1" in
	--rm|--init) shift;;
	--env) case "$2" in *=*) given+=("$2");; *) given+=("$2=${!2}");; esac; shift 2;;
	--entrypoint) program=$2; shift 2;;
	--workdir) cd "$2" || exit 125; shift 2;;
	--*) shift 2;;
	*) break;;
	esac
done
shift
exec env -i "${given[@]}" "$program" "$@"
`

// image is a request whose command runs in an image by a fake runtime in its own folder.
func image(t *testing.T, name, script string) (request Request, folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(fakeRuntime), 0o755); err != nil {
		t.Fatal(err)
	}
	c := shell(script)
	c.Image, c.Dir = "registry.example.com/go@sha256:00", "sub"
	scratch := t.TempDir()
	home, tmp := ScratchPaths(scratch)
	c.Environment = Environment("/usr/bin:/bin", home, tmp, map[string]string{"TOKEN": "hunter2-hunter2", "LINES": "a\nb"})
	request = step(t, c)
	request.ScratchDir, request.ContainerRuntime = scratch, filepath.Join(folder, name)
	request.Secrets = []Secret{{Name: "TOKEN", Value: []byte("hunter2-hunter2")}}
	if err := os.Mkdir(filepath.Join(request.Worktree, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	return request, folder
}

func TestACommandRunsInItsImageAndLeavesNoContainer(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///of/the/builder")
	t.Setenv("HOME", "/home/of/the/builder")
	t.Setenv("OF_THE_SERVICE", "x")
	for _, runtime := range ContainerRuntimes {
		t.Run(runtime, func(t *testing.T) {
			request, folder := image(t, runtime, `echo "$IN_CONTAINER $HOME $LINES $PWD $OF_THE_SERVICE$DOCKER_HOST"; ./../helper helper-get DB; touch "$HOME/x"; test "$TOKEN" = "hunter2"-hunter2`)
			request.Commands[0].Services = []Service{serve("db", "0s")}
			request.Commands[0].Services[0].Probe = []string{"sh", "-c", `test "$HOME" = "` + filepath.Join(request.ScratchDir, "home") + `" && ./helper helper-get DB`}
			cache := t.TempDir()
			request.Paths, request.Limits = []string{cache}, bounds.Limits{Memory: 512 << 20, Processes: 200}
			result := Run(t.Context(), request)
			mustEnd(t, result, Passed, "")
			home, tmp := ScratchPaths(request.ScratchDir)
			if want := "yes " + home + " a\nb " + request.Worktree + "/sub \nDB\n"; string(result.Tail) != want {
				t.Errorf("output %q, want %q", result.Tail, want)
			}
			calls, err := os.ReadFile(filepath.Join(folder, "calls"))
			if err != nil {
				t.Fatal(err)
			}
			name := request.containerName(0)
			var user []string
			run := strings.Split(string(calls), "--- ")
			for i, line := range strings.Split(run[2], "\n") {
				if line == "--user" {
					user = strings.Split(run[2], "\n")[i : i+2]
				}
			}
			want := []string{"run", "--rm", "--init", "--name", name, "--label", containerLabel(filepath.Dir(request.ScratchDir)), "--network", "host"}
			want = append(want, user...)
			if os.Geteuid() != 0 && runtime == "podman" {
				want = append(want, "--userns", "keep-id")
			}
			for _, path := range []string{request.Worktree, request.ScratchDir, cache} {
				want = append(want, "--volume", path+":"+path)
			}
			want = append(want, "--workdir", request.Worktree+"/sub", "--memory", "536870912b", "--pids-limit", "200", "--env", "CI", "--env", "HOME="+home, "--env", "LANG", "--env", "LINES",
				"--env", "TMPDIR", "--env", "TOKEN", "--env", "DB", "--entrypoint", "sh", "registry.example.com/go@sha256:00", "-c", request.Commands[0].Argv[2], "")
			if got := run[2]; got != strings.Join(want, "\n") {
				t.Errorf("called with\n%s\nwant\n%s", got, strings.Join(want, "\n"))
			}
			// Before, in case a former runner was killed, and after.
			if remove := "rm\n--force\n" + name + "\n"; len(run) != 4 || run[1] != remove || run[3] != remove {
				t.Errorf("calls %q", run)
			}
			if strings.Contains(string(calls), "hunter2-hunter2") || strings.Contains(string(calls), tmp+"\n") {
				t.Errorf("a value is among the arguments:\n%s", calls)
			}
			if paths, _ := os.ReadFile(filepath.Join(folder, "calls.path")); !strings.HasPrefix(string(paths), "PATH=/usr/bin:/bin\n") {
				t.Errorf("the client has %s", paths)
			}
		})
	}
}

func TestAFailureOfTheContainerRuntimeIsNotHeldAgainstTheTree(t *testing.T) {
	request, folder := image(t, "docker", "exit 0")
	if err := os.WriteFile(filepath.Join(folder, "broken"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	result := Run(t.Context(), request)
	mustEnd(t, result, CouldNotRun, "could not be run in the image registry.example.com/go@sha256:00")
	if !strings.Contains(string(result.Tail), "cannot connect to the daemon") {
		t.Errorf("output %q", result.Tail)
	}
	request, _ = image(t, "docker", "exit 7")
	mustEnd(t, Run(t.Context(), request), Failed, "ended with exit code 7")
	request, _ = image(t, "docker", "exit 137")
	request.Limits.Memory = 512 << 20
	mustEnd(t, Run(t.Context(), request), CouldNotRun, "as a container runtime does with what uses more than 512 MiB of memory (builder.memory_limit)")
	request, _ = image(t, "docker", "exit 0")
	request.ContainerRuntime = ""
	mustEnd(t, Run(t.Context(), request), CouldNotRun, "this worker has no container runtime (podman, docker)")
}

func TestAContainerIsRemovedWhenItsStepTimesOut(t *testing.T) {
	request, folder := image(t, "docker", "sleep 1000")
	request.Timeout = 500 * time.Millisecond
	mustEnd(t, Run(t.Context(), request), TimedOut, "")
	calls, _ := os.ReadFile(filepath.Join(folder, "calls"))
	if !strings.HasSuffix(string(calls), "--- rm\n--force\n"+request.containerName(0)+"\n") {
		t.Errorf("calls\n%s", calls)
	}
}

// A container outlives a builder that is killed, and has the workspace in which the next step runs.
func TestContainersOfAFormerProcessAreRemoved(t *testing.T) {
	request, folder := image(t, "docker", "exit 0")
	calls := func() string {
		t.Helper()
		file := filepath.Join(folder, "calls")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	mustEnd(t, Run(t.Context(), request), Passed, "")
	_, after, _ := strings.Cut(calls(), "--label\n")
	label, _, _ := strings.Cut(after, "\n")
	scratch := filepath.Dir(request.ScratchDir)
	asked := "--- ps\n--all\n--quiet\n--filter\nlabel=" + label + "\n"
	if err := RemoveContainers(t.Context(), request.ContainerRuntime, scratch); err != nil {
		t.Error(err)
	}
	if got := calls(); got != asked {
		t.Errorf("where none is left, it calls %q, want %q", got, asked)
	}
	if err := os.WriteFile(filepath.Join(folder, "left"), []byte("1f2e\n3d4c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := RemoveContainers(t.Context(), request.ContainerRuntime, scratch); err != nil {
		t.Error(err)
	}
	if got, want := calls(), asked+"--- rm\n--force\n1f2e\n3d4c\n"; got != want {
		t.Errorf("where some are left, it calls %q, want %q", got, want)
	}
}

func TestARuntimeIsFoundOnThePathOfSteps(t *testing.T) {
	empty, one, two := t.TempDir(), t.TempDir(), t.TempDir()
	for file, mode := range map[string]os.FileMode{filepath.Join(one, "docker"): 0o755, filepath.Join(one, "podman"): 0o644, filepath.Join(two, "podman"): 0o755} {
		if err := os.WriteFile(file, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		empty: "", "relative:" + empty: "", empty + ":" + one: filepath.Join(one, "docker"), one + ":" + two: filepath.Join(two, "podman"),
	} {
		if got := FindContainerRuntime(path); got != want {
			t.Errorf("on %s there is %q, want %q", path, got, want)
		}
	}
}

// The client runs outside of the sandbox: what the tree sets is for the container alone. LD_PRELOAD names a library of the tree,
// PATH and CONTAINERS_HELPER_BINARY_DIR programs.
func TestVariablesOfTheTreeDoNotReachTheClient(t *testing.T) {
	request, folder := image(t, "podman", `test "$LD_PRELOAD $CONTAINERS_HELPER_BINARY_DIR $LINES" = "./evil.so ./sub a
b" && echo "they are there"`)
	c := &request.Commands[0]
	for i, entry := range c.Environment {
		if strings.HasPrefix(entry, "PATH=") {
			c.Environment[i] = "PATH=./evil"
		}
	}
	c.Environment = append(c.Environment, "LD_PRELOAD=./evil.so", "CONTAINERS_HELPER_BINARY_DIR=./sub")
	c.OfTree = []string{"CONTAINERS_HELPER_BINARY_DIR", "LD_PRELOAD", "LINES", "PATH"}
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if want := "they are there\n"; !strings.HasSuffix(string(result.Tail), want) {
		t.Errorf("output %q, want %q", result.Tail, want)
	}
	variables, err := os.ReadFile(filepath.Join(folder, "calls.variables"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sign := range []string{"evil", "./sub", "LINES"} {
		if strings.Contains(string(variables), sign) {
			t.Errorf("the client has %q:\n%s", sign, variables)
		}
	}
}
