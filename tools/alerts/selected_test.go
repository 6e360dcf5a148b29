package alerts_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ofPrometheus are the labels that a scrape adds.
var ofPrometheus = []string{"job", "instance"}

// selectsWhatIsServed checks an expression against what was served in this run: each selector matches a series, and what is grouped
// by is a label of one.
func selectsWhatIsServed(t *testing.T, where, expression string) {
	t.Helper()
	e, err := promQL.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expression, err)
		return
	}
	names := map[string]bool{}
	for _, name := range ofPrometheus {
		names[name] = true
	}
	groupedBy := map[string]bool{}
	parser.Inspect(e, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			for _, name := range n.Grouping {
				groupedBy[name] = true
			}
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				for _, name := range n.VectorMatching.MatchingLabels {
					groupedBy[name] = true
				}
			}
		case *parser.VectorSelector:
			if n.Name == "up" {
				return nil // Prometheus's own
			}
			found := false
			for _, series := range served.metric[n.Name] {
				if !slices.ContainsFunc(n.LabelMatchers, func(m *labels.Matcher) bool {
					return !slices.Contains(ofPrometheus, m.Name) && !m.Matches(series.Get(m.Name))
				}) {
					found = true
					series.Range(func(l labels.Label) { names[l.Name] = true })
				}
			}
			if !found {
				t.Errorf("%s: nothing that was served matches %s", where, n)
			}
		}
		return nil
	})
	for name := range groupedBy {
		if !names[name] {
			t.Errorf("%s: %s: no series has the label %s", where, expression, name)
		}
	}
}

// everythingSelectedIsServed checks the rules and the dashboards.
func everythingSelectedIsServed(t *testing.T) {
	for _, r := range readRules(t) {
		selectsWhatIsServed(t, r.Alert, r.Expr)
	}
	dashboards := readDashboards(t)
	for _, file := range slices.Sorted(maps.Keys(dashboards)) {
		for _, expression := range panelExpressions(t, dashboards[file]) {
			selectsWhatIsServed(t, file, expression)
		}
	}
}
