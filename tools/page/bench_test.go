package page_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var facts = flag.Int("facts", 1500, "how many facts the benchmark of the page has written, 50 a second")

// watched measures in the page: when the first rows are there, tasks of more than 50 ms, and how long after each fact it is seen.
const watched = `
globalThis.first = 0
globalThis.long = []
globalThis.late = []
new PerformanceObserver((list) => long.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true })
new MutationObserver((changes) => {
	if (!first && document.querySelector(".row")) first = performance.now()
	for (const c of changes) {
		for (const text of [c.target, ...c.addedNodes]) {
			const written = /written (\d+)/.exec(text.nodeType === 3 ? text.data : "")
			if (written) late.push(Date.now() - Number(written[1]))
		}
	}
}).observe(document, { subtree: true, childList: true, characterData: true })`

// BenchmarkAQueueOfAThousand is the page of a queue with 1,000 pending changes and 50 facts a second: when its first rows are there, how
// long after it was written a fact is seen, the tasks of the main thread that take more than 50 ms, what script, style and layout take
// in each second, and the heap after collections, from the beginning to the end.
// Run it by: make page-test ARGS="-run NONE -bench Thousand -benchtime 1x".
func BenchmarkAQueueOfAThousand(b *testing.B) {
	r := newReader(b, &world{url: started(b, showcase, "50")})
	r.look(sizes[1], "light")
	command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watched})
	command(r, performance.Enable, performance.EnableParams{})
	heap := func() float64 {
		command(r, heapprofiler.CollectGarbage, cdp.Empty{})
		used, err := chromedp.Call(r.ctx, cdpruntime.GetHeapUsage, cdp.Empty{})
		if err != nil {
			b.Fatal(err)
		}
		return used.UsedSize / 1e6
	}
	spent := func() (script, style, layout float64) {
		now, err := chromedp.Call(r.ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			b.Fatal(err)
		}
		for _, m := range now.Metrics {
			switch m.Name {
			case "ScriptDuration":
				script = m.Value
			case "RecalcStyleDuration":
				style = m.Value
			case "LayoutDuration":
				layout = m.Value
			}
		}
		return script, style, layout
	}
	for b.Loop() {
		r.open("/queues/shop?state=pending")
		r.see("Number 3")
		b.ReportMetric(evaluate[float64](r, "first"), "ms-first-rows")
		time.Sleep(2 * time.Second)
		evaluate[int](r, "(late.length = long.length = 0)")
		begin := heap()
		script, style, layout := spent()
		lasts := time.Duration(*facts) * time.Second / 50
		var long, late, heaps []float64
		const parts = 5
		for range parts {
			time.Sleep(lasts / parts)
			late = append(late, evaluate[[]float64](r, "late.splice(0)")...) // they would grow the heap
			long = append(long, evaluate[[]float64](r, "long.splice(0)")...)
			heaps = append(heaps, heap())
		}
		scriptThen, styleThen, layoutThen := spent()
		b.ReportMetric(1000*(scriptThen-script)/lasts.Seconds(), "ms-script/s")
		b.ReportMetric(1000*(styleThen-style)/lasts.Seconds(), "ms-style/s")
		b.ReportMetric(1000*(layoutThen-layout)/lasts.Seconds(), "ms-layout/s")
		b.ReportMetric(float64(len(long)), "long-tasks")
		b.ReportMetric(slices.Max(append(long, 0)), "ms-longest-task")
		slices.Sort(late)
		if len(late) == 0 {
			b.Fatal("no fact was seen")
		}
		b.ReportMetric(late[len(late)/2], "ms-seen-p50")
		b.ReportMetric(late[len(late)*95/100], "ms-seen-p95")
		b.ReportMetric(begin, "MB-heap-begin")
		b.ReportMetric(heaps[0], "MB-heap-fifth")
		b.ReportMetric(heaps[2], "MB-heap-three-fifths")
		b.ReportMetric(heaps[4], "MB-heap-end")
		r.updates(10 * time.Second)

		// A key moves the slider into the past.
		r.do(chromedp.Focus(".past-bar input[type=range]"))
		began := time.Now()
		r.do(chromedp.KeyEvent(kb.ArrowLeft))
		r.until("the past is shown", func() bool {
			return evaluate[bool](r, `!!document.querySelector(".past-sign") && document.querySelectorAll(".row").length >= 100`)
		})
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-slider")
	}
}

// BenchmarkAGraphOfAThousand is the graph of such a queue: when it is drawn, and how long script, style and layout take for an update and
// for a key, of all places and of 120 of them.
// Run it by: make page-test ARGS="-run NONE -bench Graph -benchtime 1x".
func BenchmarkAGraphOfAThousand(b *testing.B) {
	r := newReader(b, &world{url: started(b, showcase, "50")})
	r.look(sizes[1], "light")
	command(r, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watched})
	// frame is how long a script and what is drawn for it take.
	frame := func(script string) float64 {
		return evaluate[float64](r, `(async () => { const began = performance.now(); `+script+`; await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); return performance.now() - began })()`)
	}
	for b.Loop() {
		began := time.Now()
		r.open("/queues/shop?view=graph")
		r.until("the queue is drawn", func() bool { return evaluate[bool](r, `!!document.querySelector(".densities rect")`) })
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-first")
		time.Sleep(2 * time.Second)
		evaluate[int](r, "(long.length = 0)")
		r.updates(10 * time.Second)
		b.ReportMetric(frame(`document.querySelector(".parts button:nth-child(3)").focus()`), "ms-said")
		took, worked := r.longestTask(r.trace(func() {
			b.ReportMetric(frame(`document.querySelector(".parts button:nth-child(3)").click()`), "ms-part")
			r.see("Places 241 to 360")
			r.until("all of the part is drawn", func() bool { return evaluate[int](r, `document.querySelectorAll("a.node").length`) == 120 })
		}))
		b.ReportMetric(took, "ms-part-longest-task")
		b.ReportMetric(worked, "processor-ms-part-longest-task")
		r.do(chromedp.Focus("a.node[tabindex='0']"))
		var keys []float64
		all := r.trace(func() {
			for i := range 60 {
				key := []string{"ArrowRight", "ArrowUp", "ArrowRight", "ArrowDown"}[i%4]
				keys = append(keys, frame(fmt.Sprintf(`document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, key)))
			}
		})
		worked = 0
		for _, e := range all {
			if e.Name == "RunTask" {
				worked += e.TDur / 1000
			}
		}
		b.ReportMetric(worked/float64(len(keys)), "processor-ms-key")
		slices.Sort(keys)
		b.ReportMetric(keys[len(keys)/2], "ms-key-p50")
		b.ReportMetric(keys[len(keys)*95/100], "ms-key-p95")
		b.ReportMetric(slices.Max(append(evaluate[[]float64](r, "long"), 0)), "ms-longest-task")
	}
}

// traced is a part of what the main thread did, in microseconds, by the clock and by the thread's own.
type traced struct {
	Name, Ph           string
	Pid, Tid           int
	TS, Dur, TTS, TDur float64
	Args               struct{ Name string }
}

// trace returns what the main thread of the page does in the meantime, in the order of time.
func (r *reader) trace(meantime func()) []traced {
	r.t.Helper()
	var mu sync.Mutex
	var all []traced
	complete := make(chan struct{})
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, value := range e.Value {
				var one traced
				if json.Unmarshal(value, &one) == nil {
					all = append(all, one)
				}
			}
		case *tracing.EventTracingComplete:
			close(complete)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	command(r, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"devtools.timeline", "disabled-by-default-devtools.timeline"}, ExcludedCategories: []string{"*"}}})
	meantime()
	command(r, tracing.End, cdp.Empty{})
	<-complete
	mu.Lock()
	defer mu.Unlock()
	mains := map[[2]int]bool{}
	for _, e := range all {
		mains[[2]int{e.Pid, e.Tid}] = mains[[2]int{e.Pid, e.Tid}] || e.Args.Name == "CrRendererMain"
	}
	all = slices.DeleteFunc(all, func(e traced) bool { return !mains[[2]int{e.Pid, e.Tid}] })
	slices.SortFunc(all, func(a, b traced) int { return cmp.Compare(a.TS, b.TS) })
	return all
}

// longestTask returns how long the longest task took, and of the processor alone, in milliseconds.
func (r *reader) longestTask(all []traced) (took, worked float64) {
	r.t.Helper()
	for _, e := range all {
		if e.Name == "RunTask" {
			took, worked = max(took, e.Dur/1000), max(worked, e.TDur/1000)
		}
	}
	if took == 0 {
		r.t.Fatalf("no task is traced, of %d events", len(all))
	}
	return took, worked
}

// updates traces the page for a while, and reports how long script, style and layout took for each of its updates, also of the processor
// alone: on a machine that does other things the clock counts those too.
func (r *reader) updates(lasts time.Duration) {
	r.t.Helper()
	all := r.trace(func() { time.Sleep(lasts) })
	const apart = 20_000 // microseconds between two updates: the gateway sends one each 100 ms at most
	var took, worked []float64
	var until, workedUntil float64
	for _, e := range all {
		if !slices.Contains([]string{"FunctionCall", "EvaluateScript", "UpdateLayoutTree", "Layout"}, e.Name) {
			continue
		}
		if len(took) == 0 || e.TS > until+apart {
			took, worked = append(took, 0), append(worked, 0)
		}
		// What is in another one counts once.
		if end := e.TS + e.Dur; end > until {
			took[len(took)-1] += (end - max(e.TS, until)) / 1000
			until = end
		}
		if end := e.TTS + e.TDur; end > workedUntil {
			worked[len(worked)-1] += (end - max(e.TTS, workedUntil)) / 1000
			workedUntil = end
		}
	}
	if len(took) == 0 {
		r.t.Fatalf("no update is traced, of %d events", len(all))
	}
	slices.Sort(took)
	slices.Sort(worked)
	b, is := r.t.(*testing.B)
	if !is {
		r.t.Fatal("it is for benchmarks")
	}
	b.ReportMetric(took[len(took)/2], "ms-update-p50")
	b.ReportMetric(took[len(took)*95/100], "ms-update-p95")
	b.ReportMetric(worked[len(worked)*95/100], "processor-ms-update-p95")
	b.ReportMetric(float64(len(took))/lasts.Seconds(), "updates/s")
}

// processorTime returns how much of a processor a process has used.
func processorTime(tb testing.TB, id int) time.Duration {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		tb.Skip("there is no /proc")
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(rest)
	var ticks int64
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

var writtenAt = regexp.MustCompile(`written (\d+)`)

// BenchmarkFiveHundredBrowsers is a queue with 1,000 pending changes and 50 facts a second that 500 browsers watch: how much of a processor
// the gateway takes, how long after it was written a fact has come to one of them, and how much they are sent.
// Run it by: make page-test ARGS="-run NONE -bench Browsers -benchtime 1x".
func BenchmarkFiveHundredBrowsers(b *testing.B) {
	const browsers, lasts = 500, 20 * time.Second
	url, id := startedProcess(b, showcase, "50")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: browsers}}
	for b.Loop() {
		ctx, stop := context.WithCancel(b.Context())
		var readers sync.WaitGroup
		var mu sync.Mutex
		var late []float64
		var bytes, has int
		var measuring bool
		for range browsers {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/watch?changes=shop", nil)
			if err != nil {
				b.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil || response.StatusCode != http.StatusOK {
				b.Fatal(response, err)
			}
			readers.Go(func() {
				defer response.Body.Close()
				lines := bufio.NewReaderSize(response.Body, 1<<20)
				for first := true; ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					now := time.Now().UnixMilli()
					mu.Lock()
					if first && strings.Contains(line, `"kind":"changes"`) {
						first = false
						has++
					}
					if bytes += len(line); measuring {
						for _, written := range writtenAt.FindAllStringSubmatch(line, -1) {
							if at, err := strconv.ParseInt(written[1], 10, 64); err == nil {
								late = append(late, float64(now-at))
							}
						}
					}
					mu.Unlock()
				}
			})
		}
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			mu.Lock()
			all := has == browsers
			if all {
				bytes, measuring = 0, true
			}
			mu.Unlock()
			if all {
				break
			}
			if time.Now().After(deadline) {
				b.Fatalf("%d of %d browsers have the queue", has, browsers)
			}
		}
		before, began := processorTime(b, id), time.Now()
		time.Sleep(lasts)
		used, took := processorTime(b, id)-before, time.Since(began)
		stop()
		readers.Wait()
		if len(late) == 0 {
			b.Fatal("no fact was seen")
		}
		slices.Sort(late)
		b.ReportMetric(used.Seconds()/took.Seconds(), "processors")
		b.ReportMetric(late[len(late)/2], "ms-seen-p50")
		b.ReportMetric(late[len(late)*95/100], "ms-seen-p95")
		b.ReportMetric(float64(bytes)/took.Seconds()/1e6, "MB/s")
	}
}
