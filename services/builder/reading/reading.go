// Package reading reads the tree in which a step has failed, for the lines that say why. What the step left there may be anything.
package reading

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"landfall.build/engine/decisive"
	"landfall.build/platform/folders"
	"landfall.build/services/builder/execution"
)

const (
	// mostFiles bounds how many files and folders of a tree are listed to find a file by the end of its path, and mostSought how
	// many are sought. A step may leave any number of files, and name any number. MostNames bounds their paths together, in bytes.
	mostFiles  = 200_000
	mostSought = 100
	MostNames  = 64 << 20
	// mostAlike is how many files are returned of one end.
	mostAlike = 1000
	// MostDeep is how many folders deep they are looked for. A walk keeps the names of all folders that it is in and opens each from the
	// top, so its time and memory grow with the square of the depth.
	MostDeep = 100
	// mostBytes bounds what is read of the files of a tree, mostOfFile one of them.
	mostBytes  = 64 << 20
	mostOfFile = 16 << 20
)

// TooDeep reports whether a folder of a tree is nested so deep that it is not looked into.
func TooDeep(name string, e fs.DirEntry) bool {
	return e != nil && e.IsDir() && strings.Count(name, "/") >= MostDeep
}

// Tree opens the tree in which a step ended; close it when done.
func Tree(request execution.Request, result execution.Result) (tree decisive.Tree, closeTree func(), err error) {
	root, err := os.OpenRoot(request.Worktree)
	if err != nil {
		return tree, nil, err
	}
	tree = decisive.Tree{Root: root.Name(), Has: func(name string) bool {
		info, err := root.Lstat(filepath.FromSlash(name))
		return err == nil && info.Mode().IsRegular()
	}, Ending: Ending(root), Read: contents(root)}
	for _, c := range request.Commands {
		if c.Name == result.FailedCommand {
			tree.Dir, tree.Command = filepath.ToSlash(c.Dir), c.Argv
		}
	}
	if how, is := strings.CutPrefix(result.Reason, fmt.Sprintf("Command %q ", result.FailedCommand)); is && result.Outcome == execution.Failed {
		tree.Ended = strings.TrimSuffix(how, ".") // of what has no result the reason is told anyway
	}
	return tree, func() { root.Close() }, nil
}

// contents returns decisive.Tree.Read for a tree.
func contents(root *os.Root) func(name string) []byte {
	left := mostBytes
	return func(name string) []byte {
		file, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil
		}
		defer file.Close()
		info, err := file.Stat()
		if most := int64(min(left, mostOfFile)); err != nil || !info.Mode().IsRegular() || info.Size() > most {
			return nil
		}
		content, err := io.ReadAll(io.LimitReader(file, info.Size()))
		if left -= len(content); err != nil {
			return nil
		}
		return content
	}
}

// Ending returns decisive.Tree.Ending for a tree, which is listed when it is first asked for. Of one that is too large or
// nested too deep nothing is known. Folders of git and of packages that tools have installed are no part of it.
func Ending(root *os.Root) func(name string) []string {
	byName, sought := map[string][]string(nil), 0
	list := func() {
		byName = map[string][]string{}
		left := mostFiles
		err := fs.WalkDir(folders.Bounded(root, MostNames), ".", func(name string, e fs.DirEntry, err error) error {
			switch left--; {
			case err != nil:
				return err
			case left < 0:
				return fs.SkipAll
			case TooDeep(name, e):
				left = -1
				return fs.SkipAll
			case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
				return fs.SkipDir
			case e.Type().IsRegular():
				byName[e.Name()] = append(byName[e.Name()], name)
				if ending := path.Ext(name); ending != "" {
					byName["*"+ending] = append(byName["*"+ending], name)
				}
			}
			return nil
		})
		if err != nil || left < 0 {
			byName = map[string][]string{}
		}
	}
	return func(name string) (of []string) {
		if sought++; sought > mostSought {
			return nil
		}
		if byName == nil {
			list()
		}
		for _, file := range byName[path.Base(name)] {
			if name[0] == '*' || strings.HasSuffix(file, "/"+name) {
				if of = append(of, file); len(of) == mostAlike {
					break
				}
			}
		}
		return of
	}
}
