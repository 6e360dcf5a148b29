package caches

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
)

// Bounds of a cache in layers.
const (
	// maxStack is how many layers steps read. Beyond that they are merged: each costs every look-up of a file.
	maxStack = 32
	// mostStack is how many there are at most if they cannot be merged, as with a path that is too long but where a step has left it. No step
	// could be given many more.
	mostStack = 2 * maxStack
	// maxWaiting is how many layers wait for changes to land, maxAge for how long, maxMembers of how many changes.
	maxWaiting = 128
	maxAge     = 24 * time.Hour
	maxMembers = 64
)

// layered is a cache that steps read in layers which only code of the mainline has written. Each step writes to a layer of its
// own. That of a step that passed waits until all changes whose code it ran have landed, and is then laid on top of the
// others. That of any other goes with its step.
//
//	layers/7.base    the lowest of the stack: what was below it is merged into it
//	layers/8         the next
//	runs/12/upper    what a step writes, or has written
//	view             the path of the cache, for all steps
type layered struct {
	dir string

	mu     sync.Mutex
	opened bool
	bound  configuration.Cache
	// next is the number of the next layer, or of the next step's folder.
	next int
	// stack has the layers that steps read, the lowest first; users how many read each.
	stack []layer
	users map[string]int
	// retired are layers that are no longer in the stack, and that steps read.
	retired map[string]bool
	waiting []waiting
}

type layer struct {
	// name is the path of its folder, relative to that of the cache.
	name string
	size int64
}

// waiting is a layer that waits for changes to land.
type waiting struct {
	layer
	run   string
	by    []*eventsv1.ChangeRef
	since time.Time
	state fate
}

// fate is the decision about a layer that waits.
type fate int

const (
	wait fate = iota
	promote
	drop
)

const baseEnding = ".base"

// open finds what a former process left. Layers that waited are dropped: it is not known any more for what.
func (l *layered) open() error {
	if l.opened {
		return nil
	}
	if err := execution.RemoveAll(l.path("runs")); err != nil {
		return err
	}
	for _, name := range []string{"runs", "layers", "view"} {
		if err := os.MkdirAll(l.path(name), 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(l.path("layers"))
	if err != nil {
		return err
	}
	found, base := map[int]string{}, 0
	for _, e := range entries {
		digits, isBase := strings.CutSuffix(e.Name(), baseEnding)
		number, err := strconv.Atoi(digits)
		if err != nil { // not finished
			if err := execution.RemoveAll(l.path("layers/" + e.Name())); err != nil {
				return err
			}
			continue
		}
		found[number] = "layers/" + e.Name()
		if isBase {
			base = max(base, number)
		}
	}
	l.stack = nil
	for _, number := range slices.Sorted(maps.Keys(found)) {
		l.next = number
		if number >= base && base > 0 {
			l.stack = append(l.stack, layer{name: found[number]})
		} else if err := execution.RemoveAll(l.path(found[number])); err != nil { // the base has what is in it
			return err
		}
	}
	if base == 0 {
		l.stack = []layer{{name: "layers/" + l.number() + baseEnding}}
		if err := os.Mkdir(l.path(l.stack[0].name), 0o700); err != nil {
			return err
		}
	}
	l.opened = true
	return nil
}

// number returns one that no layer and no step's folder has.
func (l *layered) number() string {
	l.next++
	return strconv.Itoa(l.next)
}

func (l *layered) path(name string) string { return filepath.Join(l.dir, name) }

// acquire gives a step the layers. Without overlays, which not every system has, it gets an empty folder.
func (l *layered) acquire(s *Store, bound configuration.Cache) (*Use, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound = bound
	if err := l.open(); err != nil {
		return nil, err
	}
	u := &Use{store: s, bound: bound, layers: l, run: filepath.Join("runs", l.number())}
	for _, name := range []string{"upper", "work", "plain"} {
		if err := os.MkdirAll(l.path(filepath.Join(u.run, name)), 0o700); err != nil {
			return nil, err
		}
	}
	if !s.Layers {
		u.Dir = l.path(filepath.Join(u.run, "plain"))
		return u, nil
	}
	u.Dir = l.path("view")
	u.Overlay = &execution.Overlay{Plain: l.path(filepath.Join(u.run, "plain")), Overlay: sandbox.Overlay{
		Path: u.Dir, Dir: l.dir, Upper: filepath.Join(u.run, "upper"), Work: filepath.Join(u.run, "work"),
	}}
	for _, layer := range slices.Backward(l.stack) {
		u.Overlay.Lower = append(u.Overlay.Lower, layer.name)
		l.users[layer.name]++
	}
	return u, nil
}

// end takes the layers back, and keeps what a step that passed has written until it is known what becomes of the changes.
func (l *layered) end(u *Use, passed bool, by []*eventsv1.ChangeRef) {
	kept := waiting{run: u.run, layer: layer{name: filepath.Join(u.run, "upper")}, by: by, since: time.Now()}
	keep := passed && u.Overlay != nil && len(by) <= maxMembers
	if keep {
		files, size, err := measure(l.path(kept.name))
		if err != nil {
			u.store.warn(l.path(kept.name), err)
		}
		kept.size, keep = size, err == nil && files > 0 && size <= int64(u.bound.MaxSize)
	}
	unused := l.release(u)
	if keep {
		l.keep(kept)
	} else {
		unused = append(unused, u.run)
	}
	for _, name := range unused {
		u.store.warn(l.path(name), execution.RemoveAll(l.path(name)))
	}
}

// Cold reports whether a cache in layers of a queue has nothing in it. One that cannot be opened, or that steps cannot be given in
// layers, is not.
func (s *Store) Cold(queue, name string) bool {
	if !s.Layers {
		return false
	}
	l := s.layered(filepath.Join(s.Dir, queue, name) + "@mainline")
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil || len(l.stack) != 1 {
		return false
	}
	entries, err := os.ReadDir(l.path(l.stack[0].name))
	return err == nil && len(entries) == 0
}

// Lay gives the folder back, as End does, and lays what was written to it on top of the layers that all steps read, at once. Only code
// of the mainline may have run with it.
func (u *Use) Lay() {
	if u.Overlay == nil {
		u.End(true, nil)
		return
	}
	l := u.layers
	unused := append(l.release(u), u.run)
	name := filepath.Join(u.run, "upper")
	_, size, err := measure(l.path(name))
	if err == nil {
		err = l.push(layer{name: name, size: size})
	}
	u.store.warn(l.path(name), err)
	for _, name := range unused {
		u.store.warn(l.path(name), execution.RemoveAll(l.path(name)))
	}
}

// release takes the layers that a step read back, and returns those that nobody needs any more.
func (l *layered) release(u *Use) (unused []string) {
	if u.Overlay == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range u.Overlay.Lower {
		if l.users[name]--; l.users[name] > 0 {
			continue
		}
		delete(l.users, name)
		if l.retired[name] {
			delete(l.retired, name)
			unused = append(unused, name)
		}
	}
	return unused
}

// keep lets a layer wait. If that makes too many, the oldest are dropped.
func (l *layered) keep(kept waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, kept)
	total := int64(0)
	for i := range l.waiting {
		at := len(l.waiting) - 1 - i
		w := &l.waiting[at]
		if total += w.size; total > int64(l.bound.MaxSize) || i >= maxWaiting {
			w.state = drop
		}
	}
}

// judge sets what becomes of the layers that wait, and reports whether there is anything to do.
func (l *layered) judge(became func(*eventsv1.ChangeRef) lineup.State, now time.Time) (due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.waiting {
		w := &l.waiting[i]
		if w.state == wait {
			w.state = promote
			for _, change := range w.by {
				switch became(change) {
				case lineup.Landed:
				case lineup.Pending:
					w.state = min(w.state, wait)
				default:
					w.state = drop
				}
				if w.state == drop {
					break
				}
			}
			if w.state == wait && now.Sub(w.since) > maxAge {
				w.state = drop
			}
		}
		due = due || w.state != wait
	}
	return due
}

// settle does what was judged. Only one goroutine at a time may call it.
func (l *layered) settle() error {
	l.mu.Lock()
	var settled []waiting
	l.waiting = slices.DeleteFunc(l.waiting, func(w waiting) bool {
		if w.state != wait {
			settled = append(settled, w)
		}
		return w.state != wait
	})
	l.mu.Unlock()
	var problems []error
	for _, w := range settled {
		if w.state == promote {
			problems = append(problems, l.push(w.layer))
		}
		problems = append(problems, execution.RemoveAll(l.path(w.run)))
	}
	l.mu.Lock()
	stack, limit, size := slices.Clone(l.stack), int64(l.bound.MaxSize), int64(0)
	l.mu.Unlock()
	for _, layer := range stack {
		size += layer.size
	}
	if len(stack) > maxStack || len(stack) > 1 && size > limit {
		problems = append(problems, l.compact(stack))
	}
	return errors.Join(problems...)
}

// push lays a layer on top of the stack.
func (l *layered) push(upper layer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := "layers/" + l.number()
	if err := os.Chmod(l.path(upper.name), 0o700); err != nil { // its step may have set another mode
		return err
	}
	if err := os.Rename(l.path(upper.name), l.path(name)); err != nil {
		return err
	}
	l.stack = append(l.stack, layer{name, upper.size})
	return nil
}

// compact makes one layer, within the bound, of the stack. It is there whole or not at all.
func (l *layered) compact(stack []layer) error {
	var paths []string
	for _, layer := range slices.Backward(stack) {
		paths = append(paths, l.path(layer.name))
	}
	l.mu.Lock()
	name, bound := "layers/"+l.number()+baseEnding, l.bound
	l.mu.Unlock()
	unfinished := l.path(name) + ".unfinished"
	var size int64
	err := merge(unfinished, paths)
	if err == nil {
		size, err = shrink(unfinished, bound)
	}
	var failed error
	if err != nil && len(stack) > mostStack {
		failed = fmt.Errorf("%d of them cannot be merged, and all goes: %w", len(stack), err)
		size, err = 0, emptied(unfinished)
	}
	if err == nil {
		err = os.Rename(unfinished, l.path(name))
	}
	if err != nil {
		return errors.Join(failed, err, execution.RemoveAll(unfinished))
	}
	var unused []string
	l.mu.Lock()
	l.stack = append([]layer{{name, size}}, l.stack[len(stack):]...)
	for _, old := range stack {
		if l.users[old.name] > 0 {
			l.retired[old.name] = true
		} else {
			unused = append(unused, old.name)
		}
	}
	l.mu.Unlock()
	problems := []error{failed}
	for _, name := range unused {
		problems = append(problems, execution.RemoveAll(l.path(name)))
	}
	return errors.Join(problems...)
}

// shrink removes files of a folder that is not in use until it is within its bound, and returns its size. All goes where it is unknown.
func shrink(dir string, bound configuration.Cache) (int64, error) {
	_, size, err := measure(dir)
	limit := int64(bound.MaxSize)
	switch {
	case err == nil && size <= limit:
		return size, nil
	case err == nil && bound.Trim == configuration.TrimFiles:
		return limit - limit/5, trim(dir, size, limit)
	}
	return 0, emptied(dir)
}

// Judge finds out which layers of a queue's caches may be read by other steps, and which are of no use any more, by what became
// of the changes whose code wrote them. It reports whether there is anything for Settle to do.
func (s *Store) Judge(queue string, became func(*eventsv1.ChangeRef) lineup.State) (due bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for dir, l := range s.layers {
		if filepath.Dir(dir) == filepath.Join(s.Dir, queue) && l.judge(became, now) {
			due = true
		}
	}
	for _, f := range s.folders {
		if f.change != nil && f.queue == queue && became(f.change) != lineup.Pending {
			f.left, due = true, true
		}
	}
	return due
}

// Settle does what was judged. Only one goroutine at a time may call it.
func (s *Store) Settle() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.layers))
	var left []*folder
	for dir, f := range s.folders {
		if f.left {
			left = append(left, f)
			delete(s.folders, dir)
		}
	}
	s.mu.Unlock()
	for _, f := range left {
		f.mu.Lock()
		f.gone = true
		if len(f.users) == 0 {
			s.warn(f.dir, execution.RemoveAll(f.dir))
		}
		f.mu.Unlock()
	}
	for _, l := range all {
		if err := l.settle(); err != nil {
			s.warn(l.dir, fmt.Errorf("layers: %w", err))
		}
	}
}
