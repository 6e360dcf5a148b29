package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
	"landfall.build/tools/embedded/clickhouse"
)

const analystsGuide = "../../../docs/guides/analyst.md"

// inCommand is a query that a command line of the guide has in quotes.
var inCommand = regexp.MustCompile(`(?s)landfall history (?:--json )?(?:'(SELECT[^']*[^…'])'|"(SELECT[^"]*[^…"])")`)

// documentedQueries returns the queries of the guide: the indented paragraphs that begin with SELECT or WITH, and those in commands. A
// query that ends with an ellipsis stands for one of the reader's.
func documentedQueries(t testing.TB) (list []string) {
	t.Helper()
	text, err := os.ReadFile(analystsGuide)
	if err != nil {
		t.Fatal(err)
	}
	for _, paragraph := range strings.Split(string(text), "\n\n") {
		if strings.HasPrefix(paragraph, "    SELECT") || strings.HasPrefix(paragraph, "    WITH") {
			list = append(list, strings.ReplaceAll(strings.TrimPrefix(paragraph, "    "), "\n    ", "\n"))
		}
	}
	for _, found := range inCommand.FindAllStringSubmatch(string(text), -1) {
		list = append(list, found[1]+found[2])
	}
	return list
}

// answered runs a query, and returns its columns and how many rows it answers.
func answered(ctx context.Context, c driver.Conn, query string) (columns []string, n int, err error) {
	found, err := c.Query(ctx, query)
	if err != nil {
		return nil, 0, err
	}
	defer found.Close()
	for found.Next() {
		n++
	}
	return found.Columns(), n, found.Err()
}

// readerDSN is the analyst's, or the owner's where there is no analyst.
func readerDSN(t testing.TB, s *clickhouse.Server) string {
	t.Helper()
	dsn, err := s.AnalystDSN()
	if errors.Is(err, clickhouse.ErrNoAnalyst) {
		return s.DSN()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

const (
	// benchmarkEvents is how many events BenchmarkDocumentedQueries makes.
	benchmarkEvents = "LANDFALL_BENCH_EVENTS"
	// benchmarkKeeps is a folder that keeps them for its next run.
	benchmarkKeeps = "LANDFALL_BENCH_KEEP"
)

// BenchmarkDocumentedQueries measures each query of the guide, as the analyst who asks it, on as many events as benchmarkEvents says. A
// year has them, however many they are. The slowest of a query's runs is
// the first, which reads from the disk. Beside others on the machine, the processor time of the server says more than the time.
func BenchmarkDocumentedQueries(b *testing.B) {
	n := 100_000
	if text := os.Getenv(benchmarkEvents); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1000 {
			b.Fatalf("%s=%s is no number of at least 1000", benchmarkEvents, text)
		}
	}
	dir := os.Getenv(benchmarkKeeps)
	if dir == "" {
		dir = b.TempDir()
	}
	server, err := clickhouse.Start(b.Context(), clickhouse.Options{Dir: dir, Log: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	w, err := warehouse.Open(b.Context(), warehouse.Options{DSN: server.DSN(), LogID: "made"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close() })
	c := connectTo(b, server.DSN())
	var there uint64
	if err := c.QueryRow(b.Context(), "SELECT count() FROM events").Scan(&there); err != nil {
		b.Fatal(err)
	}
	if there == 0 {
		began := time.Now()
		there = uint64(newYear(b, w, n).make())
		b.Logf("%d events were made and written in %s", there, time.Since(began).Round(time.Second))
	}
	var counts string
	if err := c.QueryRow(b.Context(), "SELECT arrayStringConcat(groupArray(concat(toString(total_rows), ' ', name)), ', ') FROM (SELECT name, total_rows FROM system.tables WHERE database = currentDatabase() AND total_rows > 0 ORDER BY total_rows DESC)").Scan(&counts); err != nil {
		b.Fatal(err)
	}
	b.Log(counts)
	analyst := connectTo(b, readerDSN(b, server))
	for _, query := range documentedQueries(b) {
		name := strings.Join(strings.Fields(query), "_")
		if at := strings.Index(name, "_FROM_"); at >= 0 {
			name = name[at+len("_FROM_"):]
		}
		b.Run(name[:min(len(name), 40)], func(b *testing.B) {
			var fastest, slowest time.Duration
			processor := 0.0
			for b.Loop() {
				began, before := time.Now(), processorTime(b, server.Process())
				if _, _, err := answered(b.Context(), analyst, query); err != nil {
					b.Fatalf("%s\n%v", query, err)
				}
				took := time.Since(began)
				processor = least(processor, (processorTime(b, server.Process()) - before).Seconds())
				slowest = max(slowest, took)
				if fastest == 0 || took < fastest {
					fastest = took
				}
			}
			b.ReportMetric(fastest.Seconds(), "fastest-s")
			b.ReportMetric(slowest.Seconds(), "slowest-s")
			b.ReportMetric(processor, "processor-s")
		})
	}
}

// year makes the events of queues over a year.
type year struct {
	b       *testing.B
	w       *warehouse.Warehouse
	n, made int
	sets    map[string]*rows.Set
	next    map[string]int64
}

func newYear(b *testing.B, w *warehouse.Warehouse, n int) *year {
	return &year{b: b, w: w, n: n, sets: map[string]*rows.Set{}, next: map[string]int64{}}
}

const (
	benchmarkQueues  = 4
	benchmarkTargets = 500
	// eventsOfAChange is about how many events a change has: with twenty steps, more steps than in the demo.
	eventsOfAChange = 82
)

// make makes changes until there are enough events, and returns how many events there are.
func (y *year) make() int {
	count := y.n/eventsOfAChange + 1
	every := 365 * 24 * time.Hour / time.Duration(count)
	for i := 0; y.made < y.n; i++ {
		y.change(i, time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).Add(time.Duration(i)*every).UnixMicro())
	}
	for topic := range y.sets {
		y.flush(topic)
	}
	return y.made
}

func (y *year) add(topic, source, queue, subject string, us int64, m proto.Message) {
	set := y.sets[topic]
	if set == nil {
		set = &rows.Set{}
		y.sets[topic] = set
	}
	y.made++
	set.Add(rows.Record{Topic: topic, Offset: y.next[topic] + int64(set.Len()), Counts: true, Envelope: events.Envelope{
		ID: fmt.Sprintf("%032x", y.made), Source: source, Instance: "host/1", Queue: queue, Subject: subject, Term: -1, Time: time.UnixMicro(us), Message: m}})
	if set.Len() == warehouse.MaxRecords || set.Bytes() > 8<<20 {
		y.flush(topic)
	}
}

func (y *year) flush(topic string) {
	set := y.sets[topic]
	if err := y.w.Write(y.b.Context(), topic, 0, y.next[topic], set); err != nil {
		y.b.Fatal(err)
	}
	y.next[topic] += int64(set.Len())
	set.Reset()
}

// change makes the life of one change: three builds, of which one is aborted, with twenty steps of its own and ten that the change
// before it waits for as well.
func (y *year) change(i int, us int64) {
	const second = int64(1_000_000)
	queue, name := fmt.Sprintf("queue%d", i%benchmarkQueues), fmt.Sprintf("change-%d", i)
	ref := &eventsv1.ChangeRef{Change: name, Revision: 1}
	before := &eventsv1.ChangeRef{Change: fmt.Sprintf("change-%d", max(0, i-benchmarkQueues)), Revision: 1}
	add := func(topic, source string, at int64, m proto.Message) { y.add(topic, source, queue, name, at, m) }
	version := func(of, k int) *eventsv1.TargetVersion {
		return &eventsv1.TargetVersion{Target: fmt.Sprintf("//shop/lib%d:t", (of*7+k)%benchmarkTargets), Hash: fmt.Sprintf("%064x", uint64(of*32+k)*0x9e3779b97f4a7c15), Part: 1}
	}
	var versions []*eventsv1.TargetVersion
	for k := range 20 {
		versions = append(versions, version(i, k))
	}
	waitsFor := versions
	for k := range 10 {
		waitsFor = append(waitsFor, version(max(0, i-benchmarkQueues), k))
	}
	add(events.TopicChanges, events.ServiceGateway, us, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: queue, Change: name, Revision: 1,
		Author: fmt.Sprintf("author%d", i%200), Team: fmt.Sprintf("team%d", i%20), Title: "Mend what is broken", ReceivedUs: us - second,
		LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040x", i)}}}})
	add(events.TopicChanges, events.ServiceAnalyzer, us+3*second, &eventsv1.ChangeAnalyzed{Change: ref, FilesChanged: 4, LinesAdded: 90, FinishedUs: us + 3*second})
	features := make([]float32, 30)
	for k := range 10 {
		at := us + int64(4+30*k)*second
		add(events.TopicSpeculations, events.ServiceEnumerator, at, &eventsv1.Speculation{StampUs: at, Delta: &eventsv1.GraphDelta{
			Nodes:  []*eventsv1.Node{{Change: ref, Position: int64(i), Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: before}}}},
			Builds: []*eventsv1.BuildProgress{{Build: fmt.Sprintf("%032x", uint64(3*i+k%3)*0x9e3779b97f4a7c15), State: eventsv1.BuildState(1 + k/3)}}}})
		if k < 8 {
			profile := &eventsv1.Profile{Position: int64(k), StampUs: at}
			for _, c := range []*eventsv1.ChangeRef{ref, before} {
				profile.Predictions = append(profile.Predictions, &eventsv1.Prediction{Change: c, Success: float64((i*37+k)%100) / 100, DurationMeanUs: 60e6, DurationStdUs: 20e6,
					SuccessSource: "queue", DurationSource: "targets", Features: features, Schema: 1})
			}
			profile.Pairs = []*eventsv1.PairPrediction{{Behind: ref, Ahead: before, Conflict: 0.05, Source: "prior", Features: features[:10], Schema: 1}}
			if k == 7 {
				profile.Observed = []*eventsv1.PairObserved{{Behind: ref, Ahead: before, Conflict: i%50 == 0}}
			}
			add(events.TopicProfiles, events.ServiceProfiler, at, profile)
			add(events.TopicPriorities, events.ServicePrioritizer, at, &eventsv1.Priority{Position: int64(k), StampUs: at})
		}
	}
	for k := range 3 {
		at, build := us+int64(5+20*k)*second, fmt.Sprintf("%032x", uint64(3*i+k)*0x9e3779b97f4a7c15)
		add(events.TopicDecisions, events.ServiceSelector, at, &eventsv1.Decision{StampUs: at, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
			BuildScheduled: &eventsv1.BuildScheduled{Build: build, Change: &eventsv1.AssumedChange{Change: ref}, Targets: waitsFor, Needed: 0.8, Value: 2, Why: "3rd in line for a worker"}}}}})
		add(events.TopicBuilds, events.ServiceBuilder, at+second, &eventsv1.BuildPrepared{Build: build, Change: ref, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
			Versions: waitsFor, StartedUs: at, FinishedUs: at + second, Worker: "host"})
		if k == 1 {
			add(events.TopicDecisions, events.ServiceSelector, at+5*second, &eventsv1.Decision{StampUs: at + 5*second, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{
				BuildAborted: &eventsv1.BuildAborted{Build: build, Why: "a better path"}}}}})
		}
	}
	rejected := i%10 == 9
	for k, v := range versions {
		at, build := us+int64(10+5*k)*second, fmt.Sprintf("%032x", uint64(3*i+2*(k%2))*0x9e3779b97f4a7c15)
		worker := fmt.Sprintf("host/%d", (i+k)%64)
		outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		if rejected && k == 0 {
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		}
		add(events.TopicBuilds, events.ServiceBuilder, at, &eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: 1, Worker: worker, StampUs: at, Build: build})
		add(events.TopicBuilds, events.ServiceBuilder, at+30*second, &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: outcome, Worker: worker, Build: build,
			Commands:   []*eventsv1.CommandFinished{{Name: "test", DurationUs: 30 * second}},
			OutputTail: []byte("ok  	shop/lib	0.004s\n"), OutputBytes: 21, StartedUs: at, FinishedUs: at + int64(20+(i+k)%40)*second})
	}
	end := us + int64(300+i%900)*second
	if i%50 == 7 {
		add(events.TopicChanges, events.ServiceLander, end-30*second, &eventsv1.Refused{Change: ref, Missing: versions[:1], Message: "a version has no result yet", StampUs: end - 30*second})
	}
	if rejected {
		reason := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: `Command "test" ended with exit code 1.`, Failed: []*eventsv1.Proof{{Version: versions[0], Attempt: 1, Step: "test"}}}
		add(events.TopicDecisions, events.ServiceSelector, end-second, &eventsv1.Decision{StampUs: end - second, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_RejectDecided{
			RejectDecided: &eventsv1.RejectDecided{Change: ref, Reason: reason}}}}})
		add(events.TopicChanges, events.ServiceLander, end, &eventsv1.ChangeRejected{Change: ref, Reason: reason, StampUs: end})
		return
	}
	add(events.TopicDecisions, events.ServiceSelector, end-second, &eventsv1.Decision{StampUs: end - second, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: ref}}}}})
	add(events.TopicChanges, events.ServiceLander, end-second, &eventsv1.LandIntended{Change: ref, StampUs: end - second})
	add(events.TopicChanges, events.ServiceLander, end, &eventsv1.ChangeLanded{Change: ref, Commits: []string{fmt.Sprintf("%040x", i)}, StampUs: end})
}

// TestEveryDocumentedQueryAnswers runs each query of the guide as the analyst who asks it, on a history that has something of everything.
func TestEveryDocumentedQueryAnswers(t *testing.T) {
	server := start(t, t.TempDir())
	fillWithInventions(t, server.DSN(), 1)
	c := connectTo(t, readerDSN(t, server))
	queries := documentedQueries(t)
	for _, query := range queries {
		columns, n, err := answered(t.Context(), c, query)
		if err != nil || n == 0 {
			t.Errorf("%s\nanswers %d rows, %v", query, n, err)
		}
		for _, line := range strings.Split(query, "\n") {
			if slices.Contains(columns, line) {
				t.Errorf("%s: its answer was taken for a part of it", query)
			}
		}
	}
	text := strings.Join(queries, "\n")
	for _, v := range comparedViews {
		if !strings.Contains(text, v.view) {
			t.Errorf("no query of %s asks %s", analystsGuide, v.view)
		}
	}
}
