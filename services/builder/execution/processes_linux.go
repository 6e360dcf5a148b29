package execution

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// process is one line of the process table.
type process struct {
	pid, parent, session int
}

// processTable reads /proc. Processes come and go meanwhile: who ends a tree
// repeats until nothing is left.
func processTable() []process {
	directory, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer directory.Close()
	names, _ := directory.Readdirnames(-1)
	table := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		if entry, ok := parseStat(pid, stat); ok {
			table = append(table, entry)
		}
	}
	return table
}

// parseStat reads "pid (name) state ppid pgrp session …". The name is whatever
// the process calls itself, parentheses and spaces included, so that fields
// count from the last parenthesis. A zombie has nothing left to end.
func parseStat(pid int, stat []byte) (process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 4 || len(fields[0]) != 1 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return process{}, false
	}
	session, err := strconv.Atoi(string(fields[3]))
	if err != nil {
		return process{}, false
	}
	return process{pid: pid, parent: parent, session: session}, true
}

// descendantsOf returns the ids of all processes below root, parents first.
func descendantsOf(root int, table []process) []int {
	children := make(map[int][]int, len(table))
	for _, entry := range table {
		children[entry.parent] = append(children[entry.parent], entry.pid)
	}
	var below []int
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			if !seen[child] {
				seen[child] = true
				below = append(below, child)
				queue = append(queue, child)
			}
		}
	}
	return below
}

// signalDescendants signals all below root once and returns how many there
// were.
func signalDescendants(root int, signal syscall.Signal) int {
	below := descendantsOf(root, processTable())
	for _, pid := range below {
		_ = syscall.Kill(pid, signal)
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
	table := processTable()
	var pipe string
	if info, err := output.Stat(); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			pipe = fmt.Sprintf("pipe:[%d]", stat.Ino)
		}
	}
	for _, entry := range table {
		if pipe != "" && canWriteTo(entry.pid, pipe) {
			wanted[entry.session] = true
		}
	}
	// Neither a mistake nor a step may make the builder end itself.
	own, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	for _, entry := range table {
		if wanted[entry.session] && entry.session != int(own) {
			_ = syscall.Kill(entry.pid, syscall.SIGKILL)
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
