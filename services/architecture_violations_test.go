package services_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each rule finds what it forbids: one file of the real workspace is added, replaced or taken away, and the
// rule must say what is expected, which it did not say before.
func TestEachRuleFindsWhatItForbids(t *testing.T) {
	real := readProject(t)
	tried := map[string]bool{}
	long := "package lineup\n" + strings.Repeat("// one more line\n", maxLines)
	for _, c := range []struct {
		name, rule, path, content, want string
	}{
		{"a core that opens files", "pure cores reach nothing outside", "services/lineup/x.go", "package lineup\nimport \"os\"\nvar _ = os.Open\n", "x.go imports os"},
		{"a core with a context", "pure cores reach nothing outside", "services/graph/x.go", "package graph\nimport \"context\"\nvar _ context.Context\n", "imports context"},
		{"a core with a lock", "pure cores reach nothing outside", "services/evidence/x.go", "package evidence\nimport \"sync\"\nvar _ sync.Mutex\n", "imports sync"},
		{"a core that throws dice", "pure cores reach nothing outside", "services/prioritizer/ranking/x.go", "package ranking\nimport \"math/rand/v2\"\nvar _ = rand.Int\n", "imports math/rand/v2"},
		{"a core that speaks HTTP", "pure cores reach nothing outside", "services/gateway/view/x.go", "package view\nimport \"net/http\"\nvar _ http.Header\n", "imports net/http"},
		{"a core that knows Kafka", "pure cores reach nothing outside", "services/builder/work/x.go", "package work\nimport \"github.com/twmb/franz-go/pkg/kgo\"\nvar _ kgo.Record\n", "imports github.com/twmb/franz-go/pkg/kgo"},
		{"a core that logs", "pure cores reach nothing outside", "services/selector/decision/x.go", "package decision\nimport \"log/slog\"\nvar _ slog.Logger\n", "imports log/slog"},
		{"a core that imports a loop", "pure cores reach nothing outside", "services/lander/guard/x.go", "package guard\nimport \"landfall.build/services/stage\"\nvar _ stage.Stage\n", "imports landfall.build/services/stage"},
		{"a core that asks for the time", "pure cores reach nothing outside", "services/analyzer/targets/x.go", "package targets\nimport clock \"time\"\nvar now = clock.Now\n", "x.go:3: uses time.Now"},
		{"a core that prints", "pure cores reach nothing outside", "services/graph/x.go", "package graph\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", "uses fmt.Println"},
		{"a core with a goroutine", "pure cores reach nothing outside", "services/graph/x.go", "package graph\nfunc f() { go f() }\n", "starts a goroutine"},
		{"a core with a channel", "pure cores reach nothing outside", "services/graph/x.go", "package graph\nvar c chan int\n", "has a channel"},
		{"a core that selects", "pure cores reach nothing outside", "services/graph/x.go", "package graph\nfunc f() { select {} }\n", "selects"},
		{"an exemption that is stretched", "pure cores reach nothing outside", "services/gateway/view/x.go", "package view\nimport \"landfall.build/services/journal\"\nvar _ journal.Log\n", "uses landfall.build/services/journal.Log, but only [Entry] is exempt"},
		{"a service that imports the tools", "modules depend downward only", "services/lander/x_test.go", "package lander\nimport _ \"landfall.build/tools/client\"\n", "x_test.go imports landfall.build/tools/client"},
		{"an event that imports a service", "modules depend downward only", "events/x.go", "package events\nimport _ \"landfall.build/services/lineup\"\n", "events/x.go imports landfall.build/services/lineup"},
		{"an event with a dependency", "events import Protobuf and nothing else", "events/x.go", "package events\nimport _ \"github.com/spf13/cobra\"\n", "events/x.go imports github.com/spf13/cobra"},
		{"a folder named for nothing", "packages are named for what they compute", "services/gateway/util/x.go", "package text\n", `"util" says nothing`},
		{"a package named for nothing", "packages are named for what they compute", "tools/pages/x.go", "package common\n", `"common" says nothing`},
		{"a global logger", "loggers are arguments", "services/gateway/x.go", "package gateway\nimport \"log/slog\"\nfunc f() { slog.Info(\"x\") }\n", "x.go:3: uses log/slog.Info"},
		{"a service that prints", "standard output belongs to commands", "services/gateway/x.go", "package gateway\nimport \"os\"\nvar out = os.Stdout\n", "uses os.Stdout"},
		{"a file for several sittings", "files can be read in one sitting", "services/lineup/x.go", long, "x.go has 901 lines"},
		{"a service that reads another one's topic", "services touch only topics of their own", "services/profiler/x.go", "package profiler\nimport \"landfall.build/events\"\nvar _ = events.TopicBuilds\n", "the profiler uses landfall.builds"},
		{"a service without a README", "every service has a README", "services/selector/README.md", "", "services/selector/README.md is missing"},
		{"a README that does not say what it consumes", "every service has a README", "services/selector/README.md", "# selector\n", `README.md has no row "consumes"`},
		{"a README with one topic too few", "READMEs and the table of topics agree", "services/selector/README.md", "| consumes | |\n| produces | `landfall.decisions`, `landfall.dead-letters` |\n", "disagree about landfall.priorities (README false, table true)"},
		{"a README with one topic too many", "READMEs and the table of topics agree", "services/selector/README.md", "| consumes | `priorities`, `landfall.builds` |\n| produces | `decisions`, `dead-letters` |\n", "disagree about landfall.builds (README true, table false)"},
		{"a link to nowhere", "documents name what exists", "docs/guides/x.md", "[x](../nowhere.md)\n", "x.md:1: the link to ../nowhere.md leads nowhere"},
		{"a path to nowhere", "documents name what exists", "docs/guides/x.md", "\nin `services/lineup/gone.go`\n", "x.md:2: services/lineup/gone.go does not exist"},
		{"no claims", "every claim has a row, and names its test", claimsDocument, "", "is missing"},
		{"a claim without a row", "every claim has a row, and names its test", claimsDocument, "# Claims\n", "has 0 rows for M19a"},
		{"a claim whose test is gone", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `lineup.Queue` | `TestThatIsGone` |\n", "M1 names TestThatIsGone, which is no test"},
		{"a claim whose code is gone", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `lineup.Queue.Gone` | no test yet |\n", "M1 names lineup.Queue.Gone, which services does not declare"},
		{"a claim that has a test by now", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `lineup.Queue` | no test yet |\n", `M1 says "no test yet", but there is TestM1`},
		{"a claim that says nothing", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `lineup.Queue` | |\n", "M1 must either name a test or say"},
	} {
		tried[c.rule] = true
		t.Run(c.name, func(t *testing.T) {
			check := rules()[c.rule]
			if check == nil {
				t.Fatalf("there is no rule %q", c.rule)
			}
			finds := func(p *project) bool {
				return slices.ContainsFunc(check(p), func(complaint string) bool { return strings.Contains(complaint, c.want) })
			}
			if finds(real) {
				t.Fatalf("%q is said of the workspace as it is", c.want)
			}
			broken := real.with(t, c.path, c.content)
			if !finds(broken) {
				t.Errorf("%q is not said; what is said: %q", c.want, check(broken))
			}
		})
	}
	for name := range rules() {
		if !tried[name] {
			t.Errorf("nothing shows that the rule %q finds anything", name)
		}
	}
}

// with is the project with one file more, or replaced; without it if the content is empty.
func (p *project) with(t *testing.T, name, content string) *project {
	t.Helper()
	changed := &project{documents: maps.Clone(p.documents), paths: maps.Clone(p.paths)}
	for _, f := range p.files {
		if f.path != name {
			changed.files = append(changed.files, f)
		}
	}
	delete(changed.documents, name)
	if content == "" {
		delete(changed.paths, name)
		return changed
	}
	if err := changed.add(name, []byte(content)); err != nil {
		t.Fatal(err)
	}
	return changed
}
