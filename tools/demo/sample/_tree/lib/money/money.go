// Package money computes with amounts in cents, which add up.
package money

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Amount is a sum in cents.
type Amount int64

// ErrSyntax says that a text is no amount.
var ErrSyntax = errors.New("not an amount")

// String gives 12.34, or -0.05.
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	return fmt.Sprintf("%s%d.%02d", sign, a/100, a%100)
}

// Parse reads what String writes; the cents may be left out.
func Parse(text string) (Amount, error) {
	number, negative := strings.CutPrefix(text, "-")
	whole, cents, dotted := strings.Cut(number, ".")
	if !dotted {
		cents = "00"
	}
	if len(cents) != 2 {
		return 0, fmt.Errorf("%w: %q", ErrSyntax, text)
	}
	value, err := strconv.ParseUint(whole+cents, 10, 62)
	if err != nil {
		return 0, fmt.Errorf("%w: %q", ErrSyntax, text)
	}
	if negative {
		return -Amount(value), nil
	}
	return Amount(value), nil
}

// Share gives a part of the amount in hundredths of a percent, rounded half away from zero.
func (a Amount) Share(hundredths int64) Amount {
	product := int64(a) * hundredths
	half := int64(5000)
	if product < 0 {
		half = -half
	}
	return Amount((product + half) / 10000)
}

// Split divides the amount into n parts that differ by a cent at most and add up to it.
func (a Amount) Split(n int) []Amount {
	parts := make([]Amount, n)
	each, rest := a/Amount(n), a%Amount(n)
	for i := range parts {
		parts[i] = each
		switch {
		case rest > 0:
			parts[i]++
			rest--
		case rest < 0:
			parts[i]--
			rest++
		}
	}
	return parts
}
