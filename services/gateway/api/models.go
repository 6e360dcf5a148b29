package api

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/registry"
)

// ModelStore holds the trained models of queues. Its methods are safe for concurrent use.
type ModelStore interface {
	// ReadModels calls f with the models of a queue as the log has them now; f must not keep them.
	ReadModels(ctx context.Context, queue string, f func(*registry.Registry) error) error
	// ChooseModel appends that a model is put into use, or taken out (ErrUnconfirmed).
	ChooseModel(ctx context.Context, queue string, fact proto.Message) error
}

// ModelList is GET /v1/queues/{queue}/models, newest first.
type ModelList struct {
	Queue  string       `json:"queue"`
	Models []ModelEntry `json:"models"`
	// Omitted is how many older entries are left out.
	Omitted int `json:"omitted,omitempty"`
}

// ModelEntry is what became of a model.
type ModelEntry struct {
	Kind    string    `json:"kind"`
	Version string    `json:"version,omitempty"`
	What    string    `json:"what"`
	At      time.Time `json:"at"`
	Who     string    `json:"who,omitempty"`
	Why     string    `json:"why,omitempty"`
	InUse   bool      `json:"in_use"`
	// Usable is set if it could be put into use; Trouble says why it could not.
	Usable  bool       `json:"usable"`
	Trouble string     `json:"trouble,omitempty"`
	Card    *ModelCard `json:"card,omitempty"`
}

// ModelCard is where a model comes from, and how good it was.
type ModelCard struct {
	Algorithm string `json:"algorithm,omitempty"`
	// Rows fitted to, of these used first for choices, and newer ones judged on.
	TrainingRows uint64        `json:"training_rows"`
	ChoosingRows uint64        `json:"choosing_rows"`
	NewestRows   uint64        `json:"newest_rows"`
	DataFrom     time.Time     `json:"data_from"`
	DataUntil    time.Time     `json:"data_until"`
	Trained      time.Time     `json:"trained"`
	TrainedBy    string        `json:"trained_by,omitempty"`
	Verdict      string        `json:"verdict,omitempty"`
	Figures      []ModelFigure `json:"figures,omitempty"`
}

// ModelFigure is one measure of one of the models that were compared.
type ModelFigure struct {
	Name  string  `json:"name"`
	Of    string  `json:"of"`
	Value float64 `json:"value"`
}

// ModelBody is which model is put into use or which kind is rolled back, who asks, and why.
type ModelBody struct {
	Version string `json:"version,omitempty"`
	Kind    string `json:"kind,omitempty"`
	// Priors gives the priors back, whatever was in use before.
	Priors bool   `json:"priors,omitempty"`
	Who    string `json:"who,omitempty"`
	Why    string `json:"why,omitempty"`
}

const (
	maxModels  = 200
	maxFigures = 40
)

func (h *handler) serveModels(w http.ResponseWriter, r *http.Request) {
	list := ModelList{Queue: r.PathValue("queue"), Models: []ModelEntry{}}
	at, err := h.readyAt(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	err = h.readModels(r, func(models *registry.Registry) error {
		if !at.IsZero() {
			models = models.At(at.UnixMicro())
		}
		for _, e := range slices.Backward(models.Entries) {
			if len(list.Models) == maxModels {
				list.Omitted = len(models.Entries) - maxModels
				break
			}
			list.Models = append(list.Models, showModel(models, e))
		}
		return nil
	})
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) readModels(r *http.Request, f func(*registry.Registry) error) error {
	if err := h.Backend.Ready(); err != nil {
		return err
	}
	queue := r.PathValue("queue")
	if !slices.Contains(h.Backend.Queues(), queue) {
		return h.unknownQueue(r, queue)
	}
	if h.Models == nil {
		return f(registry.New())
	}
	ctx, cancel := context.WithTimeout(r.Context(), defaultWait)
	defer cancel()
	return h.Models.ReadModels(ctx, queue, f)
}

func showModel(models *registry.Registry, e registry.Entry) ModelEntry {
	m := ModelEntry{
		Kind: prediction.KindName(e.Kind), Version: clipText(e.Model.Version, maxLetterText), What: e.Event, At: time.UnixMicro(e.At).UTC(),
		Who: clipText(e.Who, maxWhoBytes), Why: clipText(e.Why, maxWhyBytes), InUse: e.Event == registry.Promoted && models.InUse(e.Kind) == e.Model,
	}
	if e.HasPredictor() {
		if _, err := prediction.Open(e.Model); err != nil {
			m.Trouble = clipText(err.Error(), maxLetterText)
		}
		m.Usable = m.Trouble == ""
	}
	c := e.Model.Card
	if c == nil {
		return m
	}
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	m.Card = &ModelCard{
		Algorithm: clipText(c.Algorithm, maxLetterText), TrainingRows: c.TrainingRows, ChoosingRows: c.ChoosingRows, NewestRows: c.NewestRows,
		DataFrom: at(c.DataFromUs), DataUntil: at(c.DataUntilUs), Trained: at(c.TrainedUs), TrainedBy: clipText(c.TrainedBy, maxWhoBytes), Verdict: clipText(c.Verdict, maxWhyBytes),
	}
	for _, f := range c.Figures[:min(len(c.Figures), maxFigures)] {
		if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
			m.Card.Figures = append(m.Card.Figures, ModelFigure{clipText(f.Name, maxWhoBytes), clipText(f.Of, maxWhoBytes), f.Value})
		}
	}
	return m
}

func (h *handler) serveModelPromote(w http.ResponseWriter, r *http.Request) {
	h.chooseModel(w, r, func(models *registry.Registry, b ModelBody, actor *eventsv1.Actor) (proto.Message, error) {
		e, err := models.Find(b.Version)
		if err != nil {
			return nil, fail(http.StatusNotFound, codeNotFound, clipText(sentence(err.Error()), maxLetterText), "Look at the list again.")
		}
		if !e.HasPredictor() {
			return nil, fail(http.StatusConflict, codeNotApplied, "Of this model only the card is kept.", "Train it again: `landfall train queue --promote`.")
		}
		if _, err := prediction.Open(e.Model); err != nil {
			return nil, fail(http.StatusConflict, codeNotApplied, clipText(sentence("it cannot be used: "+err.Error()), maxLetterText), "Promote another one, or train again.")
		}
		return &eventsv1.ModelPromoted{Model: e.Model, Who: b.Who, Why: cmp.Or(b.Why, "by hand"), StampUs: h.Clock().UnixMicro(), Actor: actor}, nil
	})
}

func (h *handler) serveModelRollback(w http.ResponseWriter, r *http.Request) {
	h.chooseModel(w, r, func(models *registry.Registry, b ModelBody, actor *eventsv1.Actor) (proto.Message, error) {
		kind := prediction.KindOf(b.Kind)
		if kind == eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED {
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%.40q is no kind of model.", b.Kind), "It is success, conflict or duration.")
		}
		now := models.InUse(kind)
		if now == nil {
			return nil, fail(http.StatusConflict, codeNotApplied, "No model of this kind is in use; priors predict already.", "Look at the list again.")
		}
		stamp := h.Clock().UnixMicro()
		if before := models.Previous(kind); before != nil && !b.Priors {
			return &eventsv1.ModelPromoted{Model: before, Who: b.Who, Why: cmp.Or(b.Why, "rolled back from "+prediction.ShortVersion(now.Version)), StampUs: stamp, Actor: actor}, nil
		}
		return &eventsv1.ModelRolledBack{Kind: kind, Version: now.Version, Who: b.Who, Why: b.Why, StampUs: stamp, Actor: actor}, nil
	})
}

// chooseModel reads the request, makes the fact and has it written.
func (h *handler) chooseModel(w http.ResponseWriter, r *http.Request, fact func(*registry.Registry, ModelBody, *eventsv1.Actor) (proto.Message, error)) {
	var body ModelBody
	err := readJSON(w, r, &body, false)
	if err == nil {
		err = h.chosenModel(r, body, fact)
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "done"})
}

func (h *handler) chosenModel(r *http.Request, body ModelBody, fact func(*registry.Registry, ModelBody, *eventsv1.Actor) (proto.Message, error)) error {
	a := askerOf(r)
	if body.Who == "" || a.Issuer != access.IssuerOpen {
		body.Who = a.Shown()
	}
	if !printable(body.Who, maxWhoBytes) || !printable(body.Why, maxWhyBytes) {
		return fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("who or why is not printable text of at most %d and %d bytes.", maxWhoBytes, maxWhyBytes), "Shorten it.")
	}
	return h.readModels(r, func(models *registry.Registry) error {
		m, err := fact(models, body, a.actor())
		if err != nil {
			return err
		}
		return h.Models.ChooseModel(r.Context(), r.PathValue("queue"), m)
	})
}
