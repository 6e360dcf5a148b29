// Package registry holds the trained models of a queue, as landfall.models records them: all that there were, and which are in use.
package registry

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
)

// Events of an Entry.
const (
	Promoted   = "promoted"
	RolledBack = "rolled back"
	// Trained is a model that somebody may promote, Declined one that was not better than what predicts.
	Trained  = "trained"
	Declined = "declined"
)

// Entry is a record of landfall.models.
type Entry struct {
	Kind  eventsv1.ModelKind
	Event string
	// Model has its card. A declined model and one of long ago have no predictor; of one that was rolled back only kind and version are
	// set.
	Model    *eventsv1.Model
	Who, Why string
	// At is in microseconds since 1970.
	At int64
}

// HasPredictor reports whether the entry's model could be put into use.
func (e Entry) HasPredictor() bool { return len(e.Model.GetPredictor()) > 0 }

// keptPredictors is of how many models of a kind the predictor is kept; older ones keep their cards.
const keptPredictors = 20

// Registry holds the models of one queue.
type Registry struct {
	Entries []Entry // oldest first
	inUse   map[eventsv1.ModelKind]*eventsv1.Model
}

// New returns an empty registry.
func New() *Registry { return &Registry{inUse: map[eventsv1.ModelKind]*eventsv1.Model{}} }

// Apply takes the queue's next record of landfall.models.
func (r *Registry) Apply(m proto.Message) {
	switch m := m.(type) {
	case *eventsv1.ModelPromoted:
		r.add(Entry{m.GetModel().GetKind(), Promoted, m.GetModel(), m.Who, m.Why, m.StampUs})
		r.inUse[m.GetModel().GetKind()] = m.GetModel()
	case *eventsv1.ModelRolledBack:
		r.add(Entry{m.Kind, RolledBack, &eventsv1.Model{Kind: m.Kind, Version: m.Version}, m.Who, m.Why, m.StampUs})
		delete(r.inUse, m.Kind)
	case *eventsv1.ModelTrained:
		e := Entry{m.GetModel().GetKind(), Trained, m.GetModel(), m.Who, m.GetModel().GetCard().GetVerdict(), m.StampUs}
		if !e.HasPredictor() {
			e.Event = Declined
		}
		r.add(e)
	}
}

// At returns the registry as it was at a time, in microseconds since 1970, but for predictors that are not kept any more.
func (r *Registry) At(us int64) *Registry {
	then := New()
	for _, e := range r.Entries {
		if e.At > us {
			continue
		}
		then.Entries = append(then.Entries, e)
		switch e.Event {
		case Promoted:
			then.inUse[e.Kind] = e.Model
		case RolledBack:
			delete(then.inUse, e.Kind)
		}
	}
	return then
}

func (r *Registry) add(e Entry) {
	if e.Model == nil {
		e.Model = &eventsv1.Model{Kind: e.Kind}
	}
	r.Entries = append(r.Entries, e)
	predictors := 0
	for i := len(r.Entries) - 1; i >= 0; i-- {
		if o := &r.Entries[i]; o.Kind == e.Kind && o.HasPredictor() {
			if predictors++; predictors > keptPredictors {
				o.Model = &eventsv1.Model{Kind: o.Kind, Version: o.Model.Version, Features: o.Model.Features, Schema: o.Model.Schema, Card: o.Model.Card}
				return // the older ones lost theirs before
			}
		}
	}
}

// InUse returns the model of a kind that was put into use last, nil if priors predict.
func (r *Registry) InUse(k eventsv1.ModelKind) *eventsv1.Model { return r.inUse[k] }

// Previous returns the model of a kind that was in use before the present one, nil if priors were.
func (r *Registry) Previous(k eventsv1.ModelKind) *eventsv1.Model {
	now := r.inUse[k].GetVersion()
	for i := len(r.Entries) - 1; i >= 0; i-- {
		e := r.Entries[i]
		if e.Kind != k || e.Event != Promoted && e.Event != RolledBack {
			continue
		}
		if e.Event == RolledBack {
			return nil
		}
		if e.Model.Version != now && e.HasPredictor() {
			return e.Model
		}
	}
	return nil
}

// maxSkew is how far ahead of one's own another machine's clock may be, in microseconds: a day.
const maxSkew = 24 * 3600 * 1_000_000

// TrainedAt returns when a model of a kind was last trained, whatever came of it, and 0 if none ever was. Both it and now are in
// microseconds since 1970. Entries of a day after now or later are ignored: a wrong clock must not stop all training until then.
func (r *Registry) TrainedAt(k eventsv1.ModelKind, now int64) (at int64) {
	for _, e := range r.Entries {
		if us := e.Model.GetCard().GetTrainedUs(); e.Kind == k && e.Event != RolledBack && us-maxSkew < now {
			at = max(at, us)
		}
	}
	return at
}

// Errors of Find.
var (
	// ErrNoModel occurs when no model of the queue has a version with that prefix.
	ErrNoModel = errors.New("no such model")
	// ErrAmbiguous occurs when several have.
	ErrAmbiguous = errors.New("several models")
)

// Find returns the newest entry of the model whose version, or name (kind-version), has a prefix. It prefers an entry that could be
// put into use.
func (r *Registry) Find(prefix string) (Entry, error) {
	var found *Entry
	for i := len(r.Entries) - 1; i >= 0; i-- {
		e := &r.Entries[i]
		name := prediction.KindName(e.Kind) + "-" + e.Model.Version
		if prefix == "" || e.Model.Version == "" || !strings.HasPrefix(e.Model.Version, prefix) && !strings.HasPrefix(name, prefix) {
			continue
		}
		switch {
		case found == nil:
			found = e
		case found.Model.Version != e.Model.Version:
			return Entry{}, fmt.Errorf("%w have versions that begin with %s: %s and %s", ErrAmbiguous, prefix, prediction.ShortVersion(found.Model.Version), prediction.ShortVersion(e.Model.Version))
		case !found.HasPredictor() && e.HasPredictor():
			found = e
		}
	}
	if found == nil {
		return Entry{}, fmt.Errorf("%w: none has a version that begins with %q (landfall models list shows them)", ErrNoModel, prefix)
	}
	return *found, nil
}
