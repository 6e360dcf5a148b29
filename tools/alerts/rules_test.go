package alerts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// TestEachRuleSaysWhatToDo: it has a severity, sentences for people, and a section of the runbook whose heading is its name; and the
// runbook has no other sections.
func TestEachRuleSaysWhatToDo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, heading := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		sections = append(sections, heading[1])
	}
	var names []string
	for _, r := range readRules(t) {
		names = append(names, r.Alert)
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || !strings.HasSuffix(r.Annotations["description"], ".") {
			t.Errorf("%s tells people nothing: %v", r.Alert, r.Annotations)
		}
		if want := "https://landfall.build/docs/guides/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
	}
	if !slices.Equal(names, sections) {
		t.Errorf("the runbook has the sections\n%v, the rules are\n%v", sections, names)
	}
}

// ruleTests is promtool's file of tests, what of it is used.
type ruleTests struct {
	RuleFiles          []string `yaml:"rule_files"`
	EvaluationInterval string   `yaml:"evaluation_interval"`
	Tests              []ruleTest
}

type ruleTest struct {
	Name, Interval string
	InputSeries    []struct{ Series, Values string } `yaml:"input_series"`
	AlertRuleTest  []struct {
		EvalTime  string `yaml:"eval_time"`
		Alertname string
		ExpAlerts []struct {
			ExpLabels map[string]string `yaml:"exp_labels"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := model.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// TestTheRulesAtTheirEdges runs the file of promtool's tests.
func TestTheRulesAtTheirEdges(t *testing.T) {
	text, err := os.ReadFile(deployed("prometheus", "landfall.test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file ruleTests
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) { test.run(t, duration(t, file.EvaluationInterval)) })
	}
}

func (r *ruleTest) run(t *testing.T, every time.Duration) {
	p, begin := newPrometheus(t), time.Unix(0, 0)
	rules := map[string]rulefmt.Rule{}
	for _, rule := range p.rules {
		rules[rule.Alert] = rule
	}
	for _, s := range r.InputSeries {
		metric, values, err := promQL.ParseSeriesDesc(s.Series + " " + s.Values)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if !v.Omitted {
				p.add(metric, begin.Add(time.Duration(i)*duration(t, r.Interval)), v.Value)
			}
		}
	}
	for _, check := range r.AlertRuleTest {
		// What was before an alert can have become pending does not matter.
		rule, end := rules[check.Alertname], begin.Add(duration(t, check.EvalTime))
		p.rules, p.since = []rulefmt.Rule{rule}, map[string]time.Time{}
		for at := end.Add(-(time.Duration(rule.For) / every * every) - every); !at.After(end); at = at.Add(every) {
			p.evaluate(at)
		}
		var got, want []string
		for _, a := range p.firing {
			labels := maps.Clone(a.labels)
			labels["severity"] = rule.Labels["severity"]
			got = append(got, fmt.Sprint(labels))
		}
		for _, a := range check.ExpAlerts {
			want = append(want, fmt.Sprint(a.ExpLabels))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s after %s: %v fire, want %v", check.Alertname, check.EvalTime, got, want)
		}
	}
}
