package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PruneOptions are what a mirror has to keep, and what it may waste.
type PruneOptions struct {
	// Age is how long after its last use an object is kept that nothing else needs. MinAge at least.
	Age time.Duration
	// Waste is how many bytes may lie in the mirror that nothing needs, before the objects are packed again without them.
	Waste int64
	// Branches and Commits are kept, however long ago they were used: branches by name, commits by their full ids.
	Branches, Commits []string
}

// MinAge is the least PruneOptions.Age: far longer than anybody goes on with an object without naming it again.
const MinAge = time.Hour

// Pruned is what Prune did.
type Pruned struct {
	Refs  int   // removed
	Bytes int64 // freed on the disk
	Size  int64 // of the objects that are left, in bytes on the disk
}

// pruneLimit bounds one git process of Prune, which takes as long as a repository is large.
const pruneLimit = 6 * time.Hour

// Prune removes what nothing needs: refs that were not fetched for Age, and, once they waste enough, objects that no ref
// reaches and nobody has used for Age. An object is used when it is fetched, made by MergeTrees or WriteCommit, or named to
// CommitInfos; with it all that it reaches is kept.
//
// What is needed is packed into one pack while the mirror is in use; only then the old packs and loose objects are deleted, in a moment in
// which nobody fetches, merges or commits. It takes room on the disk for that pack. If another process is at it,
// Prune does nothing.
func (r *Repo) Prune(ctx context.Context, o PruneOptions) (Pruned, error) {
	if o.Age < MinAge {
		return Pruned{}, fmt.Errorf("%w: objects are kept for %v at least, and not for %v", ErrInvalid, MinAge, o.Age)
	}
	return r.prune(ctx, o)
}

// roots is what is needed, by the ids of objects.
type roots map[string]bool

func (r *Repo) prune(ctx context.Context, o PruneOptions) (done Pruned, err error) {
	unlock, err := tryLock(filepath.Join(r.dir, pruneLock))
	if errors.Is(err, errLocked) {
		return done, nil
	}
	if err != nil {
		return done, err
	}
	defer unlock()
	since := r.clock().Add(-o.Age)
	if done.Refs, err = r.pruneRefs(ctx, o, since); err != nil {
		return done, fmt.Errorf("prune refs: %w", err)
	}
	// Nothing is deleted that is not listed here; what is needed of it is found out afterwards.
	old, size, err := r.objectFiles()
	done.Size = size
	if err != nil || size <= o.Waste {
		return done, err
	}
	needed, err := r.rootsOf(ctx, o, since)
	if err != nil {
		return done, err
	}
	live, err := r.diskUsage(ctx, needed)
	if err != nil || size-live <= o.Waste {
		return done, err
	}
	kept, err := r.pack(ctx, needed, nil, nil)
	if err != nil {
		return done, fmt.Errorf("pack what is needed: %w", err)
	}
	if err := r.deleteFiles(ctx, o, old, needed, kept, since); err != nil {
		return done, fmt.Errorf("delete what is not needed: %w", err)
	}
	r.readers.renew()
	_, done.Size, err = r.objectFiles()
	done.Bytes = max(0, size-done.Size)
	return done, err
}

// pruneRefs removes the refs of branches and commits that nobody fetched since a time.
func (r *Repo) pruneRefs(ctx context.Context, o PruneOptions, since time.Time) (int, error) {
	unlock, err := r.lockFetches(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	r.finishPrune()
	refs, err := r.refs(ctx)
	if err != nil {
		return 0, err
	}
	uses, err := r.readUses()
	if err != nil {
		return 0, err
	}
	keep := map[string]bool{}
	for _, id := range o.Commits {
		keep[keptRefs+id] = true
	}
	for _, branch := range o.Branches {
		if ref, err := branchRef(branch); err == nil {
			keep[mirrorRef(ref)] = true
		}
	}
	for name, at := range uses {
		if at.Before(since) {
			continue
		}
		if IsID(name) {
			keep[keptRefs+name] = true
		} else {
			keep[mirrorRef(name)] = true
		}
	}
	var commands strings.Builder
	count := 0
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if !keep[ref] {
			fmt.Fprintf(&commands, "delete %s %s\n", ref, refs[ref])
			count++
		}
	}
	if count == 0 {
		return 0, nil
	}
	_, err = r.run(ctx, invocation{args: []string{"update-ref", "--no-deref", "--stdin"}, stdin: []byte(commands.String())})
	return count, err
}

// refs returns the mirror's refs with the objects that they name.
func (r *Repo) refs(ctx context.Context, below ...string) (map[string]string, error) {
	out, err := r.git(ctx, append([]string{"for-each-ref", "--format=%(objectname) %(refname)"}, below...)...)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		id, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[ref] = id
	}
	return refs, nil
}

// rootsOf returns the objects that are needed, with all that they reach.
func (r *Repo) rootsOf(ctx context.Context, o PruneOptions, since time.Time) (roots, error) {
	refs, err := r.refs(ctx)
	if err != nil {
		return nil, err
	}
	uses, err := r.readUses()
	if err != nil {
		return nil, err
	}
	names := slices.Clone(o.Commits)
	for name, at := range uses {
		if IsID(name) && !at.Before(since) {
			names = append(names, name)
		}
	}
	for _, id := range names {
		if err := checkID("commit", id); err != nil {
			return nil, err
		}
	}
	got, err := r.readers.objects(ctx, names, 0)
	if err != nil {
		return nil, err
	}
	needed := roots{}
	for _, id := range refs {
		needed[id] = true
	}
	for i, id := range names {
		if got[i].kind != "" {
			needed[id] = true
		}
	}
	return needed, nil
}

func (n roots) lines(prefix string) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(n)) {
		b.WriteString(prefix + id + "\n")
	}
	return b.String()
}

// inBackground makes a git process one that takes its time.
func inBackground(stdin string, args ...string) invocation {
	return invocation{
		args:  append([]string{"-c", "pack.threads=1", "-c", "pack.windowMemory=64m", "-c", "pack.deltaCacheSize=32m", "-c", "core.bigFileThreshold=32m"}, args...),
		stdin: []byte(stdin), limit: pruneLimit, nice: true,
	}
}

// diskUsage returns how many bytes on the disk the objects have that are needed.
func (r *Repo) diskUsage(ctx context.Context, needed roots) (int64, error) {
	if len(needed) == 0 {
		return 0, nil
	}
	out, err := r.run(ctx, inBackground(needed.lines(""), "rev-list", "--objects", "--disk-usage", "--stdin"))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// pack packs what is needed, without what has is known to reach and without what packs hold that are given by the names of their
// files. It returns the new pack's name, "" if there is nothing to pack.
func (r *Repo) pack(ctx context.Context, needed, has roots, without []string) (string, error) {
	if len(needed) == 0 {
		return "", nil
	}
	args := []string{"pack-objects", "--quiet", "--revs", "--non-empty", "--delta-base-offset"}
	for _, pack := range without {
		args = append(args, "--keep-pack="+pack+".pack")
	}
	out, err := r.run(ctx, inBackground(needed.lines("")+has.lines("^"), append(args, filepath.Join(r.dir, "objects", "pack", "pack"))...))
	id := strings.TrimSpace(string(out))
	if err != nil || id == "" {
		return "", err
	}
	return "pack-" + id, nil
}

// objectFiles lists the packs, by the names of their files without an ending, and the loose objects, by their paths below
// objects, and returns the size of all.
func (r *Repo) objectFiles() (names []string, size int64, err error) {
	objects := filepath.Join(r.dir, "objects")
	folders, err := os.ReadDir(objects)
	if err != nil {
		return nil, 0, err
	}
	for _, folder := range folders {
		if folder.Name() != "pack" && !(len(folder.Name()) == 2 && isHex(folder.Name())) {
			continue
		}
		files, err := os.ReadDir(filepath.Join(objects, folder.Name()))
		if err != nil {
			return nil, 0, err
		}
		for _, file := range files {
			info, err := file.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // packed meanwhile
			}
			if err != nil {
				return nil, 0, err
			}
			size += info.Size()
			if folder.Name() != "pack" {
				names = append(names, folder.Name()+"/"+file.Name())
			} else if pack, is := strings.CutSuffix(file.Name(), ".idx"); is {
				names = append(names, pack)
			}
		}
	}
	return names, size, nil
}

// deleteFiles deletes the object files that were listed before, once it has packed what has come to be needed of them
// since, besides what the pack kept has.
func (r *Repo) deleteFiles(ctx context.Context, o PruneOptions, old []string, needed roots, kept string, since time.Time) error {
	unlock, err := r.lockFetches(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, lock := range []string{gateLock, usesLock} {
		unlock, err := lockFile(ctx, filepath.Join(r.dir, lock))
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := r.forgetUses(since); err != nil {
		return err
	}
	r.readers.renew()
	now, err := r.rootsOf(ctx, o, since)
	if err != nil {
		return err
	}
	maps.DeleteFunc(now, func(id string, _ bool) bool { return needed[id] })
	present, _, err := r.objectFiles()
	if err != nil {
		return err
	}
	isOld := map[string]bool{}
	for _, name := range old {
		isOld[name] = true
	}
	var others []string // packs
	for _, name := range present {
		if !isOld[name] && !strings.Contains(name, "/") {
			others = append(others, name)
		}
	}
	added, err := r.pack(ctx, now, needed, others)
	if err != nil {
		return err
	}
	delete(isOld, kept)
	delete(isOld, added)
	// From here on it is finished by whoever takes the mirror's lock next: half of what is not needed would look like something
	// that is there.
	list := strings.Join(slices.Sorted(maps.Keys(isOld)), "\n")
	path := filepath.Join(r.dir, pruneList)
	if err := os.WriteFile(path+".new", []byte(list), 0o666); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	r.finishPrune()
	r.removeLeftovers()
	return nil
}

const pruneList = "landfall-prune" // in the mirror: the object files that Prune is deleting

// finishPrune deletes the object files that a Prune has listed. The mirror's lock is held. What cannot be deleted is tried again
// the next time: it keeps nobody from using the mirror.
func (r *Repo) finishPrune() {
	path := filepath.Join(r.dir, pruneList)
	list, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	objects := filepath.Join(r.dir, "objects")
	for name := range strings.SplitSeq(string(list), "\n") {
		switch {
		case strings.Contains(name, "/"):
			err = errors.Join(err, remove(filepath.Join(objects, name)))
		case name != "":
			err = errors.Join(err, removePack(filepath.Join(objects, "pack", name)))
		}
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		r.log.Warn("objects that nothing needs could not be deleted from the mirror", "error", err)
	}
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removePack removes a pack, its index first: without that nobody looks for the rest.
func removePack(path string) error {
	for _, ending := range []string{".idx", ".rev", ".bitmap", ".mtimes", ".keep", ".promisor", ".pack"} {
		if err := remove(path + ending); err != nil {
			return err
		}
	}
	return nil
}

// removeLeftovers deletes what killed git processes left of objects that they were writing. All locks are held, so that nobody
// is writing any. A failure costs room alone.
func (r *Repo) removeLeftovers() {
	for _, pattern := range []string{"??/tmp_obj_*", "pack/tmp_*", "pack/.tmp-*"} {
		files, _ := filepath.Glob(filepath.Join(escapeGlob(r.dir), "objects", pattern))
		for _, file := range files {
			os.Remove(file)
		}
	}
	packs, _ := filepath.Glob(filepath.Join(escapeGlob(r.dir), "objects", "pack", "pack-*.pack"))
	for _, pack := range packs {
		if name := strings.TrimSuffix(pack, ".pack"); !exists(name + ".idx") {
			removePack(name)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
