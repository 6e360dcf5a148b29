package rows_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/historian/rows"
)

func record(m proto.Message) rows.Record {
	return rows.Record{
		Topic: "landfall.changes", Partition: 1, Offset: 7, Counts: true,
		Envelope: events.Envelope{ID: "e", Source: "gateway", Queue: "main", Term: -1, Time: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), Message: m},
	}
}

// messages are all event types of the schemas, empty: every field missing, as a foreign writer may leave it.
func messages() (list []proto.Message) {
	protoregistry.GlobalTypes.RangeMessages(func(t protoreflect.MessageType) bool {
		if t.Descriptor().FullName().Parent() == "landfall.events.v1" {
			list = append(list, t.New().Interface())
		}
		return true
	})
	return list
}

func TestEveryEventHasARowAndEmptyOnesHarmNobody(t *testing.T) {
	list := messages()
	if len(list) < 30 {
		t.Fatalf("only %d event types were found", len(list))
	}
	for _, m := range list {
		var s rows.Set
		s.Add(record(m))
		if s.Len() != 1 || s.Events.Type[0] != string(m.ProtoReflect().Descriptor().Name()) || s.Events.Payload[0] == "" {
			t.Errorf("%T: %d rows, type %v", m, s.Len(), s.Events.Type)
		}
		checkWidths(t, &s)
	}
}

// checkWidths: each row has a value for each of its table's columns.
func checkWidths(t *testing.T, s *rows.Set) {
	t.Helper()
	for _, table := range rows.Tables() {
		if n := len(s.Facts(table)); n%len(table.Columns()) != 0 {
			t.Errorf("%s: %d values for rows of %d columns", table.Name(), n, len(table.Columns()))
		}
	}
	if n := len(s.Events.Columns()); n != len(rows.EventColumns) {
		t.Errorf("events: %d values for %d columns", n, len(rows.EventColumns))
	}
}

func TestWhatDoesNotCountHasAMarkedRowAndNoOther(t *testing.T) {
	for _, m := range messages() {
		var s rows.Set
		r := record(m)
		r.Counts = false
		s.Add(r)
		if s.Events.Counts[0] {
			t.Errorf("%T counts", m)
		}
		for _, table := range rows.Tables() {
			if len(s.Facts(table)) > 0 {
				t.Errorf("%T, which does not count, has a row in %s", m, table.Name())
			}
		}
	}
}

func TestARecordThatCannotBeDecodedKeepsItsBytes(t *testing.T) {
	var s rows.Set
	r := record(nil)
	r.Err, r.Raw = errors.New("no \xff such type"), []byte{1, 0xff}
	r.Time = time.Time{}
	s.Add(r)
	if s.Events.Error[0] != "no ? such type" || s.Events.Payload[0] != `{"undecodable_hex":"01ff"}` || s.Events.Time[0].Year() != 1970 {
		t.Errorf("error %q, payload %q, time %v", s.Events.Error[0], s.Events.Payload[0], s.Events.Time[0])
	}
}

func TestTheSameRecordGivesTheSameFacts(t *testing.T) {
	landed := &eventsv1.ChangeLanded{Change: &eventsv1.ChangeRef{Change: "c", Revision: 2}, Commits: []string{"a", "b"}, StampUs: 1_000_000,
		Bypasses: []*eventsv1.ChangeRef{{Change: "d", Revision: 1}}}
	var a, b rows.Set
	a.Add(record(landed))
	b.Add(record(proto.Clone(landed)))
	b.Reset()
	b.Add(record(proto.Clone(landed)))
	if !reflect.DeepEqual(a.Facts(rows.Changes), b.Facts(rows.Changes)) || b.Len() != 1 || b.Bytes() != a.Bytes() {
		t.Errorf("%v and %v", a.Facts(rows.Changes), b.Facts(rows.Changes))
	}
	got := map[string]any{}
	for i, c := range rows.Changes.Columns() {
		got[c] = a.Facts(rows.Changes)[i]
	}
	if got["commit"] != "b" || !got["landed_at"].(*time.Time).Equal(time.Unix(1, 0)) || !reflect.DeepEqual(got["bypasses"], []string{"d#1"}) || got["revision"] != uint64(2) {
		t.Errorf("%v", got)
	}
}
