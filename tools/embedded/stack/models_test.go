package stack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/configuration"
	"landfall.build/services/journal"
	"landfall.build/services/journal/kafka"
	"landfall.build/services/journal/ownership"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer"
	"landfall.build/services/trainer/dataset"
	"landfall.build/services/trainer/fitting"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/clickhouse"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/train"
	"landfall.build/tools/trained"
)

// studied is a log with a queue of which the enumerator, the profiler and the historian are the production ones, and the rest
// is made up.
type studied struct {
	t        *testing.T
	log      *kafka.Log
	brokers  []string
	term     int64
	head     int
	made     int
	random   *rand.Rand
	profiles journal.Cursor
}

const studiedQueue = "shop"

func newStudied(t *testing.T) (s *studied, dsn string) {
	quiet := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := t.TempDir()
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(dir, "broker"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	server, err := clickhouse.Start(t.Context(), clickhouse.Options{Dir: filepath.Join(dir, "clickhouse"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, ClientID: "test", Log: quiet, Partitions: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	config, err := configuration.Parse([]byte("version: 1\nbroker: {partitions: 1}\nrepositories: {shop: {url: ../shop.git}}\nqueues: {shop: {repository: shop, branch: main}}\n"), "test.yaml", configuration.Defaults{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &pipeline.Process{Configuration: config, Log: log, Instance: "test", Version: "test", Logger: quiet, Owner: ownership.Static{Log: quiet, Partitions: 1}, History: server.DSN()}
	ended := make(chan struct{}, 3)
	for _, name := range []string{events.ServiceEnumerator, events.ServiceProfiler, events.ServiceHistorian} {
		go func() {
			p.Run(ctx, name)
			ended <- struct{}{}
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			<-ended
		}
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s = &studied{t: t, log: log, brokers: []string{b.Addr()}, random: rand.New(rand.NewPCG(seed, 0))}
	if s.profiles, err = log.Follow(ctx, events.TopicProfiles, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.profiles.Close)
	s.say(events.TopicChanges, events.ServiceLander, &eventsv1.Claim{Service: events.ServiceLander})
	s.say(events.TopicChanges, events.ServiceLander, &eventsv1.MainlineMoved{To: "m0", Initial: true})
	return s, server.DSN()
}

// say appends records of one service to a topic.
func (s *studied) say(topic, source string, messages ...proto.Message) {
	s.t.Helper()
	var all []events.Envelope
	for _, m := range messages {
		e := events.Envelope{ID: fmt.Sprint(source, s.random.Uint64()), Source: source, Instance: "test", Queue: studiedQueue, Time: time.Now(), Term: -1, Message: m}
		if _, claims := m.(*eventsv1.Claim); !claims && source == events.ServiceLander {
			e.Term = s.term
		}
		all = append(all, e)
	}
	at, err := s.log.Append(s.t.Context(), topic, 0, all...)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, claims := messages[0].(*eventsv1.Claim); claims {
		s.term = at[0]
	}
}

// await reads profiles until one satisfies.
func (s *studied) await(what string, satisfies func(*eventsv1.Profile) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		e, err := s.profiles.Next(ctx)
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
		if p, is := e.Message.(*eventsv1.Profile); is && satisfies(p) {
			return
		}
	}
}

// wave lets changes come, waits until they are predicted, and lets them end: those of many targets are rejected, and few of
// the others. What is to be learnt is plain, so that a model of few rows is better by more than chance.
func (s *studied) wave(n int) {
	s.t.Helper()
	var came, ended []proto.Message
	waiting := map[string]bool{}
	for range n {
		s.made++
		id := fmt.Sprint("c", s.made)
		ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
		targets := 1 + s.random.IntN(12)
		came = append(came, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: studiedQueue, Change: id, Revision: 1, Author: fmt.Sprint("a", s.made%7), LandingCommits: []*eventsv1.LandingCommit{{Head: id}}, ReceivedUs: time.Now().UnixMicro()}})
		a := &eventsv1.ChangeAnalyzed{Change: ref, Base: fmt.Sprint("m", s.head), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{}}
		for k := range targets {
			a.Affected.Targets = append(a.Affected.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//%s:t%d", id, k), Hash: id, Part: 1})
		}
		came = append(came, a)
		waiting[id] = true
		if targets <= 6 && s.random.IntN(20) > 0 {
			base := fmt.Sprint("m", s.head)
			s.head++
			commits := []string{fmt.Sprint("m", s.head)}
			ended = append(ended, &eventsv1.LandIntended{Change: ref, Decision: id, Base: base, Commits: commits}, &eventsv1.ChangeLanded{Change: ref, Decision: id, Base: base, Commits: commits, StampUs: time.Now().UnixMicro()})
		} else {
			ended = append(ended, &eventsv1.ChangeRejected{Change: ref, Decision: id, Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}})
		}
	}
	s.say(events.TopicChanges, events.ServiceGateway, came...)
	s.await("predictions", func(p *eventsv1.Profile) bool {
		for _, q := range p.Predictions {
			if len(q.Features) > 0 {
				delete(waiting, q.Change.Change)
			}
		}
		return len(waiting) == 0
	})
	now := time.Now().UnixMicro() // after the predictions
	for _, m := range ended {
		switch m := m.(type) {
		case *eventsv1.ChangeLanded:
			m.StampUs = now
		case *eventsv1.ChangeRejected:
			m.StampUs = now
		}
	}
	s.say(events.TopicChanges, events.ServiceLander, ended...)
	gone := 0
	s.await("ends", func(p *eventsv1.Profile) bool {
		gone += len(p.GetDelta().GetGone())
		return gone == n
	})
}

// predicted is the next prediction of a new change of some targets.
func (s *studied) predicted(targets int) (q *eventsv1.Prediction) {
	s.t.Helper()
	s.made++
	id := fmt.Sprint("c", s.made)
	affected := &eventsv1.Affected{}
	for k := range targets {
		affected.Targets = append(affected.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//%s:t%d", id, k), Hash: id, Part: 1})
	}
	s.say(events.TopicChanges, events.ServiceGateway,
		&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: studiedQueue, Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}},
		&eventsv1.ChangeAnalyzed{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Base: fmt.Sprint("m", s.head), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: affected})
	s.await("a prediction", func(p *eventsv1.Profile) bool {
		for _, x := range p.Predictions {
			if x.Change.Change == id && len(x.Features) > 0 {
				q = x
			}
		}
		return q != nil
	})
	return q
}

func noConfiguration(string) (*configuration.Configuration, error) {
	return nil, errors.New("there is no configuration")
}

// models is `landfall models … --json`.
func (s *studied) models(into any, arguments ...string) error {
	return s.command(trained.Command(noConfiguration, slog.New(slog.DiscardHandler)), into, append(arguments, "--queue", studiedQueue)...)
}

// command runs one on the log, with --json.
func (s *studied) command(c *cobra.Command, into any, arguments ...string) error {
	s.t.Helper()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SilenceUsage = true
	c.SetArgs(append(arguments, "--json", "--brokers", s.brokers[0]))
	if err := c.ExecuteContext(s.t.Context()); err != nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), into)
}

// studiedWaves are so many that what is learnt of them is sure to be better than what is known without a model.
const studiedWaves = 40

// TestModelsAreTrainedFromTheHistoryPublishedUsedAndRolledBack, all in production code but for git and the builds: what predictions
// were made from goes into ClickHouse, a model is trained on it and promoted, the next prediction names it and holds to it, and
// priors predict again once it is rolled back.
func TestModelsAreTrainedFromTheHistoryPublishedUsedAndRolledBack(t *testing.T) {
	s, dsn := newStudied(t)
	for range studiedWaves {
		s.wave(24)
	}
	if q := s.predicted(1); q.SuccessSource != "queue" {
		t.Fatalf("before there is a model: %v", q)
	}
	source, err := dataset.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	success := eventsv1.ModelKind_MODEL_KIND_SUCCESS
	rows := 0
	for range 1800 { // the history has its own pace
		if set, err := source.Read(t.Context(), studiedQueue, success, time.Now().Add(-time.Hour)); err == nil {
			if rows = len(set.Rows); rows == studiedWaves*24 {
				break
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if rows != studiedWaves*24 {
		t.Fatalf("the history has %d of %d rows", rows, studiedWaves*24)
	}
	teach := trainer.New(trainer.Options{
		Log: s.log, Open: func() (trainer.Source, error) { return dataset.Open(dsn) }, Queues: []string{studiedQueue}, Instance: "test", Version: "test",
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	outcomes, err := teach.Once(t.Context(), prediction.Kinds(), true)
	if err != nil {
		t.Fatal(err)
	}
	if outcomes[0].Report == nil || !outcomes[0].Report.Better {
		t.Fatalf("success: %+v", outcomes[0])
	}
	for _, o := range outcomes[1:] { // no pair met, and nothing was built
		if !errors.Is(o.Why, fitting.ErrTooLittle) {
			t.Errorf("%v: %+v", o.Kind, o)
		}
	}
	model := outcomes[0].Report.Model
	s.await("the model", func(p *eventsv1.Profile) bool { return len(p.Models) == 1 && p.Models[0].Version == model.Version })
	q := s.predicted(1)
	opened, err := prediction.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := opened.Probability(q.Features); err != nil || q.SuccessSource != prediction.Name(success, model.Version) || q.Success != p {
		t.Errorf("with the model: %v by %q, the model says %v, %v", q.Success, q.SuccessSource, p, err)
	}
	if many := s.predicted(12); many.Success >= q.Success {
		t.Errorf("of one target %v, of twelve %v", q.Success, many.Success)
	}
	var list []map[string]any
	if err := s.models(&list, "list"); err != nil || len(list) != 1 || list[0]["in_use"] != true || list[0]["version"] != model.Version {
		t.Errorf("the list: %v, %v", list, err)
	}
	var card map[string]any
	if err := s.models(&card, "show", model.Version[:8]); err != nil || card["version"] != model.Version || card["predictor"] != nil {
		t.Errorf("the card: %v, %v", card, err)
	}
	// By hand it is the same model, which is no better than itself, and nothing is written.
	report := t.TempDir()
	var again []train.TrainedQueue
	queue := train.Command(noConfiguration, "test", slog.New(slog.DiscardHandler))
	if err := s.command(queue, &again, "queue", studiedQueue, "--clickhouse", dsn, "--report", report); err != nil || len(again) != 3 {
		t.Fatalf("trained by hand: %v, %v", again, err)
	}
	if a := again[0]; a.Version != model.Version || a.Better || a.Written != "" || len(a.Plots) != 3 || a.Figures["log_loss"][fitting.OfInUse] != a.Figures["log_loss"][fitting.OfCandidate] || again[1].Why == "" {
		t.Errorf("trained by hand: %+v", again)
	}
	if err := s.models(&list, "list"); err != nil || len(list) != 1 {
		t.Errorf("the list, after a training that was to write nothing: %v, %v", list, err)
	}
	var changed map[string]any
	if err := s.models(&changed, "rollback", "success", "--why", "a test"); err != nil || changed["in_use"] != "" {
		t.Errorf("rolled back: %v, %v", changed, err)
	}
	s.await("the roll back", func(p *eventsv1.Profile) bool { return len(p.Models) == 1 && p.Models[0].Version == "" })
	if q := s.predicted(1); q.SuccessSource != "queue" {
		t.Errorf("rolled back: %v", q.SuccessSource)
	}
	if err := s.models(&changed, "rollback", "success"); err == nil || !strings.Contains(err.Error(), "priors predict already") {
		t.Errorf("rolled back once more: %v", err)
	}
	if err := s.models(&changed, "promote", model.Version[:8]); err != nil || changed["in_use"] != model.Version {
		t.Errorf("promoted: %v, %v", changed, err)
	}
	s.await("the model once more", func(p *eventsv1.Profile) bool { return len(p.Models) == 1 && p.Models[0].Version == model.Version })
	if err := s.models(&changed, "promote", "nothing"); err == nil {
		t.Error("a model that is not was promoted")
	}
}
