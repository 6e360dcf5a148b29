// Package search finds books by the beginnings of words in their titles.
package search

import (
	"strings"

	"bookshop.example/lib/text"
	"bookshop.example/lib/trie"
	"bookshop.example/shop/catalog"
)

// Index of a catalog.
type Index struct {
	words trie.Trie
	books map[string][]catalog.Book
}

// New makes the index of all books of a catalog.
func New(c *catalog.Catalog) *Index {
	x := &Index{books: map[string][]catalog.Book{}}
	for _, b := range c.Books() {
		for _, word := range strings.Split(text.Slug(b.Title), "-") {
			x.words.Add(word)
			x.books[word] = append(x.books[word], b)
		}
	}
	return x
}

// Find lists the books with a word that begins so, each once.
func (x *Index) Find(beginning string) []catalog.Book {
	var found []catalog.Book
	seen := map[string]bool{}
	for _, word := range x.words.With(text.Slug(beginning)) {
		for _, b := range x.books[word] {
			if !seen[b.ISBN] {
				seen[b.ISBN] = true
				found = append(found, b)
			}
		}
	}
	return found
}
