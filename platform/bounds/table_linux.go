package bounds

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Process is one line of the process table.
type Process struct {
	PID, Parent, Session int
	// Threads counts them, and Resident is the memory that it has, in bytes, with what it shares.
	Threads  int
	Resident int64
}

// Table reads /proc. Processes come and go meanwhile: who ends a tree repeats until nothing is left.
func Table() []Process {
	names, err := namesIn("/proc")
	if err != nil {
		return nil
	}
	table, _ := tableOf(names)
	return table
}

// tableOf returns the processes among the names in /proc, and why one of them could not be read, which is no error if it has ended.
func tableOf(names []string) (table []Process, problem error) {
	table = make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		entry, ok, err := readStat(pid, "/proc/"+name)
		problem = cmp.Or(problem, err)
		if ok && entry.Resident == 0 && entry.Threads > 1 {
			// Its main thread may have ended: then only the others show its memory.
			threads, err := namesIn("/proc/" + name + "/task")
			problem = cmp.Or(problem, err)
			for _, thread := range threads {
				of, _, err := readStat(pid, "/proc/"+name+"/task/"+thread)
				problem = cmp.Or(problem, err)
				if entry.Resident = of.Resident; entry.Resident > 0 {
					break
				}
			}
		}
		if ok {
			table = append(table, entry)
		}
	}
	return table, problem
}

// namesIn returns the names in a folder of /proc, none if it is not there.
func namesIn(folder string) ([]string, error) {
	directory, err := os.Open(folder)
	if err != nil {
		return nil, unlessEnded(err)
	}
	defer directory.Close()
	names, err := directory.Readdirnames(-1)
	return names, unlessEnded(err)
}

// readStat reads the file stat in the folder of a process, or of a thread of it. ok is false if it has ended.
func readStat(pid int, folder string) (p Process, ok bool, err error) {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return p, false, unlessEnded(err)
	}
	p, ok = parseStat(pid, text)
	return p, ok, nil
}

func unlessEnded(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// parseStat reads "pid (name) state ppid pgrp session …". The name is whatever the process calls itself, parentheses and spaces
// included, so that fields count from the last parenthesis. A zombie has nothing left to end, unless other threads of it go on.
func parseStat(pid int, stat []byte) (Process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Process{}, false
	}
	const parent, session, threads, resident = 1, 3, 17, 21
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= resident || len(fields[0]) != 1 || fields[0][0] == 'X' {
		return Process{}, false
	}
	var numbers [resident + 1]int64
	for _, field := range []int{parent, session, threads, resident} {
		number, err := strconv.ParseInt(string(fields[field]), 10, 64)
		if err != nil {
			return Process{}, false
		}
		numbers[field] = number
	}
	if fields[0][0] == 'Z' && numbers[threads] < 2 {
		return Process{}, false
	}
	return Process{
		PID: pid, Parent: int(numbers[parent]), Session: int(numbers[session]), Threads: int(numbers[threads]),
		Resident: numbers[resident] * int64(os.Getpagesize()),
	}, true
}

// Below returns all processes below root, parents first.
func Below(root int, table []Process) []Process {
	children := make(map[int][]Process, len(table))
	for _, entry := range table {
		children[entry.Parent] = append(children[entry.Parent], entry)
	}
	var below []Process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			if !seen[child.PID] {
				seen[child.PID] = true
				below = append(below, child)
				queue = append(queue, child.PID)
			}
		}
	}
	return below
}

// Exceeded returns what the processes below root have done that the limits forbid, "" if nothing. If root is 1 of a PID namespace,
// all others are below it. shared is a file system in memory that is theirs alone, "" if there is none.
//
// It does not see memory that no process has mapped: pipes, files of memfd_create and segments of shmget.
func (l Limits) Exceeded(root int, shared string) string {
	names, unread := namesIn("/proc")
	if root == 1 && l.Processes > 0 && len(names) > l.Processes+min(512, max(128, l.Processes/2)) {
		// To read each of so many would take too long. Processes that have ended and were not waited for count too: they hold numbers of the
		// namespace, and on a busy machine they can leave none for others before so many live.
		return l.processesExceeded()
	}
	table, unseen := tableOf(names)
	if errors.Is(cmp.Or(unread, unseen), unix.EMFILE) {
		return l.uncounted() // we have few files open: they have lowered our limit
	}
	below := Below(root, table)
	threads, resident := 0, int64(0)
	for _, p := range below {
		threads += p.Threads
		resident += p.Resident
	}
	if l.Processes > 0 && threads > l.Processes {
		return l.processesExceeded()
	}
	inMemory := usedBy(shared)
	if l.Memory == 0 || resident+inMemory <= l.Memory {
		return ""
	}
	// Each counts what it shares with others in full.
	own, mapped := int64(0), int64(0)
	for _, p := range below {
		anonymous, sharing, known := proportion(p.PID)
		if !known {
			anonymous = p.Resident
		}
		own += anonymous
		mapped += sharing
	}
	if own+max(mapped, inMemory) > l.Memory {
		return l.memoryExceeded()
	}
	return ""
}

// usedBy returns how many bytes a file system has in use.
func usedBy(path string) int64 {
	var usage unix.Statfs_t
	if path == "" || unix.Statfs(path, &usage) != nil {
		return 0
	}
	return int64(usage.Blocks-usage.Bfree) * usage.Bsize
}

// proportion returns the part of a process in the memory that no file has, and in files in memory. What several processes share
// is divided among them.
func proportion(pid int) (anonymous, sharing int64, known bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, false
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		kib, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "Pss_Anon:", "SwapPss:":
			anonymous, known = anonymous+kib<<10, true
		case "Pss_Shmem:":
			sharing += kib << 10
		}
	}
	return anonymous, sharing, known
}

// machine returns the memory of this machine, and how many processes and threads it allows this user; 0 is unknown.
func machine() (memory int64, processes int) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		memory = int64(info.Totalram) * int64(info.Unit)
	}
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		if n := numberIn(file); n > 0 && (processes == 0 || n < int64(processes)) {
			processes = int(n)
		}
	}
	// The kernel holds root to no limit of a user's processes.
	var ofUser unix.Rlimit
	if os.Geteuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &ofUser) == nil && ofUser.Cur < uint64(processes) {
		processes = int(ofUser.Cur)
	}
	// A container has the bounds of its cgroup.
	if own, _, err := ownCgroup(); err == nil {
		if n := numberIn(own + "/memory.max"); n > 0 {
			memory = min(memory, n)
		}
		if n := numberIn(own + "/pids.max"); n > 0 && n < int64(processes) {
			processes = int(n)
		}
	}
	return memory, processes
}

// numberIn returns the number in a file, 0 if there is none: "max" is none.
func numberIn(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// EndFirst has the kernel end this process, and what it starts, before others when memory is short. What it starts can take that
// back only if this process lacks CAP_SYS_RESOURCE, or has left it to that.
func EndFirst() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("be ended first when memory is short: %w", err)
	}
	return nil
}
