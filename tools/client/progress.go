package client

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"landfall.build/services/gateway/view"
)

// Whoever waits longer than a second reads what for. Variables are for tests.
var (
	// slowAnswer is how long the gateway may take to answer before that is said.
	slowAnswer = time.Second
	// settled is how long a change must be in a state before a line says so: what passes at once is in its events.
	settled = time.Second
	// tick is how often a live table is drawn again, and lines are looked for.
	tick = 250 * time.Millisecond
)

// stepsPause is the least time between two lines about a change that differ in numbers alone.
const stepsPause = 30 * time.Second

// slowly prints that an answer is waited for if do takes longer than slowAnswer. It does so once for each client.
func (c *Client) slowly(do func()) {
	if c.progress == nil {
		do()
		return
	}
	said := make(chan struct{})
	timer := time.AfterFunc(slowAnswer, func() {
		defer close(said)
		c.told.Do(func() { fmt.Fprintf(c.progress, "waiting for %s, which has not answered yet\n", c.server) })
	})
	do()
	if !timer.Stop() {
		<-said
	}
}

// told holds what a watcher has printed about a pending change.
type told struct {
	// state is the last state that was printed, without its numbers; steps were done then, at that time.
	state string
	steps int
	at    time.Time
	// now is the present state without its numbers, and since is when it was first seen.
	now   string
	since time.Time
}

var numbers = regexp.MustCompile(`\d+`)

// stateOf returns what a change waits for, without its numbers.
func stateOf(s view.Summary) string { return s.State + ": " + numbers.ReplaceAllString(s.Why, "") }

// note takes the newest state of a change. printed reports whether a line says it already.
func (w *watcher) note(s view.Summary, printed bool) {
	if view.Final(s.State) {
		delete(w.told, s.Change)
		return
	}
	t := w.told[s.Change]
	if t == nil {
		t = &told{}
		w.told[s.Change] = t
	}
	now := clock()
	if state := stateOf(s); state != t.now {
		t.now, t.since = state, now
	}
	if printed {
		t.state, t.steps, t.at = t.now, s.StepsDone, now
	}
}

// printStates prints a line for each change whose state is another than the last line said, once it has lasted; and now and then
// how many of its steps are done.
func (w *watcher) printStates(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(w.told)) {
		t, s := w.told[id], w.last[id].Summary
		if t.now == t.state && (s.StepsDone == t.steps || now.Sub(t.at) < stepsPause) || now.Sub(t.since) < settled {
			continue
		}
		w.printState(s)
		t.state, t.steps, t.at = t.now, s.StepsDone, now
	}
}

// printState prints the state of a change, what it waits for, and the estimate if there is one that says something.
func (w *watcher) printState(s view.Summary) {
	w.printLine(time.Now(), s.Change, s.State+": "+s.Why+decided(s.ETA, clock()))
}

func (w *watcher) printLine(at time.Time, change, text string) {
	fmt.Fprintf(w.lines, "%s  %-24s %s\n", at.Local().Format(time.TimeOnly), Plain(change), Plain(text))
}

// keepTold draws or prints what changes with the time alone, until stop is called.
func (w *watcher) keepTold() (stop func()) {
	if w.encoder != nil {
		return func() {}
	}
	over := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			w.mu.Lock()
			if w.table == nil {
				w.printStates(clock())
			} else if w.queue != nil {
				w.table.draw(w.rows())
			}
			w.mu.Unlock()
		}
	})
	return func() {
		close(over)
		running.Wait()
	}
}
