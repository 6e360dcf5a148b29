package adopt

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/platform/configuration"
)

// machine is what this machine has for steps.
type machine struct {
	Cores int `json:"cores"`
	// Memory is in bytes, 0 if it is not known.
	Memory int64 `json:"memory,omitempty"`
	// Tools are the programs that were looked for, by name.
	Tools map[string]tool `json:"tools"`
	// folders are those of the user's PATH that are absolute.
	folders []string
}

// tool is a program.
type tool struct {
	// Path is "" for one that is not there.
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
}

// lookAround returns what the machine has of some tools, and which of some programs it has outside of the system's folders. Programs may
// be any, so they are not asked for their version.
func lookAround(ctx context.Context, tools, programs []string) machine {
	m := machine{Cores: runtime.NumCPU(), Memory: totalMemory(), Tools: map[string]tool{}}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(folder) && !strings.ContainsAny(folder, ":\n") && !slices.Contains(m.folders, filepath.Clean(folder)) {
			m.folders = append(m.folders, filepath.Clean(folder))
		}
	}
	find := func(name string) string {
		path := lookFor(name, m.folders)
		if path != "" && filepath.Base(filepath.Dir(path)) == "shims" {
			path = behindShim(ctx, name, path)
		}
		return path
	}
	for _, name := range tools {
		path := find(name)
		m.Tools[name] = tool{path, versionOf(ctx, name, path)}
	}
	for _, name := range programs {
		if path := find(name); m.Tools[name].Path == "" && path != "" && !slices.Contains(systemFolders, filepath.Dir(path)) {
			m.Tools[name] = tool{Path: path}
		}
	}
	return m
}

// lookFor returns the first program of that name in some folders, "" for none.
func lookFor(name string, folders []string) string {
	for _, folder := range folders {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// behindShim returns the program that a version manager would start. A shim needs the manager's variables and its
// folder in HOME, which steps do not have.
func behindShim(ctx context.Context, name, shim string) string {
	for _, manager := range []string{"pyenv", "rbenv", "nodenv", "asdf"} {
		if !strings.Contains(shim, "/."+manager+"/") {
			continue
		}
		if path := firstLine(ctx, filepath.Dir(shim)+"/../bin/"+manager, "which", name); filepath.IsAbs(path) {
			return path
		}
	}
	return shim
}

// versionOf returns the version that a program prints, "" if it prints none.
func versionOf(ctx context.Context, name, path string) string {
	if path == "" {
		return ""
	}
	return versionIn.FindString(firstLine(ctx, path, versionArgument(name)))
}

func versionArgument(tool string) string {
	if tool == "go" {
		return "version"
	}
	return "--version"
}

// brokenTool returns why a tool of a build system, on the PATH of a queue's steps, does not tell its version there; "" if it does. Other
// programs are not started.
func brokenTool(ctx context.Context, name, file string, queue configuration.Queue) string {
	known := false
	for _, s := range systems {
		known = known || slices.Contains(s.tools, name)
		for _, more := range s.byFile {
			known = known || slices.Contains(more, name)
		}
	}
	if !known {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, versionArgument(name))
	cmd.Dir, cmd.WaitDelay, cmd.Env = neutral, time.Second, append(os.Environ(), "PATH="+queue.Steps.Environment.Path)
	for name, value := range queue.Steps.Environment.Variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimRight(strings.TrimPrefix(said[0]+" ("+err.Error()+")", " "), ".")
}

// versionIn finds a version in what a program prints.
var versionIn = regexp.MustCompile(`[0-9]+\.[0-9]+[0-9A-Za-z.+-]*`)

const (
	// answerTime is how long a tool may take to answer.
	answerTime = 10 * time.Second
	// neutral is where programs are asked: not what a folder of the repository tells them to run, nor what others leave in a temporary one.
	neutral = "/"
)

// lines returns what a program prints, nil if it fails.
func lines(ctx context.Context, program string, args ...string) []string {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.WaitDelay = neutral, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// firstLine returns the first line that a program prints, "" if it fails.
func firstLine(ctx context.Context, program string, args ...string) string {
	if all := lines(ctx, program, args...); len(all) > 0 {
		return strings.TrimSpace(all[0])
	}
	return ""
}

// totalMemory returns the memory of the machine in bytes, 0 if it is not known.
func totalMemory() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it is no number
			return kib << 10
		}
	}
	return 0
}

// memoryOfWorker is what a build is taken to need.
const memoryOfWorker = 2 << 30

// workers returns how many builds the machine has room for.
func (m machine) workers() int {
	n := m.Cores
	if m.Memory > 0 {
		n = min(n, int(m.Memory/memoryOfWorker))
	}
	return max(n, 1)
}
