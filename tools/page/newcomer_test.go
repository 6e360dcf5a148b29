package page_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestANewcomerIsAnsweredByThePageAlone after an incident: what landed last, what blocks a change and when it will be decided, which test
// fails most, what was proven before a change landed, and who paused the queue.
func TestANewcomerIsAnsweredByThePageAlone(t *testing.T) {
	w := newWorld(t, "1", 2)
	r := newReader(t, w)
	r.look(sizes[1], "light")
	decided := func(id, state string) {
		t.Helper()
		r.until(id+" is "+state, func() bool { return w.state(id) == state })
	}
	w.land("first", "", ada, "The first one", map[string]string{"catalog/b.txt": "fine\n"})
	decided("first", "landed")
	r.open("/queues/shop")
	r.see("last landing")
	if text := r.text(); strings.Contains(text, "P50") || strings.Contains(text, "P95") {
		t.Errorf("quantiles of one landing are shown:\n%s", text)
	}
	for i := range 3 {
		w.land(fmt.Sprint("tax-", i), "", cy, fmt.Sprint("Tax table ", i), map[string]string{"tax/b.txt": fmt.Sprintf("bug %d\n", i)})
	}
	w.land("search-more", "", ada, "More of the search", map[string]string{"search/b.txt": "a bug\n"})
	for _, id := range []string{"tax-0", "tax-1", "tax-2", "search-more"} {
		decided(id, "rejected")
	}

	// The checkout fails with a third price alone, which is held. Nothing lands before that is.
	w.post("/v1/queues/shop/pause", `{"who":"Ada"}`)
	w.land("prices-third", "", ada, "A third price", map[string]string{"prices/third.txt": "fine\n"})
	w.post("/v1/queues/shop/changes/prices-third/hold", `{"who":"Ada","why":"not before the sale"}`)
	w.post("/v1/queues/shop/resume", `{"who":"Ada"}`)
	step := `if [ -e prices/third.txt ]; then echo "FAIL: there is a third price"; exit 1; fi; echo ok`
	w.land("checkout-two", "", cy, "Two prices at checkout", map[string]string{
		"checkout/landfall.yaml": fmt.Sprintf("targets:\n  - name: checkout\n    kind: test\n    sources: [\"*.txt\"]\n    deps: [//prices:prices]\n    steps: [{ name: check, run: [sh, -c, %q] }]\n", step),
	})
	w.post("/v1/queues/shop/pause", `{"who":"Grace","why":"incident 7"}`)
	w.land("catalog-more", "", ada, "More of the catalog", map[string]string{"catalog/c.txt": "fine\n"})
	w.post("/v1/queues/shop/resume", `{"who":"Bo","why":"it is over"}`)

	// What blocks it, and when it will be decided.
	r.open("/queues/shop/changes/checkout-two")
	r.see("prices-third is ahead of it and breaks //checkout together with it. What prices-third waits for: It is held by Ada: not before the sale; release it to let it land.")
	r.see("decided: no estimate (what it waits for has no estimate: prices-third is held)")
	if held := evaluate[string](r, `document.querySelector(".meets tr").innerText`); !strings.Contains(held, "A third price") || !strings.Contains(held, "‖ held") {
		t.Errorf("the change ahead is shown as %q", held)
	}
	if link := evaluate[string](r, `(() => { const a = document.querySelector(".sentence a"); return a.innerText + " " + a.title + " " + a.getAttribute("href") })()`); link != "prices-third A third price /queues/shop/changes/prices-third" {
		t.Errorf("its sentence has the link %q", link)
	}
	r.check("a change behind a held one")

	// The table says the same without a mouse: its reason has the link, and the row that is opened why there is no estimate.
	r.open("/queues/shop?open=checkout-two")
	r.see("decided: no estimate (what it waits for has no estimate: prices-third is held)")
	r.until("the reason in the table leads to what it names", func() bool {
		return evaluate[string](r, `(() => { const a = document.querySelector(".row.opened .why a"); return a ? a.innerText + " " + a.title + " " + a.getAttribute("href") : "" })()`) == "prices-third A third price /queues/shop/changes/prices-third"
	})
	r.check("the row of a change behind a held one")
	r.click(".row.opened .why a", "prices-third")
	r.see("It is held by Ada: not before the sale; release it to let it land.")

	// Who paused the queue, and what landed last.
	decided("catalog-more", "landed")
	r.open("/queues/shop")
	r.see("Last paused from ")
	r.see(" by Grace: incident 7; resumed by Bo: it is over.")
	r.click(".pauses summary", "1 earlier pause")
	r.see(" by Ada; resumed by Ada.")
	r.until("the last landing is named", func() bool {
		return evaluate[string](r, `document.querySelector(".figures .last a")?.innerText ?? ""`) == "“More of the catalog”"
	})
	r.see("P50 of 2")
	r.check("a queue after an incident")
	r.click(".figures .last a", "More of the catalog")
	r.see("On the mainline")
	r.see("Proof: 1 target version of this very tree")
	r.check("what landed last")

	// Which test fails most.
	r.click("header a", "Failing targets")
	r.see("//tax rejected most changes (3). 2 targets rejected changes; 0 flaky targets")
	rows := evaluate[[]string](r, `[...document.querySelector("table").tBodies[0].rows].map((e) => [...e.cells].map((c) => c.innerText.trim()).join("|").replace(/\d+ (s|min) ago/, "ago").replace("just now", "ago"))`)
	if len(rows) != 2 || !strings.HasPrefix(rows[0], "//tax|3|ago: Tax table ") || rows[1] != "//search|1|ago: More of the search|–" {
		t.Errorf("the targets that rejected changes are %q", rows)
	}
	r.check("failing targets")
}
