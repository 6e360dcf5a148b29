// Package seedtest gives randomized tests their seeds. Every one of them takes a seed back in the same way:
//
//	go test ./engine/ranking -run TestTheBest -seed 4711
package seedtest

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the randomized tests; 0 draws one, which is logged")

// Of returns the seed of a test: the one that -seed gives, else one that was drawn. It is logged, so that the output of a
// failed test says how to run it again.
func Of(t testing.TB) uint64 {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return s
}

// Random returns a source of random numbers that is seeded by Of.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}

// Or returns the seed that -seed gives, else the one that is the test's own: for tests that go through the same inputs every time.
func Or(t testing.TB, own uint64) uint64 {
	t.Helper()
	s := *seed
	if s == 0 {
		s = own
	}
	t.Logf("-seed %d", s)
	return s
}
