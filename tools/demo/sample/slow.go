package sample

// Names of changes that somebody does something to.
const (
	// Slow is large and slow.
	Slow = "forecast-seasons"
	// Withdrawn is cancelled while it waits.
	Withdrawn = "forecast-tuning"
	// Hotfix is moved to the front of the queue.
	Hotfix = "hotfix-tax-of-refunds"
	// Resubmitted fails at first.
	Resubmitted = "lru-resize"
)

// slow is the large change whose test takes long, and what small ones do around it.
func slow() []Change {
	large := one(Slow, Chen, "Forecast by season and live, and print it in columns",
		Edit{"lab/forecast/forecast.go", "\t// Chance is the probability that somebody buys a copy within an hour.\n\tChance float64\n",
			"\t// Chance is the probability that somebody buys a copy within an hour.\n\tChance float64\n\t// Season is a factor on it; 0 means 1.\n\tSeason float64\n"},
		Edit{"lab/forecast/forecast.go", "\trandom := rand.New(rand.NewPCG(seed, 1))\n", "\trandom, chance := rand.New(rand.NewPCG(seed, 1)), m.chance()\n"},
		Edit{"lab/forecast/forecast.go", "if random.Float64() < m.Chance {", "if random.Float64() < chance {"},
		Edit{"lab/forecast/season.go", "", `package forecast

// chance is the probability of a sale in the season.
func (m Model) chance() float64 {
	if m.Season == 0 {
		return m.Chance
	}
	return m.Chance * m.Season
}
`},
		Edit{"lab/forecast/live.go", "", `package forecast

import "time"

// Live forecasts while sales come in.
type Live struct {
	first, last time.Time
	sold        int
}

// Sold notes that a copy was sold.
func (l *Live) Sold(at time.Time) {
	if l.sold == 0 {
		l.first = at
	}
	l.last = at
	l.sold++
}

// Lasts predicts how long a stock lasts at the pace so far; 0 before the second sale.
func (l *Live) Lasts(stock int) time.Duration {
	if l.sold < 2 {
		return 0
	}
	return l.last.Sub(l.first) / time.Duration(l.sold-1) * time.Duration(stock)
}
`},
		Edit{"lab/forecast/live_test.go", "", `package forecast

import (
	"testing"
	"time"
)

// A day in the shop takes a quarter of a minute here: sales come in while the clock runs.
func TestTheForecastFollowsALiveFeed(t *testing.T) {
	const sales, pause = 140, 100 * time.Millisecond
	live := &Live{}
	for range sales {
		live.Sold(time.Now())
		time.Sleep(pause)
	}
	if got := live.Lasts(10); got < 10*pause {
		t.Errorf("a stock of 10 lasts %s at a sale each %s", got, pause)
	}
}
`},
		Edit{"lab/forecast/season_test.go", "", `package forecast

import "testing"

func TestChristmasEmptiesTheStockSooner(t *testing.T) {
	usual, christmas := Model{Stock: 40, Chance: 0.05}, Model{Stock: 40, Chance: 0.05, Season: 3}
	if christmas.Hours(10_000, 7) >= usual.Hours(10_000, 7) {
		t.Error("it does not")
	}
}
`},
		Edit{"lib/text/columns.go", "", `package text

import "strings"

// Columns lines up the cells of rows.
func Columns(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
`},
		Edit{"lib/text/columns_test.go", "", `package text

import "testing"

func TestColumnsLineUp(t *testing.T) {
	if got := Columns([][]string{{"a", "b"}, {"été", "c"}}); got != "a    b\nété  c\n" {
		t.Errorf("%q", got)
	}
}
`},
		Edit{"shop/sales/landfall.yaml", "deps: [//lib/money, //lib/stats]", "deps: [//lib/money, //lib/stats, //lib/text]"},
		Edit{"shop/sales/table.go", "", `package sales

import (
	"fmt"

	"bookshop.example/lib/text"
)

// Table is the report in columns.
func (r Report) Table() string {
	return text.Columns([][]string{
		{"orders", fmt.Sprint(r.Orders)},
		{"total", r.Total.String()},
		{"mean", r.Mean.String()},
		{"median", r.Median.String()},
	})
}
`},
		Edit{"shop/sales/table_test.go", "", `package sales

import (
	"testing"

	"bookshop.example/lib/money"
)

func TestTheTableHasARowForEachFigure(t *testing.T) {
	want := "orders  1\ntotal   5.00\nmean    5.00\nmedian  5.00\n"
	if got := Sum([]money.Amount{500}).Table(); got != want {
		t.Errorf("%q", got)
	}
}
`},
		Edit{"cmd/forecast/landfall.yaml", "", `targets:
  - name: forecast
    kind: binary
    sources: ["*.go"]
    deps: [//lab/forecast, //lib/text]
    steps:
      - name: build
        run: [go, build, -o, /dev/null, ./cmd/forecast]
`},
		Edit{"cmd/forecast/main.go", "", `// Command forecast predicts how long a stock lasts, season by season.
package main

import (
	"fmt"

	"bookshop.example/lab/forecast"
	"bookshop.example/lib/text"
)

func main() {
	rows := [][]string{{"season", "hours"}}
	for name, season := range map[string]float64{"summer": 0.5, "christmas": 3} {
		m := forecast.Model{Stock: 40, Chance: 0.05, Season: season}
		rows = append(rows, []string{name, fmt.Sprintf("%.1f", m.Hours(10_000, 1))})
	}
	fmt.Print(text.Columns(rows))
}
`})
	withdrawn := one(Withdrawn, Chen, "Tune the seasons",
		Edit{"lab/forecast/tuning.go", "", `package forecast

// Summer is quiet.
const Summer = 0.5
`}).after(Slow).ends(Cancelled)
	around := []Change{
		one("search-limit", Dora, "Find at most some books",
			Edit{"shop/search/limit.go", "", `package search

import "bookshop.example/shop/catalog"

// First is Find with at most n books.
func (x *Index) First(beginning string, n int) []catalog.Book {
	found := x.Find(beginning)
	return found[:min(n, len(found))]
}
`},
			Edit{"shop/search/limit_test.go", "", `package search

import "testing"

func TestNoMoreThanAsked(t *testing.T) {
	if got := index(t).First("war", 1); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
`}),
		one("invoice-thanks", Fatima, "Thank at the end of an invoice",
			Edit{"shop/invoice/invoice.go", "\treturn b.String()\n", "\tb.WriteString(\"Thank you.\\n\")\n\treturn b.String()\n"},
			Edit{"shop/invoice/thanks_test.go", "", `package invoice

import "testing"

func TestTheLastLineIsThanks(t *testing.T) {
	if lines := written(t); lines[len(lines)-1] != "Thank you." {
		t.Errorf("%q", lines)
	}
}
`}),
		one("stock-reorder", Hana, "List what is to be ordered again",
			Edit{"shop/stock/reorder.go", "", `package stock

// Reorder lists the books of which fewer copies are there than given, in the catalog's order.
func (s *Stock) Reorder(below int) []string {
	var short []string
	for _, b := range s.catalog.Books() {
		if s.copies[b.ISBN] < below {
			short = append(short, b.ISBN)
		}
	}
	return short
}
`},
			Edit{"shop/stock/reorder_test.go", "", `package stock

import "testing"

func TestWhatRunsOutIsOrdered(t *testing.T) {
	s := filled(t, 3)
	if s.Reorder(3) != nil || len(s.Reorder(4)) != 1 {
		t.Errorf("%v, %v", s.Reorder(3), s.Reorder(4))
	}
}
`}),
		testOnly("text-width-tested", Emil, "lib/text/text", "Width", `if got := Wrap("incomprehensibilities", 5); len(got) != 1 {
		t.Errorf("%q", got)
	}`),
	}
	out := in("One large slow change, and small ones that need not wait for it", append([]Change{large}, around...)...)
	return append(out, in("Cancelled by its author", withdrawn)...)
}
