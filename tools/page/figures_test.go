package page_test

import (
	"slices"
	"strings"
	"testing"
)

func TestTheFiguresOfAQueueAreDrawnAndAreTables(t *testing.T) {
	r := newShowcase(t)
	for _, s := range sizes {
		for _, theme := range []string{"light", "dark"} {
			r.window(s, 1, theme)
			r.open("/queues/shop/analytics")
			r.see("//e2e:checkout")
			r.until("all is drawn", func() bool { return evaluate[int](r, `document.querySelectorAll(".chart canvas").length`) == 8 })
			r.check(s.name + ", " + theme)
		}
	}
	r.window(sizes[1], 1, "light")
	r.open("/queues/shop")
	r.click("header a", "Figures")
	r.see("Figures of shop")
	r.see("//checkout:checkout")
	if says := evaluate[string](r, `document.querySelector(".chart").getAttribute("aria-label")`); says != "Time to land: half landed within 6 min, 95 of 100 within 18 min at Jan 5. The table has all." {
		t.Errorf("a reader who does not see the chart reads %s", says)
	}

	// Each chart is a table too, with a row for each week; the parts of the time to land add up to the whole.
	evaluate[int](r, `[...document.querySelectorAll(".plot summary")].map((s) => s.click()).length`)
	r.until("the tables are open", func() bool {
		return evaluate[int](r, `document.querySelectorAll(".plot details[open] table").length`) == 8
	})
	if rows := evaluate[[]int](r, `[...document.querySelectorAll(".plot details table")].map((t) => t.tBodies[0].rows.length)`); !slices.Equal(rows, []int{8, 8, 8, 8, 8, 8, 10, 8}) {
		t.Errorf("the tables have %v rows", rows)
	}
	if row := evaluate[[]string](r, `[...[...document.querySelectorAll(".plot")].find((p) => p.querySelector("h2").textContent === "What changes wait for").querySelector("table").tBodies[0].rows[7].cells].map((c) => c.textContent)`); strings.Join(row, "|") != "Jan 5|2 s|12 s|62 s|3.9 min|1.7 min|5 s|7 min" {
		t.Errorf("the newest week is %q", row)
	}
	r.check("the tables are open")

	// What is under the mouse is said, and the theme is followed.
	evaluate[bool](r, `(() => { const over = document.querySelector(".u-over"), at = over.getBoundingClientRect(); for (const type of ["mouseenter", "mousemove"]) over.dispatchEvent(new MouseEvent(type, {bubbles: true, clientX: at.left + 4, clientY: at.top + 40})); return true })()`)
	r.see("Nov 17: half landed within 10 min, 95 of 100 within 32 min")
	drawn := evaluate[string](r, `document.querySelector(".chart canvas").toDataURL()`)
	r.window(sizes[1], 1, "dark")
	r.until("the chart is drawn for the other theme", func() bool {
		return evaluate[string](r, `document.querySelector(".chart canvas")?.toDataURL() ?? ""`) != drawn
	})
	r.check("the other theme")

	// The time is in the address.
	evaluate[int](r, `(() => { const s = document.querySelector("main select"); s.value = "4"; s.dispatchEvent(new Event("change", {bubbles: true})); return 0 })()`)
	r.addressed("weeks", "4")
	r.until("four weeks are shown", func() bool {
		return evaluate[int](r, `document.querySelector(".plot details table")?.tBodies[0].rows.length ?? 0`) == 4
	})
	r.open("/queues/shop/analytics?weeks=1000")
	r.until("an impossible time is the usual one", func() bool {
		return evaluate[int](r, `document.querySelector(".plot details table")?.tBodies[0].rows.length ?? 0`) == 8
	})
	r.open("/queues/tools/analytics")
	r.see("Nothing has left the queue in this time")
	r.check("no figures")
	r.open("/queues/docs/analytics")
	r.see("There is no history")
	r.see("clickhouse.dsn")
	r.check("no history")
}
