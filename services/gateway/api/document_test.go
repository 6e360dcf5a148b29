package api

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"landfall.build/engine/admission"
	"landfall.build/engine/explanation"
	"landfall.build/platform/access"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/analytics"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/timeline"
	"landfall.build/services/gateway/view"
	"landfall.build/services/gateway/whatif"
)

type openAPI struct {
	Paths      map[string]map[string]any `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			AllOf      []map[string]string       `yaml:"allOf"`
			Required   []string                  `yaml:"required"`
			Properties map[string]map[string]any `yaml:"properties"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

func readDocument(t *testing.T) openAPI {
	t.Helper()
	var d openAPI
	if err := yaml.Unmarshal(document, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryRouteIsInTheDocumentAndEveryPathOfItIsARoute(t *testing.T) {
	documented := map[string]bool{}
	for path, methods := range readDocument(t).Paths {
		for method := range methods {
			if method != "parameters" {
				documented[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	for _, r := range (&handler{}).routes() {
		name := r.method + " " + r.path
		if !documented[name] {
			t.Errorf("openapi.yaml has no %s", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("openapi.yaml has %s, which no route serves", name)
	}
}

func TestSchemasHaveExactlyTheFieldsThatAreServed(t *testing.T) {
	schemas := readDocument(t).Components.Schemas
	served := []any{
		Failure{}, FailureDetail{}, WhoAmI{}, Permission{}, Token{}, TokenList{}, TokenBody{}, TokenReply{}, RevokeBody{}, AccessExplanation{}, ModelList{}, ModelEntry{}, ModelCard{}, ModelFigure{}, ModelBody{}, access.RuleLine{}, DeadLetterList{}, DeadLetter{}, DeadRecord{}, RecordHeader{}, SentAgain{}, SendBody{}, LandBody{}, LandEntry{}, LandReply{}, SteerBody{}, SteerReply{}, SignInWays{}, signin.Way{}, SignOutBody{}, SignOutReply{}, QueueList{}, ChangeList{}, QuarantineList{}, FlakeList{}, view.Quarantine{}, view.Flake{}, view.RejectingTarget{},
		analytics.Analytics{}, analytics.NoHistory{}, analytics.WeekOfVerdicts{}, analytics.RejectedChange{}, analytics.WeekOfWaits{}, analytics.WeekOfBuilds{}, analytics.WeekOfWork{}, analytics.WeekOfBypasses{}, analytics.WeekOfAccuracy{}, analytics.Calibration{}, analytics.Rejecting{}, analytics.FlakyRate{}, WhatIf{}, WhatIfBody{}, whatif.Setting{}, whatif.Simulation{}, whatif.Comparison{}, whatif.SettingFigures{}, timeline.Timeline{}, timeline.PoolQueue{}, timeline.WorkerTimeline{}, timeline.StepRun{}, timeline.IdleTime{}, timeline.IdleSum{}, view.Overview{}, view.Pace{}, view.Landed{}, Part{}, view.Graph{}, view.GraphNode{}, view.GraphEdge{}, view.GraphFuture{}, view.Pool{}, view.Trouble{}, view.RedSince{}, view.ServiceTrouble{}, health.Report{}, health.Capacity{}, health.Instance{}, health.Ownership{}, health.Missing{}, view.Dropped{}, view.Fault{}, view.FlakyTarget{}, view.Model{}, view.Pause{}, view.PauseOver{}, view.RemotePause{}, view.Summary{}, view.ETA{}, view.Update{}, view.Change{}, view.Revision{}, Difference{}, view.Explanation{}, view.WaitingStep{}, view.Quota{}, view.RankedStep{}, view.StepShare{}, view.Reason{}, view.Pinned{},
		view.Related{}, view.Hold{}, view.Analysis{}, view.Uncovered{}, view.Ahead{}, view.Build{}, view.Step{}, view.Landing{}, view.Rejection{}, view.Refusal{}, view.Event{},
		view.Full{}, view.RankedPath{}, view.BuildReasons{}, view.DecisionTaken{}, explanation.Worth{}, explanation.Factor{}, explanation.Term{}, explanation.Proof{},
		explanation.Prediction{}, explanation.Verdict{}, explanation.Path{},
	}
	names := map[string]bool{"Status": true}
	for _, value := range served {
		kind := reflect.TypeOf(value)
		names[kind.Name()] = true
		schema, known := schemas[kind.Name()]
		if !known {
			t.Errorf("openapi.yaml has no schema %s", kind.Name())
			continue
		}
		documented := map[string]bool{}
		for name := range schema.Properties {
			documented[name] = true
		}
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Anonymous {
				if len(schema.AllOf) != 1 || !strings.HasSuffix(schema.AllOf[0]["$ref"], "/"+field.Name) {
					t.Errorf("%s does not say that it is a %s", kind.Name(), field.Name)
				}
				continue
			}
			if !field.IsExported() {
				continue
			}
			if !documented[name] {
				t.Errorf("schema %s lacks %s", kind.Name(), name)
			}
			delete(documented, name)
			always := !strings.Contains(options, "omit")
			if required := slices.Contains(schema.Required, name); required != always {
				t.Errorf("schema %s: %s is required: %v, but it is always there: %v", kind.Name(), name, required, always)
			}
		}
		for name := range documented {
			t.Errorf("schema %s has %s, which is not served", kind.Name(), name)
		}
	}
	for name := range schemas {
		if !names[name] {
			t.Errorf("schema %s is of nothing", name)
		}
	}
}

func TestEveryCodeIsInTheDocument(t *testing.T) {
	var documented []string
	for _, code := range readDocument(t).Components.Schemas["FailureDetail"].Properties["code"]["enum"].([]any) {
		documented = append(documented, code.(string))
	}
	var codes []string
	for _, code := range admission.Codes() {
		if code != admission.Unchanged {
			codes = append(codes, string(code))
		}
	}
	codes = append(codes, codeUnknownChange, codeUnknownTarget, codeNotApplied, codeForbidden, codeMediaType, codeTooLarge, CodeNotReady,
		codeNotHealthy, codeUnanswered, codeNotFound, codeMethod, codeNoLog, codeInternal, codeBusy, codeTooMany, codeProviderAway, codeHistoryAway, codeWhatIfRuns, CodePastUnread, string(access.Unauthenticated))
	slices.Sort(codes)
	slices.Sort(documented)
	if !slices.Equal(codes, documented) {
		t.Errorf("openapi.yaml has the codes %v, the API has %v", documented, codes)
	}
	source, err := os.ReadFile("failure.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)^\t[cC]ode\w+ += "`).FindAll(source, -1)); n != 19 {
		t.Errorf("failure.go has %d codes, this test knows 19", n)
	}
}

// TestTheDocumentSaysWhatEachRouteAsksFor: its verb is that of the table of doors, and routes without proof are marked.
func TestTheDocumentSaysWhatEachRouteAsksFor(t *testing.T) {
	paths := readDocument(t).Paths
	for _, r := range (&handler{}).routes() {
		door, known := access.RouteOf(r.method, r.path)
		operation, _ := paths[r.path][strings.ToLower(r.method)].(map[string]any)
		if !known || operation == nil {
			t.Errorf("%s %s has no row in the table of doors, or is not in the document", r.method, r.path)
			continue
		}
		verb, _ := operation["x-landfall-verb"].(string)
		_, open := operation["security"]
		responses := operation["responses"].(map[string]any)
		_, unknown := responses["401"]
		_, refused := responses["403"]
		if public := door.For == access.Everybody; verb != string(door.Verb) || open != public || unknown == public || refused == public {
			t.Errorf("%s %s: the document has the verb %q (public: %v, 401: %v, 403: %v), the table %+v", r.method, r.path, verb, open, unknown, refused, door)
		}
	}
}
