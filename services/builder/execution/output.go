package execution

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// capture takes the output of a step: the first limit bytes go to the log, the
// last TailLimit bytes are kept, everything is counted. Memory stays bounded
// whatever the step prints. Only one goroutine writes.
type capture struct {
	log   io.Writer
	limit int64
	mask  *masker // nil if the step has no secrets
	total int64
	// reports, if it is set, gets what the log would get, without a limit.
	reports io.Writer
	// recent holds the last TailLimit bytes, and up to as many before them, so
	// that most writes need no copy.
	recent []byte

	once   sync.Once
	failed chan struct{} // closed when the log takes no more
	err    error         // why; set before failed is closed
}

func newCapture(log io.Writer, limit int64, secrets []Secret) *capture {
	if log == nil {
		log = io.Discard
	}
	c := &capture{log: log, limit: limit, recent: make([]byte, 0, 2*TailLimit), failed: make(chan struct{})}
	if needles := needlesOf(secrets); len(needles) > 0 {
		c.mask = newMasker(needles, c.take)
	}
	return c
}

// Write never fails: the step's processes must not feel that a log is full or
// broken, or they would fail for it.
func (c *capture) Write(chunk []byte) (int, error) {
	if c.mask != nil {
		c.mask.write(chunk)
	} else {
		c.take(chunk)
	}
	return len(chunk), nil
}

// take takes output that nothing has to be kept out of.
func (c *capture) take(chunk []byte) {
	if c.reports != nil {
		_, _ = c.reports.Write(chunk)
	} else if room := c.limit - c.total; room > 0 {
		c.writeLog(chunk[:min(int64(len(chunk)), room)])
	}
	c.total += int64(len(chunk))
	c.keepRecent(chunk)
}

func (c *capture) writeLog(chunk []byte) {
	if c.failure() != nil || len(chunk) == 0 {
		return
	}
	if _, err := c.log.Write(chunk); err != nil {
		c.once.Do(func() { c.err = err; close(c.failed) })
	}
}

func (c *capture) keepRecent(chunk []byte) {
	if len(chunk) >= TailLimit {
		c.recent = append(c.recent[:0], chunk[len(chunk)-TailLimit:]...)
		return
	}
	if len(c.recent)+len(chunk) > cap(c.recent) {
		kept := copy(c.recent, c.recent[len(c.recent)-TailLimit:])
		c.recent = c.recent[:kept]
	}
	c.recent = append(c.recent, chunk...)
}

func (c *capture) lastBytes() []byte {
	return c.recent[max(0, len(c.recent)-TailLimit):]
}

func (c *capture) truncated() bool { return c.total > c.limit }

// finish gives the log the end of an output that was longer than the limit:
// that is where the error stands.
func (c *capture) finish() {
	if c.mask != nil {
		c.mask.flush()
	}
	if !c.truncated() || c.reports != nil {
		return
	}
	end := c.lastBytes()
	if beyond := c.total - c.limit; int64(len(end)) > beyond {
		end = end[int64(len(end))-beyond:]
	}
	if left := c.total - c.limit - int64(len(end)); left > 0 {
		c.writeLog(fmt.Appendf(nil, "\n[%d bytes left out: the output limit is %d bytes]\n", left, c.limit))
	}
	c.writeLog(end)
}

// failure returns why the log takes no more, or nil.
func (c *capture) failure() error {
	select {
	case <-c.failed:
		return c.err
	default:
		return nil
	}
}

// tail returns the end of the output as text: a rune that the cut split is
// dropped, bytes that are no UTF-8 become U+FFFD.
func (c *capture) tail() []byte {
	end := c.lastBytes()
	if c.total > int64(len(end)) {
		for i := 0; i < utf8.UTFMax-1 && len(end) > 0 && !utf8.RuneStart(end[0]); i++ {
			end = end[1:]
		}
	}
	text := bytes.ToValidUTF8(end, []byte("\uFFFD"))
	if len(text) > TailLimit {
		text = text[len(text)-TailLimit:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return bytes.Clone(text)
}
