package execution

import (
	"fmt"
	"syscall"
	"time"
)

// exitByKill is how shells report a child that SIGKILL ended.
const exitByKill = 128 + int(syscall.SIGKILL)

// circumstances are what was observed on the worker while a command ran.
type circumstances struct {
	// outOfMemory is set if the kernel ended some process for want of memory.
	outOfMemory bool
	// diskFull names a file system without room, or is "".
	diskFull string
}

// judgeEnd decides what a command's end means when nobody asked for it.
func judgeEnd(status syscall.WaitStatus, seen circumstances) (Outcome, string) {
	if status.Exited() && status.ExitStatus() == 0 {
		return Passed, ""
	}
	how := fmt.Sprintf("ended with exit code %d", status.ExitStatus())
	if status.Signaled() {
		how = "was ended by " + signalName(status.Signal())
	}
	switch {
	case seen.outOfMemory:
		// The victim may have been deep inside the step, or on its behalf
		// elsewhere; its parents then end with any code.
		return CouldNotRun, how + " while the worker ran out of memory"
	case seen.diskFull != "":
		return CouldNotRun, how + " while the disk of " + seen.diskFull + " was full"
	case status.Signaled() && fromOutside(status.Signal()):
		return CouldNotRun, how + ", which the step's limits did not ask for"
	case status.Exited() && status.ExitStatus() == exitByKill:
		return CouldNotRun, how + ": SIGKILL ended a process of it"
	}
	return Failed, how
}

// fromOutside reports whether a program practically never ends itself by a signal:
// the kernel sends them for want of memory, service managers and people to stop
// a worker.
func fromOutside(signal syscall.Signal) bool {
	switch signal {
	case syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// reasonFor makes the sentence that the developer reads.
func reasonFor(name, what string) string {
	return fmt.Sprintf("Command %q %s.", name, what)
}

func limitReason(limit time.Duration) string {
	return fmt.Sprintf("ran longer than its limit of %v", limit)
}

func stepLimitReason(limit time.Duration) string {
	return fmt.Sprintf("was still running when the step's limit of %v was over", limit)
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS",
	syscall.SIGFPE: "SIGFPE", syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL",
	syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL", syscall.SIGPIPE: "SIGPIPE",
	syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1",
	syscall.SIGUSR2: "SIGUSR2", syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

func signalName(signal syscall.Signal) string {
	if name, known := signalNames[signal]; known {
		return name
	}
	return fmt.Sprintf("signal %d", int(signal))
}

// minimumRoom is the space below which a failure is put down to the disk.
const minimumRoom = 4 << 20

// fullDisk returns the first of the paths whose file system has no room left,
// or "". Of a step that filled and emptied the disk it sees nothing.
func fullDisk(paths ...string) string {
	for _, path := range paths {
		if Full(path, minimumRoom) {
			return path
		}
	}
	return ""
}

// Full reports whether the file system of a path has less room than so many bytes, or none for another file. What cannot be looked
// at is not full.
func Full(path string, bytes uint64) bool {
	var usage syscall.Statfs_t
	if path == "" || syscall.Statfs(path, &usage) != nil {
		return false
	}
	return noRoom(uint64(usage.Bavail)*uint64(usage.Bsize), bytes, uint64(usage.Files), uint64(usage.Ffree))
}

// noRoom: some file systems count no inodes and report 0 of 0.
func noRoom(bytes, minimum, inodes, freeInodes uint64) bool {
	return bytes < minimum || inodes > 0 && freeInodes == 0
}
