package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are system calls that builds and tests do not need. They reach what namespaces do not separate: keys, the kernel's
// memory and programs, its clock and its log. Or they widen the kernel's surface for attacks.
var denied = []uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_ADJTIME, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_INIT_MODULE,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_NFSSERVCTL, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIVOT_ROOT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT,
	unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON,
	unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}

// families are the families of sockets that are allowed. Others, such as vsock to the machine's host, are in no network
// namespace.
var families = []uint32{unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// Offsets into struct seccomp_data, which a filter reads.
const (
	offsetOfNumber       = 0
	offsetOfArchitecture = 4
	offsetOfFirst        = 16 // the lower half, on little-endian machines
)

// filter returns the program that the kernel runs before each system call.
func filter() []unix.SockFilter {
	var program []unix.SockFilter
	load := func(offset uint32) {
		program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
	}
	jump := func(condition uint16, value uint32, yes, no uint8) {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, K: value, Jt: yes, Jf: no})
	}
	answer := func(value uint32) {
		program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value})
	}
	refuse := func(e unix.Errno) { answer(unix.SECCOMP_RET_ERRNO | uint32(e)) }

	// Programs of another architecture have other numbers.
	load(offsetOfArchitecture)
	jump(unix.BPF_JEQ, architecture, 1, 0)
	refuse(unix.ENOSYS)
	load(offsetOfNumber)
	if runtime.GOARCH == "amd64" { // the numbers of its 32-bit pointers
		jump(unix.BPF_JGE, 0x40000000, 0, 1)
		refuse(unix.ENOSYS)
	}
	// The flags of clone3 are in memory, where they could change after the check. C libraries then use clone.
	jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1)
	refuse(unix.ENOSYS)
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		jump(unix.BPF_JEQ, number, 0, 4)
		load(offsetOfFirst)
		jump(unix.BPF_JSET, unix.CLONE_NEWUSER, 0, 1)
		refuse(unix.EPERM)
		answer(unix.SECCOMP_RET_ALLOW)
	}
	for _, number := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		jump(unix.BPF_JEQ, number, 0, uint8(3+len(families)))
		load(offsetOfFirst)
		for i, family := range families {
			jump(unix.BPF_JEQ, family, uint8(len(families)-i), 0)
		}
		refuse(unix.EAFNOSUPPORT)
		answer(unix.SECCOMP_RET_ALLOW)
	}
	for _, number := range denied {
		jump(unix.BPF_JEQ, number, 0, 1)
		refuse(unix.EPERM)
	}
	answer(unix.SECCOMP_RET_ALLOW)
	return program
}

// architecture is the kernel's number of this program's architecture, 0 if there is no filter for it.
var architecture = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

var errNoFilter = errors.New("there is no filter of system calls for this architecture")

// filterCalls puts the filter on this thread and on all that it starts.
func filterCalls() error {
	if architecture == 0 {
		return errNoFilter
	}
	program := filter()
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&header)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
