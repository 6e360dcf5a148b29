package invoice

import (
	"strings"
	"testing"

	"bookshop.example/shop/cart"
	"bookshop.example/shop/catalog"
)

func written(t *testing.T) []string {
	t.Helper()
	c := &cart.Cart{Catalog: &catalog.Catalog{}}
	book := catalog.Book{ISBN: "9780306406157", Title: "A Very Long Title of a Book", Price: 1000}
	if err := c.Catalog.List(book); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(book.ISBN, 2); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(Write(7, c)), "\n")
}

func TestLongTitlesAreShortened(t *testing.T) {
	if got := written(t)[1]; got != "2 x A Very Long Title o…     20.00" {
		t.Errorf("%q", got)
	}
}

func TestTheSumStandsUnderTheLines(t *testing.T) {
	lines := written(t)
	sum := lines[2]
	if !strings.HasPrefix(sum, "To be paid") || len([]rune(sum)) != len([]rune(lines[1])) {
		t.Errorf("%q", sum)
	}
}
