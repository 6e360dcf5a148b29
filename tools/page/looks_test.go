package page_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// update writes golden pictures anew: make page-test ARGS="-run EveryPageHas -update all".
var update = flag.String("update", "", "write the golden pictures of the pages with this in their names anew, or with one of several with commas; all: of every page")

// looks is where they are.
const looks = "testdata/looks"

// still has a document show one moment, in fonts that are wherever Chromium is, without a caret that blinks.
const still = `{
	const moment = Date.parse("2026-01-05T10:30:00Z") // showcase's
	globalThis.Date = class extends Date {
		constructor(...given) { if (given.length) super(...given); else super(moment) }
		static now() { return moment }
	}
	const sheet = new CSSStyleSheet()
	sheet.replaceSync('body, button, input, select, textarea { font-family: "DejaVu Sans" !important } code, pre, kbd, .lines { font-family: "DejaVu Sans Mono" !important } * { caret-color: transparent !important }')
	document.adoptedStyleSheets = [sheet]
}`

// windows are the sizes of the golden looks. Pictures of the widest are shrunk to a third: it has room rather than detail.
var windows = []struct {
	size
	shrink int
}{{size{"phone", 390, 1400, true}, 1}, {size{"laptop", 1280, 800, false}, 1}, {sizes[2], 3}}

// shown are the pages, each with texts that it shows once it is complete.
var shown = []struct {
	name, path string
	texts      []string
	// does makes the page what is shown of it, if that takes more than its address.
	does func(*reader)
}{
	{"queues", "/", []string{"Paused by Grace since", ": incident 7. Builds go on", "idle", "Ada Byron"}, nil},
	{"queue", "/queues/shop", []string{"Count returns too", "Round prices up", "Pause", "Ada Byron, admin"}, nil},
	{"queue-empty", "/queues/tools", []string{"Land your first change", "Pause"}, func(r *reader) {
		// The showcase is at another port each time.
		r.until("the commands have the default address", func() bool {
			return evaluate[bool](r, `(() => { const all = [...document.querySelectorAll("pre")]; for (const p of all) p.textContent = p.textContent.replaceAll(location.origin, "http://localhost:7878"); return all.length > 1 })()`)
		})
	}},
	{"queue-mainline-red", "/queues/docs?log=&in=", []string{"What fails on the mainline", "https://example.com/guide is away", "Retry the mainline", "Resume"}, nil},
	{"queue-picked", "/queues/shop?pick=cart-more&pick=catalog-more", []string{"2 changes picked", "Hold 2", "Pause"}, nil},
	{"row-opened", "/queues/shop?open=tax-table&state=failed", []string{"What failed", "Everything about it", "Retry", "Pause"}, nil},
	{"graph", "/queues/shop?view=graph", []string{"changes that meet", "Pause"}, nil},
	{"change-waits", "/queues/shop/changes/checkout-more", []string{"What it waits for", "None of its steps runs now: 3 steps wait for a worker.", "What happened", "Cancel"}, nil},
	{"change-rejected", "/queues/shop/changes/tax-table", []string{"What failed", "What happened", "Retry"}, nil},
	{"change-landed", "/queues/shop/changes/round-up", []string{"On the mainline", "What happened"}, nil},
	{"dialog", "/queues/shop/changes/checkout-more", []string{"It leaves the queue and does not land."}, func(r *reader) { r.click(".actions button", "Cancel") }},
	{"flakes", "/queues/shop/flakes", []string{"1 flaky target", "a race in the test server", "Quarantine a target"}, nil},
	{"models", "/queues/shop/models", []string{"0.2913", "Roll back", "priors predict"}, nil},
	{"services", "/services", []string{"Pool", "lander", "silent"}, nil},
	{"figures", "/queues/shop/analytics", []string{"Figures of shop", "What changes wait for", "//e2e:checkout", "Ada Byron, admin"}, nil},
	{"workers", "/pools/linux?at=2026-01-05T10%3A30%3A00Z&minutes=10&step=linux-1%2F3+2026-01-05T10%3A21%3A14Z+%2F%2Fmenu%3Amenu", []string{"Workers of pool linux", "moved to the front", "faster-start"}, nil},
	{"dead-letters", "/dead-letters", []string{"2 dead letters", "the queue is there now", "Send again"}, nil},
	{"access", "/access?queue=shop", []string{"nightly build", "What somebody else may do", "quarantine"}, nil},
	{"past", "/queues/shop?at=2026-01-05T10%3A00%3A20Z", []string{"This is the past", "Count returns too"}, nil},
	{"nothing", "/queues/shop/changes/ghost", []string{"The queue has no such change"}, nil},
}

// newShowcase is somebody who looks at the page over queues that stand still.
func newShowcase(t *testing.T) *reader {
	t.Helper()
	return newShowcaseAt(t, started(t, showcase))
}

// newShowcaseAt is newShowcase of one that is at an address.
func newShowcaseAt(t *testing.T, address string, more ...chromedp.ExecAllocatorOption) *reader {
	t.Helper()
	r := newReader(t, &world{t: t, url: address}, more...)
	command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: still})
	command(r, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	command(r, emulation.SetLocaleOverride, emulation.SetLocaleOverrideParams{Locale: "en-US"})
	command(r, emulation.SetScrollbarsHidden, emulation.SetScrollbarsHiddenParams{Hidden: true})
	return r
}

// window sets the size of the window, to how much of it pictures are shrunk, the theme, and no motion.
func (r *reader) window(s size, shrink int, theme string) {
	r.t.Helper()
	r.shrink, r.width = shrink, s.width
	command(r, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.phone})
	command(r, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

func (r *reader) picture() *image.RGBA {
	r.t.Helper()
	shot, err := chromedp.Run(r.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		r.t.Fatal(err)
	}
	return shrunk(plain(m), r.shrink)
}

// settled takes pictures until two are the same.
func (r *reader) settled() *image.RGBA {
	r.t.Helper()
	last := r.picture()
	r.until("the page stands still", func() bool {
		before := last
		last = r.picture()
		squares, same := unlike(before, last)
		return same && len(squares) == 0
	})
	return last
}

func writePNG(t *testing.T, name string, m image.Image) {
	t.Helper()
	var text bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&text, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readPNG(t *testing.T, name string) *image.RGBA {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err, "; write it by: make page-test ARGS=\"-run EveryPageHas -update NAME\"")
	}
	m, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(name, err)
	}
	return plain(m)
}

// patience is for how long a page may take to look as it did: what it shows comes in parts, on a machine that is busy with others too.
const patience = time.Minute

func TestEveryPageHasItsGoldenLook(t *testing.T) {
	r := newShowcase(t)
	r.allow("status of 404") // the change that is not there
	if err := os.MkdirAll(looks, 0o755); err != nil {
		t.Fatal(err)
	}
	var kept []string
	wait := patience
	for _, p := range shown {
		for _, s := range windows {
			r.window(s.size, s.shrink, "light")
			r.open(p.path)
			if p.does != nil {
				p.does(r)
			}
			r.see(p.texts[0])
			r.fits(p.name + " on a " + s.name)
			for _, theme := range []string{"light", "dark"} {
				name := fmt.Sprintf("%s-%s-%s", p.name, s.name, theme)
				kept = append(kept, name+".png")
				r.window(s.size, s.shrink, theme)
				for _, text := range p.texts {
					r.see(text)
				}
				if *update == "all" || *update != "" && slices.ContainsFunc(strings.Split(*update, ","), func(of string) bool { return strings.Contains(p.name, of) }) {
					writePNG(t, filepath.Join(looks, name+".png"), small(r.settled()))
					continue
				}
				golden := readPNG(t, filepath.Join(looks, name+".png"))
				is := r.picture()
				squares, same := unlike(is, golden)
				for deadline := time.Now().Add(wait); (!same || len(squares) > 0) && time.Now().Before(deadline); squares, same = unlike(is, golden) {
					time.Sleep(50 * time.Millisecond)
					is = r.picture()
				}
				if same && len(squares) == 0 {
					continue
				}
				wait = 5 * time.Second // once one differs the others are not waited for so long
				folder := r.differences()
				writePNG(t, filepath.Join(folder, name+".png"), is)
				writePNG(t, filepath.Join(folder, name+"-marked.png"), marked(is, squares))
				t.Errorf("%s does not look as before, in %d squares of %d pixels (of the same size: %t): compare %s/%s.png with %s/%[6]s.png. If that is meant, run make page-test ARGS=\"-run EveryPageHas -update %[8]s\" and look at the pictures",
					name, len(squares), cell, same, folder, name, looks, p.name)
			}
		}
	}
	r.check("the golden looks")
	files, err := os.ReadDir(looks)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if bytes += info.Size(); !slices.Contains(kept, f.Name()) {
			t.Errorf("%s/%s is of no page: remove it", looks, f.Name())
		}
	}
	if bytes > 3_000_000 {
		t.Errorf("the pictures are %d bytes, 3 MB at most", bytes)
	}
}

// differences is the folder of pictures that differ from the golden ones: LOOKS, or one in the temporary folder.
func (r *reader) differences() string {
	r.t.Helper()
	if folder := os.Getenv("LANDFALL_PAGE_LOOKS"); folder != "" {
		return folder
	}
	if r.folder == "" {
		var err error
		if r.folder, err = os.MkdirTemp("", "landfall-looks-"); err != nil {
			r.t.Fatal(err)
		}
	}
	return r.folder
}

// TestAChangeOfLayoutOrColourBreaksAGoldenLook: and how letters are smoothed does not.
func TestAChangeOfLayoutOrColourBreaksAGoldenLook(t *testing.T) {
	r := newShowcase(t)
	for _, theme := range []string{"light", "dark"} {
		r.window(windows[1].size, 1, theme)
		r.open("/queues/shop")
		r.see("Ada Byron, admin")
		r.see("Count returns too")
		r.see("Pause")
		is := r.settled()
		golden := plain(small(is))
		if squares, _ := unlike(smoothed(is), golden); len(squares) > 0 {
			t.Errorf("%s: letters that are smoothed otherwise differ in %d squares", theme, len(squares))
		}
		for _, c := range []struct {
			name, style string
			// differs is how many squares differ at least; 0: none.
			differs int
		}{
			{"nothing", "", 0},
			{"the page 3 pixels lower", "main { position: relative; top: 3px }", 40},
			{"wider cells", ".changes td { padding-left: 12px }", 40},
			{"another colour of what is soft", ":root { --soft: #a03030 }", 40},
			{"another colour of what is good", ":root { --good: #c07000 }", 3},
			{"another ground", "body { background: light-dark(#f2f2f2, #202020) }", 1000},
			{"a button that is gone", ".line > button { visibility: hidden }", 4},
			{"a line that is gone", "h1 { visibility: hidden }", 4},
		} {
			evaluate[int](r, fmt.Sprintf(`{ const s = new CSSStyleSheet(); s.replaceSync(%q); document.adoptedStyleSheets = [document.adoptedStyleSheets[0], s]; 0 }`, c.style))
			squares, same := unlike(r.settled(), golden)
			if !same || c.differs == 0 && len(squares) > 0 || len(squares) < c.differs {
				writePNG(t, filepath.Join(r.differences(), strings.ReplaceAll(c.name, " ", "-")+"-"+theme+".png"), marked(r.picture(), squares))
				t.Errorf("%s, %s: %d squares differ, want %d at least, or none for 0 (pictures: %s)", c.name, theme, len(squares), c.differs, r.differences())
			}
		}
	}
}

func TestAPhoneShowsTheOtherPagesOnDemand(t *testing.T) {
	r := newShowcase(t)
	r.window(sizes[0], 1, "light")
	shown := func() bool { return evaluate[bool](r, `document.querySelector("#more").offsetHeight > 0`) }
	r.open("/queues/shop")
	r.see("More")
	if shown() {
		t.Error("the other pages fill the phone's header")
	}
	r.click("header button", "More")
	r.until("they are shown", shown)
	r.check("the header of a phone")
	r.click("#more a", "Dead letters")
	r.see("2 dead letters")
	r.until("they are hidden again", func() bool { return !shown() })
	r.window(sizes[1], 1, "light")
	r.until("a wider page shows them", shown)
}
