package stock

import (
	"testing"

	"bookshop.example/shop/catalog"
)

const isbn = "9780306406157"

func filled(t *testing.T, copies int) *Stock {
	t.Helper()
	c := &catalog.Catalog{}
	if err := c.List(catalog.Book{ISBN: isbn, Title: "A Book", Price: 1000}); err != nil {
		t.Fatal(err)
	}
	s := New(c)
	if err := s.Move(isbn, copies); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCopiesAreCounted(t *testing.T) {
	s := filled(t, 3)
	if err := s.Move(isbn, -2); err != nil || s.Copies(isbn) != 1 {
		t.Errorf("%d, %v", s.Copies(isbn), err)
	}
}

func TestWhatIsNotThereCannotBeTaken(t *testing.T) {
	if filled(t, 1).Move(isbn, -2) == nil {
		t.Error("it can")
	}
}
