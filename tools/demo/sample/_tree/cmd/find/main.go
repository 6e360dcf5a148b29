// Command find looks for books.
package main

import (
	"fmt"
	"os"
	"strings"

	"bookshop.example/shop/catalog"
	"bookshop.example/shop/search"
)

func main() {
	c := &catalog.Catalog{}
	for isbn, title := range map[string]string{"9780306406157": "War and Peace", "9783161484100": "The Warden"} {
		if err := c.List(catalog.Book{ISBN: isbn, Title: title}); err != nil {
			fmt.Fprintln(os.Stderr, "find:", err)
			os.Exit(1)
		}
	}
	for _, b := range search.New(c).Find(strings.Join(os.Args[1:], " ")) {
		fmt.Println(b.ISBN, b.Title)
	}
}
