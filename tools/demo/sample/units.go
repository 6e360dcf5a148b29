package sample

// units are changes of several commits, or that rest on others, or come in a special way.
func units() []Change {
	stack := Change{Name: "sales-histogram", Author: Hana, Want: Landed, Commits: []Commit{
		{Title: "Count samples into bins", Edits: []Edit{
			{"lib/stats/histogram.go", "", `package stats

// Histogram counts the elements of a sample by bins of a width, from 0 on.
func Histogram(sample []float64, width float64) []int {
	var bins []int
	for _, x := range sample {
		bin := int(x / width)
		for len(bins) <= bin {
			bins = append(bins, 0)
		}
		bins[bin]++
	}
	return bins
}
`},
			{"lib/stats/histogram_test.go", "", `package stats

import (
	"slices"
	"testing"
)

func TestHistogram(t *testing.T) {
	if got := Histogram(sample, 20); !slices.Equal(got, []int{1, 2, 2}) {
		t.Errorf("%v", got)
	}
}
`}}},
		{Title: "Count orders by their sums", Edits: []Edit{
			{"shop/sales/histogram.go", "", `package sales

import (
	"bookshop.example/lib/money"
	"bookshop.example/lib/stats"
)

// Histogram counts the orders below 10.00, below 20.00, and so on.
func Histogram(orders []money.Amount) []int {
	sample := make([]float64, len(orders))
	for i, o := range orders {
		sample[i] = float64(o)
	}
	return stats.Histogram(sample, 1000)
}
`},
			{"shop/sales/histogram_test.go", "", `package sales

import (
	"slices"
	"testing"

	"bookshop.example/lib/money"
)

func TestOrdersAreCountedBySum(t *testing.T) {
	if got := Histogram([]money.Amount{999, 1000, 2500, 0}); !slices.Equal(got, []int{2, 1, 1}) {
		t.Errorf("%v", got)
	}
}
`}}},
		{Title: "Print the histogram", Edits: []Edit{
			{"cmd/sales/main.go", "\tfmt.Println(sales.Sum(orders))\n", "\tfmt.Println(sales.Sum(orders))\n\tfmt.Println(sales.Histogram(orders))\n"}}},
	}}
	resubmitted := one(Resubmitted, Chen, "Change the capacity of a cache", resize("len(c.entries) > n-1"), resizeTest)
	resubmitted.Better = []Commit{{Title: "Change the capacity of a cache", Edits: []Edit{resize("c.order.Len() > n"), resizeTest}}}
	out := in("A stack of three commits, landed as one unit", stack)
	out = append(out, in("A change that requires another",
		one("trie-remove", Dora, "Remove words",
			Edit{"lib/trie/remove.go", "", `package trie

// Remove takes a word out of the set.
func (t *Trie) Remove(word string) {
	if t = t.at(word); t != nil {
		t.word = false
	}
}
`},
			Edit{"lib/trie/remove_test.go", "", `package trie

import "testing"

func TestWhatIsRemovedIsGone(t *testing.T) {
	words := filled()
	words.Remove("te")
	words.Remove("missing")
	if words.Has("te") || !words.Has("tea") {
		t.Error("it is not, or another one is")
	}
}
`}),
		one("search-forget", Dora, "Forget words that are searched too often",
			Edit{"shop/search/forget.go", "", `package search

// Forget leaves a word out from now on.
func (x *Index) Forget(word string) { x.words.Remove(word) }
`},
			Edit{"shop/search/forget_test.go", "", `package search

import "testing"

func TestForgottenWordsFindNothing(t *testing.T) {
	x := index(t)
	x.Forget("peace")
	if got := x.Find("peace"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}
`}).after("trie-remove"))...)
	out = append(out, in("Rejected first, then right", resubmitted)...)
	return append(out, in("A hotfix, moved to the front",
		one(Hotfix, Ada, "Take no tax on refunds",
			Edit{"shop/pricing/pricing.go", "func Tax(sum money.Amount) money.Amount { return sum.Share(taxRate) }",
				"func Tax(sum money.Amount) money.Amount { return max(0, sum).Share(taxRate) }"},
			Edit{"shop/pricing/refund_test.go", "", `package pricing

import "testing"

func TestRefundsAreNotTaxed(t *testing.T) {
	if got := Tax(-1000); got != 0 {
		t.Errorf("%s", got)
	}
}
`}))...)
}

// direct is what somebody pushes past the queue.
func direct() Change {
	return one("stock-empty", Goran, "Say whether a book is sold out",
		Edit{"shop/stock/empty.go", "", `package stock

// SoldOut says that no copy is there.
func (s *Stock) SoldOut(isbn string) bool { return s.copies[isbn] == 0 }
`},
		Edit{"shop/stock/empty_test.go", "", `package stock

import "testing"

func TestSoldOut(t *testing.T) {
	if filled(t, 1).SoldOut(isbn) || !filled(t, 0).SoldOut(isbn) {
		t.Error("it is not so")
	}
}
`})
}

// resize is the function with a condition, which is wrong at first.
func resize(tooMany string) Edit {
	return Edit{"lib/lru/resize.go", "", `package lru

// Resize changes the capacity and forgets what does not go in any more.
func (c *Cache[K, V]) Resize(n int) {
	c.capacity = n
	for ` + tooMany + ` {
		c.forgetOldest()
	}
}
`}
}

var resizeTest = Edit{"lib/lru/resize_test.go", "", `package lru

import "testing"

func TestASmallerCacheForgets(t *testing.T) {
	c := New[int, int](4)
	for i := range 4 {
		c.Put(i, i)
	}
	c.Resize(2)
	if _, found := c.Get(3); !found || c.Len() != 2 {
		t.Errorf("%d values, the newest among them: %v", c.Len(), found)
	}
}
`}
