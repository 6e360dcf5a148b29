// Package sales sums up what was sold.
package sales

import (
	"fmt"

	"bookshop.example/lib/money"
	"bookshop.example/lib/stats"
)

// Report on the sums of orders.
type Report struct {
	Orders       int
	Total        money.Amount
	Mean, Median money.Amount
}

// Sum makes the report.
func Sum(orders []money.Amount) Report {
	r := Report{Orders: len(orders)}
	sample := make([]float64, len(orders))
	for i, o := range orders {
		r.Total += o
		sample[i] = float64(o)
	}
	r.Mean, r.Median = money.Amount(stats.Mean(sample)), money.Amount(stats.Median(sample))
	return r
}

// String is the report in a line.
func (r Report) String() string {
	return fmt.Sprintf("%d orders, %s in total, %s on average, median %s", r.Orders, r.Total, r.Mean, r.Median)
}
