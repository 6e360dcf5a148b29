package execution

import (
	"fmt"
	"os"
	"syscall"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
)

// Numbers of <linux/prctl.h>, <linux/capability.h> and <linux/close_range.h>
// that package syscall lacks; the same on all architectures.
const (
	prSetChildSubreaper  = 36
	prSetNoNewPrivileges = 38
	prCapAmbient         = 47
	capAmbientClearAll   = 4
	capSysAdmin          = 21
	sysCloseRange        = 436
	closeRangeCloexec    = 4
)

// isolationsToTry returns the candidates, strongest first. A sandbox is never given up for a weaker one: a step could see
// to it that the next one finds no namespace.
func isolationsToTry(wanted Isolation, boxed bool) []Isolation {
	switch {
	case wanted != Automatic:
		return []Isolation{wanted}
	case boxed && os.Geteuid() == 0:
		return []Isolation{PIDNamespace}
	case boxed:
		return []Isolation{UserNamespace}
	case os.Geteuid() == 0:
		return []Isolation{PIDNamespace, ProcessTree}
	}
	return []Isolation{UserNamespace, ProcessTree}
}

// supervisorAttributes asks the kernel for the isolation. The supervisor has a
// session of its own, so that Ctrl-C in a terminal reaches only the runner,
// which then aborts in its own way.
func supervisorAttributes(isolation Isolation, box *sandbox.Spec) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	switch {
	case box != nil:
		box.Attributes(attributes)
	case isolation == PIDNamespace:
		attributes.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	case isolation == UserNamespace:
		attributes.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
		uid, gid := os.Geteuid(), os.Getegid()
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// The supervisor mounts /proc; without this, exec would take the right
		// to do so from a user that is not root.
		attributes.AmbientCaps = []uintptr{capSysAdmin}
	}
	return attributes
}

// prepareSupervisor turns this process into one that can hold a step. It is
// called on the thread that will start the commands, which must stay locked:
// part of what it sets belongs to a thread. An error means that this isolation
// cannot be had here.
func prepareSupervisor(isolation Isolation, box *sandbox.Spec) error {
	deathSignal := syscall.SIGKILL // the kernel then ends the namespace
	switch {
	case box != nil:
		if err := box.Enter(); err != nil {
			return err
		}
	case isolation == PIDNamespace, isolation == UserNamespace:
		if os.Getpid() != 1 {
			return fmt.Errorf("the supervisor is not process 1 of a namespace of its own")
		}
		// A slave gets the worker's mounts and gives none back.
		if err := syscall.Mount("", "/", "", syscall.MS_SLAVE|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("detach mounts: %w", err)
		}
		// The old /proc would show processes by numbers that mean nothing here.
		if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	default:
		if err := prctl(prSetChildSubreaper, 1); err != nil {
			return fmt.Errorf("become child subreaper: %w", err)
		}
		deathSignal = syscall.SIGTERM // the tree is ours to end first
	}
	// The end of file of the runner's pipe says the same; the signal also works
	// where that cannot be read any more.
	if err := prctl(syscall.PR_SET_PDEATHSIG, uintptr(deathSignal)); err != nil {
		return fmt.Errorf("ask for the death signal: %w", err)
	}
	if err := bounds.EndFirst(); err != nil {
		return err
	}
	// A setuid program would make processes that we may not end.
	if err := prctl(prSetNoNewPrivileges, 1); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := sandbox.ForbidDumps(); err != nil {
		return err
	}
	switch {
	case box != nil:
		if err := sandbox.Restrict(); err != nil {
			return err
		}
	case isolation == UserNamespace:
		if err := prctl(prCapAmbient, capAmbientClearAll); err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
	// Steps of the same user must not write to our pipes by way of /proc/PID/fd,
	// nor trace us.
	if err := prctl(syscall.PR_SET_DUMPABLE, 0); err != nil {
		return fmt.Errorf("hide from tracing: %w", err)
	}
	closeOnExec()
	return nil
}

func prctl(option int, value uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), value, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// closeOnExec keeps every descriptor but the standard three from the commands,
// those too that the runner itself inherited from whoever started it.
func closeOnExec() {
	if _, _, errno := syscall.RawSyscall(sysCloseRange, 3, ^uintptr(0)>>1, closeRangeCloexec); errno == 0 {
		return
	}
	// Linux before 5.11.
	var limit syscall.Rlimit
	highest := uint64(4096)
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		highest = min(limit.Max, 1<<20)
	}
	for descriptor := 3; uint64(descriptor) < highest; descriptor++ {
		syscall.CloseOnExec(descriptor)
	}
}
