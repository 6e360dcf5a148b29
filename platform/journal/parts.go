package journal

import (
	"bytes"

	"landfall.build/events"
)

// Assembler turns the records of one partition, in order, into entries. A record in several parts is
// one entry, with the offset of its last part; it is one only if all its parts came in order from one
// instance of one writer, under one term, within MaxSpan offsets. Anything else is torn and left out:
// its append never succeeded.
//
// What it holds is bounded: only parts of the last MaxSpan offsets.
type Assembler struct {
	from   int64
	begun  map[partKey]*begunRecord
	oldest []*begunRecord // in order of first; may still name some that ended
}

// partKey identifies a record some of whose parts have come.
type partKey struct {
	source, instance, id, queue, typeName string
	term                                  int64
	parts                                 int
}

type begunRecord struct {
	key    partKey
	first  int64
	values [][]byte
}

// NewAssembler returns entries of offset from and later; it must be fed from ReadFrom(from) on, or from
// the first record that is kept.
func NewAssembler(from int64) *Assembler {
	return &Assembler{from: from, begun: map[partKey]*begunRecord{}}
}

// Add takes the next record. ok is false if it completes no entry. What says no time of its own, as a land request
// may, has Kafka's.
func (a *Assembler) Add(r Record) (e Entry, ok bool) {
	if e, ok = a.add(r); ok && e.Time.IsZero() {
		e.Time = r.Time
	}
	return e, ok
}

func (a *Assembler) add(r Record) (e Entry, ok bool) {
	a.forgetBefore(r.Offset - MaxSpan)
	if r.Topic == events.TopicLandRequests {
		if r.Offset < a.from {
			return Entry{}, false
		}
		return decodeRequest(r), true
	}
	envelope, typeName, err := events.DecodeHeaders(r.Key, r.Headers)
	if err == nil && envelope.Parts > 0 {
		value, whole := a.addPart(r, envelope, typeName)
		if !whole {
			return Entry{}, false
		}
		r.Value = value
		envelope.Part, envelope.Parts = 0, 0
	}
	if r.Offset < a.from {
		return Entry{}, false
	}
	e = Entry{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Envelope: envelope}
	if err == nil {
		e.Message, err = events.DecodeMessage(typeName, r.Value)
	}
	if err != nil {
		e.Err, e.Key, e.Raw, e.Headers, e.Message = err, r.Key, r.Value, r.Headers, nil
	}
	return e, true
}

// addPart returns the whole value once it has the last part.
func (a *Assembler) addPart(r Record, e events.Envelope, typeName string) (value []byte, whole bool) {
	if e.Parts > MaxParts {
		return nil, false
	}
	key := partKey{e.Source, e.Instance, e.ID, e.Queue, typeName, e.Term, e.Parts}
	b := a.begun[key]
	if b != nil && e.Part <= len(b.values) && bytes.Equal(b.values[e.Part-1], r.Value) {
		// The producer repeated a batch after the broker lost its memory of it (it was killed).
		// A first part begins the record again all the same, so that the span is that of the last attempt.
		if e.Part > 1 {
			return nil, false
		}
	}
	if e.Part == 1 {
		a.end(b)
		b = &begunRecord{key: key, first: r.Offset}
		a.begun[key] = b
		a.oldest = append(a.oldest, b)
	} else if b == nil || e.Part != len(b.values)+1 {
		a.end(b)
		return nil, false
	}
	b.values = append(b.values, r.Value)
	if e.Part < e.Parts {
		return nil, false
	}
	value = bytes.Join(b.values, nil)
	a.end(b)
	return value, true
}

// end drops a record's parts; oldest may name it for a while.
func (a *Assembler) end(b *begunRecord) {
	if b == nil {
		return
	}
	b.values = nil
	if a.begun[b.key] == b {
		delete(a.begun, b.key)
	}
}

// forgetBefore drops what began before an offset.
func (a *Assembler) forgetBefore(offset int64) {
	for len(a.oldest) > 0 && a.oldest[0].first < offset {
		b := a.oldest[0]
		a.oldest[0] = nil
		a.oldest = a.oldest[1:]
		a.end(b)
	}
}

// decodeRequest reads a record that a client wrote: only its value is required to make sense.
func decodeRequest(r Record) Entry {
	e := Entry{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Raw: r.Value, Headers: r.Headers}
	e.Envelope, e.Err = events.DecodeLandRequest(r.Key, r.Value, r.Headers)
	return e
}
