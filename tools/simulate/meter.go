package simulate

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// meterEvery is how often progress is shown.
const meterEvery = time.Second

// meter shows the progress of a study on standard error, once it has taken longer than a second.
type meter struct {
	mu    sync.Mutex
	out   io.Writer
	last  time.Time
	shown bool
}

func newMeter(out io.Writer) *meter { return &meter{out: out, last: time.Now()} }

func (m *meter) show(courses, of int, changes, ofChanges int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.last) >= meterEvery {
		m.last, m.shown = now, true
		fmt.Fprintf(m.out, "\r%d of %d courses, %d of %d changes", courses, of, changes, ofChanges)
	}
}

func (m *meter) end() {
	if m.shown {
		fmt.Fprintln(m.out)
	}
}
