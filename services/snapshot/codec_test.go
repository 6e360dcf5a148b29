package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/snapshot"
)

type node struct {
	name  string
	next  *node
	peers map[*node]bool
}

type state struct {
	mu      sync.Mutex
	names   map[string]*node
	list    []*node
	values  []float64
	nested  [2]struct{ a, b int16 }
	empty   map[string]struct{}
	none    []string
	zero    []string
	at      time.Time
	keyed   map[struct{ a, b uint64 }][]byte
	fact    *eventsv1.Admission
	same    *eventsv1.Admission
	anonym  struct{ on bool }
	omitted func() `snapshot:"-"`
	held    *holder
	wrapped *wrapper
}

type wrapper struct {
	*eventsv1.Admission
	more int
}

type holder struct {
	n     int
	ready func() bool `snapshot:"-"`
}

func sample(r *rand.Rand) *state {
	s := &state{names: map[string]*node{}, empty: map[string]struct{}{"x": {}}, zero: []string{}, keyed: map[struct{ a, b uint64 }][]byte{}}
	for i := range r.IntN(20) {
		n := &node{name: fmt.Sprint("n", i), peers: map[*node]bool{}}
		s.names[n.name] = n
		s.list = append(s.list, n)
		if i > 0 {
			other := s.list[r.IntN(i)]
			n.next, n.peers[other], other.peers[n] = other, true, i%2 == 0
		}
		s.values = append(s.values, math.Float64frombits(r.Uint64()), math.NaN(), math.Inf(-1), math.Copysign(0, -1))
		s.keyed[struct{ a, b uint64 }{r.Uint64(), uint64(i)}] = []byte{byte(i)}
	}
	s.nested[1].b = -7
	s.at = time.Unix(int64(r.IntN(1e9)), 5).UTC()
	s.fact = &eventsv1.Admission{Change: "c", Revision: 3, Requires: []string{"d"}}
	s.same, s.anonym.on, s.omitted = s.fact, true, func() {}
	s.held = &holder{n: 4}
	s.wrapped = &wrapper{s.fact, 6}
	return s
}

func TestWhatIsThawedIsTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		s := sample(r)
		first, err := snapshot.Freeze(s)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := snapshot.Freeze(s); !bytes.Equal(first, again) {
			t.Fatal("the same state gave other bytes")
		}
		got := &state{held: &holder{n: 1, ready: func() bool { return true }}, none: []string{"x"}, names: map[string]*node{"x": nil}}
		if err := snapshot.Thaw(first, got); err != nil {
			t.Fatal(err)
		}
		if second, _ := snapshot.Freeze(got); !bytes.Equal(first, second) {
			t.Fatal("what was thawed gives other bytes")
		}
		if got.wrapped.Admission != got.fact || got.wrapped.more != 6 {
			t.Error("what embeds a message is taken for one")
		}
		if got.same != got.fact || !proto.Equal(got.fact, s.fact) {
			t.Error("two pointers to one message are no longer that")
		}
		for i, n := range got.list {
			if got.names[n.name] != n || n.name != s.list[i].name || len(n.peers) != len(s.list[i].peers) {
				t.Errorf("node %d is %q with %d peers", i, n.name, len(n.peers))
			}
			for peer, on := range n.peers {
				if got.names[peer.name] != peer || s.list[i].peers[s.names[peer.name]] != on {
					t.Errorf("%s has a peer %s that is not of this state", n.name, peer.name)
				}
			}
		}
		if got.none != nil || got.zero == nil || got.nested != s.nested || !got.at.Equal(s.at) || !got.anonym.on ||
			!reflect.DeepEqual(got.keyed, s.keyed) || !reflect.DeepEqual(got.empty, s.empty) {
			t.Errorf("got %+v, want %+v", got, s)
		}
		if got.held.n != 4 || !got.held.ready() {
			t.Error("what a new state points to was not filled in its place")
		}
		if !got.mu.TryLock() {
			t.Error("a lock came back closed")
		}
		if got.omitted != nil {
			t.Error("a field that is left out was filled")
		}
	}
}

func TestAListAsLongAsMemoryTakesNoDeepStack(t *testing.T) {
	var head *node
	for range 200_000 {
		head = &node{next: head}
	}
	b, err := snapshot.Freeze(&head)
	if err != nil {
		t.Fatal(err)
	}
	var got *node
	if err := snapshot.Thaw(b, &got); err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; got != nil; got = got.next {
		n++
	}
	if n != 200_000 {
		t.Errorf("%d nodes came back", n)
	}
}

func TestWhatCannotBeFrozenIsNamed(t *testing.T) {
	inner := struct{ a, b int }{}
	for want, s := range map[string]any{
		"call: a func":     &struct{ call func() }{},
		"ch: a chan":       &struct{ ch chan int }{},
		"any: a interface": &struct{ any error }{},
		"parts of one":     &struct{ whole, part any }{}, // replaced below
	} {
		if want == "parts of one" {
			s = &struct {
				whole *struct{ a, b int }
				part  *int
			}{&inner, &inner.b}
		}
		if _, err := snapshot.Freeze(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", s, err, want)
		}
	}
}

// FuzzThaw: no bytes may do more than be refused.
func FuzzThaw(f *testing.F) {
	b, err := snapshot.Freeze(sample(rand.New(rand.NewPCG(1, 1))))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			t.Skip()
		}
		if err := snapshot.Thaw(b, &state{}); err != nil && !errors.Is(err, snapshot.ErrCorrupt) && !strings.Contains(err.Error(), "proto") && !strings.Contains(err.Error(), "Time") {
			t.Error(err)
		}
	})
}

// TestAStringIsWrittenOnce, wherever it stands: as a key, in a list, behind a pointer.
func TestAStringIsWrittenOnce(t *testing.T) {
	type state struct {
		ByName map[string]*string
		Names  []string
		Again  map[[2]string]string
	}
	name, long := "//services/area/package:tests", strings.Repeat("long ", 60)
	s := state{ByName: map[string]*string{}, Again: map[[2]string]string{}}
	for i := range 100 {
		of := fmt.Sprintf("%s-%02d", name, i)
		s.ByName[of], s.Again[[2]string{of, name}] = &of, of
		s.Names = append(s.Names, of, name, "", "ab", long)
	}
	frozen, err := snapshot.Freeze(&s)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(frozen, []byte(name)); n != 101 {
		t.Errorf("a name that stands in it 600 times, with 100 endings and without, was written %d times", n)
	}
	var thawed state
	if err := snapshot.Thaw(frozen, &thawed); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s, thawed) {
		t.Error("it was thawed as something else")
	}
	if again, err := snapshot.Freeze(&thawed); err != nil || !bytes.Equal(frozen, again) {
		t.Errorf("what was thawed is frozen as other bytes (%v)", err)
	}
}
