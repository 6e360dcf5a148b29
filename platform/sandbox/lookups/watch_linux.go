//go:build amd64 || arm64

package lookups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch remembers what is looked for below a folder.
type Watch struct {
	root          string
	absent, empty map[string]bool
	hollow, shown map[string]bool
	partial       map[string]bool // folders that lack something
	believes      bool

	mu    sync.Mutex
	err   error
	found map[string]Lookup
	// known are paths as programs have named them that are of no interest, plain those that are no links.
	known, plain map[string]bool
}

// New returns a watch of a folder, whose path is absolute and without links.
func New(root string, missing Missing) *Watch {
	w := &Watch{root: filepath.Clean(root), absent: map[string]bool{}, empty: map[string]bool{}, hollow: map[string]bool{}, shown: map[string]bool{}, partial: map[string]bool{},
		believes: missing.Believe, found: map[string]Lookup{}, known: map[string]bool{}, plain: map[string]bool{}}
	for _, name := range missing.Absent {
		w.absent[name] = true
		w.partial[path.Dir(name)] = true
	}
	for _, name := range missing.Empty {
		w.empty[name] = true
	}
	for _, name := range missing.Shown {
		w.shown[name], w.partial[name] = true, true
	}
	for _, name := range missing.Hollow {
		w.hollow[name], w.partial[name] = true, true
	}
	return w
}

// Found returns what was looked for so far, sorted by path, and was not made since.
func (w *Watch) Found() []Lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := make([]Lookup, 0, len(w.found))
	for _, l := range w.found {
		if l.Listed || !w.made(l.Path) {
			found = append(found, l)
		}
	}
	inOrder(found)
	return found
}

// made reports whether the program has made what is at a path. What is there by its name has no content.
func (w *Watch) made(name string) bool {
	info, err := os.Lstat(filepath.Join(w.root, name))
	if err != nil || !w.empty[name] && !w.hollow[w.lacking(name)] {
		return err == nil
	}
	return info.Mode().IsRegular() && info.Size() > 0
}

// Err returns why lookups could not be answered. System calls have then failed that would not have.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// notification is struct seccomp_notif.
type notification struct {
	id           uint64
	process      uint32
	flags        uint32
	number       int32
	architecture uint32
	instruction  uint64
	arguments    [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Requests of ioctl(2), and flags, that package unix lacks.
const (
	notifySetFlags = 0x40082104
	notifyIDValid  = 0x40082102
	syncWakeUp     = 1
	goOn           = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE
)

func ioctl(descriptor int, request uint, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(descriptor), uintptr(request), uintptr(argument))
	return errno
}

// Serve answers a listener until no process is left that it hears of, and closes it.
func (w *Watch) Serve(listener *os.File) {
	defer listener.Close()
	if err := w.serve(listener); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.err = err
	}
}

func (w *Watch) serve(listener *os.File) error {
	descriptor := int(listener.Fd())
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(descriptor), notifySetFlags, syncWakeUp) // faster, with Linux 6.6
	for {
		ready := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return fmt.Errorf("wait for lookups: %w", err)
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		var n notification
		switch errno := ioctl(descriptor, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // the process has ended
			continue
		default:
			return fmt.Errorf("receive a lookup: %w", errno)
		}
		w.look(descriptor, &n)
		answer := response{id: n.id, flags: goOn}
		errno := unix.EINTR
		for errno == unix.EINTR {
			errno = ioctl(descriptor, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
		}
		if errno != 0 && errno != unix.ENOENT {
			return fmt.Errorf("answer a lookup: %w", errno)
		}
	}
}

// look notes the lookup of a process, which waits meanwhile. What cannot be read of it is left out.
func (w *Watch) look(descriptor int, n *notification) {
	c, process := calls[n.number], fmt.Sprintf("/proc/%d/", n.process)
	if c.changes {
		w.mu.Lock()
		clear(w.known)
		clear(w.plain)
		w.mu.Unlock()
	}
	switch {
	case c.path != none:
	case c.changes:
		return
	default:
		folder, err := os.Readlink(process + fmt.Sprintf("fd/%d", int32(n.arguments[c.folder])))
		if err == nil {
			w.judge(descriptor, n, sought{name: folder, follow: true, listed: true})
		}
		return
	}
	name, err := text(int(n.process), uintptr(n.arguments[c.path]))
	if err != nil || name == "" {
		return
	}
	s := sought{follow: !c.ofLink, reads: c.opens || c.reads}
	if c.flags != none {
		flags := n.arguments[c.flags]
		if c.opens {
			if flags&unix.O_CREAT != 0 && flags&unix.O_TRUNC != 0 {
				return // It is made, whatever was there.
			}
			s.follow = flags&unix.O_NOFOLLOW == 0
			s.reads = flags&unix.O_ACCMODE != unix.O_WRONLY && flags&unix.O_PATH == 0
		} else {
			s.follow = flags&unix.AT_SYMLINK_NOFOLLOW == 0
		}
	}
	if !strings.HasPrefix(name, "/") {
		folder := process + "cwd"
		if c.folder != none && int32(n.arguments[c.folder]) != unix.AT_FDCWD {
			folder = process + fmt.Sprintf("fd/%d", int32(n.arguments[c.folder]))
		}
		if folder, err = os.Readlink(folder); err != nil {
			return
		}
		name = folder + "/" + name
	}
	for _, own := range []struct{ of, is string }{{"/proc/self/", process}, {"/proc/thread-self/", process}, {"/dev/fd/", process + "fd/"}} {
		if rest, is := strings.CutPrefix(name, own.of); is {
			name = own.is + rest
		}
	}
	s.name = name
	w.judge(descriptor, n, s)
}

// sought is a path that a process looks for.
type sought struct {
	name   string // absolute
	follow bool   // a link at its end
	listed bool   // it is a folder, whose names are read
	reads  bool   // its content
}

// systems are folders in which no link leads to the root.
var systems = []string{"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/sys/", "/nix/"}

// judge notes a path if it is of interest.
func (w *Watch) judge(descriptor int, n *notification, s sought) {
	if slices.ContainsFunc(systems, func(folder string) bool {
		return strings.HasPrefix(s.name, folder) && !strings.HasPrefix(w.root, folder)
	}) && !strings.Contains(s.name, "/../") {
		return
	}
	key := s.name
	if s.listed {
		key = "l" + key
	} else if !s.follow {
		key = "n" + key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[key] {
		return
	}
	at, inside, there := w.resolve(s.name, s.follow)
	of := ""
	switch {
	case !inside:
	case s.listed && (w.partial[at] || w.absent[at]):
		of = at
	case w.empty[at]:
		if !s.reads {
			return // It may be read later.
		}
		of = at
	default:
		of = w.lacking(at)
	}
	if of == "" {
		if there && !strings.HasPrefix(s.name, "/proc/") { // What is not there may become a link, and processes go elsewhere.
			if len(w.known) >= mostKnown {
				clear(w.known)
			}
			w.known[key] = true
		}
		return
	}
	if there && !s.listed && w.made(at) {
		return
	}
	noted := at
	if len(w.found) >= most {
		noted = of
	}
	if _, is := w.found[noted]; is || ioctl(descriptor, notifyIDValid, unsafe.Pointer(&n.id)) != 0 {
		return
	}
	program := w.programOf(int(n.process))
	switch {
	case program == "rm":
		return // What it looks for goes.
	case s.listed && w.shown[of] && (strings.HasPrefix(program, "python") || program == "make"):
		return
	case s.listed && w.believes && w.byTool(int(n.process)):
		return
	}
	w.found[noted] = Lookup{Path: noted, Listed: s.listed, Program: program}
}

// tools are programs that list folders of which what they do depends on a part: those of packages, and of members of a workspace.
// Which part that is the adapters know.
var tools = map[string]bool{
	"go": true, "cargo": true, "uv": true,
	"npm": true, "npm-cli.js": true, "npx": true, "npx-cli.js": true, "pnpm": true, "pnpm.cjs": true, "pnpm.mjs": true, "yarn": true, "yarn.js": true,
}

// commandOption is the option of a shell before the command that it is given.
var commandOption = regexp.MustCompile(`^-[a-z]*c$`)

// shells are programs that run a command which they are given (-c).
var shells = map[string]bool{"sh": true, "bash": true, "dash": true}

// byTool reports whether a process is one of the tools' own: no code of the folder has started it.
func (w *Watch) byTool(process int) bool {
	own := os.Getpid()
	for depth := 0; process > 1 && process != own; depth++ {
		if name := w.programOf(process); !tools[name] {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
			words := strings.Split(string(line), "\x00")
			if depth == 0 || !shells[name] || err != nil || len(words) < 2 || !commandOption.MatchString(words[1]) {
				return false // A script of the folder, maybe.
			}
		}
		var err error
		if process, err = parent(process); err != nil {
			return false
		}
	}
	return true
}

// programOf returns the name of the program, or of what Node runs, of a process; "" if it is one of the folder's own, or not known.
func (w *Watch) programOf(process int) string {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", process))
	if err == nil && path.Base(program) == "node" {
		var line []byte
		line, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
		words := strings.Split(string(line), "\x00")
		program = words[0]
		if path.Base(program) == "node" && len(words) > 1 {
			program = words[1]
		}
		program, _, _ = strings.Cut(program, " ") // npm gives its process another title.
	}
	if err != nil || strings.HasPrefix(program, w.root+"/") {
		return ""
	}
	return path.Base(program)
}

// parent returns the process that has started a process.
func parent(process int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	// The name before the state may hold anything.
	var state string
	var above int
	_, err = fmt.Sscan(string(status[bytes.LastIndexByte(status, ')')+1:]), &state, &above)
	return above, err
}

// lacking returns what is absent of the parts of a path, "" if nothing is.
func (w *Watch) lacking(name string) string {
	for end := 0; end < len(name); end++ {
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			break
		}
		if end += next; w.absent[name[:end]] || w.hollow[name[:end]] {
			return name[:end]
		}
	}
	if w.absent[name] {
		return name
	}
	return ""
}

// resolve returns where an absolute path leads, relative to the root, and whether something is there. A path of which a part is not
// there leads nowhere else: it ends before the first ".." behind that part.
func (w *Watch) resolve(name string, follow bool) (at string, inside, there bool) {
	rest, now, links := strings.Split(name, "/"), "/", 0
	there = true
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && !there:
			rest = nil
			continue
		case part == "..":
			now = path.Dir(now)
			continue
		}
		next := path.Join(now, part)
		if !there {
			now = next
			continue
		}
		leads := ""
		if !w.plain[next] {
			var err error
			if leads, err = os.Readlink(next); err != nil {
				leads = ""
				there = errors.Is(err, unix.EINVAL)
			}
			if there && leads == "" {
				w.keepPlain(next)
			}
		}
		if leads == "" || len(rest) == 0 && !follow {
			now = next
			continue
		}
		if links++; links > 40 {
			return "", false, false
		}
		if strings.HasPrefix(leads, "/") {
			now = "/"
		}
		rest = append(strings.Split(leads, "/"), rest...)
	}
	if now == w.root {
		return ".", true, there
	}
	at, inside = strings.CutPrefix(now, w.root+"/")
	return at, inside, there
}

// keepPlain remembers what is there and no link.
func (w *Watch) keepPlain(name string) {
	if len(w.plain) >= mostKnown {
		clear(w.plain)
	}
	w.plain[name] = true
}

// text returns a text of a process that ends with a zero byte.
func text(process int, address uintptr) (string, error) {
	const page = 4096
	var name []byte
	for len(name) < page {
		part := make([]byte, min(256, page-int(address%page)))
		local := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		count, err := unix.ProcessVMReadv(process, local, []unix.RemoteIovec{{Base: address, Len: len(part)}}, 0)
		if err != nil {
			return "", err
		}
		part = part[:count]
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(name, part[:end]...)), nil
		}
		name, address = slices.Concat(name, part), address+uintptr(count)
	}
	return "", unix.ENAMETOOLONG
}
