// Package display shows a demo while it runs, and prints afterwards what happened and why. On a terminal it
// is a table drawn again in place, otherwise a line for each event.
package display

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
)

const (
	// refresh is how often the table is drawn again, at most.
	refresh = 100 * time.Millisecond
	// recent is how many of the last events stand under the table.
	recent = 6
)

// Live shows progress. Its methods may be called by several goroutines.
type Live struct {
	out   io.Writer
	total int
	begun time.Time
	// size is the terminal's, nil where there is none.
	size func() (width, height int)

	mu      sync.Mutex
	phase   string
	queue   view.Overview
	changes map[string]view.Summary
	events  []string
	drawn   int
	dirty   bool
	stop    chan struct{}
	stopped sync.WaitGroup
}

// NewLive shows progress on a writer, which may be a terminal.
func NewLive(out io.Writer) *Live {
	l := &Live{out: out, begun: time.Now(), changes: map[string]view.Summary{}, stop: make(chan struct{})}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		l.size = func() (int, int) {
			width, height, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
		l.stopped.Go(l.redraw)
	}
	return l
}

// Phase prints what begins.
func (l *Live) Phase(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprintf(l.out, "%s  %s\n", l.clock(), text)
	l.phase = text
}

// Expect sets how many changes there will be.
func (l *Live) Expect(changes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total = changes
}

// Note shows a sentence among the events.
func (l *Live) Note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.event("", text)
}

// Seen folds what the gateway sent.
func (l *Live) Seen(seen client.Seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	if seen.Queue != nil {
		l.queue = *seen.Queue
		return
	}
	u := seen.Change
	l.changes[u.Change] = u.Summary
	for _, e := range u.Events {
		if printed[e.Kind] {
			l.event(u.Change, e.Text)
		}
	}
}

// printed are the kinds of events that get a line: not every admission, analysis and build.
var printed = map[string]bool{
	view.StateLanded: true, view.StateRejected: true, view.StateEjected: true, view.StateCancelled: true, view.StateDropped: true,
	"moved": true, "revised": true, "refused": true, "land_void": true,
}

func (l *Live) event(change, text string) {
	line := l.clock() + "  " + clean(text)
	if change != "" {
		line = fmt.Sprintf("%s  %-30s %s", l.clock(), clean(change), clean(text))
	}
	if l.size == nil {
		fmt.Fprintln(l.out, line)
		return
	}
	if l.events = append(l.events, line); len(l.events) > recent {
		l.events = l.events[1:]
	}
	l.dirty = true
}

func (l *Live) clock() string { return fmt.Sprintf("%5.1fs", time.Since(l.begun).Seconds()) }

// Pause removes the table, so that others may write; the next event draws it again.
func (l *Live) Pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.changes, l.events, l.queue = map[string]view.Summary{}, nil, view.Overview{}
}

// End removes the table.
func (l *Live) End() {
	l.mu.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	l.stopped.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *Live) redraw() {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(refresh):
		}
		l.mu.Lock()
		if l.dirty {
			l.dirty = false
			l.draw()
		}
		l.mu.Unlock()
	}
}

func (l *Live) erase() {
	if l.drawn > 0 {
		fmt.Fprintf(l.out, "\x1b[%dA\r\x1b[J", l.drawn)
		l.drawn = 0
	}
	l.dirty = false
}

func (l *Live) draw() {
	width, height := l.size()
	rows := l.rows(max(4, height-recent-5))
	if len(l.events) > 0 {
		rows = append(append(rows, ""), l.events...)
	}
	rows = rows[:min(len(rows), max(1, height-1))]
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	for _, row := range rows {
		b.WriteString("\r\x1b[K" + cut(row, width-1) + "\n")
	}
	b.WriteString("\x1b[J")
	l.drawn = len(rows)
	io.WriteString(l.out, b.String())
}

func cut(row string, width int) string {
	if runes := []rune(row); len(runes) > width && width > 1 {
		return string(runes[:width-1]) + "…"
	}
	return row
}

// clean keeps what people and steps write from steering a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
