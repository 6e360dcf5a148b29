package page_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// rows are the changes of the table that are shown, in their order.
func (r *reader) rows() []string {
	r.t.Helper()
	return evaluate[[]string](r, `[...document.querySelectorAll("button.open")].map((e) => e.dataset.change)`)
}

// TestTheTableIsSearchedAndFiltered by state, author and team, and the address has what is chosen.
func TestTheTableIsSearchedAndFiltered(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[1], 1, "light")
	all := []string{"cart-more", "prices-more", "search-more", "checkout-more", "catalog-more", "old-idea", "tax-table", "round-up"}
	shows := func(address string, want ...string) {
		t.Helper()
		r.until("the rows are those of "+address, func() bool { return slices.Equal(r.rows(), want) })
		if at := r.address(); at != "/queues/shop"+address {
			t.Errorf("the address has %q, want %q", at, address)
		}
		r.open("/queues/shop" + address)
		r.until("the address alone shows them", func() bool { return slices.Equal(r.rows(), want) })
	}
	r.open("/queues/shop")
	shows("", all...)
	r.click(".filters label", "failed")
	shows("?state=failed", "tax-table")
	r.click(".filters label", "pending")
	shows("?state=pending", all[:5]...)
	r.open("/queues/shop")
	r.see("Ada Byron, admin")
	r.click(".filters label", "mine")
	shows("?author=Ada+Byron", "cart-more", "round-up")
	r.open("/queues/shop")
	r.see("all teams")
	evaluate[int](r, `(() => { const s = document.querySelector(".filters select"); s.value = "payments"; s.dispatchEvent(new Event("change", {bubbles: true})); return 0 })()`)
	shows("?team=payments", "cart-more", "checkout-more", "tax-table", "round-up")
	r.do(chromedp.SendKeys("input[type=search]", "Invo"))
	r.until("the search is used", func() bool { return slices.Equal(r.rows(), []string{"checkout-more"}) })
	r.do(chromedp.SendKeys("input[type=search]", "nothing"))
	r.see("No change matches")
	r.check("no change matches")
	r.click("button", "Show all 8 changes")
	r.until("all are shown", func() bool { return slices.Equal(r.rows(), all) })
	r.do(chromedp.Focus("button.open"), chromedp.KeyEvent("/"))
	r.until("the key leads to the search", func() bool { return evaluate[string](r, "document.activeElement.type") == "search" })
}

// TestAChangeIsMovedToTheFront by its button, with a reason.
func TestAChangeIsMovedToTheFront(t *testing.T) {
	w := newWorld(t, "600", 1) // nothing lands before the test is over
	r := newReader(t, w)
	r.look(sizes[1], "light")
	w.land("cart-more", "", ada, "More of the cart", map[string]string{"cart/c.txt": "fine\n"})
	w.land("tax-more", "", cy, "More of the tax", map[string]string{"tax/c.txt": "fine\n"})
	r.open("/queues/shop")
	r.until("both are there", func() bool { return slices.Equal(r.rows(), []string{"cart-more", "tax-more"}) })
	r.click("button.open", "More of the tax")
	r.click(".actions button", "Move to front")
	r.see("It comes before all other changes")
	r.do(chromedp.SendKeys("dialog input", "a hotfix"))
	r.click("dialog button.main", "Move to front")
	r.until("it is the first", func() bool { return slices.Equal(r.rows(), []string{"tax-more", "cart-more"}) })
	r.see("↑ front")
	r.open("/queues/shop/changes/tax-more")
	r.see("first in the queue")
	r.see("Moved to the front by somebody: a hotfix.")
	r.see("Cancel")
	if strings.Contains(r.text(), "Move to front") {
		t.Error("the first change is offered to be moved to the front")
	}
	r.check("a change that was moved")
}
