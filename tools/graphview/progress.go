package graphview

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

// progress shows what is being done while it takes long: on a terminal in a line drawn again in place,
// elsewhere in a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	stop     chan struct{}
	stopped  chan struct{}

	mu          sync.Mutex
	what        string
	done, total int
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, stop: make(chan struct{}), stopped: make(chan struct{})}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		p.terminal = true
	}
	go p.show()
	return p
}

// begin shows what comes next. Without a total there is no count.
func (p *progress) begin(what string, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.done, p.total = what, 0, total
}

func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return p.what + " …"
	}
	return fmt.Sprintf("%d of %d %s", p.done, p.total, p.what)
}

func (p *progress) show() {
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

// end stops telling and removes the line from the terminal.
func (p *progress) end() {
	close(p.stop)
	<-p.stopped
}
