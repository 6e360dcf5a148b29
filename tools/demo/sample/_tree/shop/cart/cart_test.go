package cart

import (
	"testing"

	"bookshop.example/shop/catalog"
	"bookshop.example/shop/pricing"
)

const isbn = "9780306406157"

func filled(t *testing.T, copies int) *Cart {
	t.Helper()
	c := &Cart{Catalog: &catalog.Catalog{}}
	if err := c.Catalog.List(catalog.Book{ISBN: isbn, Title: "A Book", Price: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(isbn, copies); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCopiesOfOneBookShareALine(t *testing.T) {
	c := filled(t, 1)
	if err := c.Put(isbn, 2); err != nil {
		t.Fatal(err)
	}
	if len(c.Lines) != 1 || c.Lines[0].Copies != 3 {
		t.Errorf("%v", c.Lines)
	}
}

func TestTheTotalHasDeliveryAndTax(t *testing.T) {
	want := 1000 + pricing.Delivery(1000)
	want += pricing.Tax(want)
	if got := filled(t, 1).Total(); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestUnknownBooksCannotBeBought(t *testing.T) {
	if filled(t, 1).Put("9783161484100", 1) == nil {
		t.Error("they can")
	}
}
