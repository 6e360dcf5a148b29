package journaltest

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// inParts returns a record in three parts, as a writer writes it.
func inParts(t *testing.T, id string, change func(*events.Envelope)) []journal.Record {
	t.Helper()
	e := event(id, 2*events.MaxRecordBytes+100)
	if change != nil {
		change(&e)
	}
	records, err := journal.RecordsOf("", 0, e)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 3 {
		t.Fatalf("%d parts, want 3", len(records))
	}
	return records
}

var parts = []claim{
	{"a record of 1.5 MiB is one entry at the offset of its last part", func(t *testing.T, p partition) {
		big := event("big", 3<<19)
		p.append(numbered(0))
		last := p.append(big)[0]
		p.append(numbered(1))
		if p.end() != last+2 || last < p.base+3 {
			t.Fatalf("the large record ends at %d, the end is %d", last-p.base, p.end()-p.base)
		}
		c := p.follow(p.base)
		p.expect(c, p.base, numbered(0).ID)
		e := p.expect(c, last, "big")
		if !proto.Equal(e.Message, big.Message) {
			t.Error("it came back different")
		}
		if e.Part != 0 || e.Parts != 0 {
			t.Errorf("the whole record claims to be part %d/%d", e.Part, e.Parts)
		}
		p.expect(c, last+1, numbered(1).ID)
	}},
	{"a reader that starts between the parts of a record gets it", func(t *testing.T, p partition) {
		r := inParts(t, "big", nil)
		one := inParts(t, "other", nil)[0] // stands for other writers in between
		p.write(r[0], one, r[1], r[2])
		p.append(numbered(0))
		for from := p.base; from <= p.base+3; from++ {
			c := p.follow(from)
			p.expect(c, p.base+3, "big")
			p.expect(c, p.base+4, numbered(0).ID)
			c.Close()
		}
		p.expect(p.follow(p.base+4), p.base+4, numbered(0).ID)
	}},
	{"records of two writers may have their parts between one another", func(t *testing.T, p partition) {
		a := inParts(t, "same", nil)
		b := inParts(t, "same", func(e *events.Envelope) { e.Instance = "b2" })
		p.write(a[0], b[0], b[1], a[1], a[2], b[2])
		c := p.follow(p.base)
		if e := p.expect(c, p.base+4, "same"); e.Instance != "b1" {
			t.Errorf("the first to be whole is of %s", e.Instance)
		}
		if e := p.expect(c, p.base+5, "same"); e.Instance != "b2" {
			t.Errorf("the second to be whole is of %s", e.Instance)
		}
	}},
	{"torn records are dropped", func(t *testing.T, p partition) {
		term := func(n int64) func(*events.Envelope) { return func(e *events.Envelope) { e.Term = n } }
		first := inParts(t, "no-first", nil)
		middle := inParts(t, "no-middle", nil)
		last := inParts(t, "no-last", nil)
		early, late := inParts(t, "two-terms", term(5)), inParts(t, "two-terms", term(6))
		swapped := inParts(t, "swapped", nil)
		p.write(first[1], first[2], middle[0], middle[2], last[0], last[1], early[0], late[1], early[1], late[2],
			swapped[1], swapped[0], swapped[2])
		p.append(numbered(0))
		p.expect(p.follow(p.base), p.base+13, numbered(0).ID)
	}},
	{"a record begun again counts once", func(t *testing.T, p partition) {
		r := inParts(t, "big", nil)
		p.write(r[0], r[1], r[0], r[1], r[2])
		p.append(numbered(0))
		c := p.follow(p.base)
		p.expect(c, p.base+4, "big")
		p.expect(c, p.base+5, numbered(0).ID)
	}},
	{"parts that a producer repeated after a crash of the broker do no harm", func(t *testing.T, p partition) {
		r := inParts(t, "big", nil)
		p.write(r[0], r[1], r[1], r[2])
		p.append(numbered(0))
		c := p.follow(p.base)
		p.expect(c, p.base+3, "big")
		p.expect(c, p.base+4, numbered(0).ID)
	}},
	{"parts that stand too far apart count for no reader", func(t *testing.T, p partition) {
		near, far := inParts(t, "near", nil), inParts(t, "far", nil)
		between := inParts(t, "other", nil)[1]
		between.Value = nil
		fill := func(n int) {
			records := make([]journal.Record, n)
			for i := range records {
				records[i] = between
			}
			p.write(records...)
		}
		p.write(far[0], near[0], near[1], far[1])
		fill(journal.MaxSpan - 3)
		p.write(near[2]) // MaxSpan behind near[0]
		p.write(far[2])  // MaxSpan + 2 behind far[0]
		p.append(numbered(0))
		whole := p.base + 1 + journal.MaxSpan
		for _, from := range []int64{p.base, p.base + 2, whole} {
			c := p.follow(from)
			p.expect(c, whole, "near")
			p.expect(c, whole+2, numbered(0).ID)
		}
		p.expect(p.follow(whole+1), whole+2, numbered(0).ID)
	}},
}
