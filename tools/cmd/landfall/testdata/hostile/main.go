// Command hostile is a step that means harm. It looks for everything of the machine that a step must not have, prints each
// thing that it finds as a line "FOUND kind: what", and fails if there is any. It leaves things for the next step, and looks
// for those of the step before.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// facts is what the test knows about the machine. Whoever attacks could guess most of it.
type facts struct {
	// Yranac is the text of all planted secrets, backwards, so that this file does not hold it.
	Yranac string
	// Paths are files, folders and sockets that a step must not see; Writable those that it must not write.
	Paths, Writable []string
	// Pids are processes of the service, of its user and of others.
	Pids []int
	// Addresses are what listens on this machine, host:port; Abstract is the name of a socket without a file.
	Addresses []string
	Abstract  string
	// Broker is the address of the log, Secret the file with what lets a client in there.
	Broker, Secret string
	// Ports are the ports of Addresses, HostAddresses the machine's addresses, Datagrams a port that answers on each.
	Ports, HostAddresses []string
	Datagrams            int
	// SharedMemory is the key of a segment of System V, Queue the name of a message queue.
	SharedMemory int
	// Key is the description of a key in the user's keyring.
	Key string
	// Marker is what is in files that a step leaves; none for one that leaves nothing.
	Marker string
	// Root is where every file is read.
	Root string
	// Greedy is "memory" or "processes" for a step that takes all of that.
	Greedy string
}

var (
	know  facts
	found int
)

func report(kind, format string, arguments ...any) {
	found++
	fmt.Printf("FOUND %s: %s\n", kind, fmt.Sprintf(format, arguments...))
}

func canary() []byte {
	text := []byte(know.Yranac)
	for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
		text[i], text[j] = text[j], text[i]
	}
	return text
}

func main() {
	text, err := os.ReadFile("hostile.json")
	if os.IsNotExist(err) {
		return // the mainline does no harm
	}
	if err == nil {
		err = json.Unmarshal(text, &know)
	}
	if err != nil {
		fmt.Println("FOUND nothing to look for:", err)
		os.Exit(1)
	}
	if know.Greedy != "" {
		takeAll()
	}
	for _, look := range []func(){
		leftovers, environment, descriptors, paths, links, walk, writing, processes, signals, tracing, sharedMemory, keys, sockets, ports, broker, datagrams, gateway, rawSockets, interfaces,
		privileges, devices, permissions, leases, crashes, namespaces, kernel, handles, readResults, otherProcesses, limits,
	} {
		look()
	}
	if know.Marker != "" {
		leave()
	}
	if found > 0 {
		os.Exit(1)
	}
	fmt.Println("nothing found")
}

func environment() {
	for _, entry := range os.Environ() {
		if strings.Contains(entry, string(canary())) {
			report("environment", "%.20s…", entry)
		}
		for _, name := range []string{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR", "AWS_SECRET_ACCESS_KEY"} {
			if strings.HasPrefix(entry, name+"=") {
				report("environment", "%s is set", name)
			}
		}
	}
}

func descriptors() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		number, _ := strconv.Atoi(e.Name())
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if number > 2 && err == nil && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/proc/") {
			report("descriptor", "%d is %s", number, target)
		}
	}
}

func paths() {
	for _, path := range know.Paths {
		if _, err := os.Lstat(path); err == nil {
			report("path", "%s is there", path)
		}
		for _, prefix := range []string{"/proc/1/root", "/proc/self/root", "/proc/self/cwd/../../../../../../../..", "/proc/1/cwd/../../../../.."} {
			if _, err := os.Lstat(prefix + path); err == nil {
				report("path", "%s%s is there", prefix, path)
			}
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err == nil {
			for _, e := range entries {
				if e.Name() == filepath.Base(path) {
					report("path", "%s is listed", path)
				}
			}
		}
	}
}

// links makes names of its own for what it must not see.
func links() {
	for _, path := range know.Paths {
		for _, how := range []func(string, string) error{os.Link, os.Symlink} {
			name := "link-to-it"
			os.Remove(name)
			if how(path, name) == nil {
				if _, err := os.Stat(name); err == nil {
					report("link", "%s can be reached by a link", path)
				}
			}
			os.Remove(name)
		}
	}
}

// walk reads every file there is.
func walk() {
	own, _ := os.Getwd()
	want := canary()
	filepath.WalkDir(know.Root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && (path == "/proc" || path == "/sys" || path == "/usr" || path == own || path == "/dev"):
			return fs.SkipDir
		case entry.Type()&fs.ModeSocket != 0:
			report("socket", "%s", path)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return nil
		}
		if content, err := os.ReadFile(path); err == nil && bytes.Contains(content, want) {
			report("secret", "%s", path)
		}
		return nil
	})
}

func writing() {
	for _, path := range append([]string{"/usr/bin/planted", "/etc/planted", "/etc/passwd", "/lib/planted", "/planted", "/run/planted", "/home/planted", "/root/planted"}, know.Writable...) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err == nil {
			if !strings.HasPrefix(path, "/tmp/") { // a step has one of its own; the test looks whether it is
				report("write", "%s", path)
			}
			info, err := file.Stat()
			file.Close()
			if err == nil && info.Size() == 0 {
				os.Remove(path)
			}
		}
	}
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/sys/kernel/hostname", "/proc/mtrr"} {
		if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			if device, _ := os.Stat(path); device.Mode()&fs.ModeDevice == 0 {
				report("write", "%s", path)
			}
			file.Close()
		}
	}
}

func processes() {
	self := os.Getpid()
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == self {
			continue
		}
		for _, file := range []string{"environ", "mem", "maps"} {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err == nil && len(content) > 0 && pid != 1 {
				report("process", "%s of process %d can be read", file, pid)
			}
			if bytes.Contains(content, canary()) {
				report("secret", "process %d has it in its %s", pid, file)
			}
		}
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(cmdline, canary()) {
			report("secret", "process %d has it in its arguments", pid)
		}
		for _, link := range []string{"cwd/.", "root/.", "exe"} {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/%s", pid, link)); err == nil {
				report("process", "%s of process %d leads somewhere", link, pid)
			}
		}
		open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, file := range open {
			if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, file.Name())); err == nil {
				report("process", "process %d shows what it has open: %s", pid, target)
			}
		}
	}
}

func signals() {
	for _, pid := range know.Pids {
		if syscall.Kill(pid, 0) == nil && pid != 1 && !ours(pid) {
			report("signal", "process %d can be signalled", pid)
		}
	}
	for pid := 2; pid < 1<<16; pid++ {
		if pid != os.Getpid() && syscall.Kill(pid, 0) == nil && !ours(pid) {
			report("signal", "process %d can be signalled", pid)
			return
		}
	}
}

// ours reports whether a process is a thread of this one, or of the supervisor, to which signals do nothing but end the step.
func ours(pid int) bool {
	for _, of := range []string{"self", "1"} {
		if _, err := os.Stat(fmt.Sprintf("/proc/%s/task/%d", of, pid)); err == nil {
			return true
		}
	}
	return false
}

func tracing() {
	for _, pid := range append([]int{1}, know.Pids...) {
		if pid == os.Getpid() {
			continue
		}
		done := make(chan bool)
		go func() {
			runtime.LockOSThread()
			_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, 0x4206, uintptr(pid), 0, 0, 0, 0) // PTRACE_SEIZE
			done <- errno == 0
		}()
		if <-done {
			report("trace", "process %d", pid)
		}
		for _, file := range []string{"mem", "fd/4", "fd/1", "ns/mnt"} {
			if f, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, file), os.O_RDWR, 0); err == nil {
				f.Close()
				report("trace", "/proc/%d/%s can be opened", pid, file)
			}
		}
	}
}

func sharedMemory() {
	if know.SharedMemory != 0 {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SHMGET, uintptr(know.SharedMemory), 0, 0); errno == 0 {
			report("shared memory", "segment %d", know.SharedMemory)
		}
	}
	entries, _ := os.ReadDir("/dev/shm")
	for _, e := range entries {
		report("shared memory", "/dev/shm/%s", e.Name())
	}
	for _, file := range []string{"shm", "msg", "sem"} {
		content, _ := os.ReadFile("/proc/sysvipc/" + file)
		if lines := bytes.Count(content, []byte("\n")); lines > 1 {
			report("shared memory", "/proc/sysvipc/%s has %d", file, lines-1)
		}
	}
}

var numbers = map[string]map[string]uintptr{
	"amd64": {"add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "userfaultfd": 323, "kexec_load": 246, "perf_event_open": 298, "open_by_handle_at": 304, "setns": 308, "unshare": 272, "pivot_root": 155, "syslog": 103, "io_uring_setup": 425, "fanotify_init": 300, "process_vm_readv": 310, "pidfd_open": 434, "pidfd_getfd": 438, "memfd_secret": 447},
	"arm64": {"add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "userfaultfd": 282, "kexec_load": 104, "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "unshare": 97, "pivot_root": 41, "syslog": 116, "io_uring_setup": 425, "fanotify_init": 262, "process_vm_readv": 270, "pidfd_open": 434, "pidfd_getfd": 438, "memfd_secret": 447},
}[runtime.GOARCH]

// allowed reports whether the system did something.
func allowed(name string, arguments ...uintptr) bool {
	var a [6]uintptr
	copy(a[:], arguments)
	_, _, errno := syscall.RawSyscall6(numbers[name], a[0], a[1], a[2], a[3], a[4], a[5])
	return errno == 0
}

func text(s string) uintptr {
	b := append([]byte(s), 0)
	return uintptr(unsafe.Pointer(&b[0]))
}

func keys() {
	if know.Key == "" {
		return
	}
	const userKeyring = ^uintptr(3) // -4
	const search = 10
	if allowed("keyctl", search, userKeyring, text("user"), text(know.Key)) {
		report("key", "%s", know.Key)
	}
	if content, err := os.ReadFile("/proc/keys"); err == nil && bytes.Contains(content, []byte(know.Key)) {
		report("key", "/proc/keys names %s", know.Key)
	}
}

func sockets() {
	if know.Abstract != "" {
		if c, err := net.Dial("unix", "@"+know.Abstract); err == nil {
			c.Close()
			report("socket", "@%s", know.Abstract)
		}
	}
	for _, path := range append([]string{"/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private"}, know.Paths...) {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			report("socket", "%s", path)
		}
	}
}

func privileges() {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if name == "NoNewPrivs" && value != "1" {
			report("privilege", "new ones can be had")
		}
		if name == "CapEff" || name == "CapPrm" || name == "CapAmb" {
			mask, _ := strconv.ParseUint(value, 16, 64)
			for name, bit := range map[string]int{"dac_read_search": 2, "net_admin": 12, "net_raw": 13, "sys_module": 16, "sys_rawio": 17, "sys_chroot": 18, "sys_ptrace": 19, "sys_admin": 21, "sys_boot": 22, "sys_time": 25, "mknod": 27, "bpf": 39} {
				if mask&(1<<bit) != 0 {
					report("privilege", "%s", name)
				}
			}
		}
	}
	for _, program := range []string{"sudo", "su", "pkexec", "mount"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		arguments := map[string][]string{"sudo": {"-n", "mount"}, "su": {"-c", "mount -t tmpfs x /tmp"}, "pkexec": {"mount"}, "mount": {"-t", "tmpfs", "x", "/tmp"}}[program]
		command := exec.Command(path, arguments...)
		if os.Geteuid() != 0 && command.Run() == nil || os.Geteuid() == 0 && program == "mount" && command.Run() == nil {
			report("privilege", "%s works", program)
		}
	}
}

func devices() {
	for name, device := range map[string]int{"vda": 254 << 8, "sda": 8 << 8, "mem": 1<<8 | 1, "kmsg": 1<<8 | 11} {
		os.Remove("node")
		mode := uint32(syscall.S_IFBLK)
		if name == "mem" || name == "kmsg" {
			mode = syscall.S_IFCHR
		}
		if syscall.Mknod("node", mode|0o600, device) == nil {
			report("device", "%s can be made", name)
		}
		os.Remove("node")
		if f, err := os.Open("/dev/" + name); err == nil {
			f.Close()
			report("device", "/dev/%s can be opened", name)
		}
	}
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		character := byte('x')
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCSTI, uintptr(unsafe.Pointer(&character))); errno == 0 {
			report("device", "the terminal takes input from here")
		}
		f.Close()
	}
}

// permissions sets those of the system's devices to what they are: who may do that may take them from everybody.
func permissions() {
	entries, _ := os.ReadDir("/dev")
	for _, e := range entries {
		path := "/dev/" + e.Name()
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			continue
		}
		if os.Chmod(path, info.Mode()&fs.ModePerm) == nil {
			report("permissions", "%s", path)
		}
	}
}

// leases takes one of a file: it keeps whoever opens the file waiting, for 45 s, and again once it is taken again. All files can be
// leased that this user has and nobody has open, so programs and settings of the system too by root.
func leases() {
	file, err := os.Open("hostile.json")
	if err != nil {
		return
	}
	defer file.Close()
	const setLease, setDelegation = 1024, 1040
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), setLease, syscall.F_WRLCK); errno == 0 {
		report("lease", "of a file")
	}
	delegation := struct {
		flags    uint32
		kind     uint16
		reserved uint16
	}{kind: syscall.F_RDLCK}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), setDelegation, uintptr(unsafe.Pointer(&delegation))); errno == 0 {
		report("lease", "a delegation")
	}
}

// crashes looks whether the kernel would give the memory of a process that crashes to a program of the machine, outside of all walls,
// where its core_pattern names one. It does so whatever the limit of core dumps, unless that is 1.
func crashes() {
	syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil || limit.Cur != 1 || limit.Max != 1 {
		report("crash", "the limit is %d", limit.Cur)
	}
}

func namespaces() {
	for name, flag := range map[string]uintptr{"user": syscall.CLONE_NEWUSER, "mount": syscall.CLONE_NEWNS, "network": syscall.CLONE_NEWNET} {
		command := exec.Command("true")
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
		if command.Run() == nil {
			report("namespace", "one of its own: %s", name)
		}
	}
	if f, err := os.Open("/proc/1/ns/mnt"); err == nil {
		if allowed("setns", f.Fd(), 0) {
			report("namespace", "that of process 1")
		}
		f.Close()
	}
	if syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, "") == nil {
		report("namespace", "something can be mounted")
	}
	if syscall.Unmount("/usr", syscall.MNT_DETACH) == nil {
		report("namespace", "something can be unmounted")
	}
	if err := syscall.Mount("", "/usr", "", syscall.MS_REMOUNT|syscall.MS_BIND, ""); err == nil {
		report("namespace", "/usr can be made writable")
	}
}

func kernel() {
	attributes := make([]byte, 128)
	at := uintptr(unsafe.Pointer(&attributes[0]))
	if allowed("bpf", 0, at, 128) {
		report("kernel", "bpf")
	}
	if allowed("io_uring_setup", 4, at) {
		report("kernel", "io_uring")
	}
	const userModeOnly = 1
	for name, flags := range map[string]uintptr{"userfaultfd": userModeOnly, "fanotify_init": 0} {
		if allowed(name, flags) {
			report("kernel", "%s", name)
		}
	}
	if allowed("memfd_secret") {
		report("kernel", "memory that is not counted")
	}
	const ringSize = 10
	if allowed("syslog", ringSize) {
		report("kernel", "its log")
	}
	clear(attributes)
	attributes[0], attributes[4] = 1, 128 // a counter of software
	if allowed("perf_event_open", at, 0, ^uintptr(0), ^uintptr(0)) {
		report("kernel", "counters of its events")
	}
	if name, err := os.ReadFile("/proc/kcore"); err == nil && len(name) > 0 {
		report("kernel", "its memory can be read")
	}
}

// handles opens the root folder of file systems by number, as a famous escape from containers did.
func handles() {
	handle := struct {
		bytes uint32
		kind  int32
		inode uint32
		rest  [7]uint32
	}{bytes: 8, kind: 1, inode: 2}
	own, err := os.Open(".")
	if err != nil {
		return
	}
	defer own.Close()
	if allowed("open_by_handle_at", own.Fd(), uintptr(unsafe.Pointer(&handle)), 0) {
		report("handle", "the root folder of this file system can be opened")
	}
}

// readResults looks for what the supervisor has, from which results come.
func readResults() {
	for fd := range 16 {
		if f, err := os.OpenFile(fmt.Sprintf("/proc/1/fd/%d", fd), os.O_WRONLY, 0); err == nil {
			report("result", "descriptor %d of the supervisor can be written", fd)
			f.Close()
		}
	}
}

// places are where a step can leave something, as far as it can write there.
func places() []string {
	home, _ := os.UserHomeDir()
	list := []string{"/tmp", "/var/tmp", "/dev/shm", os.TempDir(), home, ".", "..", ".git/hooks", ".git/objects", "ignored", filepath.Join("..", "beside")}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasSuffix(name, "CACHE") && filepath.IsAbs(value) {
			list = append(list, value)
		}
	}
	return list
}

const leftName = "left-by-hostile"

func leave() {
	for _, folder := range places() {
		os.MkdirAll(folder, 0o755)
		path := filepath.Join(folder, leftName)
		if os.WriteFile(path, []byte(know.Marker), 0o644) == nil {
			os.Chmod(path, 0o755|fs.ModeSetuid)
		}
	}
	evil := "#!/bin/sh\necho " + know.Marker + " > " + strings.Join(know.Writable, "; echo x >> ") + "\n"
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-commit"} {
		os.WriteFile(".git/hooks/"+hook, []byte(evil), 0o755)
	}
	os.WriteFile(".git/config", []byte("[core]\n\tfsmonitor = sh -c '"+evil+"'\n\thooksPath = hooks\n[filter \"x\"]\n\tsmudge = sh\n"), 0o644)
	os.WriteFile(".git/HEAD", []byte("ref: refs/heads/main\n"), 0o644)
	os.MkdirAll(".git/refs", 0o755)
	os.WriteFile(".gitattributes", []byte("* filter=x\n"), 0o644)
	// A folder of the tree becomes a link that leads out.
	for _, path := range know.Writable {
		os.RemoveAll("folder")
		os.Symlink(filepath.Dir(path), "folder")
	}
	// A process that outlives the step, as far as it can.
	command := exec.Command("sh", "-c", "trap '' TERM HUP; exec 3>&-; while :; do echo left >> /tmp/"+leftName+"; sleep 0.1; done")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Start()
	os.Chmod(".", 0o555)
}

func leftovers() {
	for _, folder := range places() {
		if content, err := os.ReadFile(filepath.Join(folder, leftName)); err == nil {
			report("leftover", "%s has %.20s", folder, content)
		}
	}
	if _, err := os.Stat(".git"); err == nil {
		report("leftover", ".git")
	}
	if info, err := os.Lstat("folder"); err == nil && !info.IsDir() {
		report("leftover", "a folder is still a link")
	}
	if f, err := os.Open("."); err == nil {
		names, _ := f.Readdirnames(-1)
		f.Close()
		for _, name := range names {
			if info, err := os.Lstat(name); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				report("leftover", "%s has the bits of another user", name)
			}
		}
	}
}
