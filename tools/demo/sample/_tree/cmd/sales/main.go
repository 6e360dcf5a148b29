// Command sales sums up the orders that are given as arguments.
package main

import (
	"fmt"
	"os"

	"bookshop.example/lib/money"
	"bookshop.example/shop/sales"
)

func main() {
	var orders []money.Amount
	for _, text := range os.Args[1:] {
		amount, err := money.Parse(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sales:", err)
			os.Exit(1)
		}
		orders = append(orders, amount)
	}
	fmt.Println(sales.Sum(orders))
}
