package api

import (
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// TestTheLastLinesOfALogHaveTheirNumbers: held to splitting all of it, on random logs.
func TestTheLastLinesOfALogHaveTheirNumbers(t *testing.T) {
	random := seedtest.Random(t)
	for range 2000 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(strings.Repeat("x", random.IntN(9)))
			if random.IntN(6) > 0 {
				b.WriteString("\n")
			}
		}
		log := b.String()
		if len(log) < 2 {
			continue
		}
		limit := 1 + random.IntN(len(log)-1)
		from, line := lastLines(strings.NewReader(log), int64(len(log)), int64(limit))
		// The first line that begins within the end, or where none does, the part of the one that reaches into it.
		want := len(log) - limit
		for at := want; at < len(log); at++ {
			if log[at-1] == '\n' {
				want = at
				break
			}
		}
		if int(from) != want || line != 1+strings.Count(log[:want], "\n") {
			t.Fatalf("the last %d bytes of %q begin at %d, line %d; want %d, line %d", limit, log, from, line, want, 1+strings.Count(log[:want], "\n"))
		}
	}
}
