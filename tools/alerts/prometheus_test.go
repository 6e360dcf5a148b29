package alerts_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/util/annotations"
)

// job is the job of the scrape configuration that the rules are for, and interval how often it scrapes.
const (
	job      = "landfall"
	interval = 15 * time.Second
)

var promQL = parser.NewParser(parser.Options{})

// deployed returns the path of a file below deploy.
func deployed(path ...string) string {
	return filepath.Join(append([]string{"..", "..", "deploy"}, path...)...)
}

// readRules reads the rules as Prometheus does, which refuses fields, expressions and templates that are wrong.
func readRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(deployed("prometheus", "landfall.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// prometheus keeps samples in memory, and evaluates rules on them.
type prometheus struct {
	t      *testing.T
	engine *promql.Engine
	rules  []rulefmt.Rule

	mu     sync.Mutex
	series map[string]*promql.Series
	named  map[string][]*promql.Series
	// scraped are the keys of the series that an instance showed last.
	scraped map[string]map[string]bool
	// since is when an alert began to be pending, by its name and labels.
	since map[string]time.Time
	// firing are the alerts as of the last evaluation, fired all that ever fired.
	firing, fired map[string]alert
}

// alert is one that fires.
type alert struct {
	name        string
	labels      map[string]string
	annotations map[string]string
}

func (a alert) key() string { return fmt.Sprint(a.name, a.labels) }

func newPrometheus(t *testing.T) *prometheus {
	return &prometheus{
		t: t, rules: readRules(t), series: map[string]*promql.Series{}, named: map[string][]*promql.Series{}, scraped: map[string]map[string]bool{}, since: map[string]time.Time{}, fired: map[string]alert{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, Parser: promQL}),
	}
}

// Querier implements storage.Queryable.
func (p *prometheus) Querier(from, to int64) (storage.Querier, error) {
	return &querier{MockQuerier: storage.MockQuerier{SelectMockFunction: func(_ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		if hints != nil {
			from, to = hints.Start, hints.End
		}
		set := &seriesSet{}
		named := slices.IndexFunc(matchers, func(m *labels.Matcher) bool { return m.Name == labels.MetricName })
		for _, s := range p.named[matchers[named].Value] {
			if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Metric.Get(m.Name)) }) {
				within := func(at int64) int {
					i, _ := slices.BinarySearchFunc(s.Floats, at, func(p promql.FPoint, at int64) int { return int(p.T - at) })
					return i
				}
				set.all = append(set.all, promql.Series{Metric: s.Metric, Floats: s.Floats[within(from):within(to+1)]})
			}
		}
		slices.SortFunc(set.all, func(a, b promql.Series) int { return labels.Compare(a.Metric, b.Metric) })
		return set
	}}}, nil
}

type querier struct{ storage.MockQuerier }

// seriesSet implements storage.SeriesSet.
type seriesSet struct {
	all []promql.Series
	now promql.Series
}

func (s *seriesSet) Next() bool {
	if len(s.all) == 0 {
		return false
	}
	s.now, s.all = s.all[0], s.all[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return promql.NewStorageSeries(s.now) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// add appends a sample.
func (p *prometheus) add(l labels.Labels, at time.Time, v float64) (key string) {
	key = l.String()
	s := p.series[key]
	if s == nil {
		s = &promql.Series{Metric: l}
		p.series[key] = s
		p.named[l.Get(labels.MetricName)] = append(p.named[l.Get(labels.MetricName)], s)
	}
	s.Floats = append(s.Floats, promql.FPoint{T: at.UnixMilli(), F: v})
	return key
}

// scrape takes what an instance shows; a series that it no longer shows is stale, and all are if it does not answer.
func (p *prometheus) scrape(at time.Time, instance, url string) {
	text, contentType, err := get(url + "/metrics")
	p.mu.Lock()
	defer p.mu.Unlock()
	up := map[bool]float64{true: 1}[err == nil]
	p.add(labels.FromStrings(labels.MetricName, "up", "instance", instance, "job", job), at, up)
	now := map[string]bool{}
	if err == nil {
		for _, s := range parse(p.t, text, contentType) {
			served.add(s.Metric)
			b := labels.NewBuilder(s.Metric)
			b.Set("instance", instance)
			b.Set("job", job)
			now[p.add(b.Labels(), at, s.Floats[0].F)] = true
		}
	}
	for key := range p.scraped[instance] {
		if !now[key] {
			p.add(p.series[key].Metric, at, math.Float64frombits(value.StaleNaN))
		}
	}
	p.scraped[instance] = now
}

func get(url string) (text []byte, contentType string, err error) {
	r, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	text, err = io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, r.Status)
	}
	return text, r.Header.Get("Content-Type"), err
}

// parse returns the samples of an exposition, each as a series.
func parse(t *testing.T, text []byte, contentType string) (out []promql.Series) {
	p, err := textparse.New(text, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		t.Error(err)
		return nil
	}
	for {
		entry, err := p.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Errorf("Prometheus cannot read what is served: %v", err)
			return out
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, v := p.Series()
		s := promql.Series{Floats: []promql.FPoint{{F: v}}}
		p.Labels(&s.Metric)
		out = append(out, s)
	}
}

// evaluate evaluates every rule, as Prometheus does: an alert fires once its expression has held without a gap for as long as it asks.
func (p *prometheus) evaluate(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pending := map[string]time.Time{}
	p.firing = map[string]alert{}
	for _, r := range p.rules {
		for _, sample := range p.query(r.Expr, at) {
			a := alert{name: r.Alert, labels: labels.NewBuilder(sample.Metric).Del(labels.MetricName).Labels().Map()}
			key := a.key()
			began, known := p.since[key]
			if !known {
				began = at
			}
			pending[key] = began
			if at.Sub(began) < time.Duration(r.For) {
				continue
			}
			if _, told := p.fired[key]; !told {
				a.annotations = p.expand(r, a, sample, at)
				p.fired[key] = a
			}
			p.firing[key] = p.fired[key]
		}
	}
	p.since = pending
}

func (p *prometheus) query(expression string, at time.Time) promql.Vector {
	q, err := p.engine.NewInstantQuery(context.Background(), p, nil, expression, at)
	if err != nil {
		p.t.Errorf("%s: %v", expression, err)
		return nil
	}
	defer q.Close()
	result := q.Exec(context.Background())
	v, err := result.Vector()
	if err != nil {
		p.t.Errorf("%s: %v", expression, err)
	}
	// The vector is the query's own.
	return slices.Clone(v)
}

// expand returns the annotations of an alert that fires.
func (p *prometheus) expand(r rulefmt.Rule, a alert, sample promql.Sample, at time.Time) map[string]string {
	out := map[string]string{}
	for name, text := range r.Annotations {
		data := template.AlertTemplateData(a.labels, nil, "", sample)
		const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		expanded, err := template.NewTemplateExpander(context.Background(), names+text, r.Alert, data, model.TimeFromUnixNano(at.UnixNano()), nil, nil, nil).Expand()
		if err != nil || strings.Contains(expanded, "<no value>") {
			p.t.Errorf("%s: %s: %q, %v", r.Alert, name, expanded, err)
		}
		out[name] = expanded
	}
	return out
}

// clock is how a test's time is counted: every so often, each scrape as one of the scrape's interval.
type clock struct{ every, counts time.Duration }

// quick counts a quarter of a second as 15 s.
var quick = clock{250 * time.Millisecond, interval}

// watch scrapes the instances and evaluates the rules until the test ends.
func (p *prometheus) watch(c clock, instances map[string]string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	p.t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		ticks := time.NewTicker(c.every)
		defer ticks.Stop()
		for at := time.Now(); ctx.Err() == nil; at = at.Add(c.counts) {
			for _, name := range slices.Sorted(maps.Keys(instances)) {
				p.scrape(at, name, instances[name])
			}
			p.evaluate(at)
			select {
			case <-ticks.C:
			case <-ctx.Done():
			}
		}
	}()
}

// patience is how long a test waits for what has to come.
const patience = 3 * time.Minute

// awaits waits until an alert fires with these labels (name, value, …), and returns it.
func (p *prometheus) awaits(name string, pairs ...string) (found alert) {
	p.t.Helper()
	p.await("fires", name, pairs, func(a *alert) bool {
		if a != nil {
			found = *a
		}
		return a != nil
	})
	p.t.Logf("%s: %s", name, found.annotations["summary"])
	raised.Store(name, true)
	return found
}

// awaitsEnd waits until an alert does not fire with these labels.
func (p *prometheus) awaitsEnd(name string, pairs ...string) {
	p.t.Helper()
	p.await("ends", name, pairs, func(a *alert) bool { return a == nil })
}

func (p *prometheus) await(what, name string, pairs []string, holds func(*alert) bool) {
	p.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if holds(p.fires(name, pairs...)) {
			return
		}
		if time.Now().After(until) {
			p.t.Fatalf("%s %v never %s; now there fire %v", name, pairs, what, p.names())
		}
	}
}

// fires returns an alert that fires with these labels, nil if none does.
func (p *prometheus) fires(name string, pairs ...string) *alert {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.firing {
		fits := a.name == name
		for i := 0; i < len(pairs); i += 2 {
			fits = fits && a.labels[pairs[i]] == pairs[i+1]
		}
		if fits {
			return &a
		}
	}
	return nil
}

// names returns what fires.
func (p *prometheus) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.firing))
}

// raised has the alerts that a test waited for, by name.
var raised sync.Map

// servedSeries are the label sets that the services served in all tests of this run, by metric.
type servedSeries struct {
	mu     sync.Mutex
	metric map[string]map[string]labels.Labels
}

var served = servedSeries{metric: map[string]map[string]labels.Labels{}}

func (s *servedSeries) add(l labels.Labels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := l.Get(labels.MetricName)
	if s.metric[name] == nil {
		s.metric[name] = map[string]labels.Labels{}
	}
	s.metric[name][string(l.Bytes(bytes.NewBuffer(nil).AvailableBuffer()))] = l
}
