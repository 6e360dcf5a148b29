// Package page_test looks at the web page in Chromium, with a landfall up that lands real changes.
package page_test

import (
	"fmt"
	"testing"
)

// eachLook runs a test at three sizes in both themes.
func (r *reader) eachLook(name string, test func(where string)) {
	r.t.Helper()
	for _, s := range sizes {
		for _, theme := range []string{"light", "dark"} {
			r.look(s, theme)
			where := fmt.Sprintf("%s-%s-%s", name, s.name, theme)
			test(where)
			r.shoot(where)
			r.check(where)
		}
	}
}

func TestEveryPageIsSoundAtThreeSizesInBothThemes(t *testing.T) {
	w := newWorld(t, "3", 2)
	r := newReader(t, w)
	r.eachLook("empty", func(string) {
		r.open("/queues/tools")
		r.see("landfall land")
	})
	w.land("tax-table", "tax-table", "Cy Young <cy@example.com>", "New tax table", map[string]string{"tax/b.txt": "bug\n"})
	w.land("round-up", "round-up", "Ada <ada@example.com>", "Round prices up", map[string]string{"prices/b.txt": "fine\n"})
	for i, name := range []string{"cart", "catalog", "search", "prices", "tax", "checkout"} {
		w.land(name+"-more", name+"-more", "Bo <bo@example.com>", "More of the "+name, map[string]string{fmt.Sprintf("%s/c%d.txt", name, i): "fine\n"})
	}
	r.eachLook("queues", func(string) {
		r.open("/")
		r.see("in the queue")
	})
	r.eachLook("queue", func(string) {
		r.open("/queues/shop")
		r.see("More of the checkout")
	})
}
