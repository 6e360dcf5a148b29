package events_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/events"
)

var (
	update = flag.Bool("update", false, "freeze what was added to the schema: new types, fields and enum values")
	renew  = flag.Bool("renew", false, "freeze the schema anew, whatever was frozen before; only while no log of it exists")
)

const frozenDir = "testdata/frozen"

// frozenEnvelope is the envelope of every frozen record.
func frozenEnvelope(m proto.Message) events.Envelope {
	return events.Envelope{
		ID:     events.DeriveID("log", events.TypeOf(m)),
		Source: events.ServiceEnumerator, Instance: "host-1", Queue: "main", Subject: "change-7",
		Time: time.Date(2025, 1, 2, 3, 4, 5, 678_901_234, time.UTC), Term: 12,
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Message: m,
	}
}

// frozenFiles are a record as it is in the log (its headers, an empty line, its value in hexadecimal),
// and the message that it must always decode to.
func frozenFiles(d protoreflect.MessageDescriptor) (record, message string) {
	base := filepath.Join(frozenDir, strings.TrimPrefix(string(d.FullName()), string(schemaPackage)+".")+".v1")
	return base + ".hex", base + ".txtpb"
}

func TestEveryTypeHasAFrozenRecordThatStillMeansTheSame(t *testing.T) {
	known := map[string]bool{}
	for _, d := range messageTypes(t) {
		record, message := frozenFiles(d)
		known[record], known[message] = true, true
		if _, err := os.Stat(record); *renew || *update && errors.Is(err, os.ErrNotExist) {
			freeze(t, d)
		}
		t.Run(string(d.Name()), func(t *testing.T) { checkFrozen(t, d) })
	}
	entries, err := os.ReadDir(frozenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(frozenDir, e.Name())
		if known[path] {
			continue
		}
		if *renew {
			os.Remove(path)
			continue
		}
		t.Errorf("%s: its type is gone from the schema, and logs may hold such records", path)
	}
}

func checkFrozen(t *testing.T, d protoreflect.MessageDescriptor) {
	recordFile, messageFile := frozenFiles(d)
	content, err := os.ReadFile(recordFile)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no frozen record: run `go test ./events -update` and commit %s", recordFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	headers, value := parseFrozen(t, content)
	envelope, typeName, err := events.DecodeHeaders([]byte("main"), headers)
	if err != nil {
		t.Fatal(err)
	}
	got, err := events.DecodeMessage(typeName, value)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(messageFile)
	if err != nil {
		t.Fatal(err)
	}
	want := newMessage(t, d)
	if err := prototext.Unmarshal(text, want); err != nil {
		t.Fatalf("%s: %v", messageFile, err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("it decodes to\n%v\nand was\n%v", got, want)
	}
	expected := frozenEnvelope(want)
	expected.Message = nil
	if envelope != expected {
		t.Errorf("its envelope reads %+v, want %+v", envelope, expected)
	}
}

func parseFrozen(t *testing.T, content []byte) (headers []events.Header, value []byte) {
	t.Helper()
	head, body, ok := bytes.Cut(content, []byte("\n\n"))
	if !ok {
		t.Fatal("no empty line between headers and value")
	}
	for line := range strings.SplitSeq(string(head), "\n") {
		key, v, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("header line %q", line)
		}
		headers = append(headers, events.Header{Key: key, Value: []byte(v)})
	}
	value, err := hex.DecodeString(strings.ReplaceAll(string(body), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return headers, value
}

// freeze writes a record of a type with every field set.
func freeze(t *testing.T, d protoreflect.MessageDescriptor) {
	t.Helper()
	m := newMessage(t, d)
	fill(m.ProtoReflect())
	values, headers, err := events.Encode(frozenEnvelope(m))
	if err != nil {
		t.Fatal(err)
	}
	if len(values) != 1 {
		t.Fatalf("%s is in %d parts", d.Name(), len(values))
	}
	var record bytes.Buffer
	for _, h := range headers[0] {
		fmt.Fprintf(&record, "%s: %s\n", h.Key, h.Value)
	}
	record.WriteString("\n")
	for value := values[0]; len(value) > 0; value = value[min(40, len(value)):] {
		fmt.Fprintf(&record, "%x\n", value[:min(40, len(value))])
	}
	// The library puts in random spaces so that nobody relies on its text; a file in review is better
	// without them.
	text := regexp.MustCompile(`(?m)^(\s*\w+:?) +`).ReplaceAll([]byte(prototext.Format(m)), []byte("$1 "))
	recordFile, messageFile := frozenFiles(d)
	if err := os.MkdirAll(frozenDir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{recordFile: record.Bytes(), messageFile: text} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
