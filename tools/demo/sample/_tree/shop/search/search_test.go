package search

import (
	"testing"

	"bookshop.example/shop/catalog"
)

func index(t *testing.T) *Index {
	t.Helper()
	c := &catalog.Catalog{}
	for isbn, title := range map[string]string{"9780306406157": "War and Peace", "9783161484100": "The Warden"} {
		if err := c.List(catalog.Book{ISBN: isbn, Title: title}); err != nil {
			t.Fatal(err)
		}
	}
	return New(c)
}

func TestBooksAreFoundByTheBeginningOfAWord(t *testing.T) {
	for beginning, want := range map[string]int{"war": 2, "WARD": 1, "peace": 1, "x": 0} {
		if got := index(t).Find(beginning); len(got) != want {
			t.Errorf("%q finds %v", beginning, got)
		}
	}
}
