package seal

import (
	"errors"
	"math"
	"testing"
)

func TestAFrameGivesBackItsPayloadAndNothingElse(t *testing.T) {
	var w Writer
	w.Uint8(7)
	w.Uint32(1 << 30)
	w.Float32(1.5)
	w.Float64(-2.25)
	w.Text("día")
	w.Texts([]string{"a", ""})
	w.Floats([]float64{1, 2})
	sealed, err := Close("TEST", 2, w.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	version, payload, err := Open("TEST", 3, sealed)
	if err != nil || version != 2 {
		t.Fatalf("version %d, %v", version, err)
	}
	r := NewReader(payload)
	if a, b, c, d := r.Uint8(), r.Uint32(), r.Float32(), r.Finite("d"); a != 7 || b != 1<<30 || c != 1.5 || d != -2.25 {
		t.Errorf("read %d %d %g %g", a, b, c, d)
	}
	if s, ss, f := r.Text("s", 10), r.Texts("ss", 2, 1), r.Floats("f", 2); s != "día" || len(ss) != 2 || ss[0] != "a" || f[1] != 2 {
		t.Errorf("read %q %q %v", s, ss, f)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for name, open := range map[string]struct {
		magic  string
		newest uint16
		bytes  []byte
		want   error
	}{
		"other kind": {"ELSE", 3, sealed, ErrNotAModel},
		"too new":    {"TEST", 1, sealed, ErrVersion},
		"too short":  {"TEST", 3, sealed[:20], ErrTruncated},
		"empty":      {"TEST", 3, nil, ErrTruncated},
		"cut":        {"TEST", 3, sealed[:len(sealed)-1], ErrTruncated},
	} {
		if _, _, err := Open(open.magic, open.newest, open.bytes); !errors.Is(err, open.want) {
			t.Errorf("%s: %v, want %v", name, err, open.want)
		}
	}
	if _, err := Close("TEST", 1, make([]byte, MaxBytes)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestTheFirstFailureStays(t *testing.T) {
	var w Writer
	w.Float64(math.NaN())
	w.Uint8(1)
	r := NewReader(w.Bytes)
	if v := r.Finite("rate"); v != 0 {
		t.Errorf("NaN reads as %g", v)
	}
	r.Uint32()
	if err := r.Close(); !errors.Is(err, ErrAbsurd) {
		t.Errorf("got %v", err)
	}
}

func TestLengthsAreRefusedBeforeMemoryIsAsked(t *testing.T) {
	var w Writer
	w.Uint32(math.MaxUint32)
	for most, want := range map[int]error{1 << 20: ErrAbsurd, math.MaxInt: ErrTruncated} {
		r := NewReader(w.Bytes)
		if got := r.Floats("numbers", most); len(got) != 0 || !errors.Is(r.Err(), want) {
			t.Errorf("at most %d: %d numbers, %v", most, len(got), r.Err())
		}
	}
	r := NewReader(append(w.Bytes, 1))
	r.Uint32()
	if err := r.Close(); !errors.Is(err, ErrTruncated) {
		t.Errorf("a byte left over: %v", err)
	}
}
