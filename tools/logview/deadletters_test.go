package logview

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
)

// buried returns a log of land requests that all have dead letters.
func buried(t *testing.T, values ...string) (*memory.Log, []*deadletters.Letter) {
	t.Helper()
	log := memory.New(memory.Options{Partitions: 2})
	for _, v := range values {
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 1, Key: []byte("shop"), Value: []byte(v),
			Headers: []events.Header{{Key: "tenant", Value: []byte("t\xff")}}}); err != nil {
			t.Fatal(err)
		}
	}
	requests, err := log.Follow(t.Context(), events.TopicLandRequests, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer requests.Close()
	for range values {
		e, err := requests.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Two gateways may report one record.
		for range 2 {
			runner.PutDeadLetter(t.Context(), log, slog.New(slog.DiscardHandler), events.ServiceGateway, "i", runner.DeadLetter{Entry: e, Reason: "for a reason"})
		}
	}
	list, err := deadletters.Read(t.Context(), log)
	if err != nil || len(list.Letters()) != len(values) {
		t.Fatalf("%v, %v", list, err)
	}
	return log, list.Letters()
}

func TestADeadLetterHasWhatItsPublisherNeeds(t *testing.T) {
	_, list := buried(t, `{"queue":"nowhere","change":"c","request_id":"r","entries":[{"ref":"x"}]}`, `{"change":"d","request_id":"s","revision":-1}`)
	for i, want := range []struct{ queue, change, request string }{{"nowhere", "c", "r"}, {"shop", "d", "s"}} {
		d := list[i]
		if d.Queue != want.queue || d.Change != want.change || d.RequestId != want.request || string(d.Key) != "shop" || d.Advice == "" ||
			len(d.Headers) != 1 || d.Headers[0].Key != "tenant" || string(d.Headers[0].Value) != "t\xff" {
			t.Errorf("%v", d)
		}
	}
	var text, lines bytes.Buffer
	if err := printDeadLetters(list, "shop", false, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"land-requests/1/1  ", "queue shop  change d  request s  reported by gateway\n    for a reason\n    Correct the program"} {
		if !strings.Contains(text.String(), want) || strings.Contains(text.String(), "nowhere") {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	if err := printDeadLetters(list, "", true, &lines); err != nil {
		t.Fatal(err)
	}
	for queue, want := range map[string]string{"": "There are no dead letters.\n", "shop": "There are no dead letters of the queue shop.\n"} {
		var none, noJSON bytes.Buffer
		if err := printDeadLetters(list[:1], "shop", true, &noJSON); err != nil || noJSON.Len() > 0 {
			t.Errorf("as JSON: %q, %v", &noJSON, err)
		}
		if err := printDeadLetters(list[:min(1, len(queue))], queue, false, &none); err != nil || none.String() != want {
			t.Errorf("%q, %v, want %q", &none, err, want)
		}
	}
	back := &eventsv1.DeadLetter{}
	first, _, _ := strings.Cut(lines.String(), "\n")
	if err := protojson.Unmarshal([]byte(first), back); err != nil || back.RequestId != "r" || string(back.Value) != string(list[0].Value) {
		t.Errorf("%v, %v", back, err)
	}
}

func TestALandRequestThatIsSentAgainKeepsItsRequestID(t *testing.T) {
	log, list := buried(t, `{"queue":"shop","change":"c","entries":[{"ref":"x"}]}`, `{"change":"d","request_id":"s"}`, `{`)
	send := func(d *eventsv1.DeadLetter) error {
		_, err := deadletters.Send(t.Context(), log, d, &eventsv1.DeadLetterSent{Who: "Ada", Why: "the queue is there now", StampUs: 7}, events.ServiceGateway, "i")
		return err
	}
	for range 2 {
		for _, d := range list[:2] {
			if err := send(d.DeadLetter); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := send(list[2].DeadLetter); !errors.Is(err, deadletters.ErrUnsendable) || !strings.Contains(err.Error(), "cannot be read by this version either") {
		t.Errorf("%v", err)
	}
	if err := send(&eventsv1.DeadLetter{Topic: events.TopicBuilds}); !errors.Is(err, deadletters.ErrUnsendable) {
		t.Error("a record of the builder is sent again")
	}
	other := proto.CloneOf(list[0].DeadLetter)
	other.Queue = "other"
	if err := send(other); !errors.Is(err, deadletters.ErrUnsendable) {
		t.Errorf("a request for another queue than its dead letter names is sent again: %v", err)
	}
	again, err := deadletters.Read(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	for i, times := range []int{2, 2, 0} {
		if d := again.Letters()[i]; d.Times != times || times > 0 && (d.LastSent().Who != "Ada" || d.LastSent().Why != "the queue is there now") {
			t.Errorf("%d: sent again %d times: %v", i, d.Times, d.Sent)
		}
	}
	var text bytes.Buffer
	if err := printDeadLetters(again.Letters(), "", false, &text); err != nil || strings.Count(text.String(), "by Ada: the queue is there now") != 2 {
		t.Errorf("%v\n%s", err, &text)
	}
	partition := events.PartitionOf("shop", 2)
	cursor, err := log.Follow(t.Context(), events.TopicLandRequests, partition, map[int32]int64{0: 0, 1: 3}[partition])
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	ids := []string{events.DeriveID(log.ID(), "land-request", "1", "0"), "s"}
	for i := range 4 {
		e, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		land := e.Message.(*eventsv1.LandRequest)
		if land.Queue != "shop" || land.RequestId != ids[i%2] || land.Change != []string{"c", "d"}[i%2] {
			t.Errorf("%v", land)
		}
	}
}

func TestLettersAreChosenByPlaceOrAllOfAQueue(t *testing.T) {
	var list []*deadletters.Letter
	for _, d := range []*eventsv1.DeadLetter{
		{Topic: events.TopicLandRequests, Offset: 1, Queue: "a"}, {Topic: events.TopicLandRequests, Offset: 2, Queue: "b"}, {Topic: events.TopicBuilds, Offset: 3, Queue: "a"},
	} {
		list = append(list, &deadletters.Letter{DeadLetter: d})
	}
	for _, c := range []struct {
		queue  string
		places []string
		want   []int64
	}{
		{want: []int64{1, 2}}, {queue: "a", want: []int64{1}}, {places: []string{"land-requests/0/2"}, want: []int64{2}},
		{places: []string{"landfall.builds/0/3", "land-requests/0/1"}, want: []int64{3, 1}},
	} {
		chosen, err := chooseLetters(list, c.queue, c.places)
		if err != nil || len(chosen) != len(c.want) {
			t.Fatalf("%v, %v", chosen, err)
		}
		for i, d := range chosen {
			if d.Offset != c.want[i] {
				t.Errorf("%+v: %v", c, chosen)
			}
		}
	}
	if _, err := chooseLetters(list, "", []string{"land-requests/0/9"}); err == nil {
		t.Error("a place without a dead letter is taken")
	}
}

func TestLongValuesAreCutAndTheRestStays(t *testing.T) {
	long := strings.Repeat("ü", 200)
	for value, want := range map[string]string{
		`{"b":1,"a":"x","c":[true,null,1.50],"d":{}}`:     `{"b":1,"a":"x","c":[true,null,1.50],"d":{}}`,
		`{"z":"` + long + `"}`:                            `{"z":"` + long[:160] + `… (240 more bytes)"}`,
		`[1,2,3,4,5,6,7,8,9,10,11,12,13,[14],{"x":"15"}]`: `[1,2,3,4,5,6,7,8,9,10,11,12,"… 3 more"]`,
		`{`: `{`,
	} {
		if got := shorten(json.RawMessage(value)); got != want || !utf8.ValidString(got) {
			t.Errorf("%s\n got %s\nwant %s", value, got, want)
		}
	}
}
