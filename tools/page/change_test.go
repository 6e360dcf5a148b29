package page_test

import (
	"strings"
	"testing"
)

// TestTheNumbersOfAChangeAreShownOnDemand: nothing is asked before they are opened; then they have each factor, and what predicted it.
func TestTheNumbersOfAChangeAreShownOnDemand(t *testing.T) {
	r := newShowcase(t)
	asked := func() bool {
		return evaluate[bool](r, `performance.getEntriesByType("resource").some((e) => e.name.includes("explain"))`)
	}
	for _, s := range sizes {
		r.window(s, 1, map[bool]string{true: "dark", false: "light"}[s.phone])
		r.open("/queues/shop/changes/checkout-more")
		r.see("what is predicted, and how its builds are ranked")
		if asked() {
			t.Error("the numbers are asked for before somebody opens them")
		}
		r.click("summary", "Its numbers")
		r.see("it passes by itself")
		r.see("success 5f1d0c7a9b3e")
		r.see("Rank 2 of the queue's builds")
		r.shoot("numbers-" + s.name)
		r.check("numbers, " + s.name)
	}
	row := func(name string) string {
		return evaluate[string](r, `[...[...document.querySelectorAll(".numbers tr")].find((e) => e.cells[0].textContent === "`+name+`").cells].map((c) => c.textContent).join("|")`)
	}
	for name, want := range map[string]string{
		"it passes by itself": "it passes by itself|88 %|model success 5f1d0c7a9b3e",
		"its builds take":     "its builds take|5 min ± 44 s|the last runs of its targets",
		"prices-more":         "prices-more|land|71 %|0 %|0.71|0.71: success of prices-more (model success 5f1d0c7a9b3e)",
	} {
		if got := row(name); !strings.HasPrefix(got, want) {
			t.Errorf("the row of %s is %q, want %q", name, got, want)
		}
	}
	r.open("/queues/shop/changes/checkout-more?at=2026-01-05T10%3A00%3A20Z")
	r.see("This is the past")
	r.see("What happened")
	if evaluate[int](r, `document.querySelectorAll(".numbers").length`) > 0 || strings.Contains(r.text(), "Its numbers") {
		t.Error("numbers are offered of the past")
	}
}

// TestTwoRevisionsOfAChangeAreCompared: what is in a difference is text, whatever it says.
func TestTwoRevisionsOfAChangeAreCompared(t *testing.T) {
	r := newShowcase(t)
	for _, s := range sizes {
		r.window(s, 1, map[bool]string{true: "light", false: "dark"}[s.phone])
		r.open("/queues/docs/changes/guide")
		r.see("Its revisions")
		r.click("button", "Show the difference")
		r.see("As if both were on the mainline that revision 2 is on.")
		r.see("Read the first chapter, <script>alert(1)</script> and all.")
		r.see("It goes on: this is the first 13 lines.")
		r.shoot("revisions-" + s.name)
		r.check("revisions, " + s.name)
	}
	if lines := evaluate[[]string](r, `[...document.querySelectorAll(".patch .added, .patch .removed")].map((e) => e.className + e.textContent.trimEnd())`); strings.Join(lines, "|") != "removed-Ask somebody.|added+Read the first chapter, <script>alert(1)</script> and all.|added+ Then ask somebody." {
		t.Errorf("the lines are %q", lines)
	}
	r.open("/queues/shop/changes/cart-more")
	r.see("What it is")
	if strings.Contains(r.text(), "Its revisions") {
		t.Error("revisions are offered of a change that has one")
	}
}
