package past

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

// checkpoint is a moment as it is kept. Nothing changes it.
type checkpoint struct {
	// state is the view's snapshot, compressed.
	state   []byte
	folds   map[string]foldKept
	until   time.Time
	records int
}

type foldKept struct {
	next  int64
	until time.Time
	terms *snapshotv1.JournalTerms
}

func (m *moment) checkpoint() (checkpoint, error) {
	c := checkpoint{folds: map[string]foldKept{}, until: m.until, records: m.records}
	for topic, f := range m.folds {
		c.folds[topic] = foldKept{f.next, f.until, f.terms.Snapshot()}
	}
	text, err := proto.Marshal(m.view.Snapshot())
	if err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid
	w.Write(text)                                     // a buffer takes everything
	w.Close()
	c.state = bytes.Clone(packed.Bytes())
	return c, nil
}

func (c checkpoint) restore(p *Past) (*moment, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(c.state)))
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	kept := &snapshotv1.GatewayView{}
	if err := proto.Unmarshal(text, kept); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	m := &moment{folds: map[string]*fold{}, until: c.until, records: c.records}
	if m.view, err = view.Restore(kept, p.Queue, p.Limits); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	for topic, f := range c.folds {
		m.folds[topic] = &fold{next: f.next, until: f.until, terms: journal.RestoreTerms(topic, f.terms)}
	}
	return m, nil
}
