package trained_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction"
	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/registry"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/trained"
)

// kept is a data directory with a log of models, of which nobody but `landfall models` has the broker.
type kept struct {
	t   *testing.T
	dir string
}

func keep(t *testing.T, queue string, records ...proto.Message) *kept {
	t.Helper()
	k := &kept{t: t, dir: t.TempDir()}
	quiet := slog.New(slog.DiscardHandler)
	b, err := broker.Start(t.Context(), broker.Options{Dir: k.dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, ClientID: "test", Log: quiet, Partitions: 2, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, m := range records {
		if err := registry.Publish(t.Context(), log, events.ServiceTrainer, "test", queue, m); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// models is `landfall models …` on the data directory.
func (k *kept) models(arguments ...string) (string, error) {
	k.t.Helper()
	var out bytes.Buffer
	c := trained.Command(func(string) (*configuration.Configuration, error) {
		return nil, errors.New("there is no configuration")
	}, slog.New(slog.DiscardHandler))
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SilenceUsage = true
	c.SetArgs(append(arguments, "--data", k.dir))
	err := c.ExecuteContext(k.t.Context())
	return out.String(), err
}

// A name that the configuration does not have is most likely mistyped, and has no models for that reason.
func TestAQueueThatIsNotConfiguredIsRefused(t *testing.T) {
	c := trained.Command(func(string) (*configuration.Configuration, error) {
		return &configuration.Configuration{Queues: map[string]configuration.Queue{"shop": {}, "bank": {}}}, nil
	}, slog.New(slog.DiscardHandler))
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	c.SetArgs([]string{"list", "--queue", "shap"})
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `no queue "shap"; it has: bank, shop`) {
		t.Error(err)
	}
}

func figures(m *eventsv1.Model, logLoss float64) *eventsv1.Model {
	m.Card.Figures = []*eventsv1.ModelFigure{{Name: "log_loss", Of: "candidate", Value: logLoss}, {Name: "log_loss", Of: "rolling", Value: 0.7}}
	m.Card.Weights = []*eventsv1.ModelWeight{{Feature: "targets", Weight: -0.5}}
	m.Card.Verdict = "a good one"
	return m
}

func TestModelsAreListedComparedPromotedAndRolledBack(t *testing.T) {
	first, second := figures(predictiontest.Success(t, 1), 0.5), figures(predictiontest.Success(t, 2), 0.4)
	duration := predictiontest.Duration(t, 3, 1)
	declined := proto.CloneOf(predictiontest.Success(t, 4))
	declined.Predictor = nil
	corrupt := proto.CloneOf(predictiontest.Success(t, 5))
	corrupt.Predictor = corrupt.Predictor[:len(corrupt.Predictor)-3]
	k := keep(t, "q",
		&eventsv1.ModelPromoted{Model: first, Who: "trainer", Why: "the first"}, &eventsv1.ModelPromoted{Model: second, Who: "trainer", Why: "\x1b[31mred\x1b[0m"},
		&eventsv1.ModelPromoted{Model: duration}, &eventsv1.ModelTrained{Model: declined}, &eventsv1.ModelTrained{Model: corrupt})

	out, err := k.models("list", "--queue", "q")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 6 || strings.Contains(out, "\x1b") {
		t.Fatalf("%q, %v", out, err)
	}
	for i, want := range []string{"", "promoted", "IN USE", "IN USE", "declined", "it is corrupt"} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d does not say %q: %q", i, want, lines[i])
		}
	}
	if out, err := k.models("list", "--queue", "another"); err != nil || !strings.Contains(out, "priors predict") {
		t.Errorf("of a queue without models: %q, %v", out, err)
	}
	if out, err := k.models("show", second.Version[:9], "--queue", "q"); err != nil || !strings.Contains(out, second.Version) || !strings.Contains(out, "0.4000") || !strings.Contains(out, "-0.500  targets") || !strings.Contains(out, "a good one") {
		t.Errorf("shown: %q, %v", out, err)
	}
	for _, arguments := range [][]string{{"compare", first.Version[:9]}, {"compare", first.Version[:9], second.Version[:9]}} { // the second is in use
		if out, err := k.models(append(arguments, "--queue", "q")...); err != nil || !strings.Contains(out, "0.5000") || !strings.Contains(out, "0.4000") || !strings.Contains(out, prediction.ShortVersion(second.Version)) {
			t.Errorf("%v: %q, %v", arguments, out, err)
		}
	}
	var both []map[string]any
	if out, err := k.models("compare", first.Version[:9], "--queue", "q", "--json"); err != nil || json.Unmarshal([]byte(out), &both) != nil || len(both) != 2 || both[1]["version"] != second.Version || both[0]["predictor"] != nil {
		t.Errorf("compared: %q, %v", out, err)
	}
	for refused, arguments := range map[string][]string{
		"cannot be compared":     {"compare", first.Version[:9], duration.Version[:9]},
		"only the card":          {"promote", declined.Version},
		"it is corrupt":          {"promote", corrupt.Version},
		"no such model":          {"show", "zzz"},
		"several models":         {"show", "success-"},
		"no kind of model":       {"rollback", "luck"},
		"priors predict already": {"rollback", "conflict"},
		"which queue":            {"list", "--queue", ""},
		"show takes one VERSION": {"show"},
	} {
		if refused != "which queue" {
			arguments = append(arguments, "--queue", "q")
		}
		if out, err := k.models(arguments...); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%v: %q, %v", arguments, out, err)
		}
	}

	inUse := func() string {
		t.Helper()
		out, err := k.models("list", "--queue", "q", "--json")
		var rows []struct {
			Kind, Version string
			InUse         bool `json:"in_use"`
		}
		if err != nil || json.Unmarshal([]byte(out), &rows) != nil {
			t.Fatalf("%q, %v", out, err)
		}
		for _, r := range rows {
			if r.Kind == "success" && r.InUse {
				return r.Version
			}
		}
		return ""
	}
	for _, x := range []struct {
		arguments []string
		inUse     string
	}{
		{[]string{"rollback", "success", "--why", "too sure"}, first.Version},
		{[]string{"promote", second.Version[:9]}, second.Version},
		{[]string{"rollback", "success", "--priors"}, ""},
		{[]string{"promote", first.Version[:9], "--who", "Ada"}, first.Version},
	} {
		if out, err := k.models(append(x.arguments, "--queue", "q")...); err != nil || !strings.Contains(out, "from now on") {
			t.Fatalf("%v: %q, %v", x.arguments, out, err)
		}
		if got := inUse(); got != x.inUse {
			t.Errorf("after %v %q is in use, want %q", x.arguments, got, x.inUse)
		}
	}
	if out, _ := k.models("list", "--queue", "q"); !strings.Contains(out, "too sure") || !strings.Contains(out, "Ada") || !strings.Contains(out, "rolled back") {
		t.Errorf("who and why: %q", out)
	}
}
