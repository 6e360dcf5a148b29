package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/platform/retention"
	"landfall.build/services/gateway/view"
)

// Headers of a log: which run it is of, and whether it is everything that the run printed.
const (
	HeaderTarget   = "X-Landfall-Target"
	HeaderHash     = "X-Landfall-Hash"
	HeaderAttempt  = "X-Landfall-Attempt"
	HeaderOutcome  = "X-Landfall-Outcome"
	HeaderComplete = "X-Landfall-Complete"
	// HeaderDeleted is present if the complete log was deleted: when, and by which bound of the configuration's retention.
	HeaderDeleted = "X-Landfall-Deleted"
)

// serveLogs serves the output of one run of a step of a change at its present revision: by default of what is shown as its
// fault, else of one that did not pass. Without a change it is of one that made a target of the mainline red. The complete log where the store has it, else the end of it from the event. Ranges are served.
func (h *handler) serveLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	numbers := map[string]int64{"attempt": 0, "revision": 0, "limit": 0}
	var err error
	for name := range numbers {
		text := query.Get(name)
		if text == "" {
			continue
		}
		most := 63
		if name == "attempt" {
			most = 32
		}
		number, err := strconv.ParseUint(text, 10, most)
		if err != nil || number == 0 {
			h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), name+" is not a number from 1.", "Correct it or leave it out."))
			return
		}
		numbers[name] = int64(number)
	}
	var attempts []view.Attempt
	var missing error
	err = h.read(r, func(q *view.Queue) {
		if r.PathValue("change") == "" {
			attempts = q.MainlineAttempts()
			return
		}
		var known bool
		attempts, known = q.Attempts(r.PathValue("change"), uint64(numbers["revision"]))
		switch a := q.Admission(r.PathValue("change")); {
		case known:
		case a == nil:
			missing = unknownChange(r.PathValue("queue"), r.PathValue("change"))
		default:
			missing = fail(http.StatusNotFound, codeNoLog, fmt.Sprintf("The change has no revision %d; its newest is %d.", numbers["revision"], a.Revision),
				"Leave the revision out for the newest.")
		}
	})
	if err = cmp.Or(err, missing); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	attempt, err := chooseAttempt(attempts, query.Get("target"), query.Get("hash"), query.Get("step"), uint32(numbers["attempt"]))
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	content, complete, done := h.openLog(attempt)
	defer done()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(HeaderTarget, headerText(attempt.Target))
	w.Header().Set(HeaderHash, headerText(attempt.Hash))
	w.Header().Set(HeaderAttempt, strconv.FormatUint(uint64(attempt.Number), 10))
	w.Header().Set(HeaderOutcome, attempt.Outcome)
	w.Header().Set(HeaderComplete, strconv.FormatBool(complete))
	if deletion, was := h.deletionOf(attempt); was && !complete {
		w.Header().Set(HeaderDeleted, headerText(deletion.String()))
	}
	if size, limit := content.Size(), numbers["limit"]; limit > 0 && limit < size {
		content = io.NewSectionReader(content, size-limit, limit)
		w.Header().Set(HeaderComplete, "false")
	}
	// A long log over a slow line takes longer than other answers.
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * writeTimeout))
	http.ServeContent(w, r, "", time.Time{}, content)
}

// chooseAttempt returns the first run that is of all that was asked for; step is the command that failed in it.
func chooseAttempt(attempts []view.Attempt, target, hash, step string, number uint32) (view.Attempt, error) {
	known := map[string]bool{}
	var names []string
	for _, a := range attempts {
		if (target == "" || a.Target == target) && (hash == "" || strings.HasPrefix(a.Hash, hash)) && (step == "" || a.Step == step) && (number == 0 || a.Number == number) {
			return a, nil
		}
		name := a.Target
		if step != "" && a.Step != "" {
			name += " (failed in " + a.Step + ")"
		}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	advice := "Steps that have finished are of: " + clipText(strings.Join(names, ", "), 500) + "."
	if len(names) == 0 {
		advice = "No step of it has finished yet, or what was needed had been proven before."
	}
	return view.Attempt{}, fail(http.StatusNotFound, codeNoLog, "No such step has finished, or its output is forgotten.", advice)
}

// openLog returns the complete log, or else the end that the event carries.
func (h *handler) openLog(a view.Attempt) (content *io.SectionReader, complete bool, done func()) {
	if h.logs != nil && a.Log != "" {
		// The root keeps a name that a log record carries from reaching anything outside the store.
		file, err := h.logs.Open(a.Log)
		if err == nil {
			if info, serr := file.Stat(); serr == nil && info.Mode().IsRegular() {
				return io.NewSectionReader(file, 0, info.Size()), true, func() { file.Close() }
			}
			file.Close()
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrInvalid) {
			h.Log.Warn("a step's log cannot be read; its end is shown", "log", a.Log, "error", err)
		}
	}
	return io.NewSectionReader(bytes.NewReader(a.Tail), 0, int64(len(a.Tail))), int64(len(a.Tail)) >= a.Bytes, func() {}
}

// deletionOf returns when the complete log of an attempt was deleted, and why.
func (h *handler) deletionOf(a view.Attempt) (d retention.Deletion, was bool) {
	if h.logs == nil || a.Log == "" {
		return d, false
	}
	file, err := h.logs.Open(path.Join(path.Dir(a.Log), retention.DeletionsFile))
	if err != nil {
		return d, false
	}
	defer file.Close()
	return retention.FindDeletion(file, path.Base(a.Log))
}

// headerText makes a target's name fit for a header.
func headerText(text string) string {
	return strings.Trim(fmt.Sprintf("%q", text), `"`)
}
