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

// Watch records which of the paths that a folder lacks are looked for.
type Watch struct {
	root                         string
	absent, empty, hollow, shown map[string]bool // as in Missing
	partial                      map[string]bool // folders that lack some of their entries
	forTools                     map[string]bool // Missing.Tools
	believes                     bool            // Missing.Believe

	mu        sync.Mutex
	err       error
	found     map[string]Lookup // by path
	foundSize int               // bytes of its paths
	// known holds the queries that need no answer, and plain the absolute paths that are there and are no links.
	known, plain pathSet
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
		forTools: missing.Tools, believes: missing.Believe, found: map[string]Lookup{}}
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
			q.reads = flags&unix.O_ACCMODE != unix.O_WRONLY && flags&unix.O_PATH == 0
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
	program := w.programOf(int(n.process))
	switch {
	case program == "rm":
		return // It deletes what it looks for.
	case q.listed && w.shown[lacks] && (strings.HasPrefix(program, "python") || program == "make"):
		return
	case q.listed && w.believes && (w.byTool(int(n.process)) || w.describes(int(n.process)) || w.compiles(int(n.process)) || w.resolves(int(n.process), at)):
		return
	case forTools && w.mayRead(int(n.process), at):
		return
	}
	w.foundSize += len(at)
	w.found[at] = Lookup{Path: at, Listed: q.listed, Read: forTools, Program: program}
}

// interpreters are programs that read the manifests above the code that they run, or run code that does.
var interpreters = regexp.MustCompile(`^(node|bun|deno|corepack|python[0-9.]*|ruby|rustc|rustdoc|clippy-driver)$`)

// mayRead reports whether a process may read one of the files for tools.
func (w *Watch) mayRead(process int, file string) bool {
	if w.believes && (w.byTool(process) || w.describes(process)) {
		return true
	}
	if !w.forTools[file] {
		return false
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", process))
	if name := path.Base(program); err == nil && (interpreters.MatchString(name) || tools[name]) {
		return true
	}
	// Tests of macros read the manifests of their package and of its workspace.
	return w.believes && strings.HasPrefix(path.Base(file), "Cargo.")
}

// describes reports whether a process is cargo metadata or cargo locate-project. Libraries for tests and build scripts start them to
// find the workspace, and they list all of its members.
func (w *Watch) describes(process int) bool {
	if w.programOf(process) != "cargo" {
		return false
	}
	return slices.ContainsFunc(wordsOf(process), func(word string) bool { return word == "metadata" || word == "locate-project" })
}

// compiles reports whether a process is go build, go install or go run of packages that it names. Tests start them to build the program
// under test, and they fail where a package is absent.
func (w *Watch) compiles(process int) bool {
	words := wordsOf(process)
	return w.programOf(process) == "go" && len(words) > 1 && slices.Contains([]string{"build", "install", "run"}, words[1]) &&
		!slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "...") })
}

// resolves reports whether a process is esbuild, and a folder is its working directory or one above, in which it looks for settings.
func (w *Watch) resolves(process int, folder string) bool {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", process))
	if err != nil || path.Base(program) != "esbuild" || !strings.Contains(program, "/node_modules/") {
		return false
	}
	within, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", process))
	return err == nil && strings.HasPrefix(within+"/", filepath.Join(w.root, folder)+"/")
}

// wordsOf returns the command line of a process, nil if it is not known.
func wordsOf(process int) []string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	if err != nil {
		return nil
	}
	return strings.Split(string(line), "\x00")
}

// releasesOfYarn is the folder in which a repository keeps the yarn that it is used with.
const releasesOfYarn = ".yarn/releases/"

// tools are programs that list the folders of packages, and of members of a workspace, and depend on a part of what they find. The
// adapters know on which.
var tools = map[string]bool{
	"go": true, "cargo": true, "uv": true,
	"npm": true, "npm-cli.js": true, "npx": true, "npx-cli.js": true, "pnpm": true, "pnpm.cjs": true, "pnpm.mjs": true, "yarn": true, "yarn.js": true,
}

// shells are programs that run the command that follows commandOption.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true}

var commandOption = regexp.MustCompile(`^-[a-z]*c$`)

// byTool reports whether a process is a tool, and whatever started it is a tool or a shell with a command of its own. A program or a
// script of the folder is neither.
func (w *Watch) byTool(process int) bool {
	own := os.Getpid()
	for depth := 0; process > 1 && process != own; depth++ {
		if name := w.programOf(process); !tools[name] {
			words := wordsOf(process)
			if depth == 0 || !shells[name] || len(words) < 2 || !commandOption.MatchString(words[1]) {
				return false
			}
		}
		var err error
		if process, err = parent(process); err != nil {
			return false
		}
	}
	return true
}

// programOf returns the name of the program of a process, or of the script that Node runs; "" if the folder holds it, or it is not
// known.
func (w *Watch) programOf(process int) string {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", process))
	if err == nil && path.Base(program) == "node" {
		var line []byte
		line, err = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
		words := strings.Split(string(line), "\x00")
		program = words[0]
		if path.Base(program) == "node" && len(words) > 1 {
			if program = words[1]; strings.HasPrefix(program, w.root+"/"+releasesOfYarn) {
				return "yarn"
			}
			if !path.IsAbs(program) {
				return "" // A script of where it runs.
			}
		}
		program, _, _ = strings.Cut(program, " ") // npm sets the title of its process: "npm run test".
	}
	if err != nil || strings.HasPrefix(program, w.root+"/") {
		return ""
	}
	return path.Base(program)
}

// parent returns the id of the process that started another.
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
