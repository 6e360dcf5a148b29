package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/historian"
	"landfall.build/services/historian/warehouse"
	"landfall.build/tools/embedded/clickhouse"
)

// otherServer is the DSN of a server of one's own that the tests of the history run against instead, if set;
// each test makes a database there and drops it.
const otherServer = "LANDFALL_TEST_CLICKHOUSE"

// database returns the DSN of an empty database that ends with the test.
func database(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv(otherServer); dsn != "" {
		o, err := driver.ParseDSN(dsn)
		if err != nil {
			t.Fatalf("%s: %v", otherServer, err)
		}
		name := fmt.Sprintf("landfall_test_%x", rand.Uint64())
		before, after, _ := strings.Cut(dsn, "/"+o.Auth.Database)
		t.Cleanup(func() {
			o.Auth.Database = "default"
			if c, err := driver.Open(o); err == nil {
				c.Exec(context.Background(), "DROP DATABASE IF EXISTS "+name)
				c.Close()
			}
		})
		return before + "/" + name + after
	}
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "landfall-clickhouse-"); shared.err == nil {
			shared.server, shared.err = clickhouse.Start(context.Background(), clickhouse.Options{Dir: shared.dir, Log: quiet()})
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return strings.TrimSuffix(shared.server.DSN(), "/landfall") + fmt.Sprintf("/landfall_test_%x", rand.Uint64())
}

// shared is one server for all tests that need only a database.
var shared struct {
	once   sync.Once
	dir    string
	server *clickhouse.Server
	err    error
}

// closeShared ends it, after all tests.
func closeShared() {
	if shared.server != nil {
		shared.server.Close()
	}
	os.RemoveAll(shared.dir)
}

// open returns what a historian opens its store with.
func open(dsn, logID string) func(ctx context.Context) (historian.Store, error) {
	return func(ctx context.Context) (historian.Store, error) {
		w, err := warehouse.Open(ctx, warehouse.Options{DSN: dsn, LogID: logID})
		if err != nil {
			return nil, err
		}
		return w, nil
	}
}

// inventor makes events such as the services write, on a few queues, with repeats, zombies and rubbish.
type inventor struct {
	random *rand.Rand
	// verdicts draws what becomes of rejected changes.
	verdicts *rand.Rand
	log      journal.Log
	terms    map[string][]int64
	n        int
	// failed has versions that rejected a change.
	failed []*eventsv1.TargetVersion
	// every is the time between two events.
	every time.Duration
}

func newInventor(seed uint64, log journal.Log) *inventor {
	return &inventor{random: rand.New(rand.NewPCG(seed, 1)), verdicts: rand.New(rand.NewPCG(seed, 2)), log: log, terms: map[string][]int64{}, every: 1234567 * time.Microsecond}
}

func (v *inventor) change() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", v.random.IntN(40)), Revision: uint64(1 + v.random.IntN(2))}
}

// build returns one of the builds, and the change that it is always for.
func (v *inventor) build() (string, *eventsv1.ChangeRef) {
	n := v.random.IntN(50)
	if n == 0 {
		return "b0", nil // of the mainline
	}
	return fmt.Sprintf("b%d", n), &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", n%40), Revision: uint64(1 + n%2)}
}

func (v *inventor) version() *eventsv1.TargetVersion {
	return &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d", v.random.IntN(9)), Hash: fmt.Sprint(v.random.IntN(20)), Trivial: v.random.IntN(9) == 0}
}

// proofs names some attempts at versions.
func (v *inventor) proofs() (list []*eventsv1.Proof) {
	for range v.random.IntN(4) {
		list = append(list, &eventsv1.Proof{Version: v.version(), Attempt: uint32(1 + v.random.IntN(2)), Step: "test"})
	}
	return list
}

// next appends one event somewhere.
func (v *inventor) next(t testing.TB) {
	v.n++
	e := events.Envelope{
		ID: fmt.Sprintf("e%d", v.n), Instance: "i", Term: -1,
		Time: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC).Add(time.Duration(v.n) * v.every),
	}
	e.Queue = fmt.Sprintf("queue%d", v.random.IntN(3))
	partition := events.PartitionOf(e.Queue, v.log.Partitions())
	us := e.Time.UnixMicro()
	c := v.change()
	var topic string
	switch v.random.IntN(19) {
	case 0:
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: e.Queue, Change: c.Change, Revision: c.Revision, Author: "ann", Team: "shop", ReceivedUs: us - 1_000_000,
			Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: "ann"}}}
		e.Subject = c.Change
	case 1:
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceAnalyzer, &eventsv1.ChangeAnalyzed{Change: c, FilesChanged: 3, FinishedUs: us}
	case 2:
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceLander, &eventsv1.ChangeLanded{Change: c, Commits: []string{"a", "b"}, StampUs: us}
	case 3:
		c.Change = fmt.Sprintf("c%d", v.random.IntN(30)) // no revision is rejected and ejected
		reason := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Failed: v.proofs()}
		if v.verdicts.IntN(4) == 0 {
			reason = &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT}
		}
		for _, p := range reason.Failed {
			v.failed = append(v.failed, p.Version)
		}
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceLander, &eventsv1.ChangeRejected{Change: c, Reason: reason, StampUs: us}
	case 4, 5, 6:
		build, _ := v.build()
		step := v.version()
		if len(v.failed) > 0 && v.verdicts.IntN(2) == 0 {
			step = v.failed[v.verdicts.IntN(len(v.failed))]
		}
		took := v.random.Int64N(9_000_000)
		if v.random.IntN(9) == 0 {
			took = v.random.Int64N(9_000_000_000) // hours
		}
		topic, e.Source, e.Message = events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{
			Target: step.Target, Hash: step.Hash, Attempt: uint32(1 + v.random.IntN(2)), Worker: fmt.Sprintf("builder/%d", v.random.IntN(4)),
			Outcome: eventsv1.StepOutcome(1 + v.random.IntN(2)*v.random.IntN(5)), Build: build, StartedUs: us - took, FinishedUs: us,
			OutputTail: make([]byte, v.random.IntN(2000)), Commands: []*eventsv1.CommandFinished{{Name: "test", DurationUs: 17}},
			Group: []string{"", "g1", "g2"}[v.random.IntN(3)], Unreported: v.random.IntN(4) == 0}
	case 7, 8:
		topic, e.Source, e.Message = events.TopicProfiles, events.ServiceProfiler, &eventsv1.Profile{Position: int64(v.n), StampUs: us,
			Predictions: []*eventsv1.Prediction{{Change: c, Success: v.random.Float64(), DurationMeanUs: 5e6, DurationStdUs: 3e6 * v.random.Float64(), SuccessSource: "prior", Features: []float32{1, float32(math.NaN())}, Schema: 1}},
			Pairs:       []*eventsv1.PairPrediction{{Behind: c, Ahead: v.change(), Conflict: 0.1, Features: []float32{2}, Schema: 1}},
			Observed:    []*eventsv1.PairObserved{{Behind: c, Ahead: v.change(), Conflict: v.random.IntN(2) == 0}}}
	case 9, 10:
		build, of := v.build()
		topic, e.Source, e.Message = events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{Position: int64(v.n), StampUs: us, Items: []*eventsv1.DecisionItem{
			{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{Build: build, Change: &eventsv1.AssumedChange{Change: of}, Needed: 0.5}}},
			{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: c, Decision: e.ID}}}}}
	case 11:
		services := []string{events.ServiceLander, events.ServiceProfiler, events.ServiceSelector, events.ServiceEnumerator}
		topics := []string{events.TopicChanges, events.TopicProfiles, events.TopicDecisions, events.TopicSpeculations}
		i := v.random.IntN(4)
		topic, e.Source, e.Message = topics[i], services[i], &eventsv1.Claim{Service: services[i]}
	case 12, 13:
		build, of := v.build()
		topic, e.Source, e.Message = events.TopicBuilds, events.ServiceBuilder, &eventsv1.BuildPrepared{Build: build, Change: of, FinishedUs: us,
			Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{v.version(), v.version(), {Target: "//gone", Absent: true}}}
	case 14:
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceLander, &eventsv1.Refused{Change: c, StampUs: us, Disproved: v.random.IntN(2) == 0,
			Class: eventsv1.ReasonClass(2 * v.random.IntN(2)), Missing: []*eventsv1.TargetVersion{v.version()}[:v.random.IntN(2)], BaseOutdated: v.proofs()}
	case 15:
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeRetried{Change: c, StampUs: us, Failed: v.proofs()}
	case 16:
		c.Change = fmt.Sprintf("c%d", 30+v.random.IntN(10))
		topic, e.Source, e.Message = events.TopicChanges, events.ServiceLander, &eventsv1.ChangeEjected{Change: c, StampUs: us,
			Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Failed: v.proofs()}}
	case 17, 18:
		build, _ := v.build()
		delta := &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{Build: build, State: eventsv1.BuildState_BUILD_STATE_FINISHED}}}
		if v.random.IntN(4) == 0 {
			delta.Settings = &eventsv1.QueueSettings{Workers: 3, Pool: []string{"", "large", "small"}[v.random.IntN(3)], PoolWorkers: uint32(v.random.IntN(9))}
		}
		topic, e.Source, e.Message = events.TopicSpeculations, events.ServiceEnumerator, &eventsv1.Speculation{StampUs: us, Delta: delta}
	}
	owner := fmt.Sprint(topic, partition, e.Source)
	_, claim := e.Message.(*eventsv1.Claim)
	if known := v.terms[owner]; !claim && len(known) > 0 && e.Source != events.ServiceGateway && e.Source != events.ServiceAnalyzer && e.Source != events.ServiceBuilder {
		e.Term = known[len(known)-1]
		if v.random.IntN(5) == 0 { // an instance that was replaced
			e.Term = known[v.random.IntN(len(known))]
		}
	}
	offsets, err := v.log.Append(t.Context(), topic, partition, e)
	if err != nil {
		t.Fatal(err)
	}
	if claim {
		v.terms[owner] = append(v.terms[owner], offsets[0])
	}
}

// sums are figures of the log, by name.
type sums map[string]float64

// foldLog reads the whole log and adds up, with none of the historian's code.
func foldLog(t testing.TB, log journal.Log) sums {
	t.Helper()
	s := sums{}
	steps, changes, builds := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, topic := range events.Topics() {
		for p := range log.Partitions() {
			end, err := log.End(t.Context(), topic.Name, p)
			if err != nil {
				t.Fatal(err)
			}
			if end == 0 {
				continue
			}
			cursor, err := log.Follow(t.Context(), topic.Name, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			terms := journal.NewTerms(topic.Name)
			for last := int64(-1); last < end-1; {
				e, err := cursor.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				last = e.Offset
				s["records"]++
				s["offsets"] += float64(e.Offset)
				if !terms.Counts(e) {
					continue
				}
				s["counting"]++
				switch m := e.Message.(type) {
				case *eventsv1.ChangeAdmitted:
					changes[e.Queue+m.Admission.Change+fmt.Sprint(m.Admission.Revision)] = true
				case *eventsv1.StepFinished:
					key := fmt.Sprint(e.Queue, "|", m.Target, "|", m.Hash, "|", m.Attempt)
					if !steps[key] {
						steps[key] = true
						s["step milliseconds"] += float64((m.FinishedUs - m.StartedUs) / 1000)
						s["in group 1"] += map[bool]float64{true: 1}[m.Group == "g1"]
						s["unreported"] += map[bool]float64{true: 1}[m.Unreported]
						s["passed"] += map[bool]float64{true: 1}[m.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED]
					}
				case *eventsv1.Profile:
					s["predictions"] += float64(2*len(m.Predictions) + len(m.Pairs))
				case *eventsv1.Decision:
					s["decisions"] += float64(len(m.Items))
					builds[e.Queue+m.Items[0].GetBuildScheduled().GetBuild()] = true
				}
			}
			cursor.Close()
		}
	}
	s["steps"], s["changes"], s["scheduled builds"] = float64(len(steps)), float64(len(changes)), float64(len(builds))
	return s
}

var sumQueries = map[string]string{
	"records":           "SELECT toFloat64(count()) FROM events FINAL",
	"offsets":           "SELECT toFloat64(sum(offset)) FROM events FINAL",
	"counting":          "SELECT toFloat64(countIf(counts)) FROM events FINAL",
	"steps":             "SELECT toFloat64(count()) FROM steps FINAL",
	"step milliseconds": "SELECT toFloat64(sum(dateDiff('millisecond', toDateTime64(0, 6, 'UTC'), finished_at) - dateDiff('millisecond', toDateTime64(0, 6, 'UTC'), started_at))) FROM steps FINAL",
	"passed":            "SELECT toFloat64(countIf(outcome = 'passed')) FROM steps FINAL",
	"in group 1":        "SELECT toFloat64(countIf(group_id = 'g1')) FROM steps FINAL",
	"unreported":        "SELECT toFloat64(countIf(unreported)) FROM steps FINAL",
	"changes":           "SELECT toFloat64(count()) FROM change_outcomes",
	"predictions":       "SELECT toFloat64(count()) FROM predictions FINAL",
	"decisions":         "SELECT toFloat64(count()) FROM decisions FINAL",
	"scheduled builds":  "SELECT toFloat64(countIf(isNotNull(scheduled_at))) FROM builds FINAL",
}

// queryHistory asks the database for the same figures.
func queryHistory(t testing.TB, dsn string) sums {
	t.Helper()
	o, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := sums{}
	for name, query := range sumQueries {
		var figure float64
		if err := c.QueryRow(t.Context(), query).Scan(&figure); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		s[name] = figure
	}
	return s
}

func compare(t testing.TB, want, got sums) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(sumQueries)) {
		difference := want[name] - got[name]
		// Milliseconds are rounded for each step.
		if name == "step milliseconds" && max(difference, -difference) <= 2*want["steps"] {
			continue
		}
		if difference != 0 {
			t.Errorf("%s: the log says %.0f, ClickHouse %.0f", name, want[name], got[name])
		}
	}
}

func loud(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
