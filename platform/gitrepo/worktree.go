package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Worktree is a directory that holds exactly one tree at a time. The mirror knows nothing
// of it, and git commands inside it find no repository. One process owns it; beside the
// directory lie its index (".index") and its lock (".lock").
type Worktree struct {
	repo    *Repo
	dir     string
	index   string
	unlock  func()
	dirMode fs.FileMode
	// dirAttributes are those of a new directory (attributesOf).
	dirAttributes string

	mu   sync.Mutex
	tree string
}

// AddWorktree takes a directory for checkouts, made if it is not there; what is in it will
// be replaced. A directory that an earlier run left behind makes the first Checkout
// cheaper. It fails while another process has the same directory.
func (r *Repo) AddWorktree(ctx context.Context, dir string) (*Worktree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	unlock, err := lockFile(ctx, dir+".lock")
	if err != nil {
		return nil, fmt.Errorf("worktree: %w", err)
	}
	w := &Worktree{repo: r, dir: dir, index: dir + ".index", unlock: unlock}
	if w.dirMode, w.dirAttributes, err = usualDir(filepath.Dir(dir)); err == nil {
		err = w.ensureDir()
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("worktree: %w", err)
	}
	return w, nil
}

// usualDir finds out the permissions of a new directory under the process's umask,
// which cannot be read without changing it, and its attributes.
func usualDir(parent string) (mode fs.FileMode, attributes string, err error) {
	probe := filepath.Join(parent, fmt.Sprintf(".landfall-mode-%d", os.Getpid()))
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s-%d", probe, i)
		err := os.Mkdir(name, 0o777)
		if errors.Is(err, fs.ErrExist) && i < 1000 {
			continue
		}
		if err != nil {
			return 0, "", err
		}
		info, err := os.Lstat(name)
		if err == nil {
			attributes, err = attributesAt(os.Open(name))
		}
		if removed := os.Remove(name); err == nil {
			err = removed
		}
		if err != nil {
			return 0, "", err
		}
		return info.Mode() & permissionBits, attributes, nil
	}
}

// attributesAt returns the attributes of a directory that was opened, and closes it.
func attributesAt(dir *os.File, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return attributesOf(dir)
}

const permissionBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func (w *Worktree) ensureDir() error {
	info, err := os.Lstat(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Mkdir(w.dir, 0o777)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.Remove(w.dir); err != nil {
			return err
		}
		return os.Mkdir(w.dir, 0o777)
	}
	if err := os.Chmod(w.dir, w.dirMode); err != nil {
		return err
	}
	if given, err := attributesAt(os.Open(w.dir)); err != nil || given == w.dirAttributes {
		return err
	}
	if err := w.empty(); err != nil {
		return err
	}
	if err := os.Remove(w.dir); err != nil {
		return err
	}
	return os.Mkdir(w.dir, 0o777)
}

// empty removes all that is in the directory.
func (w *Worktree) empty() error { return sweep(w.dir, nil, nowhere, w.dirMode, w.dirAttributes, nil) }

// Dir returns the worktree's directory.
func (w *Worktree) Dir() string { return w.dir }

// Checkout makes the directory hold a treeish (as in TreeOf) and nothing else, whatever
// was there: files changed, added or ignored by a step go, read-only directories and
// lost permissions are mended, special files and links removed. Files that are right
// already are not written again. All files and directories have one time, that of the
// checkout. Contents are the blobs' very bytes: .gitattributes converts nothing. Submodules are
// empty directories.
//
// Nothing else may write in the directory meanwhile.
func (w *Worktree) Checkout(ctx context.Context, treeish string) error {
	return w.CheckoutOnly(ctx, treeish, nil)
}

// CheckoutOnly is Checkout of some files of a treeish: those whose paths are in what only returns of its files, sorted by path. Where
// the value is false there is an empty file in the file's place. A nil function stands for all files.
func (w *Worktree) CheckoutOnly(ctx context.Context, treeish string, only func(all []Entry) map[string]bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return errors.New("the worktree is removed")
	}
	tree, err := w.repo.TreeOf(ctx, treeish)
	if err != nil {
		return err
	}
	w.tree = ""
	nodes, err := w.repo.wholeTree(ctx, tree)
	if err != nil {
		return fmt.Errorf("checkout: %w", err)
	}
	write := func(ctx context.Context) error { return w.git(ctx, "read-tree", "--reset", "-u", tree) }
	if only != nil || haveAttributes(nodes) {
		entries, err := listTree(nodes, tree)
		if err != nil {
			return fmt.Errorf("checkout: %w", err)
		}
		if only != nil {
			if entries, err = w.repo.some(entries, only(entries)); err != nil {
				return fmt.Errorf("checkout: %w", err)
			}
		}
		attributes, others := splitAttributes(entries)
		nodes, write = treeOf(others, tree), func(ctx context.Context) error { return w.writeEntries(ctx, entries, others, attributes) }
	}
	err = w.move(ctx, nodes, tree, write)
	if err != nil && ctx.Err() == nil {
		w.repo.log.Warn("checkout failed and is made again in an empty folder", "dir", w.dir, "tree", tree, "error", err)
		if again := w.clear(); again != nil {
			return fmt.Errorf("checkout of %s in %s: %w", tree, w.dir, errors.Join(err, again))
		}
		err = w.move(ctx, nodes, tree, write)
	}
	if err != nil {
		return fmt.Errorf("checkout of %s in %s: %w", tree, w.dir, err)
	}
	if only == nil {
		w.tree = tree
	}
	return nil
}

// some returns those entries whose paths are in only, with no content where its value is false.
func (r *Repo) some(entries []Entry, only map[string]bool) ([]Entry, error) {
	kept := entries[:0]
	empty := ""
	for _, e := range entries {
		whole, in := only[e.Path]
		if !in {
			continue
		}
		if !whole && (e.Kind == File || e.Kind == Executable) {
			if empty == "" {
				var err error
				if empty, err = r.writeLoose("blob", nil); err != nil {
					return nil, err
				}
			}
			e.Object = empty
		}
		kept = append(kept, e)
	}
	return kept, nil
}

// move removes first what does not belong, so that git finds no link where it expects a
// directory, and then has git write what is missing or differs.
func (w *Worktree) move(ctx context.Context, nodes map[string]*treeNode, tree string, write func(context.Context) error) error {
	if err := w.ensureDir(); err != nil {
		return err
	}
	stats, err := readStats(w.index)
	if err != nil {
		return err
	}
	if err := sweep(w.dir, nodes, tree, w.dirMode, w.dirAttributes, stats); err != nil {
		return err
	}
	// A killed git leaves its lock; the directory's own lock proves that no other one runs.
	if err := os.Remove(w.index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(ctx); err != nil {
		return err
	}
	return setTimes(w.dir, w.index)
}

// writeEntries has git write files, sorted by path, and writes those of attributes once git has ended.
func (w *Worktree) writeEntries(ctx context.Context, entries, others, attributes []Entry) error {
	if err := writeIndex(w.index, others); err != nil {
		return err
	}
	if err := w.git(ctx, "checkout-index", "--all", "--force", "--index"); err != nil || len(attributes) == 0 {
		return err
	}
	if err := w.writeAttributes(ctx, attributes); err != nil {
		return err
	}
	return writeIndex(w.index, entries)
}

// git runs git on the directory and its index.
func (w *Worktree) git(ctx context.Context, args ...string) error {
	settings := []string{"-c", "index.version=2", "-c", "checkout.workers=1", "-c", "core.trustctime=true", "-c", "core.checkStat=default"}
	_, err := w.repo.run(ctx, invocation{
		dir: w.dir, args: append(settings, args...), env: []string{"GIT_WORK_TREE=" + w.dir, "GIT_INDEX_FILE=" + w.index}, memory: w.repo.gitMemory,
	})
	return err
}

// clear empties the directory and forgets the index.
func (w *Worktree) clear() error {
	for _, path := range []string{w.index, w.index + ".lock"} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := w.ensureDir(); err != nil {
		return err
	}
	return w.empty()
}

// Tree returns the id of the tree that the last Checkout left; "" if it failed. Steps may have
// changed files since.
func (w *Worktree) Tree() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tree
}

// Release gives the directory up for a later AddWorktree and leaves it as it is.
func (w *Worktree) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock != nil {
		w.unlock()
		w.unlock = nil
	}
}

// Remove deletes the directory and its index, and gives it up.
func (w *Worktree) Remove() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return nil
	}
	w.tree = ""
	err := w.clear()
	if err == nil {
		err = os.Remove(w.dir)
	}
	w.unlock()
	w.unlock = nil
	if err != nil {
		return fmt.Errorf("remove worktree: %w", err)
	}
	return nil
}
