package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readAll  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeOne = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// handled is all that the second version of Landlock's interface knows. The first one forbids to rename a file into another
	// folder, which a server has to.
	handled = readAll | writeOne | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	minLandlock = 2
)

// canConfine returns nil if the kernel can confine a server.
func canConfine() error {
	version, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if failed != 0 {
		return fmt.Errorf("this kernel has no Landlock: %w", failed)
	}
	if version < minLandlock {
		return fmt.Errorf("this kernel has version %d of Landlock; version %d is needed (Linux 5.19)", version, minLandlock)
	}
	return nil
}

// confine leaves this thread, and those that it begins, the files below dir that a server needs, and what the kernel says of this
// process and the machine. Whoever may ask the server for files gets no other ones, not even its owner's password.
func confine(dir string) error {
	set := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	descriptor, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), unsafe.Sizeof(set.Handled_access_fs), 0)
	if failed != 0 {
		return fmt.Errorf("confine by Landlock: %w", failed)
	}
	defer unix.Close(int(descriptor))
	for _, rule := range []struct {
		access uint64
		path   string
	}{
		{handled &^ unix.LANDLOCK_ACCESS_FS_EXECUTE, filepath.Join(dir, "data")}, {handled &^ unix.LANDLOCK_ACCESS_FS_EXECUTE, filepath.Join(dir, "log")},
		{readFile, filepath.Join(dir, "config.xml")}, {readFile, filepath.Join(dir, "users.xml")},
		{readAll, fmt.Sprintf("/proc/%d", os.Getpid())}, {readFile, "/proc/meminfo"}, {readFile, "/proc/cpuinfo"}, {readFile, "/proc/stat"}, {readFile, "/proc/loadavg"},
		{readAll, "/sys/fs/cgroup"}, {readAll, "/sys/devices/system"},
		{writeOne, "/dev/null"}, {readFile, "/dev/urandom"}, {readFile, "/dev/random"}, {writeOne, "/dev/tty"},
	} {
		parent, err := unix.Open(rule.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", rule.path, err)
		}
		beneath := unix.LandlockPathBeneathAttr{Allowed_access: rule.access, Parent_fd: int32(parent)}
		_, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, descriptor, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
		unix.Close(parent)
		if failed != 0 {
			return fmt.Errorf("confine by Landlock to %s: %w", rule.path, failed)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if _, _, failed := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, descriptor, 0, 0); failed != 0 {
		return fmt.Errorf("confine by Landlock: %w", failed)
	}
	return nil
}
