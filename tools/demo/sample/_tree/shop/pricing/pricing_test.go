package pricing

import "testing"

func TestDeliveryIsFreeFromTheLimitOn(t *testing.T) {
	if Delivery(FreeDeliveryFrom) != 0 || Delivery(FreeDeliveryFrom-1) != deliveryFee {
		t.Error("it is not")
	}
}

func TestTax(t *testing.T) {
	if got := Tax(1050); got != 74 {
		t.Errorf("the tax on 10.50 is %s", got)
	}
}

func TestDiscountGrowsWithCopies(t *testing.T) {
	if Discount(1000, 9) != 0 || Discount(1000, 10) != 500 || Discount(1000, 50) != 5000 {
		t.Error("it does not")
	}
}
