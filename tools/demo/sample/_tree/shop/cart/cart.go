// Package cart holds what somebody is about to buy.
package cart

import (
	"fmt"

	"bookshop.example/lib/money"
	"bookshop.example/shop/catalog"
	"bookshop.example/shop/pricing"
)

// Line is a number of copies of a book.
type Line struct {
	Book   catalog.Book
	Copies int
}

// Cart has lines in the order in which books were put in.
type Cart struct {
	Catalog *catalog.Catalog
	Lines   []Line
}

// Put adds copies of a book.
func (c *Cart) Put(isbn string, copies int) error {
	book, found := c.Catalog.Find(isbn)
	if !found || copies < 1 {
		return fmt.Errorf("%d copies of %s cannot be bought", copies, isbn)
	}
	for i := range c.Lines {
		if c.Lines[i].Book.ISBN == isbn {
			c.Lines[i].Copies += copies
			return nil
		}
	}
	c.Lines = append(c.Lines, Line{book, copies})
	return nil
}

// Goods is the sum of the books, discounts taken off.
func (c *Cart) Goods() money.Amount {
	sum := money.Amount(0)
	for _, l := range c.Lines {
		sum += l.Book.Price*money.Amount(l.Copies) - pricing.Discount(l.Book.Price, l.Copies)
	}
	return sum
}

// Total is what is to be paid: goods, delivery and tax.
func (c *Cart) Total() money.Amount {
	net := c.Goods() + pricing.Delivery(c.Goods())
	return net + pricing.Tax(net)
}
