package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Names of the cgroups below the one that the service was given. A cgroup with controllers for others has no processes itself.
const (
	serviceGroup = "landfall-service"
	stepsGroup   = "landfall-steps"
)

// Weights of processor time when there is too little: ten steps together have as much as the service.
const (
	serviceWeight = "1000"
	stepsWeight   = "100"
)

// Tree is a cgroup (version 2) in which steps have cgroups of their own.
type Tree struct {
	dir  string
	next atomic.Int64
}

// Delegated returns the tree below the cgroup of this process, which it moves into a cgroup beside those of steps. It fails where
// the cgroup is not the service's to divide. All calls have the answer of the first one.
var Delegated = sync.OnceValues(delegated)

func delegated() (*Tree, error) {
	own, isRoot, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	controllers, err := words(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"memory", "pids"} {
		if !slices.Contains(controllers, name) {
			return nil, fmt.Errorf("the cgroup %s has no controller %q", own, name)
		}
	}
	if !isRoot {
		if err := leave(own); err != nil {
			return nil, err
		}
	}
	t := &Tree{dir: filepath.Join(own, stepsGroup)}
	if err := makeGroup(t.dir); err != nil {
		return nil, err
	}
	t.removeLeft()
	for _, dir := range []string{own, t.dir} {
		if err := set(dir, "cgroup.subtree_control", "+memory +pids"); err != nil {
			return nil, err
		}
		// Some systems delegate no processor time.
		_ = set(dir, "cgroup.subtree_control", "+cpu")
	}
	_ = set(filepath.Join(own, serviceGroup), "cpu.weight", serviceWeight)
	_ = set(t.dir, "cpu.weight", stepsWeight)
	// All steps together leave an eighth of the memory to the service.
	if memory, _ := machine(); memory > 0 {
		return t, set(t.dir, "memory.max", strconv.FormatInt(memory-memory/8, 10))
	}
	return t, nil
}

// ownCgroup returns the folder of this process's cgroup, and whether it is the whole system's.
func ownCgroup() (dir string, isRoot bool, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, err
	}
	path, found := "", false
	for line := range strings.Lines(string(text)) {
		if of, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
			path, found = of, true
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false, err
	}
	for line := range strings.Lines(string(mounts)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !found || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		below, err := filepath.Rel(fields[3], path)
		if err != nil || !filepath.IsLocal(below) {
			continue // the mount shows another part of the tree
		}
		dir = filepath.Join(fields[4], below)
		_, err = os.Stat(filepath.Join(dir, "cgroup.type"))
		return dir, errors.Is(err, fs.ErrNotExist), nil
	}
	return "", false, errors.New("there are no cgroups of version 2")
}

// leave moves this process, and what it has started, out of a cgroup into one below it. It fails if others are there.
func leave(own string) error {
	inside := filepath.Join(own, serviceGroup)
	for range 10 {
		pids, err := words(filepath.Join(own, "cgroup.procs"))
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		ours := map[string]bool{strconv.Itoa(os.Getpid()): true}
		for _, p := range Below(os.Getpid(), Table()) {
			ours[strconv.Itoa(p.PID)] = true
		}
		for _, pid := range pids {
			if _, err := os.Stat("/proc/" + pid); err == nil && !ours[pid] {
				return fmt.Errorf("the cgroup %s is not the service's alone: process %s is there too", own, pid)
			}
		}
		if err := makeGroup(inside); err != nil {
			return err
		}
		for _, pid := range pids {
			if err := set(inside, "cgroup.procs", pid); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return fmt.Errorf("processes come and go in the cgroup %s", own)
}

// removeLeft removes the cgroups of a service that was killed. Its steps have ended with it.
func (t *Tree) removeLeft() {
	left, _ := filepath.Glob(filepath.Join(t.dir, "*", "cgroup.procs"))
	for _, file := range left {
		_ = os.Remove(filepath.Dir(file))
	}
}

// Group is the cgroup of one step.
type Group struct {
	dir    string
	file   *os.File
	limits Limits
}

// Open makes a cgroup. A nil tree has none to give, and the group is nil.
func (t *Tree) Open(l Limits) (*Group, error) {
	if t == nil || !l.Set() {
		return nil, nil
	}
	g := &Group{dir: filepath.Join(t.dir, strconv.FormatInt(t.next.Add(1), 10)), limits: l}
	if err := makeGroup(g.dir); err != nil {
		return nil, err
	}
	err := func() (err error) {
		if l.Memory > 0 {
			if err := set(g.dir, "memory.max", strconv.FormatInt(l.Memory, 10)); err != nil {
				return err
			}
			// Else it would go on in swap space. Some systems do not count that.
			if err := set(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if l.Processes > 0 {
			if err := set(g.dir, "pids.max", strconv.Itoa(l.Processes)); err != nil {
				return err
			}
		}
		g.file, err = os.Open(g.dir)
		return err
	}()
	if err != nil {
		return nil, errors.Join(err, os.Remove(g.dir))
	}
	return g, nil
}

// Join makes a process start in the group.
func (g *Group) Join(attributes *syscall.SysProcAttr) {
	if g != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.file.Fd())
	}
}

// Exceeded returns which limit the group has met, as [Limits.Exceeded] does; "" if none.
func (g *Group) Exceeded() string {
	switch {
	case g == nil:
		return ""
	case g.counted("pids.events", "max") > 0:
		return g.limits.processesExceeded()
	// oom counts only what this very limit was the reason for.
	case g.counted("memory.events", "oom") > 0:
		return g.limits.memoryExceeded()
	}
	return ""
}

// counted returns a number of a file with a name and a number on each line.
func (g *Group) counted(file, name string) int {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte(name+" ")); found {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(value)))
			return n
		}
	}
	return 0
}

// closeLimit bounds how long a group may take to be empty once its processes have been killed.
const closeLimit = 10 * time.Second

// Close ends what is left in the group, and removes it.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	defer g.file.Close()
	_ = set(g.dir, "cgroup.kill", "1") // Linux 5.14
	err := os.Remove(g.dir)
	for until := time.Now().Add(closeLimit); errors.Is(err, syscall.EBUSY) && time.Now().Before(until); err = os.Remove(g.dir) {
		time.Sleep(time.Millisecond)
	}
	return err
}

func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func set(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

func words(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	return strings.Fields(string(text)), err
}
