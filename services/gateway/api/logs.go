package api

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/platform/retention"
	"landfall.build/platform/steplog"
	"landfall.build/services/gateway/view"
)

// Headers of a log: which run it is of, and whether it is everything that the run printed.
const (
	HeaderTarget   = "X-Landfall-Target"
	HeaderHash     = "X-Landfall-Hash"
	HeaderAttempt  = "X-Landfall-Attempt"
	HeaderOutcome  = "X-Landfall-Outcome"
	HeaderComplete = "X-Landfall-Complete"
	// HeaderLine is the number of the first line that is sent, from 1, where earlier ones are left out by limit and are not too many to count.
	HeaderLine = "X-Landfall-Line"
	// HeaderDeleted is present if the complete log was deleted: when, and by which bound of the configuration's retention.
	HeaderDeleted = "X-Landfall-Deleted"
	// HeaderWith is present if the run was in a build with other changes, and neither proves the landing nor is at fault: it
	// names them.
	HeaderWith = "X-Landfall-With"
)

// serveLogs serves the output of one run of a step of a change at its present revision: by default of what is shown as its
// fault, else of one that did not pass. Without a change it is of one that made a target of the mainline red. The complete log where
// the store has it, else the end of it from the event. Ranges are served. Of a step that runs it is what there is so far, or, if it is
// followed, all until it has finished.
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
	attempt = h.storedAs(r.PathValue("queue"), attempt)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(HeaderTarget, headerText(attempt.Target))
	w.Header().Set(HeaderHash, headerText(attempt.Hash))
	w.Header().Set(HeaderAttempt, strconv.FormatUint(uint64(attempt.Number), 10))
	w.Header().Set(HeaderOutcome, attempt.Outcome)
	if len(attempt.With) > 0 {
		w.Header().Set(HeaderWith, headerText(clipText(strings.Join(attempt.With, ", "), 300)))
	}
	if attempt.Outcome == view.StepRunning && query.Get("follow") == "true" {
		h.followLog(w, r, attempt, numbers["limit"])
		return
	}
	// A reader that takes its time keeps a file open.
	end, err := h.beginLog(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	defer end()
	content, complete, done := h.openLog(attempt)
	defer done()
	w.Header().Set(HeaderComplete, strconv.FormatBool(complete))
	if deletion, was := h.deletionOf(attempt); was && !complete {
		w.Header().Set(HeaderDeleted, headerText(deletion.String()))
	}
	if size := content.Size(); numbers["limit"] > 0 && numbers["limit"] < size {
		from, line := lastLines(content, size, numbers["limit"])
		content = io.NewSectionReader(content, from, size-from)
		w.Header().Set(HeaderComplete, "false")
		if complete && line > 0 {
			w.Header().Set(HeaderLine, strconv.Itoa(line))
		}
	}
	// A long log over a slow line takes longer than other answers.
	endTurn(r)
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(10 * writeTimeout))
	http.ServeContent(w, r, "", time.Time{}, content)
}

// chooseAttempt returns the first run that is of all that was asked for; step is the command that failed in it. One that has not finished
// is only meant if its target is named.
func chooseAttempt(attempts []view.Attempt, target, hash, step string, number uint32) (view.Attempt, error) {
	known := map[string]bool{}
	var names []string
	for _, a := range attempts {
		if a.Outcome == view.StepRunning && target == "" {
			continue
		}
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
	message := "No such step has finished, or its output is forgotten."
	if step != "" {
		message = fmt.Sprintf("No step has failed in the command %q, or its output is forgotten.", clipText(step, admission.MaxIDBytes))
	}
	return view.Attempt{}, fail(http.StatusNotFound, codeNoLog, message, advice)
}

// mostCounted bounds how much of a log is read to count its lines, in bytes.
const mostCounted = 64 << 20

// lastLines returns where the last lines begin that fit into limit bytes of a log of a size, and the number of the first of them, from 1; 0
// if too much comes before. A last line that is longer is cut.
func lastLines(log io.ReaderAt, size, limit int64) (from int64, line int) {
	from = size - limit
	ends := from - 1 // of a line, perhaps
	text := bufio.NewReaderSize(io.NewSectionReader(log, ends, size-ends), 64<<10)
	for at := ends; ; {
		part, err := text.ReadSlice('\n')
		if at += int64(len(part)); err == nil && at < size {
			from = at
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if from > mostCounted {
		return from, 0
	}
	before, buffer := io.NewSectionReader(log, 0, from), make([]byte, 64<<10)
	for line = 1; ; {
		n, err := before.Read(buffer)
		if line += bytes.Count(buffer[:n], []byte("\n")); err != nil {
			return from, line
		}
	}
}

// openLog returns the complete log, or else the end that the event carries.
func (h *handler) openLog(a view.Attempt) (content *io.SectionReader, complete bool, done func()) {
	if file, size := h.openStored(a.Log); file != nil {
		return io.NewSectionReader(file, 0, size), a.Outcome != view.StepRunning, func() { file.Close() }
	}
	return io.NewSectionReader(bytes.NewReader(a.Tail), 0, int64(len(a.Tail))), a.Outcome != view.StepRunning && int64(len(a.Tail)) >= a.Bytes, func() {}
}

// openStored opens a log of the store; nil if the store does not have it.
func (h *handler) openStored(name string) (file *os.File, size int64) {
	if h.logs == nil || name == "" {
		return nil, 0
	}
	// The root keeps a name that a log record carries from reaching anything outside the store.
	file, err := h.logs.Open(name)
	if err == nil {
		if info, serr := file.Stat(); serr == nil && info.Mode().IsRegular() {
			return file, info.Size()
		}
		file.Close()
	} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrInvalid) {
		h.Log.Warn("a step's log cannot be read; its end is shown", "log", name, "error", err)
	}
	return nil, 0
}

// storedAs returns a run with the name of its log, which follows from the lease of one that has not finished.
func (h *handler) storedAs(queue string, a view.Attempt) view.Attempt {
	if a.Outcome == view.StepRunning {
		a.Log = steplog.Name(steplog.Run{Log: h.LogID, Queue: queue, Target: a.Target, Hash: a.Hash, Attempt: a.Number, Lease: a.Lease})
	}
	return a
}

const (
	// followPause is between two looks at the log of a step that runs.
	followPause = 200 * time.Millisecond
	// lapsed is how long after the end of its lease a step counts as one that nobody runs.
	lapsed = time.Minute
)

// followLog sends what a step that runs has printed, the last limit bytes if that is above 0, and then what it prints until it has
// finished. Where the store does not have its log, it sends the end of the output once that is known.
func (h *handler) followLog(w http.ResponseWriter, r *http.Request, a view.Attempt, limit int64) {
	end, err := h.beginStream(r, "without follow", 0)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	defer end()
	endTurn(r)
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	var log io.Reader
	for {
		if stillAllowed(r) != nil {
			return
		}
		// Whether it runs is asked before its log is read: once it does not, all of it is there.
		now, running := h.newest(r.PathValue("queue"), a)
		if log == nil {
			switch file, size := h.openStored(now.Log); {
			case file != nil:
				defer file.Close()
				var from int64
				if limit > 0 && limit < size {
					line := 0
					if from, line = lastLines(file, size, limit); line > 0 {
						w.Header().Set(HeaderLine, strconv.Itoa(line))
					}
				}
				w.Header().Set(HeaderComplete, strconv.FormatBool(from == 0))
				log = io.NewSectionReader(file, from, math.MaxInt64-from)
			case !running:
				w.Header().Set(HeaderComplete, strconv.FormatBool(int64(len(now.Tail)) >= now.Bytes))
				log = bytes.NewReader(now.Tail)
			}
		}
		control.SetWriteDeadline(time.Now().Add(10 * writeTimeout))
		if log != nil {
			if _, err := io.Copy(w, log); err != nil {
				return
			}
		}
		if control.Flush() != nil || !running {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(followPause):
		}
	}
}

// newest returns a run as it is now, and reports whether it goes on.
func (h *handler) newest(queue string, a view.Attempt) (now view.Attempt, running bool) {
	h.Backend.Read(queue, func(q *view.Queue) { now, _ = q.Run(a.Target, a.Hash, a.Number) })
	return h.storedAs(queue, now), now.Outcome == view.StepRunning && now.Lease == a.Lease && h.Clock().Before(now.Until.Add(lapsed))
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
