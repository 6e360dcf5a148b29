package page_test

import (
	"slices"
	"testing"
)

// TestAnotherSettingIsSimulatedFromThePage: it is asked for, its progress is shown to every reader, it is cancelled, and a result is a
// sentence and a table.
func TestAnotherSettingIsSimulatedFromThePage(t *testing.T) {
	r := newShowcase(t)
	for _, s := range sizes {
		r.window(s, 1, map[bool]string{true: "dark", false: "light"}[s.phone])
		r.open("/queues/shop/analytics")
		r.see("With 16 workers instead of 8: half of 421 changes wait up to 3 min instead of 9 min, 95 of 100 up to 19 min instead of 41 min;")
		r.see("Workers (now 8)")
		evaluate[bool](r, `(document.querySelector(".whatif").scrollIntoView(), true)`)
		r.shoot("what-if-" + s.name)
		r.check("what if, " + s.name)
	}
	rows := evaluate[[]string](r, `[...document.querySelectorAll(".whatif tbody tr")].map((e) => [...e.cells].map((c) => c.textContent).join("|"))`)
	if want := []string{"half of the changes wait|9 min|3 min", "95 of 100 wait|41 min|19 min", "each takes, over what it takes alone|3.12 times|1.54 times", "workers are busy, together|11 h|11.3 h"}; !slices.Equal(rows, want) {
		t.Errorf("the table is %q", rows)
	}

	// There is no history in ClickHouse, and it can be simulated all the same.
	r.open("/queues/docs/analytics")
	r.see("There is no history")
	r.see("Threshold (now 0.05)")
	fill := func(input int, value string) {
		evaluate[bool](r, `(() => { const e = document.querySelectorAll(".whatif input")[`+string(rune('0'+input))+`]; e.value = "`+value+`"; e.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
	}
	r.allow("status of 400")
	fill(0, "8")
	r.click(".whatif button", "Simulate")
	r.see("That is the present setting.")
	fill(1, "0.3")
	r.click(".whatif button", "Simulate")
	r.see("42 %")
	r.see("8 workers, threshold 0.3, no bypasses")
	r.check("it is simulated")
	if !evaluate[bool](r, `[...document.querySelectorAll(".whatif button")].find((b) => b.textContent === "Simulate").disabled`) {
		t.Error("another one is offered beside it")
	}
	r.open("/queues/tools/analytics")
	r.see("The gateway simulates another queue now, and one at a time.")
	r.open("/queues/docs/analytics")
	r.see("42 %")
	r.click(".whatif button", "Cancel")
	r.see("The simulation was cancelled.")
	r.check("it is cancelled")
}
