// Package progress tells people on standard error what a command is doing while that takes long.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// What is fast is silent: the first line comes after firstAfter.
const (
	firstAfter = time.Second
	onTerminal = 200 * time.Millisecond
	otherwise  = 5 * time.Second
)

// Progress shows what is being done while it takes long: on a terminal in a line drawn again in place,
// elsewhere in a line now and then.
type Progress struct {
	out      io.Writer
	terminal bool
	stop     chan struct{}
	stopped  chan struct{}

	mu          sync.Mutex
	what        string
	done, total int
}

// New begins to tell, until End. What is to be told is said by Begin.
func New(out io.Writer) *Progress {
	p := &Progress{out: out, stop: make(chan struct{}), stopped: make(chan struct{})}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.terminal = true
	}
	go p.show()
	return p
}

// Begin says what comes next, as in "fetching shop". Where total is above 0 it is how many of it there are ("changes analysed"), and Step counts
// them. It may be called from several goroutines.
func (p *Progress) Begin(what string, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.done, p.total = what, 0, total
}

// Step counts one.
func (p *Progress) Step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

func (p *Progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return p.what + " …"
	}
	return fmt.Sprintf("%d of %d %s", p.done, p.total, p.what)
}

func (p *Progress) show() {
	defer close(p.stopped)
	pause, drawn := firstAfter, false
	for {
		select {
		case <-time.After(pause):
		case <-p.stop:
			if drawn {
				fmt.Fprint(p.out, "\r\x1b[K")
			}
			return
		}
		if p.terminal {
			fmt.Fprintf(p.out, "\r\x1b[K%s", p.line())
			pause, drawn = onTerminal, true
		} else {
			fmt.Fprintln(p.out, p.line())
			pause = otherwise
		}
	}
}

// End stops telling and removes the line from the terminal.
func (p *Progress) End() {
	close(p.stop)
	<-p.stopped
}
