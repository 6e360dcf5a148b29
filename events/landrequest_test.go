package events_test

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

func contentType(v string) []events.Header {
	return []events.Header{{Key: "Content-Type", Value: []byte(v)}}
}

func TestJSONAndProtobufLandRequestsMeanTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	word := func() string {
		return []string{"", "a", "refs/heads/größe", "x\"y\n", strings.Repeat("long", 50)}[random.IntN(5)]
	}
	for range 300 {
		want := &eventsv1.LandRequest{
			Queue: "main", Change: word(), Revision: random.Uint64() >> random.IntN(64), Author: word(), Team: word(), Title: word(), Description: word(),
			Uri: word(), Host: eventsv1.HostClass(random.IntN(6)), Benefit: float64(random.IntN(100)) / 8, RequestId: word(),
		}
		for range random.IntN(4) {
			want.Entries = append(want.Entries, &eventsv1.Entry{Ref: word(), Commit: word()})
			want.Requires = append(want.Requires, word())
		}
		if random.IntN(2) == 0 {
			want.Labels = map[string]string{"k": word(), "l": word()}
		}
		binary, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		camel, err := protojson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		snake, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true, Multiline: true}.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			value   []byte
			headers []events.Header
		}{
			"protobuf":                      {binary, contentType("application/protobuf")},
			"protobuf's other name":         {binary, contentType("application/x-protobuf")},
			"JSON":                          {camel, contentType("application/json; charset=utf-8")},
			"JSON, as a header-less tool":   {camel, nil},
			"JSON with names of the schema": {snake, contentType(" APPLICATION/JSON")},
		} {
			got, err := events.DecodeLandRequest([]byte("other"), c.value, c.headers)
			if err != nil || !proto.Equal(got.Message, want) {
				t.Fatalf("%s: %v\ngot  %v\nwant %v", name, err, got, want)
			}
		}
	}
}

func TestTheKeyNamesTheQueueIfTheRequestDoesNot(t *testing.T) {
	got, err := events.DecodeLandRequest([]byte("main"), []byte(`{"change":"c"}`), nil)
	if err != nil || got.Queue != "main" || got.Message.(*eventsv1.LandRequest).Queue != "main" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestLandRequestsThatMakeNoSenseAreUndecodable(t *testing.T) {
	for name, c := range map[string]struct {
		value   string
		headers []events.Header
	}{
		"no JSON":           {"refs/heads/x", nil},
		"nothing":           {"", nil},
		"a list":            {"[]", nil},
		"text after it":     {`{"change":"c"} {}`, nil},
		"too large":         {`{"title":"` + strings.Repeat("x", events.MaxRequestBytes) + `"}`, nil},
		"no Protobuf":       {"\xff\xff", contentType("application/protobuf")},
		"another format":    {"change: c", contentType("application/yaml")},
		"a negative number": {`{"revision":-1}`, nil},
	} {
		if got, err := events.DecodeLandRequest(nil, []byte(c.value), c.headers); !errors.Is(err, events.ErrUndecodable) || got.Message != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestFieldsOfANewerClientAreIgnored(t *testing.T) {
	newer := `{"change":"c","wanted_by":{"day":"monday"},"host":"HOST_CLASS_OF_TOMORROW","entries":[{"ref":"x","depth":3}]}`
	want := &eventsv1.LandRequest{Queue: "main", Change: "c", Entries: []*eventsv1.Entry{{Ref: "x"}}}
	got, err := events.DecodeLandRequest([]byte("main"), []byte(newer), nil)
	if err != nil || !proto.Equal(got.Message, want) {
		t.Errorf("%v, %v", got.Message, err)
	}
}

func TestAStructuredCloudEventMeansWhatItsDataMeans(t *testing.T) {
	want := &eventsv1.LandRequest{Queue: "main", Change: "c", Entries: []*eventsv1.Entry{{Ref: "x"}}, RequestId: "r"}
	binary, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	attributes := `"specversion":"1.0","id":"7","type":"landfall.events.v1.LandRequest","source":"/landfall/bot/3","time":"2026-01-02T03:04:05Z","future":4`
	for name, value := range map[string]string{
		"JSON":                `{` + attributes + `,"data":{"queue":"main","change":"c","entries":[{"ref":"x"}],"request_id":"r"}}`,
		"JSON with its type":  `{"data":{"change":"c","entries":[{"ref":"x"}],"request_id":"r"},"datacontenttype":"application/json",` + attributes + `}`,
		"Protobuf in base 64": `{` + attributes + `,"datacontenttype":"application/protobuf","data_base64":"` + base64.StdEncoding.EncodeToString(binary) + `"}`,
	} {
		got, err := events.DecodeLandRequest([]byte("main"), []byte(value), contentType("application/cloudevents+json; charset=UTF-8"))
		if err != nil || !proto.Equal(got.Message, want) {
			t.Fatalf("%s: %v, %v", name, got.Message, err)
		}
		if got.ID != "7" || got.Source != "bot" || got.Instance != "3" || got.Queue != "main" || got.Time.Year() != 2026 || got.Term != -1 {
			t.Errorf("%s: the attributes are %+v", name, got)
		}
	}
}

func TestWhatOtherToolsPublishIsNamedInTheRefusal(t *testing.T) {
	binary, err := proto.Marshal(&eventsv1.LandRequest{Queue: "main", Change: "c"})
	if err != nil {
		t.Fatal(err)
	}
	structured := contentType("application/cloudevents+json")
	for name, c := range map[string]struct {
		value   string
		headers []events.Header
		reason  string
	}{
		"the framing of a registry, JSON":        {"\x00\x00\x00\x00\x2a" + `{"queue":"main"}`, nil, "schema registry (schema 42)"},
		"the framing of a registry, Protobuf":    {"\x00\x00\x00\x00\x07\x00" + string(binary), contentType("application/protobuf"), "schema registry (schema 7)"},
		"Protobuf without its header":            {string(binary), nil, "Protobuf without its header"},
		"Protobuf that is called JSON":           {string(binary), contentType("application/json"), "Protobuf without its header"},
		"a structured event of another version":  {`{"specversion":"0.3","data":{}}`, structured, "specversion"},
		"a structured event without data":        {`{"specversion":"1.0","id":"1"}`, structured, "no data"},
		"a request that is no structured event":  {`{"queue":"main","change":"c"}`, structured, "specversion"},
		"a structured event with a number as id": {`{"specversion":"1.0","id":1,"data":{}}`, structured, "attribute id"},
		"a structured event that is no text":     {"{\"specversion\":\"1.0\",\"data\":{\"change\":\"\xff\"}}", structured, "UTF-8"},
		"a structured event with broken base 64": {`{"specversion":"1.0","data_base64":"*"}`, structured, "data_base64"},
	} {
		if got, err := events.DecodeLandRequest(nil, []byte(c.value), c.headers); !errors.Is(err, events.ErrUndecodable) || got.Message != nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v, %v", name, got.Message, err)
		}
	}
}

func TestNamesAreReadFromARequestThatCannotBeDecoded(t *testing.T) {
	for value, want := range map[string][2]string{
		`{"request_id":"r","change":"c","revision":-1}`:     {"r", "c"},
		`{"requestId":"r","change":7}`:                      {"r", ""},
		`{"data":{"request_id":"r","change":"c"},"id":"1"}`: {"r", "c"},
		`["r"]`: {}, `{"request_id":`: {}, "\x00": {},
	} {
		if request, change := events.NamesOf([]byte(value)); request != want[0] || change != want[1] {
			t.Errorf("%s: %q, %q", value, request, change)
		}
	}
}

func FuzzDecodeLandRequest(f *testing.F) {
	f.Add([]byte("main"), []byte(`{"queue":"q","change":"c","entries":[{"ref":"r"}],"labels":{"a":"b"},"host":"HOST_CLASS_GIT"}`), "application/json")
	f.Add([]byte(nil), []byte("\n\x01q\x12\x01c"), "application/protobuf")
	f.Add([]byte("main"), []byte("{}"), "")
	f.Add([]byte("main"), []byte(`{"specversion":"1.0","id":"1","source":"bot","data":{"change":"c"}}`), "application/cloudevents+json")
	f.Add([]byte("main"), []byte(`{"specversion":"1.0","datacontenttype":"application/protobuf","data_base64":"CgFx"}`), "application/cloudevents+json")
	f.Add([]byte("main"), []byte("\x00\x00\x00\x00\x01\x00\n\x01q"), "application/protobuf")
	f.Fuzz(func(t *testing.T, key, value []byte, content string) {
		events.NamesOf(value)
		e, err := events.DecodeLandRequest(key, value, contentType(content))
		if err != nil {
			if !errors.Is(err, events.ErrUndecodable) || e.Message != nil {
				t.Fatalf("%v with %v", err, e.Message)
			}
			return
		}
		m := e.Message.(*eventsv1.LandRequest)
		if m.Queue == "" && len(key) > 0 {
			t.Fatal("the key's queue is lost")
		}
		again, err := proto.Marshal(m)
		if err != nil {
			return // A key need not be UTF-8; the gateway refuses such a queue by its name.
		}
		back, err := events.DecodeLandRequest(key, again, contentType("application/protobuf"))
		if len(again) <= events.MaxRequestBytes && (err != nil || !proto.Equal(m, back.Message)) {
			t.Fatalf("it does not come back: %v", err)
		}
	})
}
