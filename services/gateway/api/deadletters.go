package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/deadletters"
)

// DeadLetterStore holds what could not be read or handled. Its methods are safe for concurrent use.
type DeadLetterStore interface {
	// DeadLetters returns the newest ones, oldest first, and how many older ones there are.
	DeadLetters() (letters []deadletters.Letter, older int)
	// SendAgain publishes the land request of one again and returns once it is folded that it was. Its errors are ErrUnconfirmed,
	// ErrUnanswered and deadletters.ErrUnsendable.
	SendAgain(ctx context.Context, d *eventsv1.DeadLetter, by *eventsv1.DeadLetterSent) error
}

// DeadLetterList is GET /v1/dead-letters, newest first.
type DeadLetterList struct {
	Letters []DeadLetter `json:"letters"`
	// Older is how many older ones are in the log and not in the list, of all queues.
	Older int `json:"older,omitempty"`
}

// DeadLetter is a record that could not be read or handled; its queue went on without it.
type DeadLetter struct {
	// Place is where the record is in the log: TOPIC/PARTITION/OFFSET.
	Place   string    `json:"place"`
	At      time.Time `json:"at"`
	Queue   string    `json:"queue,omitempty"`
	Change  string    `json:"change,omitempty"`
	Request string    `json:"request_id,omitempty"`
	Type    string    `json:"type,omitempty"`
	// Service is who reported it.
	Service string `json:"service"`
	Reason  string `json:"reason"`
	Advice  string `json:"advice,omitempty"`
	// MaySend is set if it is a land request that the caller may have published again, and Record if the caller may send deliveries.
	MaySend bool        `json:"may_send"`
	Record  *DeadRecord `json:"record,omitempty"`
	Sent    *SentAgain  `json:"sent,omitempty"`
}

// DeadRecord is the record of a dead letter, as text: bytes that are none are replaced.
type DeadRecord struct {
	Key     string         `json:"key,omitempty"`
	Headers []RecordHeader `json:"headers,omitempty"`
	// Value is its first 4 KiB.
	Value string `json:"value,omitempty"`
}

// RecordHeader is a header of a Kafka record, as text.
type RecordHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SentAgain is when a dead letter was published again last.
type SentAgain struct {
	At    time.Time `json:"at"`
	Who   string    `json:"who,omitempty"`
	Why   string    `json:"why,omitempty"`
	Times int       `json:"times"`
}

// SendBody is who has a dead letter published again, and why.
type SendBody struct {
	Who string `json:"who,omitempty"`
	Why string `json:"why,omitempty"`
}

const (
	maxLetterText  = 1000
	maxRecordValue = 4 << 10
	maxRecordText  = 1 << 10
	maxHeaders     = 50
)

// letterQueue returns the queue whose rights a dead letter has. One without a queue that is configured is for whom all queues are.
func (h *handler) letterQueue(queue string) string {
	if slices.Contains(h.Backend.Queues(), queue) {
		return queue
	}
	return access.AllQueues
}

func (h *handler) mayDeliver(r *http.Request, queue string) access.Decision {
	return h.rules.Decide(askerOf(r).Caller, access.Deliveries, h.letterQueue(queue), access.Owner{})
}

func (h *handler) serveDeadLetters(w http.ResponseWriter, r *http.Request) {
	at, err := h.readyAt(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	list := DeadLetterList{Letters: []DeadLetter{}}
	if h.DeadLetters != nil {
		letters, older := h.DeadLetters.DeadLetters()
		list.Older = older
		for _, l := range slices.Backward(letters) {
			there := true
			if !at.IsZero() {
				l, there = l.At(at.UnixMicro())
			}
			if there && h.mayRead(r, h.letterQueue(l.Queue)) {
				list.Letters = append(list.Letters, showLetter(l, h.mayDeliver(r, l.Queue).Allowed))
			}
		}
	}
	writeJSON(w, http.StatusOK, list)
}

func showLetter(l deadletters.Letter, deliver bool) DeadLetter {
	d := DeadLetter{
		Place: deadletters.Place(l), At: time.UnixMicro(l.StampUs).UTC(), Queue: clipText(l.Queue, maxLetterText), Change: clipText(l.Change, maxLetterText),
		Request: clipText(l.RequestId, maxLetterText), Type: clipText(l.Type, maxLetterText), Service: l.Service,
		Reason: clipText(l.Reason, maxLetterText), Advice: clipText(l.Advice, maxLetterText), MaySend: deliver && l.Sendable(),
	}
	if s := l.LastSent(); s != nil {
		d.Sent = &SentAgain{At: time.UnixMicro(s.StampUs).UTC(), Who: clipText(s.Who, maxWhoBytes), Why: clipText(s.Why, maxWhyBytes), Times: l.Times}
	}
	if !deliver {
		return d
	}
	d.Record = &DeadRecord{Key: recordText(l.Key, maxRecordText), Value: recordText(l.Value, maxRecordValue)}
	for _, header := range l.Headers[:min(len(l.Headers), maxHeaders)] {
		d.Record.Headers = append(d.Record.Headers, RecordHeader{clipText(header.Key, maxRecordText), recordText(header.Value, maxRecordText)})
	}
	return d
}

// recordText returns bytes as text, of at most so many bytes.
func recordText(b []byte, most int) string {
	text := make([]byte, 0, min(len(b), most))
	for len(b) > 0 && len(text) < most {
		c, size := utf8.DecodeRune(b)
		text, b = utf8.AppendRune(text, c), b[size:]
	}
	if len(b) > 0 {
		text = append(text, "…"...)
	}
	return string(text)
}

func (h *handler) serveDeadLetterSend(w http.ResponseWriter, r *http.Request) {
	var body SendBody
	err := readJSON(w, r, &body, true)
	if err == nil {
		err = h.sendAgain(r, body)
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "sent"})
}

func (h *handler) sendAgain(r *http.Request, body SendBody) error {
	if err := h.Backend.Ready(); err != nil {
		return err
	}
	if a := askerOf(r); body.Who == "" || a.Issuer != access.IssuerOpen {
		body.Who = a.Shown()
	}
	if !printable(body.Who, maxWhoBytes) || !printable(body.Why, maxWhyBytes) {
		return fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("who or why is not printable text of at most %d and %d bytes.", maxWhoBytes, maxWhyBytes), "Shorten it.")
	}
	place := r.PathValue("topic") + "/" + r.PathValue("partition") + "/" + r.PathValue("offset")
	var letters []deadletters.Letter
	if h.DeadLetters != nil {
		letters, _ = h.DeadLetters.DeadLetters()
	}
	at := slices.IndexFunc(letters, func(l deadletters.Letter) bool { return deadletters.Place(l) == place })
	// Whoever may not read it does not learn that it exists.
	if at < 0 || !h.mayRead(r, h.letterQueue(letters[at].Queue)) {
		return fail(http.StatusNotFound, codeNotFound, "There is no dead letter of that place.", "Look at the list again; older ones are sent by `landfall dead-letters send`.")
	}
	if d := h.mayDeliver(r, letters[at].Queue); !d.Allowed {
		return failureOf(d)
	}
	ctx, cancel := context.WithTimeout(r.Context(), defaultWait)
	defer cancel()
	by := &eventsv1.DeadLetterSent{Who: body.Who, Why: body.Why, StampUs: h.Clock().UnixMicro(), Actor: askerOf(r).actor()}
	err := h.DeadLetters.SendAgain(ctx, letters[at].DeadLetter, by)
	if errors.Is(err, deadletters.ErrUnsendable) {
		return fail(http.StatusConflict, codeNotApplied, clipText(sentence(err.Error()), maxLetterText), "Correct the program that published it, and publish the request again.")
	}
	return err
}
