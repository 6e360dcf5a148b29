package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const printed = `goos: linux
BenchmarkOneEvent/n=10/k=64/ahead=all/threshold=0-2         	   53	  20000 ns/op	  1 B/op
BenchmarkOneEvent/n=10/k=64/ahead=all/threshold=0-2         	   53	  40000 ns/op	  1 B/op
BenchmarkOneEvent/n=1000/k=64/ahead=all/threshold=0-2       	    9	 1.5e+06 ns/op
BenchmarkOneEvent/n=1000/k=64/ahead=16/threshold=0.1        	    9	 250 ns/op
BenchmarkBest/n=1000/k=64-2 	    9	 7 ns/op
PASS
`

func TestTheLinesAreThoseThatDifferInNOnly(t *testing.T) {
	lines, err := read(strings.NewReader(printed), "BenchmarkOneEvent")
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[0].name != "k=64, ahead=16, threshold=0.1" || lines[1].name != "k=64, ahead=all, threshold=0" {
		t.Fatalf("%+v", lines)
	}
	if p := lines[1].points; len(p) != 2 || p[0] != (point{10, 20000}) || p[1] != (point{1000, 1.5e6}) {
		t.Errorf("%+v", p)
	}
	if _, err := read(strings.NewReader(printed), "BenchmarkNone"); err == nil {
		t.Error("nothing to draw is no error")
	}
}

// TestThePictureIsXML with a mark for each measurement inside the frame, and titles escaped.
func TestThePictureIsXML(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-title", "a < b", "BenchmarkOneEvent"}, strings.NewReader(printed), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	marks := 0
	for d := xml.NewDecoder(&out); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "circle" {
			marks++
		}
	}
	if marks != 3 {
		t.Errorf("%d marks", marks)
	}
	if err := run(nil, strings.NewReader(""), io.Discard, io.Discard); err == nil {
		t.Error("no benchmark is no error")
	}
}
