package ngboost

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"landfall.build/learning/internal/seal"
)

func smallModel(t testing.TB, depth int) *Model {
	t.Helper()
	random := rand.New(rand.NewPCG(31, 0))
	data := Data{Features: []string{"lines", "files", "hour"}}
	for range 60 {
		row := []float64{random.NormFloat64(), math.Floor(9 * random.Float64()), random.Float64()}
		if random.IntN(5) == 0 {
			row[1] = math.NaN()
		}
		data.Rows, data.Target = append(data.Rows, row), append(data.Target, math.Exp(row[0]+random.NormFloat64()/2))
	}
	m, _, err := Train(context.Background(), data, nil, Config{Distribution: LogNormal, Rounds: 5, Depth: depth})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func marshal(t testing.TB, m *Model) []byte {
	t.Helper()
	sealed, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestAModelComesBackEqual(t *testing.T) {
	for depth := 1; depth <= MaxDepth; depth++ {
		m := smallModel(t, depth)
		back, err := Unmarshal(marshal(t, m))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m, back) {
			t.Errorf("depth %d: got\n%+v, want\n%+v", depth, back, m)
		}
	}
}

func TestDamagedModelsAreRefused(t *testing.T) {
	sealed := marshal(t, smallModel(t, 3))
	for length := range sealed {
		if _, err := Unmarshal(sealed[:length]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d of %d bytes: %v", length, len(sealed), err)
		}
	}
	if _, err := Unmarshal(append(append([]byte(nil), sealed...), 0)); !errors.Is(err, ErrTruncated) {
		t.Errorf("one byte more: %v", err)
	}
	for k := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[k] ^= 0x10
		want := ErrCorrupt
		switch {
		case k < 4:
			want = ErrNotAModel
		case k < 6:
			want = ErrVersion
		case k < 10:
			want = ErrTruncated
		}
		if _, err := Unmarshal(damaged); !errors.Is(err, want) {
			t.Fatalf("byte %d of %d changed: %v, want %v", k, len(sealed), err, want)
		}
	}
	if _, err := Unmarshal(make([]byte, seal.MaxBytes+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestAbsurdModelsAreRefusedByName(t *testing.T) {
	for says, change := range map[string]func(*Model){
		"leaf is NaN":       func(m *Model) { m.leaves[3] = math.NaN() },
		"mu may reach +Inf": func(m *Model) { m.leaves[0], m.leaves[16] = math.MaxFloat64, math.MaxFloat64 },
		"asks for slot 6":   func(m *Model) { m.nodes[2].slot = 6 },
		"above +Inf":        func(m *Model) { m.nodes[2].threshold = float32(math.Inf(1)) },
		"start of mu":       func(m *Model) { m.mu = math.Inf(-1) },
		"distribution 9":    func(m *Model) { m.distribution = 9 },
		"depth 0":           func(m *Model) { m.depth, m.nodes, m.leaves = 0, nil, nil },
		"2 gains":           func(m *Model) { m.gains[1] = m.gains[1][:2] },
		"no features":       func(m *Model) { m.features, m.gains = nil, [2][]float64{} },
	} {
		m := smallModel(t, 3)
		change(m)
		if _, err := Unmarshal(marshal(t, m)); !errors.Is(err, ErrAbsurd) || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error saying %q, got %v", says, err)
		}
	}
}

// FuzzUnmarshal seals arbitrary payloads, so that the checks behind the hash are reached.
func FuzzUnmarshal(f *testing.F) {
	for depth := 1; depth <= 3; depth++ {
		_, payload, err := seal.Open(magic, version, marshal(f, smallModel(f, depth)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payload)
	}
	f.Add([]byte{1, 0, 3, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, payload []byte) {
		sealed, err := seal.Close(magic, version, payload)
		if err != nil {
			return // too large to seal
		}
		m, err := Unmarshal(sealed)
		if err != nil {
			return
		}
		row := make([]float64, len(m.features))
		row[0] = math.NaN()
		p, err := m.Predict(row)
		if err != nil || !finite(p.Mu) || !(p.Sigma > 0) || !finite(p.Sigma) {
			t.Fatalf("accepted, but predicts %+v, %v", p, err)
		}
		if again := marshal(t, m); string(again) != string(sealed) {
			t.Fatal("accepted, but writes other bytes")
		}
	})
}
