package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox/callfilter"
)

// memfdSecret is the number of memfd_secret on every architecture. Not all have the name.
const memfdSecret = 447

// denied are system calls that builds and tests do not need. They reach what namespaces do not separate: keys, the kernel's
// memory and programs, its clock and its log. Or they widen the kernel's surface for attacks, or take memory that is not counted where
// steps are.
var denied = []uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_INIT_MODULE,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL,
	unix.SYS_LOOKUP_DCOOKIE, memfdSecret, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT,
	unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON,
	unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}

// families are the families of sockets that are allowed. Others, such as vsock to the machine's host, are in no network
// namespace.
var families = []uint32{unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// leasing holds the commands of fcntl that take a lease of a file. Whoever opens the file then waits for the holder, 45 s each time, and
// files of the system and of tools are opened by all steps and by the machine.
var leasing = []uint32{unix.F_SETLEASE, fSetDelegation}

const fSetDelegation = 1024 + 16 // F_SETDELEG, Linux 6.19

// filter returns the program that refuses calls. ok is false if there is none for this architecture.
func filter() (program callfilter.Program, ok bool) {
	program, ok = callfilter.New(refusing(unix.ENOSYS))
	refuse := func(e unix.Errno) { program.Answer(refusing(e)) }
	if runtime.GOARCH == "amd64" { // the numbers of its 32-bit pointers
		program.Jump(unix.BPF_JGE, 0x40000000, 0, 1)
		refuse(unix.ENOSYS)
	}
	// The flags of clone3 are in memory, where they could change after the check. C libraries then use clone.
	program.Jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1)
	refuse(unix.ENOSYS)
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program.Jump(unix.BPF_JEQ, number, 0, 4)
		program.Load(callfilter.Argument(0))
		program.Jump(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1)
		refuse(unix.EPERM)
		program.Answer(unix.SECCOMP_RET_ALLOW)
	}
	program.Jump(unix.BPF_JEQ, unix.SYS_FCNTL, 0, uint8(3+len(leasing)))
	program.Load(callfilter.Argument(1))
	for i, command := range leasing {
		program.Jump(unix.BPF_JEQ, command, uint8(len(leasing)-i), 0)
	}
	program.Answer(unix.SECCOMP_RET_ALLOW)
	refuse(unix.EINVAL) // as file systems do that have no leases
	// What sets the limit of core dumps does nothing: ForbidDumps has set it.
	program.Jump(unix.BPF_JEQ, unix.SYS_SETRLIMIT, 0, 4)
	program.Load(callfilter.Argument(0))
	program.Jump(unix.BPF_JEQ, unix.RLIMIT_CORE, 0, 1)
	program.Answer(refusing(0))
	program.Answer(unix.SECCOMP_RET_ALLOW)
	program.Jump(unix.BPF_JEQ, unix.SYS_PRLIMIT64, 0, 8)
	program.Load(callfilter.Argument(1))
	program.Jump(unix.BPF_JEQ, unix.RLIMIT_CORE, 0, 5)
	program.Load(callfilter.Argument(2)) // no new limit: it is asked for
	program.Jump(unix.BPF_JEQ, 0, 0, 2)
	program.Load(callfilter.Argument(2) + 4)
	program.Jump(unix.BPF_JEQ, 0, 1, 0)
	program.Answer(refusing(0))
	program.Answer(unix.SECCOMP_RET_ALLOW)
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		program.Jump(unix.BPF_JEQ, number, 0, uint8(3+len(families)))
		program.Load(callfilter.Argument(0))
		for i, family := range families {
			program.Jump(unix.BPF_JEQ, family, uint8(len(families)-i), 0)
		}
		refuse(unix.EAFNOSUPPORT)
		program.Answer(unix.SECCOMP_RET_ALLOW)
	}
	for _, number := range denied {
		program.Jump(unix.BPF_JEQ, number, 0, 1)
		refuse(unix.EPERM)
	}
	program.Answer(unix.SECCOMP_RET_ALLOW)
	return program, ok
}

// refusing returns the filter's answer that has a call fail with an error. With 0 the call does nothing and reports success.
func refusing(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

var errNoFilter = errors.New("there is no filter of system calls for this architecture")

// ForbidDumps keeps the kernel from dumping this process, and all that it starts, when they crash. It has to come before [Restrict],
// by which they cannot take that back. With a limit of 0 it would write no file, but still start the program that the machine's
// core_pattern names, if it does, outside of all namespaces and bounds; 1 means neither. A process whose limit may not be more than 0, and
// that may not raise it, stays with that.
func ForbidDumps() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil && limit.Max > 0 {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// filterCalls puts the filter on this thread and on all that it starts.
func filterCalls() error {
	program, ok := filter()
	if !ok {
		return errNoFilter
	}
	if _, errno := program.Install(0); errno != 0 {
		return errno
	}
	return nil
}
