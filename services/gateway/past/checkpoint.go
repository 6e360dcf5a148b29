package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// checkpoint is a moment that is kept. Its state is in the series, under the number of its records.
type checkpoint struct {
	head
	records int
	bytes   int64
}

// head describes a checkpoint whose state is not loaded.
type head struct {
	Until time.Time           `json:"until"`
	Folds map[string]foldKept `json:"folds"`
	// Parts are the lengths of the parts of the state: of the view without the others, of its builds, and of what workers choose their
	// steps by. They are unpacked side by side, the last only where it is needed.
	Parts [3]int `json:"parts"`
}

type foldKept struct {
	Next  int64            `json:"next"`
	Until time.Time        `json:"until"`
	Terms map[string]int64 `json:"terms"`
}

// packer compresses and unpacker decompresses. Both are made when they are needed, and are safe for concurrent use.
var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // the options are valid
		}
		return w
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxState))
		if err != nil {
			panic(err) // the options are valid
		}
		return r
	})
)

// maxState bounds a part of a state.
const maxState = 1 << 30

// save keeps a moment.
func (p *Past) save(m *moment) (checkpoint, error) {
	c := checkpoint{head{m.until, map[string]foldKept{}, [3]int{}}, m.records, 0}
	for topic, f := range m.folds {
		c.Folds[topic] = foldKept{f.next, f.until, f.terms.Snapshot().GetClaims()}
	}
	whole := m.view.Snapshot()
	builds, choice := whole.Builds, whole.Choice
	whole.Builds, whole.Choice = nil, nil
	var state []byte
	for i, part := range []proto.Message{whole, builds, choice} {
		text, err := proto.Marshal(part)
		if err != nil {
			return c, fmt.Errorf("checkpoint: %w", err)
		}
		before := len(state)
		state = packer().EncodeAll(text, state)
		c.Parts[i] = len(state) - before
	}
	c.bytes = int64(len(state))
	if err := p.Kept.Save(int64(c.records), c.head, slices.Clip(state)); err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	return c, nil
}

// restore returns the moment of a checkpoint, whole or without what workers choose their steps by.
func (p *Past) restore(c checkpoint, whole bool) (*moment, error) {
	state, err := p.Kept.Load(int64(c.records))
	if err != nil {
		return nil, err
	}
	kept, builds, choice := &snapshotv1.GatewayView{}, &snapshotv1.GatewayBuilds{}, &snapshotv1.Steps{}
	var unpacking sync.WaitGroup
	var failed [len(c.Parts)]error
	for i, into := range []proto.Message{kept, builds, choice} {
		n := c.Parts[i]
		if n < 0 || n > len(state) {
			failed[i] = errors.New("its parts are longer than it is")
			break
		}
		part := state[:n]
		if state = state[n:]; i < 2 || whole {
			unpacking.Go(func() { failed[i] = unpack(part, into) })
		}
	}
	unpacking.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, err
	}
	if kept.Builds = builds; whole {
		kept.Choice = choice
	}
	m := &moment{folds: map[string]*fold{}, until: c.Until, records: c.records, whole: whole}
	if m.view, err = view.Restore(kept, p.Queue, p.Limits); err != nil {
		return nil, err
	}
	if !whole {
		m.view.DropChoice()
	}
	for topic, f := range c.Folds {
		m.folds[topic] = &fold{next: f.Next, until: f.Until, terms: journal.RestoreTerms(topic, &snapshotv1.JournalTerms{Claims: f.Terms})}
	}
	return m, nil
}

func unpack(packed []byte, into proto.Message) error {
	text, err := unpacker().DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	return proto.Unmarshal(text, into)
}

// open finds what was kept before. What does not fit the log is dropped.
func (p *Past) open(ctx context.Context) error {
	p.opening.Lock()
	defer p.opening.Unlock()
	if p.opened {
		return nil
	}
	ends, err := p.ends(ctx)
	if err != nil {
		return err
	}
	moments, err := p.Kept.Moments()
	if err != nil {
		return fmt.Errorf("checkpoints: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kept := range moments {
		c := checkpoint{records: int(kept.Number), bytes: kept.Bytes}
		if err := json.Unmarshal(kept.Head, &c.head); err != nil || !c.fits(ends) {
			p.Logger.Warn("a checkpoint of the past is dropped: it does not fit the log", "queue", p.Queue, "records", c.records)
			p.Kept.Drop(kept.Number)
			continue
		}
		p.checkpoints, p.bytes = append(p.checkpoints, c), p.bytes+c.bytes
	}
	p.thin()
	p.opened = true
	return nil
}

// fits reports whether a checkpoint may be of a log whose topics end there.
func (c checkpoint) fits(ends map[string]int64) bool {
	for topic, end := range ends {
		if f, is := c.Folds[topic]; !is || f.Next > end {
			return false
		}
	}
	return len(c.Folds) == len(ends)
}

// keep makes a checkpoint of a moment if one is due. One that holds what was written a moment ago is not: a record of that time may
// still come. A disk that takes none is asked again after a while; nothing but time is lost.
func (p *Past) keep(m *moment) {
	if !m.whole || !p.due(m) {
		return
	}
	c, err := p.save(m)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed = time.Now()
		p.Logger.Warn("a checkpoint of the past could not be kept", "queue", p.Queue, "error", err)
		return
	}
	if n := len(p.checkpoints); n > 0 && p.checkpoints[n-1].records >= c.records {
		return // somebody else was faster; the state is the same
	}
	p.checkpoints, p.bytes = append(p.checkpoints, c), p.bytes+c.bytes
	p.thin()
}

func (p *Past) due(m *moment) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := 0
	if n := len(p.checkpoints); n > 0 {
		newest = p.checkpoints[n-1].records
	}
	return m.records >= newest+p.Every && time.Since(m.until) >= settled && time.Since(p.failed) >= settled
}

// settled is for how long a record may come later than one that was written after it.
const settled = time.Minute

// newest returns the last checkpoint, or the beginning of the log.
func (p *Past) newest() (c checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.checkpoints); n > 0 {
		return p.checkpoints[n-1]
	}
	return c
}

// Checkpoints returns how many there are.
func (p *Past) Checkpoints() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.checkpoints)
}

// thin drops checkpoints that are more than fit. The older a moment is the farther it may be from the checkpoint before it. The lock must
// be held.
func (p *Past) thin() {
	for p.bytes > p.Bytes && len(p.checkpoints) > 1 {
		newest := p.checkpoints[len(p.checkpoints)-1].records
		victim, least, before := 0, 0.0, 0
		for i, c := range p.checkpoints[:len(p.checkpoints)-1] {
			gap := float64(p.checkpoints[i+1].records-before) / float64(newest-c.records)
			if i == 0 || gap < least {
				victim, least = i, gap
			}
			before = c.records
		}
		p.drop(victim)
	}
}

// drop drops a checkpoint. The lock must be held.
func (p *Past) drop(at int) {
	c := p.checkpoints[at]
	p.Kept.Drop(int64(c.records))
	p.checkpoints, p.bytes = slices.Delete(p.checkpoints, at, at+1), p.bytes-c.bytes
}

// dropDamaged drops a checkpoint that turned out to be of no use.
func (p *Past) dropDamaged(c checkpoint, reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Logger.Warn("a checkpoint of the past is dropped", "queue", p.Queue, "records", c.records, "reason", reason)
	if i := slices.IndexFunc(p.checkpoints, func(o checkpoint) bool { return o.records == c.records }); i >= 0 {
		p.drop(i)
	}
}
