package sample

// failing changes are each wrong in another way.
func failing() []Change {
	stack := Change{Name: "matrix-rename", Author: Emil, Want: StepFailed, Commits: []Commit{
		{Title: "Scale matrices", Edits: []Edit{{"lib/matrix/scale.go", "", `package matrix

// Scale multiplies each element.
func (m Matrix) Scale(factor float64) {
	for _, row := range m {
		for j := range row {
			row[j] *= factor
		}
	}
}
`}}},
		{Title: "Rename Times to Multiply", Edits: []Edit{
			{"lib/matrix/matrix.go", "// Times multiplies two matrices.\nfunc (m Matrix) Times(", "// Multiply multiplies two matrices.\nfunc (m Matrix) Multiply("}}},
		{Title: "Rename it in the tests too", Edits: []Edit{
			{"lib/matrix/matrix_test.go", "{3, 4}}.Times(", "{3, 4}}.Multiply("},
			{"lib/matrix/matrix_test.go", "New(2, 3).Times(", "New(2, 3).Multiply("}}},
	}}
	return in("Changes that are wrong",
		one("lru-grow", Chen, "Let caches grow",
			Edit{"lib/lru/grow.go", "", `package lru

// Grow makes room for n more values.
func (c *Cache[K, V]) Grow(n int) { c.size += n }
`}).ends(StepFailed),
		one("graph-greedy", Goran, "Find ways faster",
			Edit{"lib/graph/graph.go", "if d, seen := distance[next]; !seen || distance[at]+length < d {", "if _, seen := distance[next]; !seen {"},
		).ends(StepFailed),
		one("stock-typo", Hana, "Declare what the stock depends on",
			Edit{"shop/stock/landfall.yaml", "deps: [//lib/lru, //shop/catalog]", "deps: [//lib/lru, //lib/moeny, //shop/catalog]"},
		).ends(Invalid),
		stack,
		one("delivery-greedy", Goran, "Write down that ways are greedy",
			Edit{"shop/delivery/doc.go", "", "// Ways are found greedily: see the package graph.\n\npackage delivery\n"},
		).after("graph-greedy").ends(Requirement),
		one("spin", Bo, "Wait for a better day",
			Edit{"lab/spin/landfall.yaml", "", `targets:
  - name: spin
    sources: ["*.go"]
    steps:
      - name: test
        run: [go, test, -count=1, -vet=off, ./lab/spin]
        timeout: 2s
`},
			Edit{"lab/spin/spin_test.go", "", `package spin

import (
	"testing"
	"time"
)

func TestPatience(t *testing.T) { time.Sleep(time.Hour) }
`}).ends(TimedOut),
	)
}
