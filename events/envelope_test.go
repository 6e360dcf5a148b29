package events_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

func TestAnEnvelopeComesBackAsItWas(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	text := func(most int) string {
		b := make([]rune, random.IntN(most))
		for i := range b {
			b[i] = rune(' ' + random.IntN(500))
		}
		return string(b)
	}
	for range 300 {
		want := events.Envelope{
			ID: text(40), Source: []string{"gateway", "builder"}[random.IntN(2)], Instance: text(20), Queue: text(20), Subject: text(20), Trace: text(60),
			Time: time.Unix(random.Int64N(4e9), random.Int64N(1e9)).UTC(), Term: random.Int64N(1000) - 1,
			Message: &eventsv1.StepFinished{Target: text(20), OutputTail: make([]byte, random.IntN(3*events.MaxRecordBytes))},
		}
		values, headers, err := events.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var typeName string
		for i, h := range headers {
			got, name, err := events.DecodeHeaders([]byte(want.Queue), h)
			if err != nil {
				t.Fatal(err)
			}
			typeName = name
			expected := want
			expected.Message = nil
			if len(values) > 1 {
				expected.Part, expected.Parts = i+1, len(values)
			}
			if got != expected {
				t.Fatalf("got %+v, want %+v", got, expected)
			}
			if len(values[i]) > events.MaxRecordBytes {
				t.Fatalf("part %d has %d bytes", i+1, len(values[i]))
			}
		}
		got, err := events.DecodeMessage(typeName, bytes.Join(values, nil))
		if err != nil || !proto.Equal(got, want.Message) {
			t.Fatalf("the message came back different: %v", err)
		}
	}
}

func TestAnEmptyMessageIsOneRecord(t *testing.T) {
	values, _, err := events.Encode(events.Envelope{Term: -1, Message: &eventsv1.Tick{}})
	if err != nil || len(values) != 1 || len(values[0]) != 0 {
		t.Errorf("%d records, %v", len(values), err)
	}
}

func TestDerivedIDsTellTheirPartsApartAndStayTheSame(t *testing.T) {
	if got, want := events.DeriveID("log", "change", "7"), "2433c40cd141962794f3a25e52b54ca1"; got != want {
		t.Errorf("the id is %s, was %s: old logs would repeat", got, want)
	}
	seen := map[string]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a", "bc"}, {"ab", "c"}, {"abc"}, {"a", "b", "c"}} {
		for _, log := range []string{"l", "la"} {
			id := events.DeriveID(log, parts...)
			what := fmt.Sprintf("%q %q", log, parts)
			if before, ok := seen[id]; ok {
				t.Errorf("%s and %s have one id", before, what)
			}
			seen[id] = what
		}
	}
}

func FuzzDecodeHeaders(f *testing.F) {
	f.Add([]byte("main"), "ce_type", "landfall.events.v1.Claim", "ce_term", "12", "ce_part", "1/2")
	f.Add([]byte(""), "ce_source", "/landfall/a/b", "ce_time", "2025-01-02T03:04:05Z", "ce_part", "2/1")
	f.Add([]byte{0xff}, "ce_type", "", "ce_term", "-1", "ce_part", "1/1 ")
	f.Fuzz(func(t *testing.T, key []byte, k1, v1, k2, v2, k3, v3 string) {
		e, typeName, err := events.DecodeHeaders(key, []events.Header{{Key: k1, Value: []byte(v1)}, {Key: k2, Value: []byte(v2)}, {Key: k3, Value: []byte(v3)}})
		if err != nil {
			if !errors.Is(err, events.ErrUndecodable) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if typeName == "" || e.Term < -1 || e.Part < 0 || e.Part > e.Parts || e.Parts > 0 && e.Part < 1 || e.Parts > 4096 {
			t.Fatalf("taken: %+v of %q", e, typeName)
		}
	})
}

// TestTextThatIsNoUTF8IsWrittenAsText, wherever it stands in a message: what cannot be encoded would be tried for ever.
func TestTextThatIsNoUTF8IsWrittenAsText(t *testing.T) {
	prepared := &eventsv1.BuildPrepared{
		Build: "b", Message: "fatal: \xff", Change: &eventsv1.ChangeRef{Change: "c\xfe", Revision: 3},
		Versions: []*eventsv1.TargetVersion{{Target: "//a\xff", Hash: "h"}},
	}
	admitted := &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "c", Requires: []string{"\xffa", "b"}, Labels: map[string]string{"k\xff": "v\xfe", "l": "w"}}}
	for _, m := range []proto.Message{prepared, admitted} {
		before := proto.Clone(m)
		values, _, err := events.Encode(events.Envelope{Message: m, Term: -1})
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(m, before) {
			t.Error("the message itself was changed")
		}
		back, err := events.DecodeMessage(events.TypeOf(m), values[0])
		if err != nil {
			t.Fatal(err)
		}
		switch f := back.(type) {
		case *eventsv1.BuildPrepared:
			if f.Message != "fatal: �" || f.Change.Change != "c�" || f.Change.Revision != 3 || f.Versions[0].Target != "//a�" || f.Versions[0].Hash != "h" {
				t.Errorf("read back: %v", f)
			}
		case *eventsv1.ChangeAdmitted:
			if a := f.Admission; fmt.Sprint(a.Requires, a.Labels) != "[�a b] map[k�:v� l:w]" {
				t.Errorf("read back: %v", f)
			}
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	for _, d := range messageTypes(f) {
		m := newMessage(f, d)
		fill(m.ProtoReflect())
		value, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(events.TypeOf(m), value)
	}
	f.Add("landfall.events.v1.OfTheFuture", []byte{1})
	f.Add("google.protobuf.FileDescriptorSet", []byte{})
	f.Fuzz(func(t *testing.T, typeName string, value []byte) {
		m, err := events.DecodeMessage(typeName, value)
		if err != nil {
			if !errors.Is(err, events.ErrUndecodable) && !errors.Is(err, events.ErrUnknownType) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if events.TypeOf(m) != typeName {
			t.Fatalf("%s was decoded as %s", typeName, events.TypeOf(m))
		}
		again, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := events.DecodeMessage(typeName, again)
		if err != nil || !proto.Equal(m, back) {
			t.Fatalf("it does not come back: %v", err)
		}
	})
}
