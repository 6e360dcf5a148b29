package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"landfall.build/services/gateway/view"
)

func watchCommand() *cobra.Command {
	cmd, _ := command("watch [CHANGE...]", "Follow changes, or the whole queue, until they have landed or left it",
		`Follow changes until all of them have landed or left the queue; without a CHANGE, the whole queue until
interrupted. On a terminal a live table, otherwise a line for each event and each state that lasts. With --json one JSON value at the
end; without a CHANGE, one JSON value a line for each update of a change.
Exit codes: 0 all landed, 1 one was rejected, 2 one was ejected or cancelled, or landed and was dropped by a
force-push, 3 watching failed.`,
		nil, func(ctx context.Context, s *session, changes []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			for _, change := range changes {
				if _, err := s.client.Change(ctx, s.queue, change); err != nil {
					return err
				}
			}
			w := newWatcher(s, changes)
			err := w.run(ctx)
			switch {
			case errors.Is(err, context.Canceled) && len(changes) == 0:
				return nil // watching a whole queue ends this way
			case errors.Is(err, context.Canceled):
				return errors.New("interrupted before all of the changes had ended")
			case err != nil:
				return err
			}
			if s.asJSON {
				if err := s.print(watched{Changes: w.summaries(), Exit: w.exit()}); err != nil {
					return err
				}
			}
			return w.ended()
		})
	return cmd
}

// watched is what watch prints as JSON once everything is decided.
type watched struct {
	Changes []view.Summary `json:"changes"`
	Exit    int            `json:"exit"`
}

// watcher follows changes until all of them have left the queue; if none is named, the whole queue, until interrupted.
type watcher struct {
	session *session
	only    []string
	// from is, by change, the first revision whose end counts.
	from map[string]uint64
	// mu guards what follows: a ticker draws and prints too.
	mu    sync.Mutex
	queue *view.Overview
	last  map[string]view.Update
	told  map[string]*told
	// faults are the changes whose failure the lines have told.
	faults map[string]bool
	// table is set if the screen can be redrawn in place.
	table *screen
	// lines is where events are written otherwise; encoder writes each update as JSON.
	lines   io.Writer
	encoder *json.Encoder
}

func newWatcher(s *session, only []string) *watcher {
	w := &watcher{session: s, only: only, last: map[string]view.Update{}, told: map[string]*told{}, faults: map[string]bool{}, lines: s.out}
	if s.asJSON {
		w.lines = s.progress
		if len(only) == 0 {
			w.encoder = json.NewEncoder(s.out)
			w.encoder.SetEscapeHTML(false)
		}
	} else if f, is := s.out.(*os.File); is && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		w.table = &screen{out: f, size: func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil || width < 1 || height < 1 { // some terminals do not know
				return 80, 24
			}
			return width, height
		}}
	}
	return w
}

func (w *watcher) run(ctx context.Context) error {
	var failed error
	defer w.keepTold()()
	err := w.session.client.Events(ctx, w.session.queue, w.only, func(s Seen) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case s.Queue != nil:
			w.queue = s.Queue
		case s.Change != nil:
			before, known := w.last[s.Change.Change]
			w.last[s.Change.Change] = *s.Change
			if w.encoder != nil {
				failed = w.encoder.Encode(s.Change)
			} else if w.table == nil {
				w.printEvents(*s.Change, before, known)
			}
			if view.Final(s.Change.State) && len(w.only) == 0 {
				w.forgetOldest()
			}
		}
		if w.table != nil {
			w.table.draw(w.rows())
		}
		return failed != nil || w.done()
	})
	return errors.Join(failed, err)
}

func (w *watcher) done() bool {
	if len(w.only) == 0 {
		return false
	}
	for _, id := range w.only {
		c, known := w.last[id]
		if !known || !view.Final(c.State) || c.Revision < w.from[id] {
			return false
		}
	}
	return true
}

// printEvents prints what is new about a change, a line for each event. A failure that it left for is told in the author's words,
// with the decisive lines, in the place of the event.
func (w *watcher) printEvents(now, before view.Update, known bool) {
	failed := now.Failure != nil && view.Final(now.State)
	for _, e := range now.Events {
		if failed && e.Kind == now.State {
			w.printFault(e.At, now.Summary)
			continue
		}
		w.printLine(e.At, now.Change, e.Text)
	}
	printed := len(now.Events) == 0 && (!known || before.State != now.State)
	switch {
	case !printed:
	case failed:
		w.printFault(now.FinishedAt, now.Summary)
	case view.Final(now.State):
		text := now.Why
		if !strings.HasPrefix(strings.ToLower(text), now.State) { // unlike "Landed as …"
			text = now.State + ": " + text
		}
		w.printLine(time.Now(), now.Change, text)
	default:
		w.printState(now.Summary)
	}
	w.note(now.Summary, printed)
}

// printFault prints how a change ended that failed, with the decisive lines.
func (w *watcher) printFault(at time.Time, s view.Summary) {
	w.printLine(at, s.Change, strings.ToUpper(s.State[:1])+s.State[1:]+": "+s.Failure.Sentence+".")
	for i, line := range s.Failure.Lines {
		if i > 0 && !strings.Contains(s.Failure.Sentence, line) { // the first is in the sentence
			fmt.Fprintf(w.lines, "%*s%s\n", len("15:04:05  "), "", Plain(line))
		}
	}
	w.faults[s.Change] = true
}

func (w *watcher) summaries() []view.Summary {
	out := make([]view.Summary, 0, len(w.only))
	for _, id := range w.only {
		out = append(out, w.last[id].Summary)
	}
	return out
}

func (w *watcher) exit() int {
	code := ExitLanded
	for _, id := range w.only {
		switch exitOf(w.last[id].State) {
		case ExitRejected:
			return ExitRejected
		case ExitLeft:
			code = ExitLeft
		}
	}
	return code
}

// exitOf returns the exit code for a change in a state; ExitLanded while it is pending.
func exitOf(state string) int {
	switch state {
	case view.StateRejected:
		return ExitRejected
	case view.StateEjected, view.StateCancelled, view.StateDropped:
		return ExitLeft
	}
	return ExitLanded
}

// ended prints what failed of the changes that were watched, unless a line has told it, and returns how they ended.
func (w *watcher) ended() error {
	for _, id := range w.only {
		if !w.faults[id] {
			writeFault(w.lines, w.last[id].Summary)
		}
	}
	if code := w.exit(); code != 0 {
		return outcome{code}
	}
	return nil
}

const keptFinishedRows = 10

// forgetOldest keeps the last few changes that are out of the queue on the screen.
func (w *watcher) forgetOldest() {
	var finished []view.Update
	for _, u := range w.last {
		if view.Final(u.State) {
			finished = append(finished, u)
		}
	}
	slices.SortFunc(finished, func(a, b view.Update) int { return a.FinishedAt.Compare(b.FinishedAt) })
	for len(finished) > keptFinishedRows {
		delete(w.last, finished[0].Change)
		finished = finished[1:]
	}
}

func (w *watcher) rows() []string {
	var all []view.Summary
	for _, u := range w.last {
		all = append(all, u.Summary)
	}
	slices.SortFunc(all, func(a, b view.Summary) int {
		if view.Final(a.State) != view.Final(b.State) {
			if view.Final(a.State) {
				return -1
			}
			return 1
		}
		if c := a.FinishedAt.Compare(b.FinishedAt); c != 0 {
			return c
		}
		if a.Position != b.Position {
			return a.Position - b.Position
		}
		return strings.Compare(a.Change, b.Change)
	})
	rows := []string{}
	if w.queue != nil {
		rows = append(rows, queueLine(*w.queue, clock()))
	}
	return append(rows, table(all, clock())...)
}

// screen redraws its lines in place.
type screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn int
	last  string
}

func (s *screen) draw(rows []string) {
	width, height := s.size()
	if most := max(1, height-1); len(rows) > most {
		hidden := len(rows) - most + 1
		rows = append(slices.Clone(rows[:most-1]), fmt.Sprintf("… and %d more", hidden))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, row := range rows {
		b.WriteString("\r\x1b[K" + cut(row, width-1) + "\n")
	}
	b.WriteString("\x1b[J")
	if text := b.String(); len(rows) != s.drawn || text != s.last {
		s.drawn, s.last = len(rows), text
		io.WriteString(s.out, text)
	}
}

func cut(row string, width int) string {
	if runes := []rune(row); len(runes) > width && width > 1 {
		return string(runes[:width-1]) + "…"
	}
	return row
}
