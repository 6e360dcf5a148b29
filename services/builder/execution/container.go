package execution

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
)

// A command with an image is run by the client of a container runtime in its
// place: docker or podman. The container sees the worktree, the scratch
// directory and the given paths where they are outside, and the command's
// variables; PATH is the image's own. Without a sandbox it has
// the machine's network, so that services are reached. The container is no child
// of the client's, so it has a name by which it is removed, at the latest by the
// next step with the same scratch directory.

const (
	// clientFailed is the exit code of both clients if the runtime could not run
	// the command at all.
	clientFailed = 125
	removeLimit  = 20 * time.Second
)

// ContainerRuntimes are the programs that are looked for, in this order.
var ContainerRuntimes = []string{"podman", "docker"}

// FindContainerRuntime returns the path of the first of ContainerRuntimes in a
// PATH, or "".
func FindContainerRuntime(path string) string {
	for _, name := range ContainerRuntimes {
		for _, directory := range filepath.SplitList(path) {
			file := filepath.Join(directory, name)
			if info, err := os.Stat(file); filepath.IsAbs(file) && err == nil && executable(info) {
				return file
			}
		}
	}
	return ""
}

// ofClient are variables by which a client finds its runtime, its images and its
// registries. It has them from this process; the container has not.
var ofClient = []string{
	"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT",
	"DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST", "CONTAINERS_CONF", "REGISTRY_AUTH_FILE",
}

// containerName is the name of a command's container; no two that run at the
// same time have one.
func (r Request) containerName(command int) string {
	sum := sha256.Sum256([]byte(r.ScratchDir))
	return fmt.Sprintf("landfall-%x-%d", sum[:8], command)
}

// containerLabel returns the label of the containers that a builder starts: of steps whose scratch directories lie in its folder.
func containerLabel(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return fmt.Sprintf("landfall=%x", sum[:8])
}

// contained returns the request with the clients in place of the commands that
// have an image.
func (r Request) contained() Request {
	r.Commands = slices.Clone(r.Commands)
	for i, c := range r.Commands {
		if c.Image != "" {
			r.Commands[i].Argv, r.Commands[i].Environment = r.client(i, c)
		}
	}
	return r
}

// containerNetwork is the network of a command with an image. With bridge the
// container reaches what the machine does, and not its loopback.
func (r Request) containerNetwork() string {
	switch {
	case r.Sandbox == nil || r.Sandbox.Network == sandbox.Host:
		return "host"
	case r.Sandbox.Network == sandbox.Outbound:
		return "bridge"
	}
	return "none"
}

func (r Request) client(number int, c Command) (argv, environment []string) {
	argv = []string{
		r.ContainerRuntime, "run", "--rm", "--init", "--name", r.containerName(number), "--label", containerLabel(filepath.Dir(r.ScratchDir)), "--network", r.containerNetwork(),
		"--user", strconv.Itoa(os.Geteuid()) + ":" + strconv.Itoa(os.Getegid()),
	}
	if strings.Contains(filepath.Base(r.ContainerRuntime), "podman") && os.Geteuid() != 0 {
		argv = append(argv, "--userns", "keep-id")
	}
	for _, path := range slices.Concat([]string{r.Worktree, r.ScratchDir}, r.Paths) {
		argv = append(argv, "--volume", path+":"+path)
	}
	for _, o := range r.Overlays {
		argv = append(argv, "--volume", o.Plain+":"+o.Path)
	}
	argv = append(argv, "--workdir", filepath.Join(r.Worktree, c.Dir))
	// The container is none of the client's children, so the runtime bounds it.
	if r.Limits.Memory > 0 {
		argv = append(argv, "--memory", strconv.FormatInt(r.Limits.Memory, 10)+"b")
	}
	if r.Limits.Processes > 0 {
		argv = append(argv, "--pids-limit", strconv.Itoa(r.Limits.Processes))
	}
	own := map[string]bool{}
	for _, entry := range c.Environment {
		name, _, _ := strings.Cut(entry, "=")
		ofTree := slices.Contains(c.OfTree, name)
		switch {
		case name == "PATH" && ofTree:
			// By PATH, and by more variables than could be listed, a client finds programs and libraries that it runs outside of the
			// sandbox.
			environment = append(environment, "PATH="+os.Getenv("PATH"))
		case name == "PATH":
			environment = append(environment, entry)
		case ofTree || slices.Contains(ofClient, name):
			argv = append(argv, "--env", entry)
		default:
			// By name alone: values may be secret, and everybody sees arguments.
			argv = append(argv, "--env", name)
			environment = append(environment, entry)
		}
		own[name] = true
	}
	// Ports are known when the services are there.
	for _, s := range c.Services {
		if !own[s.PortVariable] {
			argv = append(argv, "--env", s.PortVariable)
		}
	}
	environment = append(environment, clientEnvironment()...)
	slices.Sort(environment)
	return append(append(argv, "--entrypoint", c.Argv[0], c.Image), c.Argv[1:]...), environment
}

func clientEnvironment() (environment []string) {
	for _, name := range ofClient {
		if value, set := os.LookupEnv(name); set {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

// RemoveContainers removes the containers of steps that a killed process has left. folder holds the steps' scratch directories. Such
// containers go on writing to workspaces that later steps use, so it must be called before the first step.
func RemoveContainers(ctx context.Context, runtime, folder string) error {
	call := func(arguments ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, removeLimit)
		defer cancel()
		client := exec.CommandContext(ctx, runtime, arguments...)
		client.Env, client.WaitDelay = append(clientEnvironment(), "PATH="+os.Getenv("PATH")), time.Second
		said, err := client.Output()
		if err != nil {
			err = fmt.Errorf("%s %s: %w", runtime, arguments[0], err)
		}
		return string(said), err
	}
	left, err := call("ps", "--all", "--quiet", "--filter", "label="+containerLabel(folder))
	if ids := strings.Fields(left); err == nil && len(ids) > 0 {
		_, err = call(append([]string{"rm", "--force"}, ids...)...)
	}
	return err
}

// removeContainers removes what may be left of the step's containers: the client
// may have been killed, and knows nothing of a runner that was.
func (r Request) removeContainers() {
	for i, c := range r.Commands {
		if c.Image == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
		remove := exec.CommandContext(ctx, r.ContainerRuntime, "rm", "--force", r.containerName(i))
		_, remove.Env = r.client(i, c)
		remove.WaitDelay = time.Second
		_ = remove.Run() // there is none, most of the time
		cancel()
	}
}

// judgeContainer takes back what a client's exit code says of the tree, where it
// is about the runtime: an image that cannot be had, a daemon that is not there.
func judgeContainer(result Result, commands []Command, limits bounds.Limits) Result {
	last := len(result.Commands) - 1
	if last >= 0 && commands[last].Image != "" && result.Commands[last].ExitCode == exitByKill && limits.Memory > 0 {
		result.Reason = reasonFor(commands[last].Name, fmt.Sprintf("ended with exit code %d: SIGKILL ended a process of it, as a container runtime does with what uses more than %s",
			exitByKill, limits.MemoryText()))
	}
	if last < 0 || commands[last].Image == "" || result.Outcome != Failed || result.Commands[last].ExitCode != clientFailed {
		return result
	}
	result.Outcome, result.Commands[last].Outcome = CouldNotRun, CouldNotRun
	result.Reason = reasonFor(commands[last].Name, "could not be run in the image "+commands[last].Image+": the output has what the container runtime says")
	return result
}
