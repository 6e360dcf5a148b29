// Package catalog knows the books.
package catalog

import (
	"errors"
	"fmt"

	"bookshop.example/lib/checksum"
	"bookshop.example/lib/money"
	"bookshop.example/lib/text"
)

// Errors of a book that cannot be listed.
var (
	ErrNumber = errors.New("not the number of a book")
	ErrListed = errors.New("listed already")
)

// Book is one that can be bought.
type Book struct {
	ISBN, Title, Author string
	Price               money.Amount
}

// Address is the book's place in the shop.
func (b Book) Address() string { return "/books/" + text.Slug(b.Title) }

// Catalog has the books in the order in which they were listed.
type Catalog struct {
	books  []Book
	byISBN map[string]int
}

// List adds a book.
func (c *Catalog) List(b Book) error {
	if !checksum.ISBN13(b.ISBN) {
		return fmt.Errorf("%w: %s", ErrNumber, b.ISBN)
	}
	if _, listed := c.byISBN[b.ISBN]; listed {
		return fmt.Errorf("%w: %s", ErrListed, b.ISBN)
	}
	if c.byISBN == nil {
		c.byISBN = map[string]int{}
	}
	c.byISBN[b.ISBN] = len(c.books)
	c.books = append(c.books, b)
	return nil
}

// Find gives the book of that number.
func (c *Catalog) Find(isbn string) (Book, bool) {
	i, found := c.byISBN[isbn]
	if !found {
		return Book{}, false
	}
	return c.books[i], true
}

// Books lists them.
func (c *Catalog) Books() []Book { return c.books }
