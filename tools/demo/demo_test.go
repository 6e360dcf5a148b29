package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/platform/landing"
	"landfall.build/services/builder/execution"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/display"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/replay/replaytest"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

// play runs a whole demo and checks what the command would: the outcome, and each commit.
func play(t *testing.T, d *demo) {
	t.Helper()
	if testing.Short() {
		t.Skip("lands 44 changes and builds every commit again")
	}
	d.place = place{t.TempDir()}
	replaytest.AtEnd(t, d.brokers, filepath.Join(d.place.dir, "data"))
	d.logger, d.live, d.progress = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), display.NewLive(t.Output()), t.Output()
	found, err := d.run(t.Context())
	d.live.End()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found.result.Problems {
		t.Error(p)
	}
	if !found.good() || found.audit.Green() != len(found.audit.Commits) {
		t.Errorf("%d of %d commits are green", found.audit.Green(), len(found.audit.Commits))
		found.audit.Write(t.Output())
	}
	named(t, d, found.result.Ends)
	s, want := found.summary(), wanted(d.sample)
	got := summary{Landed: s.Landed, Rejected: s.Rejected, Ejected: s.Ejected, Cancelled: s.Cancelled}
	if got != want || s.Bypassed == 0 {
		t.Errorf("%+v, want %+v", s, want)
	}
	if s.Builds == 0 || s.StepsRun == 0 || s.Turnaround.P50 <= 0 || s.Turnaround.P95 < s.Turnaround.P50 {
		t.Errorf("%+v", s)
	}
	if len(found.damage.Breaking) == 0 {
		t.Error("plain merging would have done no harm")
	}
}

// faults has, for each change that can be rejected, the file at fault and a text that a line of it has; below is how many lines
// further down it is.
var faults = map[string]struct {
	path, line string
	below      int
}{
	"lru-grow":                      {"lib/lru/grow.go", "c.size += n", 0},
	"graph-greedy":                  {"lib/graph/graph_test.go", "of length %d", 0},
	"stock-typo":                    {"shop/stock/landfall.yaml", "moeny", 0},
	"matrix-rename":                 {"lib/matrix/matrix_test.go", "{3, 4}}.Times(", 0},
	"banner-harbour":                {"cmd/checkout/main.go", "const banner", 0},
	"banner-corner":                 {"cmd/checkout/main.go", "const banner", 0},
	"hours-early":                   {"README.md", "Opening hours", 0},
	"hours-late":                    {"README.md", "Opening hours", 0},
	"hours-saturday":                {"README.md", "Opening hours", 0},
	"calendar-rename":               {"shop/delivery/pickup.go", "calendar.NextWorking(arrived)", 0},
	"delivery-pickup":               {"shop/delivery/pickup.go", "calendar.NextWorking(arrived)", 0},
	"pricing-free-delivery-from-60": {"shop/cart/cart_test.go", "5000+pricing.Tax(5000); got != want", 1},
	"cart-free-delivery-tested":     {"shop/cart/cart_test.go", "5000+pricing.Tax(5000); got != want", 1},
}

// named checks that the first three lines that people read of each rejection have the file and line at fault, or the change that
// was required.
func named(t *testing.T, d *demo, ends []expectation.End) {
	t.Helper()
	for _, e := range ends {
		if e.Got.State != view.StateRejected {
			continue
		}
		place := ""
		if e.Got == sample.Requirement {
			place = e.Change.Requires[0]
		} else if place = placeOf(d, e.Change); place == "" {
			t.Errorf("%s is rejected, and the test does not know what for: %s", e.Change.Name, e.View.Why)
			continue
		}
		var out strings.Builder
		client.WriteExplanation(&out, time.Now(), view.Explanation{Summary: e.View.Summary, Reasons: []view.Reason{{Sentence: e.View.Why}}})
		lines := strings.SplitN(out.String(), "\n", 4)
		head := strings.Join(lines[:min(3, len(lines))], "\n")
		// The test of matrix-identity, if that has landed first, uses the old name too, and the compiler names it first.
		late := e.Change.Name == "matrix-rename" && strings.Contains(head, "lib/matrix/identity_test.go:6:") &&
			slices.ContainsFunc(ends, func(o expectation.End) bool {
				return o.Change.Name == "matrix-identity" && o.Got.State == view.StateLanded
			})
		if !strings.Contains(head+" ", place) && !late {
			t.Errorf("%s: the first three lines do not name %s:\n%s", e.Change.Name, place, head)
		}
	}
}

// placeOf returns file and line at fault of a change, which are on its branch or on that of a rival; "" if they are not known.
func placeOf(d *demo, of *sample.Change) string {
	f := faults[of.Name]
	for _, c := range d.sample.Changes {
		if c.Name != of.Name && (of.Rivals == "" || c.Rivals != of.Rivals) {
			continue
		}
		for _, commit := range c.Commits {
			text, err := exec.Command("git", "-C", d.place.repository(), "show", commit.ID+":"+f.path).Output()
			if err != nil {
				continue
			}
			for i, line := range strings.Split(string(text), "\n") {
				if f.line != "" && strings.Contains(line, f.line) {
					return fmt.Sprintf("%s:%d", f.path, i+1+f.below)
				}
			}
		}
	}
	return ""
}

// wanted counts how the changes have to end: of rivals one lands.
func wanted(r *sample.Repository) (s summary) {
	rivals := map[string]bool{}
	for _, c := range r.Changes {
		switch {
		case c.Want == sample.Landed, c.Rivals != "" && !rivals[c.Rivals]:
			rivals[c.Rivals] = true
			s.Landed++
		case c.Want == sample.Cancelled:
			s.Cancelled++
		case c.Want == sample.TimedOut:
			s.Ejected++
		default:
			s.Rejected++
		}
	}
	return s
}

// TestTheDemoEndsAsItHasTo runs on a real Kafka where one is named.
func TestTheDemoEndsAsItHasTo(t *testing.T) { play(t, &demo{seed: 1, brokers: kafkatest.Brokers(t)}) }

func TestTheOutcomeIsTheSameWhenEachProcessIsKilledOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	binary := filepath.Join(t.TempDir(), "landfall")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "landfall.build/tools/cmd/landfall").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	play(t, &demo{seed: 2, processes: true, binary: binary, only: []string{
		sample.Slow, sample.Withdrawn, sample.Hotfix, sample.Resubmitted, "search-limit", "text-width-tested", "stock-reorder", "ring",
		"hours-early", "hours-late", "hours-saturday", "calendar-rename", "delivery-pickup", "lru-grow", "graph-greedy", "delivery-greedy",
		"stock-typo", "sales-histogram", "trie-remove", "search-forget", "roman-either-case", "roman-range-in-error", "pricing-copies-tested",
	}})
}

func TestTheSummaryHasExactlyItsFields(t *testing.T) {
	text, err := json.Marshal(summary{Landed: 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"landed":1,"rejected":0,"ejected":0,"cancelled":0,"bypassed":0,"commits_audited":0,"commits_green":0,` +
		`"builds":0,"steps_run":0,"steps_reused":0,"turnaround_ms":{"p50":0,"p95":0}}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

func TestAFolderWithSomethingInItIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Command("test")
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs([]string{"--keep", dir})
	if err := c.ExecuteContext(t.Context()); err == nil || errors.As(err, &Unexpected{}) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Documents are nobody's in the sample, and changes to them are to land beside others.
func TestNoChangeOfTheDemoAffectsEverything(t *testing.T) {
	p := place{t.TempDir()}
	config, err := p.configure("/cache", "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sample.Make(t.Context(), p.repository())
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: r.Dir, Dir: filepath.Join(p.dir, "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	if err := mirror.Fetch(t.Context(), gitrepo.Wanted{Commits: append(r.Prepared(), r.Head)}); err != nil {
		t.Fatal(err)
	}
	loader, documents := buildgraph.NewLoader(config.Queues[queue], nil), 0
	for _, c := range append(r.Changes, r.Direct) {
		picks := []landing.Pick{{Head: c.Commits[len(c.Commits)-1].ID, Base: r.Head}}
		found, err := buildgraph.Analyze(t.Context(), loader, mirror, r.Head, picks)
		if err != nil {
			t.Fatal(err)
		}
		if found.All {
			t.Errorf("%s affects everything: %s", c.Name, found.Reasons)
		}
		documents += len(found.Uncovered.Ignored)
	}
	if documents == 0 {
		t.Error("no change edits a document: this shows nothing")
	}
}

func TestTheConfigurationOfTheDemoIsValidWhateverThePathsAre(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder: 'quoted' #1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/usr/bin:relative:/it's:/bin")
	p := place{dir}
	config, err := p.configure(filepath.Join(dir, "cache"), "127.0.0.1:1", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	q := config.Queues[queue]
	if got := q.Steps.Environment.Path; got != "/usr/bin:/it's:/bin" {
		t.Errorf("PATH is %s", got)
	}
	if got := q.Steps.Environment.Variables["GOCACHE"]; got != filepath.Join(dir, "cache") {
		t.Errorf("GOCACHE is %s", got)
	}
	if url := config.RepositoryOf(q).URL; url != p.repository() || !reflect.DeepEqual(config.Broker.Brokers, []string{"127.0.0.1:1"}) {
		t.Errorf("%s, %v", url, config.Broker.Brokers)
	}
	if config, err = p.configure("/cache", "", "127.0.0.1:0"); err != nil || len(config.Broker.Brokers) != 0 {
		t.Errorf("%v, %v", config.Broker.Brokers, err)
	}
}
