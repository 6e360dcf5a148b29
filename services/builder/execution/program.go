package execution

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// fault is why a command did not start; its outcome says whether the tree or the worker is to blame.
type fault struct {
	outcome Outcome
	reason  string
	// short is set if the same command may start later.
	short bool
}

func treeFault(format string, arguments ...any) *fault {
	return &fault{outcome: Failed, reason: fmt.Sprintf(format, arguments...)}
}

func workerFault(format string, arguments ...any) *fault {
	return &fault{outcome: CouldNotRun, reason: fmt.Sprintf(format, arguments...)}
}

// openDirectory opens the directory that a command runs in. The tree and its
// manifest are all that decide whether it is there, so that it is not (or lies
// outside) speaks against the change: on any worker it would end the same way.
func openDirectory(worktree *os.Root, dir string) (*os.File, *fault) {
	if dir == "" {
		dir = "."
	}
	if !filepath.IsLocal(dir) {
		return nil, treeFault("the directory %q leads out of the repository", dir)
	}
	directory, err := worktree.Open(dir)
	if err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
			return nil, treeFault("the repository has no directory %q", dir)
		case leadsOutside(worktree.Name(), dir):
			return nil, treeFault("the directory %q leads out of the repository", dir)
		}
		return nil, workerFault("the directory %q cannot be opened: %v", dir, err)
	}
	info, err := directory.Stat()
	if err == nil && info.IsDir() {
		return directory, nil
	}
	directory.Close()
	if err != nil {
		return nil, workerFault("the directory %q cannot be read: %v", dir, err)
	}
	return nil, treeFault("%q is not a directory", dir)
}

// leadsOutside reports whether a symbolic link on the way of a path, relative
// to the worktree, points out of it. os.Root refuses such a path, with an error
// like any other.
func leadsOutside(worktree, path string) bool {
	base, err := filepath.EvalSymlinks(worktree)
	if err != nil {
		return false
	}
	current := base
	for _, part := range strings.Split(filepath.Clean(path), string(filepath.Separator)) {
		current = filepath.Join(current, part)
		target, err := os.Readlink(current)
		if err != nil {
			continue
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(current), target)
		}
		if resolved, err := filepath.EvalSymlinks(target); err == nil {
			target = resolved
		}
		if relative, err := filepath.Rel(base, target); err != nil || !filepath.IsLocal(relative) {
			return true
		}
		current = target
	}
	return false
}

// program is an executable that was found.
type program struct {
	// path is what to execute, from within the command's directory.
	path string
	// inTree is set if the repository holds it.
	inTree bool
}

// locateProgram finds what argv[0] names. Who is at fault when it is missing
// depends on who was to bring it: a path inside the worktree is the tree's own
// (Failed: no worker can make it appear); a name to look up in PATH, or a path
// outside, is the worker's to provide (CouldNotRun: another worker may have it,
// and a rejection for it would blame an innocent change).
func locateProgram(worktree *os.Root, dir, name, path string) (program, *fault) {
	if !strings.ContainsRune(name, '/') {
		for _, directory := range filepath.SplitList(path) {
			// A relative entry would make the worker's PATH depend on the tree.
			if !filepath.IsAbs(directory) {
				continue
			}
			candidate := filepath.Join(directory, name)
			if info, err := os.Stat(candidate); err == nil && executable(info) {
				return program{path: candidate}, nil
			}
		}
		return program{}, workerFault("the program %q is not on the worker's PATH (%s)", name, path)
	}
	inside := filepath.Join(dir, name)
	if filepath.IsAbs(name) {
		relative, err := filepath.Rel(worktree.Name(), name)
		if err != nil || !filepath.IsLocal(relative) {
			return locateOutside(name, name)
		}
		inside = relative
	}
	if !filepath.IsLocal(inside) {
		return program{}, treeFault("the program %q leads out of the repository", name)
	}
	info, err := worktree.Stat(inside)
	switch {
	case err == nil && executable(info):
		return program{path: name, inTree: true}, nil
	case err == nil:
		return program{}, treeFault("the repository's %q is not an executable file", inside)
	case leadsOutside(worktree.Name(), inside):
		// A link such as tools/python → /usr/bin/python3: what it points at is
		// the worker's to provide.
		return locateOutside(name, filepath.Join(worktree.Name(), inside))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return program{}, treeFault("the repository has no program %q", inside)
	}
	return program{}, workerFault("the program %q cannot be examined: %v", inside, err)
}

func locateOutside(name, path string) (program, *fault) {
	info, err := os.Stat(path)
	if err != nil {
		return program{}, workerFault("the worker has no program %q", name)
	}
	if !executable(info) {
		return program{}, workerFault("%q is not an executable file on the worker", name)
	}
	return program{path: name}, nil
}

func executable(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// startFault classifies the error of starting a program that was found.
// ENOENT then means a missing interpreter, EACCES a file system mounted without
// exec, EAGAIN and ENOMEM a worker at its limits: all the worker's. Only what
// the kernel cannot execute at all, in the tree, is the tree's.
func startFault(found program, err error) *fault {
	switch {
	case errors.Is(err, syscall.ENOEXEC) && found.inTree:
		return treeFault("the repository's %q is no program that this system can run (a script needs a #! line)", found.path)
	case errors.Is(err, syscall.ENOENT):
		return workerFault("the interpreter of %q is missing on the worker", found.path)
	}
	return workerFault("%q could not be started on the worker: %v", found.path, err)
}
