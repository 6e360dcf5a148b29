// Package stock counts the copies in the shop.
package stock

import (
	"fmt"

	"bookshop.example/lib/lru"
	"bookshop.example/shop/catalog"
)

// Stock has the number of copies of each book.
type Stock struct {
	catalog *catalog.Catalog
	copies  map[string]int
	recent  *lru.Cache[string, catalog.Book]
}

// New makes an empty stock of the books of a catalog.
func New(c *catalog.Catalog) *Stock {
	return &Stock{catalog: c, copies: map[string]int{}, recent: lru.New[string, catalog.Book](16)}
}

// Move adds copies, or takes some away.
func (s *Stock) Move(isbn string, copies int) error {
	if _, found := s.book(isbn); !found {
		return fmt.Errorf("no book %s is listed", isbn)
	}
	if s.copies[isbn]+copies < 0 {
		return fmt.Errorf("only %d copies of %s are there", s.copies[isbn], isbn)
	}
	s.copies[isbn] += copies
	return nil
}

// Copies is how many there are.
func (s *Stock) Copies(isbn string) int { return s.copies[isbn] }

func (s *Stock) book(isbn string) (catalog.Book, bool) {
	if b, cached := s.recent.Get(isbn); cached {
		return b, true
	}
	b, found := s.catalog.Find(isbn)
	if found {
		s.recent.Put(isbn, b)
	}
	return b, found
}
