package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/services/gateway/view"
)

// Kinds of the parts that a client can watch over one stream.
const (
	PartQueue   = "queue"
	PartChanges = "changes"
	PartChange  = "change"
	PartGraph   = "graph"
	// Of these the value is what their route serves.
	PartFlakes      = "flakes"
	PartQuarantines = "quarantines"
	// Of these the number of changes is watched: the list itself is read from its route.
	PartDeadLetters = "dead-letters"
	PartServices    = "services"
	PartTokens      = "tokens"
	PartModels      = "models"
	PartWhatIf      = "what-if"
)

// partsOfQueues are the parts that a client names by their queue.
var partsOfQueues = []string{PartChanges, PartGraph, PartFlakes, PartQuarantines, PartModels, PartWhatIf}

// Names of the events of that stream.
const (
	// EventState carries a Part as it is.
	EventState = "state"
	// EventPatch carries a Part whose value is a JSON merge patch (RFC 7396) of what was sent before.
	EventPatch = "patch"
)

// maxWatchedParts is how many changes or queues one stream can name.
const maxWatchedParts = 20

// Part is an event of the stream of several queues.
type Part struct {
	// Kind is queue (an Overview), changes (the queue's pending changes and the newest of those that left it, each a Summary by
	// its id), change (a Change without output_tail, null if the queue does not have it), graph (a Graph), flakes (a FlakeList), quarantines (a
	// QuarantineList), or a list that is read from its route: dead-letters, services, tokens (these are of no queue), models or
	// what-if. Of such a list the value is a number, which grows when it changes.
	Kind  string `json:"kind"`
	Queue string `json:"queue"`
	// Change is given for the kind change.
	Change string          `json:"change,omitempty"`
	Value  json.RawMessage `json:"value"`
}

// partKey names a part.
type partKey struct{ kind, queue, change string }

// digest is a short name of the part for the ids of events.
func (k partKey) digest() string {
	hash := fnv.New32a()
	for _, text := range []string{k.kind, k.queue, k.change} {
		hash.Write([]byte(text))
		hash.Write([]byte{0})
	}
	return strconv.FormatUint(uint64(hash.Sum32()), 36)
}

// event returns the bytes of an event about the part.
func (k partKey) event(name string, value json.RawMessage) []byte {
	text, err := json.Marshal(Part{Kind: k.kind, Queue: k.queue, Change: k.change, Value: value})
	if err != nil {
		return nil // a value is always valid JSON
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
}

// place is how far a client has read: of which gateway, up to which patch, and which parts it has.
type place struct {
	boot  string
	seen  uint64
	parts []string
}

func placeOf(id string) (p place) {
	fields := strings.Split(id, "-")
	if len(fields) != 3 {
		return place{}
	}
	seen, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return place{}
	}
	return place{fields[0], seen, strings.Split(fields[2], ".")}
}

func (p place) String() string {
	return fmt.Sprintf("%s-%d-%s", p.boot, p.seen, strings.Join(p.parts, "."))
}

// watchedParts returns the parts that a request names: the overview of every queue, the changes of those that it names, single
// changes, and lists.
func (h *handler) watchedParts(r *http.Request) ([]partKey, error) {
	var keys []partKey
	names := h.readable(r)
	for _, name := range names {
		keys = append(keys, partKey{PartQueue, name, ""})
	}
	query := r.URL.Query()
	named := len(query["change"]) + len(query["list"])
	for _, kind := range partsOfQueues {
		named += len(query[kind])
	}
	if named > maxWatchedParts {
		return nil, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("At most %d parts can be named.", maxWatchedParts), "Open another stream for the others.")
	}
	add := func(k partKey) error {
		if !slices.Contains(names, k.queue) {
			return h.unknownQueue(r, k.queue)
		}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		return nil
	}
	for _, kind := range partsOfQueues {
		for _, name := range query[kind] {
			if err := add(partKey{kind, name, ""}); err != nil {
				return nil, err
			}
		}
	}
	for _, kind := range query["list"] {
		if kind != PartDeadLetters && kind != PartServices && kind != PartTokens {
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%q is not a list.", clipText(kind, 40)), "Lists are dead-letters, services and tokens.")
		}
		// One that the caller may not read is left out: the stream is of all pages of a browser, and goes on when a role is taken back.
		if k := (partKey{kind, "", ""}); h.mayList(askerOf(r), kind) && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for _, text := range query["change"] {
		queue, id, named := strings.Cut(text, "/")
		if !named || id == "" || len(id) > admission.MaxIDBytes {
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), "change is not a queue and a change's id.", "Send change=QUEUE/CHANGE, with the queue first.")
		}
		if err := add(partKey{PartChange, queue, id}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// changesIn counts the single changes among parts.
func changesIn(keys []partKey) (n int) {
	for _, k := range keys {
		if k.kind == PartChange {
			n++
		}
	}
	return n
}

// serveWatch streams several parts over one connection: each as it is, then what changes in it. A client that comes back with
// Last-Event-ID is sent the patches that it missed, or the state of a part where they are not known any more. It may name other
// parts than before.
func (h *handler) serveWatch(w http.ResponseWriter, r *http.Request) {
	if err := h.Backend.Ready(); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	keys, err := h.watchedParts(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	end, err := h.beginStream(r, "poll", changesIn(keys))
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	defer end()
	h.watched.join(keys)
	defer h.watched.leave(keys)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	at := placeOf(r.Header.Get("Last-Event-ID"))
	endTurn(r)
	heartbeat := time.NewTimer(0)
	defer heartbeat.Stop()
	for {
		// It is in memory until the client has read it, which is part of the turn.
		var advanced <-chan struct{}
		var failed error
		if stillAllowed(r) != nil || !h.inTurnOf(r, func() {
			var batch []byte
			if batch, at, advanced = h.watched.next(keys, at); len(batch) > 0 {
				failed = send(w, batch)
				heartbeat.Reset(streamHeartbeat)
			}
		}) || failed != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-advanced:
		case <-heartbeat.C:
			if send(w, stillHere) != nil {
				return
			}
			heartbeat.Reset(streamHeartbeat)
		}
	}
}

// overviewOf returns a queue with its pace up to now.
func overviewOf(q *view.Queue, now time.Time) view.Overview {
	o := q.Overview()
	o.Pace = q.Pace(now)
	return o
}

// mergePatch returns the JSON merge patch that makes after of before, false if they are the same. Neither has a null in an
// object: such a field is left out.
func mergePatch(before, after json.RawMessage) (json.RawMessage, bool) {
	if bytes.Equal(before, after) {
		return nil, false
	}
	var was, is map[string]json.RawMessage
	if !isObject(before) || !isObject(after) || json.Unmarshal(before, &was) != nil || json.Unmarshal(after, &is) != nil {
		return after, true
	}
	patch := map[string]json.RawMessage{}
	for name, value := range is {
		if changed, differs := mergePatch(was[name], value); differs {
			patch[name] = changed
		}
	}
	for name := range was {
		if _, still := is[name]; !still {
			patch[name] = json.RawMessage("null")
		}
	}
	text, err := json.Marshal(patch)
	return text, err == nil && len(patch) > 0
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }
