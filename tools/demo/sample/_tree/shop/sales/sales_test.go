package sales

import (
	"testing"

	"bookshop.example/lib/money"
)

func TestOrdersAreSummedUp(t *testing.T) {
	got := Sum([]money.Amount{1000, 2000, 6000}).String()
	if want := "3 orders, 90.00 in total, 30.00 on average, median 20.00"; got != want {
		t.Errorf("%q", got)
	}
}
