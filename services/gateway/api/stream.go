package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/services/gateway/view"
)

const (
	// streamPause lets what comes in at once go out as one batch.
	streamPause     = 100 * time.Millisecond
	streamHeartbeat = 15 * time.Second
	maxStreamed     = 200
)

// Names of the stream's events.
const (
	// EventQueue carries a view.Overview.
	EventQueue = "queue"
	// EventChange carries a view.Update.
	EventChange = "change"
)

// stream is one client that watches. It keeps digests of what the client was sent last, to send it only what is new. The sequence number and
// the offset in the id of a batch's last event tell a later connection what the client has seen.
type stream struct {
	queue string
	only  []string
	since uint64
	sent  map[string][sha256.Size]byte
}

// serveEvents sends the state of the queue, and then whatever changes. A client that comes back with
// Last-Event-ID is sent what it missed. The state is sent, not only the steps to it: nothing is lost
// when the gateway it comes back to is another one.
func (h *handler) serveEvents(w http.ResponseWriter, r *http.Request) {
	s := &stream{queue: r.PathValue("queue"), only: r.URL.Query()["change"], sent: map[string][sha256.Size]byte{}}
	if len(s.only) > maxStreamed {
		h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("At most %d changes can be named.", maxStreamed), "Watch the whole queue instead."))
		return
	}
	err := h.read(r, func(q *view.Queue) { s.since = q.Sequence() })
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	end, err := h.beginStream(r, "poll", 0)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	defer end()
	s.resume(h, r.Header.Get("Last-Event-ID"))
	endTurn(r)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	for {
		changed := h.Backend.Changed(s.queue)
		// It is in memory until the client has read it, which is part of the turn.
		var failed error
		if stillAllowed(r) != nil || !h.inTurnOf(r, func() {
			if batch := s.next(h); len(batch) > 0 {
				failed = send(w, batch)
			}
		}) || failed != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			select {
			case <-r.Context().Done():
				return
			case <-time.After(streamPause):
			}
		case <-time.After(streamHeartbeat):
			if send(w, stillHere) != nil {
				return
			}
		}
	}
}

// stillHere is sent now and then.
var stillHere = []byte(": still here\n\n")

// send sends a client a part of a stream.
func send(w http.ResponseWriter, batch []byte) error {
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := w.Write(batch); err != nil {
		return err
	}
	return control.Flush()
}

// resume continues where an earlier connection broke. If that was to another gateway, only the offset in the log means
// the same here: changes that left the queue behind it are sent again.
func (s *stream) resume(h *handler, id string) {
	var boot string
	var sequence uint64
	var offset int64
	if parts := strings.Split(id, "-"); len(parts) == 3 {
		var unread, unplaced error
		sequence, unread = strconv.ParseUint(parts[1], 10, 64)
		offset, unplaced = strconv.ParseInt(parts[2], 10, 64)
		if unread != nil || unplaced != nil {
			return
		}
		boot = parts[0]
	}
	switch boot {
	case "":
		return
	case h.boot:
		s.since = min(s.since, sequence)
	default:
		h.Backend.Read(s.queue, func(q *view.Queue) { s.since = min(s.since, q.After(offset)) })
	}
}

// isNew notes what is sent of a change, or with no change of the queue, and reports whether something else was sent last.
func (s *stream) isNew(change string, text []byte) bool {
	before, now := s.sent[change], sha256.Sum256(text)
	s.sent[change] = now
	return before != now
}

// next returns what is to be sent now, nil if nothing is new.
func (s *stream) next(h *handler) []byte {
	var overview view.Overview
	var updates []view.Update
	var sequence uint64
	var offset int64
	h.Backend.Read(s.queue, func(q *view.Queue) {
		overview, updates, sequence, offset = q.Overview(), q.Since(s.since, s.only), q.Sequence(), q.Offset()
	})
	s.since = sequence
	var out bytes.Buffer
	if text, err := json.Marshal(overview); err == nil && s.isNew("", text) {
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", EventQueue, text)
	}
	for _, u := range updates {
		text, err := json.Marshal(u.Summary)
		if err != nil || !s.isNew(u.Change, text) && len(u.Events) == 0 {
			continue
		}
		if view.Final(u.State) && len(s.only) == 0 {
			delete(s.sent, u.Change)
		}
		if text, err = json.Marshal(u); err == nil {
			fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", EventChange, text)
		}
	}
	if out.Len() == 0 {
		return nil
	}
	// Only the last event of a batch has an id: a client that broke off in the middle gets it again.
	batch := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	return fmt.Appendf(batch, "id: %s-%d-%d\n\n", h.boot, sequence, offset)
}
