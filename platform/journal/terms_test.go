package journal_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

func TestOnlyRecordsOfTheLastClaimCount(t *testing.T) {
	random := seedtest.Random(t)
	fields := snapshottest.New(t)
	for range 200 {
		terms := journal.NewTerms(events.TopicChanges)
		var log []journal.Entry
		for offset := range int64(40) {
			e := journal.Entry{Offset: offset}
			e.Source = []string{events.ServiceLander, events.ServiceGateway}[random.IntN(2)]
			e.Term = random.Int64N(offset+2) - 1
			switch random.IntN(6) {
			case 0:
				e.Message = &eventsv1.Claim{}
			case 1:
				e.Err = events.ErrUndecodable
			default:
				e.Message = &eventsv1.LandIntended{}
			}
			log = append(log, e)
			// The dumb twin looks for the claim before it.
			last := int64(-1)
			for _, before := range log[:offset] {
				if _, is := before.Message.(*eventsv1.Claim); is && before.Source == events.ServiceLander {
					last = before.Offset
				}
			}
			_, isClaim := e.Message.(*eventsv1.Claim)
			want := !isClaim && e.Err == nil && (e.Source == events.ServiceGateway || last >= 0 && e.Term == last)
			if got := terms.Counts(e); got != want {
				t.Fatalf("at %d: counts is %v; %s, term %d, last claim %d", offset, got, e.Source, e.Term, last)
			}
			if random.IntN(8) == 0 {
				again := restored(t, terms)
				fields.Same(terms, again)
				terms = again
			}
		}
	}
	fields.Done()
}

// restored returns terms that went into a snapshot and came out of it.
func restored(t *testing.T, terms *journal.Terms) *journal.Terms {
	t.Helper()
	bytes, err := proto.Marshal(terms.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	m := &snapshotv1.JournalTerms{}
	if err := proto.Unmarshal(bytes, m); err != nil {
		t.Fatal(err)
	}
	return journal.RestoreTerms(events.TopicChanges, m)
}
