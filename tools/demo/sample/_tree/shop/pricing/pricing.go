// Package pricing has the rules for prices.
package pricing

import "bookshop.example/lib/money"

// FreeDeliveryFrom is the sum from which delivery costs nothing.
const FreeDeliveryFrom money.Amount = 5000

// deliveryFee is what it costs below.
const deliveryFee money.Amount = 490

// taxRate on books, in hundredths of a percent.
const taxRate = 700

// Delivery is the fee for an order of that sum.
func Delivery(sum money.Amount) money.Amount {
	if sum >= FreeDeliveryFrom {
		return 0
	}
	return deliveryFee
}

// Tax is the tax on a sum, which does not contain it yet.
func Tax(sum money.Amount) money.Amount { return sum.Share(taxRate) }

// Discount is the rebate on copies of one book: 5 % from 10 copies, 10 % from 50.
func Discount(price money.Amount, copies int) money.Amount {
	total := price * money.Amount(copies)
	switch {
	case copies >= 50:
		return total.Share(1000)
	case copies >= 10:
		return total.Share(500)
	}
	return 0
}
