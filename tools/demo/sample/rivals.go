package sample

// textual conflicts: of each group, whichever comes first lands.
func textual() []Change {
	banner := func(name string, author Person, text string) Change {
		return one(name, author, "Call the shop "+text,
			Edit{"cmd/checkout/main.go", `const banner = "Bookshop"`, `const banner = "` + text + `"`}).against("banner", NoMerge)
	}
	hours := func(name string, author Person, text string) Change {
		return one(name, author, "Open the help desk "+text,
			Edit{"README.md", "Opening hours of the help desk: 9 to 17.", "Opening hours of the help desk: " + text + "."}).against("opening hours", NoMerge)
	}
	return in("Textual conflicts, of which one can land",
		banner("banner-harbour", Fatima, "Harbour Books"),
		banner("banner-corner", Goran, "The Corner Bookshop"),
		hours("hours-early", Ada, "8 to 16"),
		hours("hours-late", Bo, "10 to 18"),
		hours("hours-saturday", Hana, "9 to 17, Saturdays 10 to 14"),
	)
}

// breaking pairs merge without a conflict and are green alone; together they are not.
func breaking() []Change {
	return in("Pairs that pass alone and break together, of which one can land",
		one("calendar-rename", Ada, "Call a day a day: NextWorkingDay",
			Edit{"lib/calendar/calendar.go", "// NextWorking is the first working day after a day.\nfunc NextWorking(day time.Time)",
				"// NextWorkingDay is the first working day after a day.\nfunc NextWorkingDay(day time.Time)"},
			Edit{"lib/calendar/calendar.go", "\t\tday = NextWorking(day)\n", "\t\tday = NextWorkingDay(day)\n"},
			Edit{"lib/calendar/calendar_test.go", "got := NextWorking(friday)", "got := NextWorkingDay(friday)"},
			Edit{"shop/delivery/delivery.go", "day := calendar.NextWorking(posted)", "day := calendar.NextWorkingDay(posted)"},
		).against("calendar", StepFailed),
		one("delivery-pickup", Goran, "Say from when on a parcel can be picked up",
			Edit{"shop/delivery/pickup.go", "", `package delivery

import (
	"time"

	"bookshop.example/lib/calendar"
)

// Pickup is the first day on which a parcel that arrived on a day can be picked up.
func Pickup(arrived time.Time) time.Time { return calendar.NextWorking(arrived) }
`},
			Edit{"shop/delivery/pickup_test.go", "", `package delivery

import (
	"testing"
	"time"

	"bookshop.example/lib/calendar"
)

func TestNobodyPicksUpOnSunday(t *testing.T) {
	if got := Pickup(calendar.Day(2026, time.January, 10)); got.Weekday() != time.Monday {
		t.Errorf("on %s", got.Weekday())
	}
}
`}).against("calendar", StepFailed),
		one("pricing-free-delivery-from-60", Emil, "Deliver free from 60.00 on",
			Edit{"shop/pricing/pricing.go", "const FreeDeliveryFrom money.Amount = 5000", "const FreeDeliveryFrom money.Amount = 6000"},
		).against("free delivery", StepFailed),
		one("cart-free-delivery-tested", Dora, "Test that five books of 10.00 are delivered free",
			addTest("shop/cart/cart_test.go", "FiveBooksAreDeliveredFree", `if got, want := filled(t, 5).Total(), 5000+pricing.Tax(5000); got != want {
		t.Errorf("%s, not %s", got, want)
	}`)).against("free delivery", StepFailed),
	)
}
