package architecture_test

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
		{"a core that opens files", "the engine reaches nothing outside", "engine/lineup/x.go", "package lineup\nimport \"os\"\nvar _ = os.Open\n", "x.go imports os"},
		{"a core with a context", "the engine reaches nothing outside", "engine/graph/x.go", "package graph\nimport \"context\"\nvar _ context.Context\n", "imports context"},
		{"a core with a lock", "the engine reaches nothing outside", "engine/evidence/x.go", "package evidence\nimport \"sync\"\nvar _ sync.Mutex\n", "imports sync"},
		{"a core that throws dice", "the engine reaches nothing outside", "engine/ranking/x.go", "package ranking\nimport \"math/rand/v2\"\nvar _ = rand.Int\n", "imports math/rand/v2"},
		{"a core that speaks HTTP", "the engine reaches nothing outside", "engine/view/x.go", "package view\nimport \"net/http\"\nvar _ http.Header\n", "imports net/http"},
		{"a core that knows Kafka", "the engine reaches nothing outside", "engine/steps/x.go", "package steps\nimport \"github.com/twmb/franz-go/pkg/kgo\"\nvar _ kgo.Record\n", "imports github.com/twmb/franz-go/pkg/kgo"},
		{"a core that logs", "the engine reaches nothing outside", "engine/decision/x.go", "package decision\nimport \"log/slog\"\nvar _ slog.Logger\n", "imports log/slog"},
		{"a core that imports a loop", "the engine reaches nothing outside", "engine/guard/x.go", "package guard\nimport \"landfall.build/platform/runner\"\nvar _ runner.Stage\n", "imports landfall.build/platform/runner"},
		{"a core that asks for the time", "the engine reaches nothing outside", "engine/targets/x.go", "package targets\nimport clock \"time\"\nvar now = clock.Now\n", "x.go:3: uses time.Now"},
		{"a core that prints", "the engine reaches nothing outside", "engine/graph/x.go", "package graph\nimport \"fmt\"\nfunc f() { fmt.Println() }\n", "uses fmt.Println"},
		{"a core with a goroutine", "the engine reaches nothing outside", "engine/graph/x.go", "package graph\nfunc f() { go f() }\n", "starts a goroutine"},
		{"a core with a channel", "the engine reaches nothing outside", "engine/graph/x.go", "package graph\nvar c chan int\n", "has a channel"},
		{"a core that selects", "the engine reaches nothing outside", "engine/graph/x.go", "package graph\nfunc f() { select {} }\n", "selects"},
		{"an engine that fits a model", "the engine reaches nothing outside", "engine/prediction/x.go", "package prediction\nimport \"landfall.build/learning/ngboost\"\nvar _ = ngboost.Fit\n", "uses landfall.build/learning/ngboost.Fit"},
		{"a library beside the services", "services holds services and nothing else", "services/words/x.go", "package words\n", "services/words is no service of events.Topics"},
		{"a file beside the services", "services holds services and nothing else", "services/x.go", "package services\n", "services/x.go is no service of events.Topics"},
		{"a service that imports another one", "no service imports another", "services/lander/x.go", "package lander\nimport _ \"landfall.build/services/gateway/view\"\n", "services/lander/x.go imports landfall.build/services/gateway/view"},
		{"a service that imports the tools", "modules depend downward only", "services/lander/x_test.go", "package lander\nimport _ \"landfall.build/tools/client\"\n", "x_test.go imports landfall.build/tools/client"},
		{"an event that imports a service", "modules depend downward only", "events/x.go", "package events\nimport _ \"landfall.build/engine/lineup\"\n", "events/x.go imports landfall.build/engine/lineup"},
		{"a library that imports a service", "modules depend downward only", "platform/runner/x.go", "package runner\nimport _ \"landfall.build/services/lander\"\n", "platform/runner/x.go imports landfall.build/services/lander"},
		{"an event with a dependency", "events import Protobuf and nothing else", "events/x.go", "package events\nimport _ \"github.com/spf13/cobra\"\n", "events/x.go imports github.com/spf13/cobra"},
		{"a folder named for nothing", "packages are named for what they compute", "services/gateway/util/x.go", "package text\n", `"util" says nothing`},
		{"a package named for nothing", "packages are named for what they compute", "tools/pages/x.go", "package common\n", `"common" says nothing`},
		{"a global logger", "loggers are arguments", "services/gateway/x.go", "package gateway\nimport \"log/slog\"\nfunc f() { slog.Info(\"x\") }\n", "x.go:3: uses log/slog.Info"},
		{"a service that prints", "standard output belongs to commands", "services/gateway/x.go", "package gateway\nimport \"os\"\nvar out = os.Stdout\n", "uses os.Stdout"},
		{"a file for several sittings", "files can be read in one sitting", "engine/lineup/x.go", long, "x.go has 901 lines"},
		{"a service that reads another one's topic", "services touch only topics of their own", "services/profiler/x.go", "package profiler\nimport \"landfall.build/events\"\nvar _ = events.TopicBuilds\n", "the profiler uses landfall.builds"},
		{"a service that writes what it may only read", "accounts may do what the code does", "services/tracer/x.go", "package tracer\nimport \"landfall.build/events\"\nvar _, _ = log.Append(nil, events.TopicBuilds, 0)\n", "x.go:3: writes landfall.builds, which the account tracer may not"},
		{"a service that reports what it may not write", "accounts may do what the code does", "services/tracer/x.go", "package tracer\nimport \"landfall.build/platform/runner\"\nvar _ runner.DeadLetter\n", "x.go:3: writes landfall.dead-letters, which the account tracer may not"},
		{"a service that follows what it may only write", "accounts may do what the code does", "services/hosts/x.go", "package hosts\nimport \"landfall.build/events\"\nvar sources = x{Sources: []string{events.TopicAccess}}\n", "x.go:3: reads landfall.access, which the account hosts may not"},
		{"a command that writes a service's topic", "accounts may do what the code does", "tools/outbox/x.go", "package outbox\nimport \"landfall.build/events\"\nvar _, _ = log.Append(nil, events.TopicDecisions, 0)\n", "x.go:3: writes landfall.decisions, which the account operator may not"},
		{"a service without a README", "every service has a README", "services/selector/README.md", "", "services/selector/README.md is missing"},
		{"a README that does not say what it consumes", "every service has a README", "services/selector/README.md", "# selector\n", `README.md has no row "consumes"`},
		{"a README with one topic too few", "READMEs and the table of topics agree", "services/selector/README.md", "| consumes | |\n| produces | `landfall.decisions`, `landfall.dead-letters` |\n", "disagree about landfall.priorities (README false, table true)"},
		{"a README with one topic too many", "READMEs and the table of topics agree", "services/selector/README.md", "| consumes | `priorities`, `landfall.builds` |\n| produces | `decisions`, `dead-letters` |\n", "disagree about landfall.builds (README true, table false)"},
		{"a link to nowhere", "documents name what exists", "docs/guides/x.md", "[x](../nowhere.md)\n", "x.md:1: the link to ../nowhere.md leads nowhere"},
		{"a path to nowhere", "documents name what exists", "docs/guides/x.md", "\nin `engine/lineup/gone.go`\n", "x.md:2: engine/lineup/gone.go does not exist"},
		{"a function to nowhere", "documents name what exists", "docs/guides/x.md", "see `engine/guard/guard.go`: `MayLand` and `MayFly`\n", "x.md:1: engine/guard/guard.go does not declare MayFly"},
		{"a method to nowhere", "documents name what exists", "docs/guides/x.md", "`engine/lineup/fold.go`: `Queue.Apply`, `Queue.Gone`\n", "fold.go does not declare Queue.Gone"},
		{"a struct that holds everything", "a struct of the engine holds one thing", "engine/lineup/x.go", "package lineup\ntype all struct {\n\ta, b, c, d, e, f, g, h int\n\ti, j, k, l, m, n, o, p int\n}\n", "x.go:2: all has 16 fields"},
		{"a state that is read past its types", "nothing is unsafe", "platform/snapshot/x.go", "package snapshot\nimport \"unsafe\"\nvar _ unsafe.Pointer\n", "x.go imports unsafe"},
		{"a package that the model does not name", "the model names every package", "engine/weather/x.go", "package weather\n", "does not name engine/weather"},
		{"a threat without a test", "each threat names a test that is there", threatDocument, "| who | what holds it | test |\n|---|---|---|\n| a pirate | a wall | [why](x) |\n", "security.md:3: no test shows what holds a pirate"},
		{"a threat whose test is gone", "each threat names a test that is there", threatDocument, "| who | what holds it | test |\n|---|---|---|\n| a pirate | a wall | `TestThatIsGone` |\n", "security.md:3: TestThatIsGone is no test"},
		{"no threat model", "each threat names a test that is there", threatDocument, "", "is missing"},
		{"no claims", "every claim has a row, and names its test", claimsDocument, "", "is missing"},
		{"a claim without a row", "every claim has a row, and names its test", claimsDocument, "# Claims\n", "has 0 rows for M19a"},
		{"a claim whose test is gone", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `engine/lineup.Queue` | `TestThatIsGone` |\n", "M1 names TestThatIsGone, which is no test"},
		{"a claim whose code is gone", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `engine/lineup.Queue.Gone` | no test yet |\n", "M1 names engine/lineup.Queue.Gone, which nothing declares"},
		{"a claim that has a test by now", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `engine/lineup.Queue` | no test yet |\n", `M1 says "no test yet", but there is TestM1`},
		{"a claim that says nothing", "every claim has a row, and names its test", claimsDocument, "| M1 | x | `engine/lineup.Queue` | |\n", "M1 must either name a test or say"},
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

// with returns the project with one file added or replaced, or removed if the content is empty.
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
