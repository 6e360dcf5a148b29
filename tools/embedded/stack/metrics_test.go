package stack_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
)

// instrument is a metric as the code makes it, or as the guide has it.
type instrument struct {
	kind, unit string
	attributes []string
}

// constructors are the functions that make instruments, and what they make. The three in lower case are the gateway's own.
var constructors = map[string]string{"Gauge": "gauge", "Total": "counter", "Counter": "counter", "Histogram": "histogram", "gauge": "gauge", "requests": "gauge"}

// madeInstruments reads the instruments from the source. All are in files named metrics.go.
func madeInstruments(t *testing.T) map[string]instrument {
	made := map[string]instrument{}
	root := filepath.Join("..", "..", "..")
	for _, module := range []string{"platform", "services", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, module), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "_tree") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, is := n.(*ast.CallExpr)
				if !is {
					return true
				}
				name := ""
				switch f := call.Fun.(type) {
				case *ast.SelectorExpr:
					if x, is := f.X.(*ast.Ident); is && x.Name == "telemetry" {
						name = f.Sel.Name
					}
				case *ast.Ident:
					name = f.Name
				}
				kind := constructors[name]
				var texts []string
				for _, argument := range call.Args {
					if literal, is := argument.(*ast.BasicLit); is && literal.Kind == token.STRING {
						text, _ := strconv.Unquote(literal.Value)
						texts = append(texts, text)
					}
				}
				if kind == "" || len(texts) < 3 || !strings.Contains(texts[0], ".") {
					return true
				}
				if filepath.Base(path) != "metrics.go" {
					t.Errorf("%s makes the instrument %s; instruments are in metrics.go", path, texts[0])
				}
				made[texts[0]] = instrument{kind: kind, unit: texts[1]}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return made
}

var (
	guideRow  = regexp.MustCompile("^\\| `([a-z_.]+)` \\| ([a-z]+)(?:, ([^|]+))? \\|([^|]*)\\| [^|]+ \\|$")
	attribute = regexp.MustCompile("`([a-z_.]+)`")
)

// guideInstruments reads the tables of the guide.
func guideInstruments(t *testing.T) map[string]instrument {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]instrument{}
	for line := range strings.Lines(string(text)) {
		if m := guideRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			i := instrument{kind: m[2], unit: m[3]}
			for _, a := range attribute.FindAllStringSubmatch(m[4], -1) {
				i.attributes = append(i.attributes, a[1])
			}
			told[m[1]] = i
		}
	}
	return told
}

// prometheusName returns a metric's name in Prometheus.
func prometheusName(name string, i instrument) string {
	name = strings.ReplaceAll(name, ".", "_")
	switch i.unit {
	case "s":
		name += "_seconds"
	case "By":
		name += "_bytes"
	case "1":
		if i.kind == "gauge" {
			name += "_ratio"
		}
	}
	if i.kind == "counter" {
		name += "_total"
	}
	return name
}

func TestTheGuideHasExactlyTheMetricsThatTheCodeMakes(t *testing.T) {
	made, told := madeInstruments(t), guideInstruments(t)
	if len(made) < 30 {
		t.Fatalf("only %d instruments were found", len(made))
	}
	for name, i := range made {
		if got, known := told[name]; !known || got.kind != i.kind || got.unit != i.unit {
			t.Errorf("%s is a %s in %q; the guide has %v %+v", name, i.kind, i.unit, known, got)
		}
	}
	for name := range told {
		if _, known := made[name]; !known {
			t.Errorf("the guide has %s, which nothing makes", name)
		}
	}
}

var series = regexp.MustCompile(`^([a-z_]+)\{(.*)\} (\S+)$`)

// TestWhatIsServedIsInTheGuide, with no attribute that it does not have; and the services of the flow serve what they should.
func TestWhatIsServedIsInTheGuide(t *testing.T) {
	r := newRepository(t)
	r.branch("one", "f0/a.txt", "better\n")
	s, err := stack.Start(t.Context(), stack.Options{
		Configuration: configured(t, r, t.TempDir()), Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Version: "test", Metrics: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := client.New(s.URL(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Land(t.Context(), "main", api.LandBody{Entries: []api.LandEntry{{Ref: "one"}}}); err != nil {
		t.Fatal(err)
	}
	told := map[string]instrument{}
	for name, i := range guideInstruments(t) {
		told[prometheusName(name, i)] = i
	}
	// A change that has left is measured with the next fold at the latest.
	want := []string{
		"landfall_queue_changes_finished_total", "landfall_change_turnaround_seconds", "landfall_change_wait_seconds", "landfall_change_builds", "landfall_queue_changes", "landfall_queue_waiting",
		"landfall_queue_last_landing_age_seconds", "landfall_requests_unanswered", "landfall_consumer_lag", "landfall_service_ready", "landfall_partition_term",
		"messaging_client_sent_messages_total", "messaging_client_consumed_messages_total", "landfall_decision_latency_seconds", "landfall_fold_duration_seconds",
		"cicd_worker_count", "landfall_worker_time_seconds_total", "landfall_step_duration_seconds", "landfall_push_duration_seconds", "landfall_analysis_duration_seconds",
		"cicd_pipeline_run_active", "landfall_mainline_targets", "landfall_flaky_rate_ratio", "landfall_disk_free_bytes", "landfall_broker_silence_seconds", "landfall_clock_jumps_seconds_total",
	}
	var served map[string]bool
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		served = scrape(t, s.MetricsURL(), told)
		missing := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return served[name] })
		if len(missing) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not served: %v", missing)
		}
	}
	settled(t, c, "one")
	values := map[string]float64{}
	for _, m := range seriesOf(t, s.MetricsURL()) {
		if value, err := strconv.ParseFloat(m[3], 64); err == nil {
			values[m[1]] += value
		}
	}
	if waited, took := values["landfall_change_wait_seconds_sum"], values["landfall_change_turnaround_seconds_sum"]; took <= 0 || math.Abs(waited-took) > .05*took {
		t.Errorf("a change took %g s, and waited %g s for all causes", took, waited)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get(s.MetricsURL() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz: %d %s", answer.StatusCode, body)
		}
	}
}

// seriesOf returns what is served: of each series the line, the name, the labels and the value.
func seriesOf(t *testing.T, url string) (out [][]string) {
	t.Helper()
	r, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := series.FindStringSubmatch(lines.Text()); m != nil && m[1] != "target_info" {
			out = append(out, m)
		}
	}
	return out
}

// scrape returns the families that are served, and complains of what the guide does not have.
func scrape(t *testing.T, url string, told map[string]instrument) map[string]bool {
	t.Helper()
	served := map[string]bool{}
	for _, m := range seriesOf(t, url) {
		name := m[1]
		if _, known := told[name]; !known {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, part)
			}
		}
		i, known := told[name]
		if !known {
			t.Fatalf("the guide does not have %s", m[0])
		}
		served[name] = true
		for _, label := range regexp.MustCompile(`([a-z_]+)="`).FindAllStringSubmatch(m[2], -1) {
			has := slices.ContainsFunc(i.attributes, func(a string) bool { return strings.ReplaceAll(a, ".", "_") == label[1] })
			if !has && label[1] != "service_name" && label[1] != "le" {
				t.Fatalf("the guide does not have the attribute %s of %s", label[1], name)
			}
		}
	}
	return served
}
