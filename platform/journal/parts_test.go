package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// torn returns a random partition: parts of a few records by a few writers, lost, repeated, mixed, and far
// apart. The values are no messages; what was assembled is seen in Entry.Raw.
func torn(random *rand.Rand, n int) []journal.Record {
	records := make([]journal.Record, n)
	for i := range records {
		parts := 1 + random.IntN(3)
		part := 1 + random.IntN(parts)
		// Mostly what would come next for this writer.
		headers := []events.Header{
			{Key: "ce_type", Value: []byte("landfall.events.v1.OfTheFuture")},
			{Key: "ce_id", Value: fmt.Appendf(nil, "e%d", random.IntN(2))},
			{Key: "ce_source", Value: fmt.Appendf(nil, "/landfall/builder/b%d", random.IntN(2))},
		}
		if parts > 1 {
			headers = append(headers, events.Header{Key: "ce_part", Value: fmt.Appendf(nil, "%d/%d", part, parts)})
		}
		if random.IntN(20) == 0 {
			headers = append(headers, events.Header{Key: "ce_term", Value: []byte("7")})
		}
		records[i] = journal.Record{Offset: int64(i), Key: []byte("main"), Value: fmt.Appendf(nil, "%d.%d;", part, random.IntN(3)), Headers: headers}
	}
	return records
}

// spread leaves long gaps of offsets between some records.
func spread(random *rand.Rand, records []journal.Record) {
	offset := int64(0)
	for i := range records {
		records[i].Offset = offset
		offset++
		if random.IntN(10) == 0 {
			offset += random.Int64N(journal.MaxSpan)
		}
	}
}

// wholeAt is the dumb twin: what record i completes, judged by looking back over all before it.
func wholeAt(records []journal.Record, i int) (value []byte, ok bool) {
	key := func(r journal.Record) string {
		e, typeName, _ := events.DecodeHeaders(r.Key, r.Headers)
		return fmt.Sprint(e.Source, e.Instance, e.ID, e.Queue, typeName, e.Term, e.Parts)
	}
	part := func(r journal.Record) int {
		e, _, _ := events.DecodeHeaders(r.Key, r.Headers)
		return e.Part
	}
	if part(records[i]) == 0 {
		return records[i].Value, true
	}
	first := -1
	for j := i; j >= 0 && first < 0; j-- {
		if key(records[j]) == key(records[i]) && part(records[j]) == 1 {
			first = j
		}
	}
	if first < 0 || records[i].Offset-records[first].Offset > journal.MaxSpan {
		return nil, false
	}
	e, _, _ := events.DecodeHeaders(records[i].Key, records[i].Headers)
	got := [][]byte{records[first].Value}
	for j := first + 1; j <= i; j++ {
		if key(records[j]) != key(records[i]) {
			continue
		}
		if len(got) == e.Parts {
			return nil, false // it was whole before
		}
		n := part(records[j])
		switch {
		case n == len(got)+1:
			got = append(got, records[j].Value)
		case n <= len(got) && bytes.Equal(got[n-1], records[j].Value):
			if j == i {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	if len(got) < e.Parts {
		return nil, false
	}
	return bytes.Join(got, nil), true
}

func TestAssemblingAgreesWithItsDumbTwinFromAnyOffset(t *testing.T) {
	random := seedtest.Random(t)
	assembled := 0
	for round := range 200 {
		records := torn(random, 60)
		if round%2 == 1 {
			spread(random, records)
		}
		end := records[len(records)-1].Offset
		for _, from := range []int64{0, end / 3, random.Int64N(end + 1), end} {
			a := journal.NewAssembler(from)
			for i, r := range records {
				if r.Offset < journal.ReadFrom(from) {
					continue
				}
				got, ok := a.Add(r)
				value, want := wholeAt(records, i)
				if r.Offset < from {
					want = false
				}
				if ok != want || ok && (got.Offset != r.Offset || !bytes.Equal(got.Raw, value)) {
					t.Fatalf("round %d, from %d, record %d: got %v %q, want %v %q", round, from, i, ok, got.Raw, want, value)
				}
				if ok && bytes.Count(value, []byte(";")) > 1 {
					assembled++
				}
			}
		}
	}
	if assembled < 100 {
		t.Errorf("only %d records in parts were whole", assembled)
	}
}

func TestARecordThatNobodyCouldReadBackIsRefused(t *testing.T) {
	e := events.Envelope{ID: "e", Term: -1, Message: &eventsv1.StepFinished{OutputTail: make([]byte, journal.MaxParts*events.MaxRecordBytes)}}
	if _, err := journal.RecordsOf(events.TopicBuilds, 0, e); err == nil || !strings.Contains(err.Error(), "StepFinished") {
		t.Errorf("got %v", err)
	}
	e.Message = &eventsv1.StepFinished{OutputTail: make([]byte, (journal.MaxParts-1)*events.MaxRecordBytes)}
	if records, err := journal.RecordsOf(events.TopicBuilds, 0, e); err != nil || len(records) != journal.MaxParts {
		t.Errorf("%d records, %v", len(records), err)
	}
	if _, err := journal.RecordsOf(events.TopicBuilds, 0, events.Envelope{}); err == nil {
		t.Error("an event without a message was taken")
	}
}

func TestAHeaderThatIsNoPartIsAnEntryWithAnError(t *testing.T) {
	for _, header := range []string{"0/2", "3/2", "x", "1/100000"} {
		a := journal.NewAssembler(0)
		e, ok := a.Add(journal.Record{Topic: events.TopicBuilds, Headers: []events.Header{
			{Key: "ce_type", Value: []byte("landfall.events.v1.Claim")}, {Key: "ce_part", Value: []byte(header)}}})
		if !ok || !errors.Is(e.Err, events.ErrUndecodable) {
			t.Errorf("%q: %v %v", header, ok, e.Err)
		}
	}
}
