package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// parts makes some of the page's sources known to the reader's page, as `parts`.
func (r *reader) parts(exports string) {
	r.t.Helper()
	folder, err := filepath.Abs("../../services/gateway/web/src")
	if err != nil {
		r.t.Fatal(err)
	}
	made := api.Build(api.BuildOptions{
		Stdin:      &api.StdinOptions{Contents: exports, ResolveDir: folder},
		NodePaths:  []string{os.Getenv("LANDFALL_PAGE_PACKAGES")},
		Bundle:     true,
		GlobalName: "parts", Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
	})
	if len(made.Errors) > 0 {
		r.t.Fatal(made.Errors)
	}
	// The page has its shared worker, and may not make a second one.
	evaluate[bool](r, "globalThis.SharedWorker = undefined;"+string(made.OutputFiles[0].Contents)+"; globalThis.parts = parts; true")
}

// TestOnlyAStepThatIsOverdueIsSaidToBe of an estimate that is late.
func TestOnlyAStepThatIsOverdueIsSaidToBe(t *testing.T) {
	r := newShowcase(t)
	r.open("/")
	r.parts(`export { etaSure } from "./words"`)
	const step = "a step of it takes longer than all of its build was predicted to"
	for _, c := range []struct{ to90, overdue, want string }{
		{"11:30", "13:00", "later than expected"},
		{"11:30", "11:58", step},
		{"13:00", "11:58", step},
		{"13:00", "13:00", "19 of 20 within 1 h"},
	} {
		at := func(of string) string { return "2026-01-05T" + of + ":00Z" }
		script := fmt.Sprintf("parts.etaSure({from_50: %q, to_50: %[1]q, median: %[1]q, from_90: %[1]q, to_90: %q, overdue_from: %q}, Date.parse(%q))", at("11:00"), at(c.to90), at(c.overdue), at("12:00"))
		if got := evaluate[string](r, script); got != c.want {
			t.Errorf("at 12:00 one that is expected by %s, with a step overdue from %s on, is %q, want %q", c.to90, c.overdue, got, c.want)
		}
	}
}

// TestAReasonLinksAChangeThatItsSentenceDoesNotName, also where a longer name contains that of the change.
func TestAReasonLinksAChangeThatItsSentenceDoesNotName(t *testing.T) {
	r := newShowcase(t)
	r.open("/")
	r.parts(`export { Waits } from "./facts"; export { h, render } from "preact"`)
	for _, c := range []struct{ sentence, want string }{
		{"Others break //x12.", "Others break //x12.|x"},
		{"x breaks //x12.", "x breaks //x12.|x"},
	} {
		got := evaluate[string](r, fmt.Sprintf(`(() => {
			const root = document.createElement("div")
			parts.render(parts.h(parts.Waits, {of: {queue: "shop", change: "y", position: 2, why: "", reasons: [{code: "ahead", sentence: %q, changes: ["x"]}]}}), root)
			return root.querySelector(".reasons bdi").textContent + "|" + [...root.querySelectorAll(".reasons a")].map((a) => a.textContent).join()
		})()`, c.sentence))
		if got != c.want {
			t.Errorf("%q is shown with its links as %q, want %q", c.sentence, got, c.want)
		}
	}
}
