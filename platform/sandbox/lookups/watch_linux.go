//go:build amd64 || arm64

package lookups

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch records which of the paths that a folder lacks are looked for.
type Watch struct {
	root                         string
	absent, empty, hollow, shown map[string]bool // as in Missing
	partial                      map[string]bool // folders that lack some of their entries
	forTools                     map[string]bool // Missing.Tools
	believes                     bool            // Missing.Believe
	names, crates                []string        // Missing.Names, Missing.Crates

	mu        sync.Mutex
	err       error
	found     map[string]Lookup // by path
	foundSize int               // bytes of its paths
	// known holds the queries that need no answer, and plain the absolute paths that are there and are no links.
	known, plain pathSet
	// forGo is lackOfGo, nil until it is asked for; embedding has what embeds returned, by folder.
	forGo     *lackOfGo
	embedding map[string][]string
}

// pathSet is a set of paths. It is emptied once they take mostKnown bytes.
type pathSet struct {
	paths map[string]bool
	size  int
}

func (s *pathSet) add(path string) {
	if s.size += len(path); s.size > mostKnown || s.paths == nil {
		s.paths, s.size = map[string]bool{}, len(path)
	}
	s.paths[path] = true
}

// New returns a watch of a folder, whose path is absolute and without links.
func New(root string, missing Missing) *Watch {
	w := &Watch{root: filepath.Clean(root), absent: map[string]bool{}, empty: map[string]bool{}, hollow: map[string]bool{}, shown: map[string]bool{}, partial: map[string]bool{},
		forTools: missing.Tools, believes: missing.Believe, names: missing.Names, crates: missing.Crates, found: map[string]Lookup{}}
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

// Found returns what was looked for so far and was not made since, sorted by path.
func (w *Watch) Found() []Lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := make([]Lookup, 0, len(w.found))
	for _, l := range w.found {
		if l.Listed || l.Read || !w.made(l.Path) {
			found = append(found, l)
		}
	}
	inOrder(found)
	return found
}

// made reports whether the program has made what is at a path, relative to the root. Files that stand for others have no content.
func (w *Watch) made(name string) bool {
	info, err := os.Lstat(filepath.Join(w.root, name))
	if err != nil || !w.empty[name] && !w.hollow[w.lacking(name)] {
		return err == nil
	}
	return info.Mode().IsRegular() && info.Size() > 0
}

// Err returns why the kernel could not be answered, nil if it could. System calls failed by that.
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

// Serve answers the kernel until no process is left that it asks about, and closes the listener.
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
		w.handle(descriptor, &n)
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

// handle records what one system call looks for. The process waits meanwhile. What cannot be read of the process is left out.
func (w *Watch) handle(descriptor int, n *notification) {
	c, process := calls[n.number], fmt.Sprintf("/proc/%d/", n.process)
	if c.changes {
		w.mu.Lock()
		w.known, w.plain = pathSet{}, pathSet{}
		w.mu.Unlock()
	}
	switch {
	case c.path != none:
	case c.changes:
		return
	default:
		folder, err := os.Readlink(process + fmt.Sprintf("fd/%d", int32(n.arguments[c.folder])))
		if err == nil {
			w.record(descriptor, n, query{name: folder, follow: true, listed: true})
		}
		return
	}
	name, err := text(int(n.process), uintptr(n.arguments[c.path]))
	if err != nil || name == "" {
		return
	}
	q := query{follow: !c.ofLink, reads: c.opens || c.reads}
	if c.flags != none {
		flags := n.arguments[c.flags]
		if c.opens {
			if flags&unix.O_CREAT != 0 && flags&unix.O_TRUNC != 0 {
				return // It makes the file, whatever was there.
			}
			q.follow = flags&unix.O_NOFOLLOW == 0
			// A folder is listed by another call, and of a file nothing is read as one.
			q.reads = flags&unix.O_ACCMODE != unix.O_WRONLY && flags&(unix.O_PATH|unix.O_DIRECTORY) == 0
		} else {
			q.follow = flags&unix.AT_SYMLINK_NOFOLLOW == 0
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
	q.name = name
	w.record(descriptor, n, q)
}

// query is what a system call asks about a path.
type query struct {
	name   string // the path, absolute
	follow bool   // follows a link at its end
	listed bool   // reads the names in it, a folder
	reads  bool   // reads its content
}

// systems are folders in which no link leads to a worktree.
var systems = []string{"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/sys/", "/nix/"}

// record records the path of a query if the folder lacks it.
func (w *Watch) record(descriptor int, n *notification, q query) {
	if slices.ContainsFunc(systems, func(folder string) bool {
		return strings.HasPrefix(q.name, folder) && !strings.HasPrefix(w.root, folder)
	}) && !strings.Contains(q.name, "/../") {
		return
	}
	key := q.name
	if q.listed {
		key = "l" + key
	} else if !q.follow {
		key = "n" + key
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known.paths[key] {
		return
	}
	at, inside, there := w.resolve(q.name, q.follow)
	lacks := "" // the file or folder of Missing for which at is of interest
	_, forTools := w.forTools[at]
	switch {
	case !inside:
	case q.listed && w.isNamed(at):
	case q.listed && (w.partial[at] || w.absent[at]):
		lacks = at
	case w.empty[at], forTools:
		if !q.reads {
			return // It may be read later.
		}
		lacks = at
	default:
		lacks = w.lacking(at)
	}
	if lacks == "" {
		// A path without a file may become a link, and those of processes lead elsewhere with them.
		if there && !strings.HasPrefix(q.name, "/proc/") {
			w.known.add(key)
		}
		return
	}
	if there && !q.listed && !forTools && w.made(at) {
		return
	}
	if _, is := w.found[at]; !is && w.foundSize+len(at) > mostFound {
		at = lacks // There are no more of these than Missing has.
	}
	if _, is := w.found[at]; is || ioctl(descriptor, notifyIDValid, unsafe.Pointer(&n.id)) != 0 {
		return
	}
	looks := processOf(int(n.process), w.root)
	if slices.ContainsFunc(rules, func(r rule) bool { return r.lets(w, looks, q, at, lacks, forTools) }) {
		return
	}
	w.foundSize += len(at)
	w.found[at] = Lookup{Path: at, Listed: q.listed, Read: forTools, Program: looks.name}
}

// isNamed reports whether all names of a folder are there and known.
func (w *Watch) isNamed(folder string) bool {
	return slices.ContainsFunc(w.names, func(above string) bool { return above == "" || folder == above || strings.HasPrefix(folder, above+"/") })
}

// lacking returns the absent or hollow folder that a path lies below, or the path itself if that is absent; "" if it is neither.
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

// resolve follows the links of an absolute path. It returns the path relative to the root, whether it is in the root, and whether
// something is there. Behind a part that is not there the path is cut before the first "..", as the kernel does not get that far.
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
		if !w.plain.paths[next] {
			var err error
			if leads, err = os.Readlink(next); err != nil {
				leads = ""
				there = errors.Is(err, unix.EINVAL)
			}
			if there && leads == "" {
				w.plain.add(next)
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

// text returns the string at an address of a process, up to its zero byte. It fails above 4096 bytes, as system calls do.
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
