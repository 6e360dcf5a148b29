package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// attributesName is the name of files in which git finds attributes of the files below. They convert nothing (exactAttributes), but git
// reads them for each file that it writes, and a change can write them: macros within macros end git, a million patterns take it hours.
// So it writes the other files where there are none.
const attributesName = ".gitattributes"

// haveAttributes reports whether a tree has files of attributes.
func haveAttributes(nodes map[string]*treeNode) bool {
	for _, node := range nodes {
		for i := range node.entries {
			if node.entries[i].Path == attributesName {
				return true
			}
		}
	}
	return false
}

// splitAttributes returns those of some files that are files of attributes, and the others. It takes whatever has the name: git looks
// no further.
func splitAttributes(entries []Entry) (attributes, others []Entry) {
	for _, e := range entries {
		if path.Base(e.Path) == attributesName {
			attributes = append(attributes, e)
		} else {
			others = append(others, e)
		}
	}
	return attributes, others
}

// writeAttributes writes files of attributes into the directory, in which nothing has their names.
func (w *Worktree) writeAttributes(ctx context.Context, attributes []Entry) error {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range attributes {
		name := filepath.FromSlash(e.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := w.writeFile(ctx, root, name, e); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file of the tree, as git does.
func (w *Worktree) writeFile(ctx context.Context, root *os.Root, name string, e Entry) error {
	switch e.Kind {
	case Submodule:
		return root.Mkdir(name, 0o777)
	case Symlink:
		to, err := w.repo.Blob(ctx, e.Object, maxPath)
		if err != nil {
			return err
		}
		return root.Symlink(string(to), name)
	}
	mode := fs.FileMode(0o666)
	if e.Kind == Executable {
		mode = 0o777
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	content, err := w.repo.Blob(ctx, e.Object, maxObjectBytes)
	switch {
	case err == nil:
		_, err = file.Write(content)
	case errors.Is(err, ErrTooLarge):
		cmd := w.repo.command(ctx, invocation{args: []string{"cat-file", "blob", e.Object}})
		cmd.Stdout = file
		err = cmd.Run()
	}
	return errors.Join(err, file.Close())
}
