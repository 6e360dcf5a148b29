package execution

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"landfall.build/platform/bounds"
)

// signalDescendants signals all below root once and returns how many there
// were.
func signalDescendants(root int, signal syscall.Signal) int {
	below := bounds.Below(root, bounds.Table())
	for _, entry := range below {
		_ = syscall.Kill(entry.PID, signal)
	}
	return len(below)
}

// killLost ends what can still be found of a tree whose subreaper was killed:
// the processes that can still write to the step's output, and the sessions of
// those and of the commands. A session's id is not given to a new process while
// it has members.
func killLost(sessions []int, output *os.File) {
	wanted := make(map[int]bool, len(sessions))
	for _, session := range sessions {
		wanted[session] = true
	}
	table := bounds.Table()
	var pipe string
	if info, err := output.Stat(); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			pipe = fmt.Sprintf("pipe:[%d]", stat.Ino)
		}
	}
	for _, entry := range table {
		if pipe != "" && canWriteTo(entry.PID, pipe) {
			wanted[entry.Session] = true
		}
	}
	// Neither a mistake nor a step may make the builder end itself.
	own, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	for _, entry := range table {
		if wanted[entry.Session] && entry.Session != int(own) {
			_ = syscall.Kill(entry.PID, syscall.SIGKILL)
		}
	}
}

// canWriteTo reports whether a process has a pipe open for writing. The links
// of /proc/PID/fd have the modes of their descriptors.
func canWriteTo(pid int, pipe string) bool {
	directory := fmt.Sprintf("/proc/%d/fd/", pid)
	names, err := os.ReadDir(directory)
	if err != nil {
		return false
	}
	for _, name := range names {
		target, err := os.Readlink(directory + name.Name())
		if err != nil || target != pipe {
			continue
		}
		if info, err := name.Info(); err == nil && info.Mode()&0o200 != 0 {
			return true
		}
	}
	return false
}

// MemoryKills returns how often the kernel has ended a process of this machine
// for want of memory. Where it does not count, that is 0, and a change in it is
// never seen.
func MemoryKills() int {
	content, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(content) {
		if value, found := bytes.CutPrefix(line, []byte("oom_kill ")); found {
			count, _ := strconv.Atoi(string(bytes.TrimSpace(value)))
			return count
		}
	}
	return 0
}
