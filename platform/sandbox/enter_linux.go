package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes asks the kernel for the namespaces of a sandbox. They add to what the caller asks for.
//
// A service that runs as root has no user namespace: with one user mapped, honest code that changes owners would fail. Its
// processes keep the user, and lose what it may do outside.
func (s Spec) Attributes(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if s.Network != Host {
		attributes.Cloneflags |= syscall.CLONE_NEWNET
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Without these, exec would take from a user that is not root what Enter needs. Overlays are made with the right to
		// write to a folder of their own that nobody may write to.
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_DAC_OVERRIDE}
	}
}

// ownProgram is a link of the kernel's to the program that runs, also after its file was replaced.
const ownProgram = "/proc/self/exe"

// OwnProgram returns the path by which a sandbox must be started with this process's program. Steps reach the program's file by
// /proc/PID/exe, and must not change its permissions. Started by path, the file is in the mounts of the new process, which [Spec.Enter]
// makes read-only. Started by /proc/self/exe, it is in the mounts of this process, which a sandbox cannot change. If the file was
// replaced, it has no path, and OwnProgram returns /proc/self/exe.
func OwnProgram() string {
	path, err := os.Readlink(ownProgram)
	if err != nil {
		return ownProgram
	}
	found, err := os.Stat(path)
	if err != nil {
		return ownProgram
	}
	if own, err := os.Stat(ownProgram); err != nil || !os.SameFile(own, found) {
		return ownProgram
	}
	return path
}

// Enter puts this process, which was started with [Spec.Attributes], into the sandbox. An error wraps [ErrUnavailable]; the
// process must then end.
func (s Spec) Enter() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%w: the process is not the first of a namespace of its own", ErrUnavailable)
	}
	if err := unix.Sethostname([]byte("landfall")); err != nil {
		return fmt.Errorf("%w: a host name: %w", ErrUnavailable, err)
	}
	if s.Network != Host {
		if err := upLoopback(); err != nil {
			return fmt.Errorf("%w: the loopback: %w", ErrUnavailable, err)
		}
	}
	if s.Network == Outbound {
		if err := s.connect(); err != nil {
			return fmt.Errorf("%w: the network: %w", ErrUnavailable, err)
		}
	}
	if err := s.makeRoot(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// upLoopback lets the processes of this namespace reach each other.
func upLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// kept are the privileges of root that reach no further than the files of a sandbox and its processes. Other users keep none.
var kept = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE,
}

// unused returns a capability, as a bit, that the supervisor's threads keep in their permitted set and commands lack. The kernel lets
// nobody change the scheduling of a thread whose permitted set exceeds their own. It is 0 if there is none: what root may not take from
// the bounding set, its commands would have.
func unused(permitted uint64) uint64 {
	if permitted&(1<<unix.CAP_NET_RAW) != 0 {
		permitted = 1 << unix.CAP_NET_RAW // the one that reaches least
	}
	for c := range uintptr(64) {
		if permitted&(1<<c) == 0 {
			continue
		}
		if bound, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); os.Geteuid() != 0 || err == nil && bound == 0 {
			return 1 << c
		}
	}
	return 0
}

// Restrict takes privileges, and the means to gain any, from this thread and from all processes that it starts. It locks the
// goroutine to the thread.
func Restrict() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	// On a kernel without filters the rest of the sandbox still holds.
	if err := filterCalls(); err != nil && err != unix.EINVAL && err != unix.ENOSYS && err != errNoFilter {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// usualFiles bounds how many files a program of a sandbox may have open that asks for no more: some look at each number up to there.
const usualFiles = 64 << 10

// LimitFilesAndProcesses lets this process, and all that it starts, have three quarters of the open files that it might, and of the
// processes and threads that its user might. The kernel lets a user have as many descriptors under way in sockets as the one who sends
// some may have files open, and a sandbox is made by sending some: what runs in another one could have taken them all. Processes count
// for the user of the service, which could start no thread once they are at its limit. The kernel holds root to none.
func LimitFilesAndProcesses() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Max -= limit.Max / 4
	limit.Cur = min(limit.Max, usualFiles)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	limit.Cur -= limit.Cur / 4
	limit.Max = limit.Cur
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}

func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var keep uint64
	if os.Geteuid() == 0 {
		for _, c := range kept {
			keep |= 1 << c
		}
	}
	for c := range uintptr(64) {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	permitted := uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
	spare := keep | unused(permitted&^keep)
	for i := range data {
		data[i].Effective &= uint32(keep >> (32 * i))
		data[i].Permitted &= uint32(spare >> (32 * i))
		data[i].Inheritable = 0
	}
	return unix.Capset(&header, &data[0])
}
