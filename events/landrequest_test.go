package events_test

import (
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
			if err != nil || !proto.Equal(got, want) {
				t.Fatalf("%s: %v\ngot  %v\nwant %v", name, err, got, want)
			}
		}
	}
}

func TestTheKeyNamesTheQueueIfTheRequestDoesNot(t *testing.T) {
	got, err := events.DecodeLandRequest([]byte("main"), []byte(`{"change":"c"}`), nil)
	if err != nil || got.Queue != "main" {
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
		"another field":     {`{"chnage":"c"}`, nil},
		"too large":         {`{"title":"` + strings.Repeat("x", events.MaxRequestBytes) + `"}`, nil},
		"no Protobuf":       {"\xff\xff", contentType("application/protobuf")},
		"another format":    {"change: c", contentType("application/yaml")},
		"a negative number": {`{"revision":-1}`, nil},
	} {
		if got, err := events.DecodeLandRequest(nil, []byte(c.value), c.headers); !errors.Is(err, events.ErrUndecodable) || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func FuzzDecodeLandRequest(f *testing.F) {
	f.Add([]byte("main"), []byte(`{"queue":"q","change":"c","entries":[{"ref":"r"}],"labels":{"a":"b"},"host":"HOST_CLASS_GIT"}`), "application/json")
	f.Add([]byte(nil), []byte("\n\x01q\x12\x01c"), "application/protobuf")
	f.Add([]byte("main"), []byte("{}"), "")
	f.Fuzz(func(t *testing.T, key, value []byte, content string) {
		m, err := events.DecodeLandRequest(key, value, contentType(content))
		if err != nil {
			if !errors.Is(err, events.ErrUndecodable) || m != nil {
				t.Fatalf("%v with %v", err, m)
			}
			return
		}
		if m.Queue == "" && len(key) > 0 {
			t.Fatal("the key's queue is lost")
		}
		again, err := proto.Marshal(m)
		if err != nil {
			return // A key need not be UTF-8; the gateway refuses such a queue by its name.
		}
		back, err := events.DecodeLandRequest(key, again, contentType("application/protobuf"))
		if len(again) <= events.MaxRequestBytes && (err != nil || !proto.Equal(m, back)) {
			t.Fatalf("it does not come back: %v", err)
		}
	})
}
