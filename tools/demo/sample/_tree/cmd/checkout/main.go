// Command checkout prints the invoice for copies of a book.
package main

import (
	"fmt"
	"os"

	"bookshop.example/lib/money"
	"bookshop.example/shop/cart"
	"bookshop.example/shop/catalog"
	"bookshop.example/shop/invoice"
)

// banner stands over each invoice.
const banner = "Bookshop"

func main() {
	price := money.Amount(1995)
	c := &cart.Cart{Catalog: &catalog.Catalog{}}
	for volume, isbn := range []string{"9780306406157", "9783161484100"} {
		book := catalog.Book{ISBN: isbn, Title: fmt.Sprintf("Collected Works, volume %d", volume+1), Price: price}
		if err := c.Catalog.List(book); err != nil {
			fail(err)
		}
		if err := c.Put(isbn, 1); err != nil {
			fail(err)
		}
	}
	fmt.Println(banner)
	fmt.Print(invoice.Write(1, c))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "checkout:", err)
	os.Exit(1)
}
