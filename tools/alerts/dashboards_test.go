package alerts_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	queries "github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// variables are what Grafana puts in place of its variables, those of the dashboards among them.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$queue", ".*", "$service", ".*", "$pool", ".*")

// readDashboards returns every dashboard by the name of its file, as Grafana's own types have it: what they do not know is refused.
func readDashboards(t *testing.T) map[string]dashboard.Dashboard {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(deployed("grafana", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	dashboards := map[string]dashboard.Dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard
		// Without complaints it may return an empty list of them, and leave out the panels.
		if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
			t.Fatalf("%s: %v", file, err)
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := d.Validate(); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		dashboards[filepath.Base(file)] = d
	}
	return dashboards
}

// panelExpressions returns the expressions of a dashboard's panels, with Grafana's variables replaced.
func panelExpressions(t *testing.T, d dashboard.Dashboard) (out []string) {
	t.Helper()
	for _, p := range d.Panels {
		if p.Panel == nil {
			t.Fatalf("%s has a row", *d.Title)
		}
		for _, target := range p.Panel.Targets {
			q, is := target.(*queries.Dataquery)
			if value, byValue := target.(queries.Dataquery); byValue {
				q, is = &value, true
			}
			if !is {
				t.Fatalf("%s: a query of another kind: %T", *p.Panel.Title, target)
			}
			out = append(out, variables.Replace(q.Expr))
		}
	}
	return out
}

// TestGrafanaAcceptsTheDashboards: their fields, and that a dashboard keeps its address and asks for its data source.
func TestGrafanaAcceptsTheDashboards(t *testing.T) {
	addresses, shared := map[string]string{}, regexp.MustCompile(`^\$\{datasource\}$`)
	for file, d := range readDashboards(t) {
		if d.Uid == nil || !strings.HasPrefix(*d.Uid, "landfall-") || addresses[*d.Uid] != "" {
			t.Errorf("%s has no uid of its own", file)
			continue
		}
		addresses[*d.Uid] = file
		asks := false
		for _, v := range d.Templating.List {
			asks = asks || v.Name == "datasource" && v.Type == dashboard.VariableTypeDatasource
		}
		if !asks {
			t.Errorf("%s has no variable for the data source", file)
		}
		numbers := map[uint32]bool{}
		for _, p := range d.Panels {
			if p.Panel.Title == nil || len(p.Panel.Targets) == 0 || p.Panel.Id == nil || numbers[*p.Panel.Id] {
				t.Errorf("%s: a panel without title, number or query: %+v", file, p.Panel)
				continue
			}
			numbers[*p.Panel.Id] = true
			if ds := p.Panel.Datasource; ds == nil || ds.Uid == nil || !shared.MatchString(*ds.Uid) {
				t.Errorf("%s: %s has a data source of its own", file, *p.Panel.Title)
			}
		}
		for _, expression := range panelExpressions(t, d) {
			if _, err := promQL.ParseExpr(expression); err != nil {
				t.Errorf("%s: %s: %v", file, expression, err)
			}
		}
	}
}
