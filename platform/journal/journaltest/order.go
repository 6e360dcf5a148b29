package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

var order = []claim{
	{"what is appended is read in order, with its offsets and everything about it", func(t *testing.T, p partition) {
		sent := []events.Envelope{numbered(0), numbered(1), numbered(2)}
		sent[1].Term = 17
		sent[2].Subject, sent[2].Trace, sent[2].Instance = "", "", ""
		offsets := p.append(sent...)
		c := p.follow(p.base)
		for i, want := range sent {
			if offsets[i] != p.base+int64(i) {
				t.Errorf("event %d is at %d, want %d", i, offsets[i], p.base+int64(i))
			}
			got := p.expect(c, offsets[i], want.ID)
			if !proto.Equal(got.Message, want.Message) {
				t.Errorf("message %d: got %v, want %v", i, got.Message, want.Message)
			}
			got.Message, want.Message = nil, nil
			if !got.Time.Equal(want.Time) {
				t.Errorf("time %d: got %v, want %v", i, got.Time, want.Time)
			}
			got.Time = want.Time
			if got.Envelope != want {
				t.Errorf("event %d: got %+v, want %+v", i, got.Envelope, want)
			}
		}
		if got := p.end(); got != p.base+3 {
			t.Errorf("End is %d, want %d", got, p.base+3)
		}
	}},
	{"appends that do not wait are done in their order", func(t *testing.T, p partition) {
		const n = 500
		type result struct {
			i      int
			offset int64
			err    error
		}
		results := make(chan result, n)
		for i := range n {
			output := 16
			if i == n/2 {
				output = events.MaxRecordBytes + 1 // one in parts among them
			}
			p.log.AppendAsync(p.limit(), p.topic, p.number, event(fmt.Sprint(i), output),
				func(offset int64, err error) { results <- result{i, offset, err} })
		}
		last := p.base - 1
		for i := range n {
			r := <-results
			step := int64(1)
			if i == n/2 {
				step = 2
			}
			if r.err != nil || r.i != i || r.offset != last+step {
				t.Fatalf("done number %d was for append %d, offset %d after %d, error %v", i, r.i, r.offset-p.base, last-p.base, r.err)
			}
			last = r.offset
		}
		c := p.follow(p.base)
		for i := range n {
			if e := p.next(c); e.ID != fmt.Sprint(i) {
				t.Fatalf("read %s as number %d", e.ID, i)
			}
		}
	}},
	{"two cursors on one partition go their own ways", func(t *testing.T, p partition) {
		for i := range 10 {
			p.append(numbered(i))
		}
		a, b := p.follow(p.base), p.follow(p.base+5)
		for i := range 5 {
			p.expect(b, p.base+5+int64(i), numbered(5+i).ID)
			p.expect(a, p.base+int64(i), numbered(i).ID)
		}
		p.append(numbered(10))
		p.expect(b, p.base+10, numbered(10).ID)
		b.Close()
		for i := 5; i <= 10; i++ {
			p.expect(a, p.base+int64(i), numbered(i).ID)
		}
	}},
	{"a partition can be followed again from anywhere", func(t *testing.T, p partition) {
		for i := range 20 {
			p.append(numbered(i))
		}
		for round := range 10 {
			from := (round * 7) % 20
			c := p.follow(p.base + int64(from))
			for i := from; i < 20; i++ {
				p.expect(c, p.base+int64(i), numbered(i).ID)
				if i-from == round {
					break // give up in the middle
				}
			}
			c.Close()
		}
	}},
	{"a record that cannot be decoded is an entry with an error, and the cursor goes on", func(t *testing.T, p partition) {
		good, err := journal.RecordsOf(p.topic, p.number, numbered(0))
		if err != nil {
			t.Fatal(err)
		}
		garbled, unknown := good[0], good[0]
		garbled.Value = []byte{0xff, 0xff, 0xff}
		unknown.Headers = []events.Header{{Key: "ce_type", Value: []byte("landfall.events.v1.OfTheFuture")}}
		p.write(journal.Record{Key: []byte("main"), Value: []byte("no headers")}, garbled, unknown)
		p.append(numbered(1))
		c := p.follow(p.base)
		for i, want := range []struct {
			err error
			raw []byte
		}{{events.ErrUndecodable, []byte("no headers")}, {events.ErrUndecodable, garbled.Value}, {events.ErrUnknownType, good[0].Value}} {
			e := p.next(c)
			if e.Offset != p.base+int64(i) || !errors.Is(e.Err, want.err) || e.Message != nil || !bytes.Equal(e.Raw, want.raw) || e.Queue != "main" {
				t.Errorf("record %d: offset %d, error %v, message %v, raw %q, queue %q", i, e.Offset-p.base, e.Err, e.Message, e.Raw, e.Queue)
			}
		}
		p.expect(c, p.base+3, numbered(1).ID)
	}},
	{"a land request is taken as JSON from any client, with its raw value", func(t *testing.T, p partition) {
		p.topic = events.TopicLandRequests
		p.base = p.end()
		value := []byte(`{"queue":"main","change":"c1","entries":[{"ref":"refs/heads/x"}]}`)
		p.write(journal.Record{Value: value}, journal.Record{Key: []byte("main"), Value: []byte("{")})
		c := p.follow(p.base)
		e := p.next(c)
		m, ok := e.Message.(*eventsv1.LandRequest)
		if !ok || e.Err != nil || m.Change != "c1" || e.Queue != "main" || !bytes.Equal(e.Raw, value) {
			t.Errorf("got %+v", e)
		}
		if e = p.next(c); !errors.Is(e.Err, events.ErrUndecodable) || e.Message != nil || e.Queue != "main" || string(e.Raw) != "{" {
			t.Errorf("got %+v", e)
		}
	}},
	{"who follows sparingly gets all records", func(t *testing.T, p partition) {
		var sent []events.Envelope
		for i := range 300 {
			output := 16 << 10 // several times what is read ahead
			if i%100 == 50 {
				output = events.MaxRecordBytes + 1
			}
			sent = append(sent, event(fmt.Sprint(i), output))
		}
		offsets := p.append(sent...)
		for range 2 { // the second, while the first is open
			c, err := journal.FollowSparingly(p.limit(), p.log, p.topic, p.number, p.base)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i, want := range sent {
				p.expect(c, offsets[i], want.ID)
			}
		}
	}},
	{"a place that the log does not have is an error", func(t *testing.T, p partition) {
		if _, err := p.log.Append(p.limit(), p.topic, p.log.Partitions(), numbered(0)); err == nil {
			t.Error("an append beyond the last partition went well")
		}
		if _, err := p.log.Follow(p.limit(), "landfall.no-such-topic", p.number, 0); err == nil {
			t.Error("an unknown topic can be followed")
		}
	}},
	{"an append with a context that has ended is not tried", func(t *testing.T, p partition) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := p.log.Append(ctx, p.topic, p.number, numbered(0)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if end := p.end(); end != p.base {
			t.Errorf("the end moved by %d", end-p.base)
		}
	}},
}
