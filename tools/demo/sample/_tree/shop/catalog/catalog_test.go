package catalog

import (
	"errors"
	"testing"
)

var book = Book{ISBN: "9780306406157", Title: "A Book of Books", Author: "N. N.", Price: 1995}

func TestBooksAreFound(t *testing.T) {
	c := &Catalog{}
	if err := c.List(book); err != nil {
		t.Fatal(err)
	}
	if got, found := c.Find(book.ISBN); !found || got != book {
		t.Errorf("%v, %v", got, found)
	}
	if err := c.List(book); !errors.Is(err, ErrListed) {
		t.Errorf("twice: %v", err)
	}
}

func TestNumbersAreChecked(t *testing.T) {
	if err := (&Catalog{}).List(Book{ISBN: "1"}); !errors.Is(err, ErrNumber) {
		t.Errorf("%v", err)
	}
}

func TestAddresses(t *testing.T) {
	if got := book.Address(); got != "/books/a-book-of-books" {
		t.Error(got)
	}
}
