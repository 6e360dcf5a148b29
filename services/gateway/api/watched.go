package api

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"landfall.build/services/gateway/view"
)

const (
	// watchedFinished is how many changes that have left a queue its changes hold.
	watchedFinished = 100
	// keptPatches and keptPatchBytes bound what is kept for those who come back.
	keptPatches    = 5000
	keptPatchBytes = 8 << 20
	// watchedGrace is for how long parts are kept up without a client, so that a page which loads again gets patches.
	watchedGrace = 30 * time.Second
	// maxUnwatched is how many of these there are at most, and partsAtATime how many parts are made without a record being folded meanwhile.
	maxUnwatched = 200
	partsAtATime = 20
	// watchedQuiet is after how long a part is looked at though no record came: what it says may depend on the time.
	watchedQuiet = 30 * time.Second
)

// watched keeps parts up for all clients that watch them: what changes is worked out once, however many they are.
type watched struct {
	h *handler
	// computing is held while parts are made, so that patches are of one state and the next.
	computing sync.Mutex

	mu    sync.Mutex
	parts map[partKey]*watchedPart
	// seq counts patches; those after first are kept.
	seq, first uint64
	kept       []keptPatch
	keptBytes  int
	// advanced is closed, and replaced, when there are new patches.
	advanced chan struct{}
	// clients is how many streams there are, and stop ends the work for them; nil if nothing runs.
	clients int
	stop    context.CancelFunc
}

type watchedPart struct {
	value json.RawMessage
	// began is the number of the last patch before the part was kept up.
	began   uint64
	clients int
}

type keptPatch struct {
	seq  uint64
	part partKey
	text []byte
}

func newWatched(h *handler) *watched {
	return &watched{h: h, parts: map[partKey]*watchedPart{}, advanced: make(chan struct{})}
}

// join has these parts kept up until leave, and returns when each has a value.
func (w *watched) join(keys []partKey) {
	w.mu.Lock()
	w.clients++
	var missing []string
	var lists bool
	for _, k := range keys {
		p := w.parts[k]
		if p == nil {
			p = &watchedPart{}
			w.parts[k] = p
		}
		p.clients++
		switch {
		case p.value != nil:
		case k.isList():
			lists = true
		case !slices.Contains(missing, k.queue):
			missing = append(missing, k.queue)
		}
	}
	if w.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		w.stop = stop
		for _, name := range w.h.Backend.Queues() {
			go w.follow(ctx, name)
		}
		go w.followLists(ctx)
	}
	w.mu.Unlock()
	for _, name := range missing {
		w.make(name, func(p *watchedPart) bool { return p.value == nil })
	}
	if lists {
		w.refreshLists()
	}
}

func (w *watched) leave(keys []partKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients--
	for _, k := range keys {
		w.parts[k].clients--
	}
	// Whoever comes and goes leaves no more behind than that.
	if unwatched := len(w.partsUnwatched()); unwatched > maxUnwatched {
		for _, k := range keys {
			if w.parts[k].clients == 0 {
				delete(w.parts, k)
			}
		}
	}
	time.AfterFunc(watchedGrace, w.forget)
}

// partsUnwatched returns the parts that are kept up for who may come back.
func (w *watched) partsUnwatched() (keys []partKey) {
	for k, p := range w.parts {
		if p.clients == 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// forget drops the parts that nobody watches, and ends the work if there are none.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.partsUnwatched() {
		delete(w.parts, k)
	}
	if w.clients == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
		w.first, w.kept, w.keptBytes = w.seq, nil, 0
	}
}

// follow keeps the parts of a queue up until the context ends.
func (w *watched) follow(ctx context.Context, queue string) {
	for {
		changed := w.h.Backend.Changed(queue)
		began := time.Now()
		w.refresh(queue)
		pause := max(streamPause, time.Since(began)) // where there is much to make, half of the time is left to others
		select {
		case <-ctx.Done():
			return
		case <-changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		case <-time.After(watchedQuiet):
		}
	}
}

// followLists keeps the counts of lists up until the context ends.
func (w *watched) followLists(ctx context.Context) {
	for {
		changed := w.h.Lists.next()
		w.refreshLists()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// refreshLists takes the counts of lists as they are now.
func (w *watched) refreshLists() {
	w.computing.Lock()
	defer w.computing.Unlock()
	keys := w.partsOf(func(k partKey, _ *watchedPart) bool { return k.isList() })
	made := make([]any, len(keys))
	for i, k := range keys {
		made[i] = w.h.Lists.count(k)
	}
	w.publish(keys, made)
}

// refresh makes the parts of a queue as they are now, and the patches to them.
func (w *watched) refresh(queue string) { w.make(queue, func(*watchedPart) bool { return true }) }

// make does so for those of which wanted is true. Records are folded between a few parts and the next ones.
func (w *watched) make(queue string, wanted func(*watchedPart) bool) {
	w.computing.Lock()
	defer w.computing.Unlock()
	for keys := range slices.Chunk(w.partsOf(func(k partKey, p *watchedPart) bool { return k.queue == queue && !k.isList() && wanted(p) }), partsAtATime) {
		made := make([]any, len(keys))
		w.h.Backend.Read(queue, func(q *view.Queue) {
			for i, k := range keys {
				made[i] = w.h.part(q, k)
			}
		})
		w.publish(keys, made)
	}
}

// partsOf returns the parts that are kept up and of which wanted is true.
func (w *watched) partsOf(wanted func(partKey, *watchedPart) bool) (keys []partKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, p := range w.parts {
		if wanted(k, p) {
			keys = append(keys, k)
		}
	}
	return keys
}

// publish takes the parts as they were made, and tells those who watch them if anything is new.
func (w *watched) publish(keys []partKey, made []any) {
	values := make([]json.RawMessage, len(keys))
	for i := range keys {
		values[i], _ = json.Marshal(made[i])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seq
	for i, k := range keys {
		w.update(k, values[i])
	}
	if w.seq > before {
		close(w.advanced)
		w.advanced = make(chan struct{})
	}
}

// part returns a part as it is now.
func (h *handler) part(q *view.Queue, k partKey) any {
	switch k.kind {
	case PartQueue:
		return overviewOf(q, h.Clock())
	case PartGraph:
		return q.Graph()
	case PartFlakes:
		return FlakeList{Queue: k.queue, Rejecting: q.Rejecting(), Flakes: q.Flakes()}
	case PartQuarantines:
		return QuarantineList{Queue: k.queue, Quarantines: q.Quarantines()}
	case PartChanges:
		changes := map[string]view.Summary{}
		for _, s := range slices.Concat(q.Finished(watchedFinished), q.Pending()) {
			changes[s.Change] = s
		}
		return changes
	default:
		if c, known := q.Change(k.change); known {
			c.Rejection.DropOutput() // not all who watch may read logs
			return c
		}
		return nil
	}
}

// update takes a part's value, and keeps the patch to it.
func (w *watched) update(k partKey, value json.RawMessage) {
	p := w.parts[k]
	if p == nil || value == nil {
		return
	}
	was := p.value
	p.value = value
	if was == nil {
		p.began = w.seq
		return
	}
	patch, differs := mergePatch(was, value)
	if !differs {
		return
	}
	w.seq++
	text := k.event(EventPatch, patch)
	w.kept, w.keptBytes = append(w.kept, keptPatch{w.seq, k, text}), w.keptBytes+len(text)
	for len(w.kept) > keptPatches || w.keptBytes > keptPatchBytes {
		w.first, w.keptBytes = w.kept[0].seq, w.keptBytes-len(w.kept[0].text)
		w.kept[0].text = nil
		w.kept = w.kept[1:]
	}
}

// next returns what a client at a place lacks of some parts, with its place then, and a channel that is closed when there is more.
func (w *watched) next(keys []partKey, at place) (batch []byte, then place, advanced <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	then = place{boot: w.h.boot, seen: w.seq}
	var resumed []partKey
	for _, k := range keys {
		p, digest := w.parts[k], k.digest()
		if then.parts = append(then.parts, digest); at.boot == w.h.boot && slices.Contains(at.parts, digest) && p.began <= at.seen && w.first <= at.seen {
			resumed = append(resumed, k)
			continue
		}
		batch = append(batch, k.event(EventState, p.value)...)
	}
	from, _ := slices.BinarySearchFunc(w.kept, at.seen+1, func(k keptPatch, seq uint64) int { return int(k.seq) - int(seq) })
	if len(resumed) > 0 {
		for _, k := range w.kept[from:] {
			if slices.Contains(resumed, k.part) {
				batch = append(batch, k.text...)
			}
		}
	}
	if len(batch) > 0 {
		// Only the last event of a batch has an id: a client that broke off in the middle gets it again.
		batch = append(batch[:len(batch)-1], "id: "+then.String()+"\n\n"...)
	}
	return batch, then, w.advanced
}
