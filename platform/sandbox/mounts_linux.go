package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// outside is the path of the system's own root folder while the new one is made.
const outside = "/.outside"

// kind is what a mount gives.
type kind int

// The kinds. Of two for one path, the later one wins.
const (
	hidden kind = iota
	readable
	writable
)

// mount is a path of the new root folder.
type mount struct {
	path string
	kind kind
	// source is where it is outside, with no symbolic link on the way.
	source string
	info   fs.FileInfo
	// overlay is set for a folder of layers, which is writable.
	overlay *Overlay
}

// mounts returns what to mount, folders before what is in them. Sources are looked up, so it has to be called while the
// system's own root folder is in place.
func (s Spec) mounts() ([]mount, error) {
	all := map[string]mount{}
	add := func(path string, k kind, needed bool) error {
		source, err := filepath.EvalSymlinks(path)
		if err == nil {
			var info fs.FileInfo
			if info, err = os.Stat(source); err == nil {
				for _, name := range []string{filepath.Clean(path), source} {
					if had, there := all[name]; !there || had.kind < k {
						all[name] = mount{path: name, kind: k, source: source, info: info}
					}
				}
			}
		}
		if err != nil && (needed || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	var problems []error
	private := privateSettings()
	for _, path := range slices.Concat(s.Hide, secretPaths, private) {
		problems = append(problems, add(path, hidden, false))
	}
	for _, path := range slices.Concat(SystemPaths(), s.Read) {
		if s.Network == Outbound && path == resolvConf {
			continue // it has one of its own
		}
		if source, err := filepath.EvalSymlinks(path); err == nil && slices.Contains(private, source) && !slices.Contains(s.Read, path) {
			continue
		}
		problems = append(problems, add(path, readable, false))
	}
	for _, path := range s.Write {
		problems = append(problems, add(path, writable, true))
	}
	for _, o := range s.Overlays {
		o, err := o.resolved()
		if err == nil {
			err = add(o.Path, writable, true)
		}
		if m, added := all[o.Path]; added {
			m.overlay = &o
			all[o.Path] = m
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	list := make([]mount, 0, len(all))
	for _, m := range all {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mount) int { return cmp.Compare(a.path, b.path) })
	return list, nil
}

// needed reports whether the path has to be mounted: above, the innermost mount that it lies in, does not show it in the same
// way. above is nil if there is none.
func (m mount) needed(above *mount) bool {
	switch {
	case m.overlay != nil:
		return true
	case above == nil || above.kind == hidden:
		return m.kind != hidden
	case m.path != m.source:
		return false // the link is there, and leads to the source
	}
	return m.kind != above.kind
}

// makeRoot makes the new root folder and enters it.
func (s Spec) makeRoot() error {
	list, err := s.mounts()
	if err != nil {
		return err
	}
	resolving := resolveOutside()
	links := map[string]string{}
	for _, path := range systemPaths {
		if target, err := os.Readlink(path); err == nil {
			links[path] = target
		}
	}
	tmp := s.Tmp
	if tmp != "" {
		if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	// /proc is there on every system, and is not needed below the new one.
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("a new root folder: %w", err)
	}
	if err := os.Mkdir("/proc"+outside, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot("/proc", "/proc"+outside); err != nil {
		return fmt.Errorf("change the root folder: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for path, target := range links {
		if err := os.Symlink(target, path); err != nil {
			return err
		}
	}
	if err := makeTmp(tmp); err != nil {
		return fmt.Errorf("/tmp: %w", err)
	}
	if err := mountAll(list, links); err != nil {
		return err
	}
	if err := makeDevices(); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	if err := makeProc(s.Processes); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if s.Network == Outbound {
		if err := os.WriteFile(resolvConf, []byte(resolving), 0o444); err != nil {
			return err
		}
	}
	for _, folder := range []string{"/run", "/var"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/tmp", "/var/tmp"); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The program that runs keeps these mounts in use, and steps reach it by /proc/PID/exe.
	if err := setAttributes(outside, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	if err := unix.Unmount(outside, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root folder: %w", err)
	}
	if err := os.Remove(outside); err != nil {
		return err
	}
	return setAttributes("/", 0, unix.MOUNT_ATTR_RDONLY)
}

func mountAll(list []mount, links map[string]string) error {
	var around []*mount // the mounts that the current path lies in
	var covers []string
	for i := range list {
		m := &list[i]
		for len(around) > 0 && !within(m.path, around[len(around)-1].path) {
			around = around[:len(around)-1]
		}
		var above *mount
		if len(around) > 0 {
			above = around[len(around)-1]
		}
		if _, linked := links[m.path]; linked || underLink(m.path, links) || !m.needed(above) {
			continue
		}
		if err := m.mount(); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if m.kind == hidden && m.info.IsDir() {
			covers = append(covers, m.path)
		}
		around = append(around, m)
	}
	// Covers become read-only last: mount points below them had to be made first.
	for _, path := range covers {
		if err := setAttributes(path, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

// underLink reports whether a path leads through one of the system's own links. The new root has it under its other name.
func underLink(path string, links map[string]string) bool {
	for link := range links {
		if strings.HasPrefix(path, link+"/") {
			return true
		}
	}
	return false
}

func (m *mount) mount() error {
	if err := makeMountPoint(m.path, m.info.IsDir()); err != nil {
		return err
	}
	switch {
	case m.overlay != nil:
		return m.overlay.mount()
	case m.kind == hidden && m.info.IsDir():
		return unix.Mount("tmpfs", m.path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=1m")
	case m.kind == hidden:
		return bind("/dev/null", m.path, unix.MOUNT_ATTR_RDONLY)
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID)
	if !within(m.source, "/dev") {
		attributes |= unix.MOUNT_ATTR_NODEV
	}
	if m.kind == readable {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return bind(m.source, m.path, attributes)
}

// makeMountPoint makes a file or folder to mount on, unless there is one.
func makeMountPoint(path string, folder bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if folder {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o444)
}

// bind mounts a folder or file of the old root at a path, with all that is mounted below it.
func bind(source, path string, attributes uint64) error {
	if err := unix.Mount(outside+source, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return setAttributes(path, unix.AT_RECURSIVE, attributes)
}

func setAttributes(path string, flags uint, attributes uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return fmt.Errorf("limit %s: %w", path, err) // Linux before 5.12 cannot
	}
	return nil
}

func makeTmp(source string) error {
	if err := os.Mkdir("/tmp", 0o755); err != nil {
		return err
	}
	if source != "" {
		return bind(source, "/tmp", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
	return unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777")
}

func makeDevices() error {
	if err := os.MkdirAll("/dev", 0o755); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		path := "/dev/" + name
		if err := makeMountPoint(path, false); err != nil {
			return err
		}
		// Read-only: a device can be written all the same, but root cannot set its permissions, which are those of the whole machine.
		if err := bind(path, path, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir("/dev/"+name, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	return unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=1777")
}

// Parts of /proc that belong to the whole machine: root could change the first ones, and the second ones show secrets.
var (
	procReadOnly = []string{"bus", "fs", "irq", "sys"}
	procHidden   = []string{"acpi", "asound", "kcore", "keys", "key-users", "kmsg", "kpagecount", "kpageflags", "latency_stats", "sched_debug", "scsi", "sysrq-trigger", "sysvipc", "timer_list"}
)

// kernelHas reports whether this is Linux of a version, or later.
func kernelHas(major, minor int) bool {
	var name unix.Utsname
	var isMajor, isMinor int
	if unix.Uname(&name) != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &isMajor, &isMinor); err != nil {
		return false
	}
	return isMajor > major || isMajor == major && isMinor >= minor
}

// reservedNumbers are those of processes that the kernel gives only once.
const reservedNumbers = 300

func makeProc(processes int) error {
	if err := os.Mkdir("/proc", 0o755); err != nil {
		return err
	}
	// The kernel mounts a new /proc only while the system's own is still visible.
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	// Before Linux 6.14 it would be the bound of the whole machine.
	if processes > 0 && kernelHas(6, 14) {
		if err := os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(processes+reservedNumbers)), 0); err != nil {
			return fmt.Errorf("bound processes: %w", err)
		}
	}
	for _, name := range procReadOnly {
		path := "/proc/" + name
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := setAttributes(path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	for _, name := range procHidden {
		path := "/proc/" + name
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if info.IsDir() {
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0k,mode=555")
		} else {
			err = bind("/dev/null", path, unix.MOUNT_ATTR_RDONLY)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
