package sample

import "strings"

// independent changes conflict with none, or pass together with those that they conflict with.
func independent() []Change {
	return in("Changes that get along with each other",
		one("roman-either-case", Dora, "Read numerals in either case",
			Edit{"lib/roman/roman.go", "// Parse reads what Format writes.\nfunc Parse(text string) (int, error) {\n\tn, rest := 0, text\n",
				"// Parse reads what Format writes, in either case.\nfunc Parse(text string) (int, error) {\n\ttext = strings.ToUpper(text)\n\tn, rest := 0, text\n"},
			Edit{"lib/roman/case_test.go", "", `package roman

import "testing"

func TestLowerCaseIsReadToo(t *testing.T) {
	if n, err := Parse("mcmxc"); err != nil || n != 1990 {
		t.Errorf("%d, %v", n, err)
	}
}
`}),
		one("roman-range-in-error", Bo, "Say the range in the error",
			Edit{"lib/roman/roman.go", `"not a roman numeral"`, `"not a roman numeral from I to MMMCMXCIX"`}),
		one("matrix-transpose", Emil, "Transpose matrices",
			Edit{"lib/matrix/transpose.go", "", `package matrix

// Transposed has the rows as columns.
func (m Matrix) Transposed() Matrix {
	t := New(m.columns(), len(m))
	for i, row := range m {
		for j, x := range row {
			t[j][i] = x
		}
	}
	return t
}
`},
			Edit{"lib/matrix/transpose_test.go", "", `package matrix

import "testing"

func TestTransposingTwiceChangesNothing(t *testing.T) {
	m := Matrix{{1, 2, 3}, {4, 5, 6}}
	for i, row := range m.Transposed().Transposed() {
		for j, x := range row {
			if x != m[i][j] {
				t.Errorf("%v at %d, %d", x, i, j)
			}
		}
	}
}
`}),
		one("matrix-identity", Bo, "Make identity matrices",
			Edit{"lib/matrix/identity.go", "", `package matrix

// Identity of n rows.
func Identity(n int) Matrix {
	m := New(n, n)
	for i := range m {
		m[i][i] = 1
	}
	return m
}
`},
			Edit{"lib/matrix/identity_test.go", "", `package matrix

import "testing"

func TestTheIdentityIsNeutral(t *testing.T) {
	got, err := Identity(2).Times(Matrix{{1, 2}, {3, 4}})
	if err != nil || got[0][1] != 2 || got[1][0] != 3 {
		t.Errorf("%v, %v", got, err)
	}
}
`}),
		one("lru-peek", Chen, "Look at a value without using it",
			Edit{"lib/lru/peek.go", "", `package lru

// Peek finds a value and does not note it.
func (c *Cache[K, V]) Peek(key K) (V, bool) {
	e, found := c.entries[key]
	if !found {
		var none V
		return none, false
	}
	return e.Value.(entry[K, V]).value, true
}
`},
			Edit{"lib/lru/peek_test.go", "", `package lru

import "testing"

func TestPeekingIsNoUse(t *testing.T) {
	c := New[string, int](1)
	c.Put("a", 1)
	if v, found := c.Peek("a"); !found || v != 1 {
		t.Error("not seen")
	}
	c.Put("b", 2)
	if _, found := c.Peek("a"); found {
		t.Error("kept")
	}
}
`}),
		one("graph-reachable", Goran, "List the nodes that can be reached",
			Edit{"lib/graph/reachable.go", "", `package graph

import (
	"maps"
	"slices"
)

// Reachable lists the nodes that a node has a way to, itself among them, sorted.
func (g Graph) Reachable(from string) []string {
	seen, open := map[string]bool{from: true}, []string{from}
	for len(open) > 0 {
		at := open[0]
		open = open[1:]
		for next := range g[at] {
			if !seen[next] {
				seen[next] = true
				open = append(open, next)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
`},
			Edit{"lib/graph/reachable_test.go", "", `package graph

import (
	"slices"
	"testing"
)

func TestReachable(t *testing.T) {
	g := Graph{}
	g.Connect("a", "b", 1)
	g.Connect("b", "c", 1)
	g.Connect("x", "y", 1)
	if got := g.Reachable("a"); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v", got)
	}
}
`}),
		one("trie-size", Dora, "Count the words of a trie",
			Edit{"lib/trie/size.go", "", `package trie

// Size is the number of words.
func (t *Trie) Size() int {
	n := 0
	if t.word {
		n = 1
	}
	for _, next := range t.next {
		n += next.Size()
	}
	return n
}
`},
			Edit{"lib/trie/size_test.go", "", `package trie

import "testing"

func TestEachWordCountsOnce(t *testing.T) {
	words := filled()
	words.Add("tea")
	if got := words.Size(); got != 5 {
		t.Errorf("%d words", got)
	}
}
`}),
		one("stats-deviation", Hana, "Compute the standard deviation",
			Edit{"lib/stats/deviation.go", "", `package stats

import "math"

// Deviation is the standard deviation of a sample; 0 of fewer than two.
func Deviation(sample []float64) float64 {
	if len(sample) < 2 {
		return 0
	}
	mean, sum := Mean(sample), 0.0
	for _, x := range sample {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(sample)-1))
}
`},
			Edit{"lib/stats/deviation_test.go", "", `package stats

import (
	"math"
	"testing"
)

func TestDeviation(t *testing.T) {
	if got := Deviation([]float64{1, 3}); math.Abs(got-math.Sqrt2) > 1e-12 {
		t.Errorf("%v", got)
	}
}
`}),
		one("calendar-between", Ada, "Count the working days between two days",
			Edit{"lib/calendar/between.go", "", `package calendar

import "time"

// Between counts the working days after one day up to another.
func Between(from, to time.Time) int {
	n := 0
	for day := from.AddDate(0, 0, 1); !day.After(to); day = day.AddDate(0, 0, 1) {
		if Working(day) {
			n++
		}
	}
	return n
}
`},
			Edit{"lib/calendar/between_test.go", "", `package calendar

import (
	"testing"
	"time"
)

func TestBetweenUndoesAfter(t *testing.T) {
	day := Day(2026, time.January, 7)
	for n := range 12 {
		if got := Between(day, After(day, n)); got != n {
			t.Errorf("%d, not %d", got, n)
		}
	}
}
`}),
		one("delivery-express", Goran, "Deliver by express",
			Edit{"shop/delivery/express.go", "", `package delivery

import (
	"time"

	"bookshop.example/lib/calendar"
)

// Express is the day on which an express parcel arrives, wherever it goes.
func Express(posted time.Time) time.Time { return calendar.After(posted, 1) }
`},
			Edit{"shop/delivery/express_test.go", "", `package delivery

import (
	"testing"
	"time"

	"bookshop.example/lib/calendar"
)

func TestExpressArrivesOnTheNextWorkingDay(t *testing.T) {
	if got := Express(calendar.Day(2026, time.January, 9)); got.Day() != 12 {
		t.Errorf("on %s", got.Format(time.DateOnly))
	}
}
`}),
		one("sales-largest", Hana, "Report the largest order",
			Edit{"shop/sales/largest.go", "", `package sales

import (
	"slices"

	"bookshop.example/lib/money"
)

// Largest is the largest order; 0 of none.
func Largest(orders []money.Amount) money.Amount {
	if len(orders) == 0 {
		return 0
	}
	return slices.Max(orders)
}
`},
			Edit{"shop/sales/largest_test.go", "", `package sales

import (
	"testing"

	"bookshop.example/lib/money"
)

func TestLargest(t *testing.T) {
	if got := Largest([]money.Amount{3, 9, 5}); got != 9 || Largest(nil) != 0 {
		t.Errorf("%s", got)
	}
}
`}),
		one("ring", Chen, "Add a ring buffer",
			Edit{"lib/ring/landfall.yaml", "", `targets:
  - name: ring
    sources: ["*.go"]
    steps:
      - name: test
        run: [go, test, -count=1, -vet=off, ./lib/ring]
`},
			Edit{"lib/ring/ring.go", "", `// Package ring keeps the last values of many.
package ring

// Ring holds at most as many values as it was made for.
type Ring[T any] struct {
	values []T
	next   int
	full   bool
}

// New makes a ring for n values.
func New[T any](n int) *Ring[T] { return &Ring[T]{values: make([]T, n)} }

// Add puts a value in the place of the oldest.
func (r *Ring[T]) Add(value T) {
	r.values[r.next] = value
	r.next = (r.next + 1) % len(r.values)
	r.full = r.full || r.next == 0
}

// Values lists what is there, oldest first.
func (r *Ring[T]) Values() []T {
	if !r.full {
		return r.values[:r.next]
	}
	return append(append([]T{}, r.values[r.next:]...), r.values[:r.next]...)
}
`},
			Edit{"lib/ring/ring_test.go", "", `package ring

import (
	"slices"
	"testing"
)

func TestTheLastValuesAreKept(t *testing.T) {
	r := New[int](3)
	for i := range 5 {
		r.Add(i)
	}
	if got := r.Values(); !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("%v", got)
	}
}
`}),
		one("find-usage", Fatima, "Say how find is used",
			Edit{"cmd/find/main.go", "func main() {\n", `func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: find WORD")
		os.Exit(2)
	}
`}),
		one("readme-targets", Ada, "Say which command builds everything",
			Edit{"README.md", "Targets and the steps that verify them are in the files `landfall.yaml`.\n",
				"Targets and the steps that verify them are in the files `landfall.yaml`. To build everything: `go build ./...`.\n"}),
		testOnly("money-signs-tested", Ada, "lib/money/money", "Sign", `if got := Amount(-5).String(); got != "-0.05" {
		t.Error(got)
	}`),
		testOnly("checksum-dashes-tested", Emil, "lib/checksum/checksum", "Dashes", `if !ISBN13("97-80306-40615-7") {
		t.Error("dashes matter")
	}`),
		testOnly("stats-order-tested", Bo, "lib/stats/stats", "Order", `if Median([]float64{3, 1, 2}) != 2 {
		t.Error("the order of a sample matters")
	}`),
		testOnly("pricing-copies-tested", Fatima, "shop/pricing/pricing", "Copies", `if Discount(1000, 49) != 2450 {
		t.Error("49 copies do not get 5 %")
	}`),
	)
}

// testOnly is a change that adds a test to those of a library, and so alters one target alone.
func testOnly(name string, author Person, library, what, body string) Change {
	return one(name, author, "Test "+library+" for its "+strings.ToLower(what), addTest(library+"_test.go", what, body))
}

// addTest adds a test at the end of a file.
func addTest(path, what, body string) Edit {
	return Edit{path, "", "\nfunc Test" + what + "(t *testing.T) {\n\t" + body + "\n}\n"}
}
