// Package book is the fold of landfall.models that everybody who looks there shares: which models of a queue there were, and
// which are in use.
package book

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/profiler/prediction"
)

// What happened to a model.
const (
	Promoted   = "promoted"
	RolledBack = "rolled back"
	// Trained is a model that was made for somebody to promote, Declined one that was no better.
	Trained  = "trained"
	Declined = "declined"
)

// Entry is one thing that happened.
type Entry struct {
	Kind eventsv1.ModelKind
	What string
	// Model with its card; only a declined one, or one that is long gone, lacks what predicts. For what was rolled back it is
	// only named.
	Model    *eventsv1.Model
	Who, Why string
	// At is microseconds since 1970.
	At int64
}

// Whole says that the entry's model could be put into use.
func (e Entry) Whole() bool { return len(e.Model.GetPredictor()) > 0 }

// keptWhole is how many models of a kind are kept with what predicts; of older ones only the card is.
const keptWhole = 20

// Book is what landfall.models says of one queue.
type Book struct {
	Entries []Entry // oldest first
	inUse   map[eventsv1.ModelKind]*eventsv1.Model
}

// New is an empty book.
func New() *Book { return &Book{inUse: map[eventsv1.ModelKind]*eventsv1.Model{}} }

// Fold takes the next record of the queue.
func (b *Book) Fold(m proto.Message) {
	switch m := m.(type) {
	case *eventsv1.ModelPromoted:
		b.add(Entry{m.GetModel().GetKind(), Promoted, m.GetModel(), m.Who, m.Why, m.StampUs})
		b.inUse[m.GetModel().GetKind()] = m.GetModel()
	case *eventsv1.ModelRolledBack:
		b.add(Entry{m.Kind, RolledBack, &eventsv1.Model{Kind: m.Kind, Version: m.Version}, m.Who, m.Why, m.StampUs})
		delete(b.inUse, m.Kind)
	case *eventsv1.ModelTrained:
		e := Entry{m.GetModel().GetKind(), Trained, m.GetModel(), m.Who, m.GetModel().GetCard().GetVerdict(), m.StampUs}
		if !e.Whole() {
			e.What = Declined
		}
		b.add(e)
	}
}

func (b *Book) add(e Entry) {
	if e.Model == nil {
		e.Model = &eventsv1.Model{Kind: e.Kind}
	}
	b.Entries = append(b.Entries, e)
	whole := 0
	for i := len(b.Entries) - 1; i >= 0; i-- {
		if o := &b.Entries[i]; o.Kind == e.Kind && o.Whole() {
			if whole++; whole > keptWhole {
				o.Model = &eventsv1.Model{Kind: o.Kind, Version: o.Model.Version, Features: o.Model.Features, Schema: o.Model.Schema, Card: o.Model.Card}
				return // those before it were cut before
			}
		}
	}
}

// InUse is the model of a kind that was put into use last, nil if priors predict.
func (b *Book) InUse(k eventsv1.ModelKind) *eventsv1.Model { return b.inUse[k] }

// Before is the model of a kind that was in use before the present one, nil if priors were.
func (b *Book) Before(k eventsv1.ModelKind) *eventsv1.Model {
	now := b.inUse[k].GetVersion()
	for i := len(b.Entries) - 1; i >= 0; i-- {
		e := b.Entries[i]
		if e.Kind != k || e.What != Promoted && e.What != RolledBack {
			continue
		}
		if e.What == RolledBack {
			return nil
		}
		if e.Model.Version != now && e.Whole() {
			return e.Model
		}
	}
	return nil
}

// skew is how far ahead of one's own another machine's clock may be, in microseconds: a day.
const skew = 24 * 3600 * 1_000_000

// TrainedAt is when a model of a kind was last trained, whatever came of it; 0 if none ever was. now is microseconds since 1970:
// what says that it was trained a day later or more has that from a wrong clock, by which nobody would train until then.
func (b *Book) TrainedAt(k eventsv1.ModelKind, now int64) (at int64) {
	for _, e := range b.Entries {
		if us := e.Model.GetCard().GetTrainedUs(); e.Kind == k && e.What != RolledBack && us-skew < now {
			at = max(at, us)
		}
	}
	return at
}

// Errors of Find.
var (
	// ErrNoModel occurs when no model of the queue has a version that begins so.
	ErrNoModel = errors.New("no such model")
	// ErrAmbiguous occurs when several have.
	ErrAmbiguous = errors.New("several models")
)

// Find gives the newest entry with a model whose version begins so, or whose name (kind-version) does; one that could be put
// into use before one that could not.
func (b *Book) Find(version string) (Entry, error) {
	var found *Entry
	for i := len(b.Entries) - 1; i >= 0; i-- {
		e := &b.Entries[i]
		name := prediction.KindName(e.Kind) + "-" + e.Model.Version
		if version == "" || e.Model.Version == "" || !strings.HasPrefix(e.Model.Version, version) && !strings.HasPrefix(name, version) {
			continue
		}
		switch {
		case found == nil:
			found = e
		case found.Model.Version != e.Model.Version:
			return Entry{}, fmt.Errorf("%w have versions that begin with %s: %s and %s", ErrAmbiguous, version, prediction.ShortVersion(found.Model.Version), prediction.ShortVersion(e.Model.Version))
		case !found.Whole() && e.Whole():
			found = e
		}
	}
	if found == nil {
		return Entry{}, fmt.Errorf("%w: none has a version that begins with %q (landfall models list shows them)", ErrNoModel, version)
	}
	return *found, nil
}
