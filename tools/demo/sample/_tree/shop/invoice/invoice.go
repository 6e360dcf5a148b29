// Package invoice writes what a customer has to pay.
package invoice

import (
	"fmt"
	"strings"

	"bookshop.example/lib/money"
	"bookshop.example/lib/text"
	"bookshop.example/shop/cart"
)

// width of a title.
const width = 24

// Write gives the invoice, line by line.
func Write(number int, c *cart.Cart) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Invoice %d\n", number)
	for _, l := range c.Lines {
		line(&b, fmt.Sprintf("%d x %s", l.Copies, l.Book.Title), l.Book.Price*money.Amount(l.Copies))
	}
	line(&b, "To be paid", c.Total())
	return b.String()
}

func line(b *strings.Builder, what string, amount money.Amount) {
	fmt.Fprintf(b, "%-*s %9s\n", width, text.Shorten(what, width), amount)
}
