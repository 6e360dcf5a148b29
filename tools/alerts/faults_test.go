package alerts_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/telemetry"
	"landfall.build/services/gateway/api"
)

// faults are made in real services; each waits for its alerts.
var faults = []struct {
	name   string
	happen func(t *testing.T)
}{
	{"the broker ends", brokerEnds},
	{"the lander's process ends", processEnds(events.ServiceLander, "LandfallPartitionUnowned", "landfall_service", events.ServiceLander)},
	{"the builder's process ends", processEnds(events.ServiceBuilder, "LandfallNoBuilder")},
	{"the gateway's process ends", processEnds(events.ServiceGateway, "LandfallNoGateway")},
	{"the repository goes away", repositoryGoesAway},
	{"the remote refuses every push", remoteRefuses},
	{"the remote takes a push and never answers", remoteHangs},
	{"somebody pauses the queue and forgets it", queueIsPaused},
	{"a direct push breaks the mainline", mainlineBreaks},
	{"snapshots are too rare", snapshotsAreRare},
	{"the disk fills", diskFills},
	{"somebody publishes nonsense", nonsenseIsPublished},
	{"ClickHouse is away", clickHouseIsAway},
	{"good changes begin to fail", modelDrifts},
	{"the clock is set", clockIsSet},
}

func brokerEnds(t *testing.T) {
	w := newWorld(t, "")
	w.watched(quick)
	w.broker.Close()
	w.prometheus.awaits("LandfallBrokerAway", "instance", "one")
	if a := w.prometheus.fires("LandfallServiceNotReady"); a != nil {
		t.Errorf("what the broker's absence explains is told again: %v", a)
	}
}

// processEnds ends the process of one service, and starts it again: the alert of the service ends.
func processEnds(service, alert string, pairs ...string) func(t *testing.T) {
	return func(t *testing.T) {
		w := newWorld(t, "")
		rest, alone := w.start(allBut(service)...), w.start(service)
		w.prometheus.watch(quick, map[string]string{"rest": rest.MetricsURL(), "alone": alone.MetricsURL()})
		w.ready(rest)
		w.ready(alone)
		w.prometheus.awaitsEnd(alert)
		alone.Close()
		w.prometheus.awaits(alert, pairs...)
		w.prometheus.awaits("LandfallProcessAway", "instance", "alone")
		again := w.start(service)
		w.prometheus.watch(quick, map[string]string{"again": again.MetricsURL()})
		w.prometheus.awaitsEnd(alert)
	}
}

func repositoryGoesAway(t *testing.T) {
	w := newWorld(t, "")
	s := w.watched(quick)
	w.branch("one", "f0/b.txt", "fine\n")
	w.land(s, "one")
	w.ends(s, "one", "landed")
	aside := w.bare + ".aside"
	if err := os.Rename(w.bare, aside); err != nil {
		t.Fatal(err)
	}
	w.prometheus.awaits("LandfallMainlineUnreachable", "landfall_queue", queue, "landfall_mainline_trouble", "unreadable")
	if err := os.Rename(aside, w.bare); err != nil {
		t.Fatal(err)
	}
	w.prometheus.awaitsEnd("LandfallMainlineUnreachable")
}

func remoteRefuses(t *testing.T) {
	w := newWorld(t, "")
	w.hook("update", `[ "$1" != refs/heads/main ] || { echo 'You are not allowed to push to main.' >&2; exit 1; }`)
	s := w.watched(quick)
	for _, name := range []string{"one", "two"} {
		w.branch(name, "f0/"+name+".txt", "fine\n")
		w.land(s, name)
	}
	w.prometheus.awaits("LandfallLandingsPaused", "landfall_queue", queue)
}

// remoteHangs: the hook waits for a file.
func remoteHangs(t *testing.T) {
	w := newWorld(t, "")
	answer := filepath.Join(filepath.Dir(w.bare), "answer")
	w.hook("pre-receive", fmt.Sprintf("grep -q refs/heads/main || exit 0; until [ -e '%s' ]; do sleep 0.1; done", answer))
	t.Cleanup(func() { os.WriteFile(answer, nil, 0o644) })
	s := w.watched(quick)
	w.branch("one", "f0/b.txt", "fine\n")
	w.land(s, "one")
	w.prometheus.awaits("LandfallNothingLands", "landfall_queue", queue)
	// The lander waits for the remote, and takes no record meanwhile.
	w.branch("two", "f1/b.txt", "fine\n")
	w.land(s, "two")
	w.prometheus.awaits("LandfallLagging", "service_name", "landfall-lander")
	if err := os.WriteFile(answer, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.ends(s, "two", "landed")
	w.prometheus.awaitsEnd("LandfallNothingLands")
	w.prometheus.awaitsEnd("LandfallLagging")
}

func queueIsPaused(t *testing.T) {
	w := newWorld(t, "")
	w.config.Retention.Every = 5 * time.Second // what is kept is counted as often
	s := w.watched(clock{every: 250 * time.Millisecond, counts: 4 * time.Minute})
	if _, err := w.client(s).Steer(t.Context(), queue, "", "pause", api.SteerBody{Who: "ada", Why: "incident 7"}); err != nil {
		t.Fatal(err)
	}
	w.prometheus.awaits("LandfallQueuePaused", "landfall_queue", queue)
	if _, err := w.client(s).Steer(t.Context(), queue, "", "resume", api.SteerBody{Who: "ada", Why: "incident 7"}); err != nil {
		t.Fatal(err)
	}
	w.prometheus.awaitsEnd("LandfallQueuePaused")
}

func mainlineBreaks(t *testing.T) {
	w := newWorld(t, "")
	s := w.watched(quick)
	w.branch("one", "f0/b.txt", "fine\n")
	w.land(s, "one")
	w.ends(s, "one", "landed")
	w.git("pull", "-q", "origin", "main")
	w.write("f0/c.txt", "a bug\n")
	w.commit("past the queue")
	w.git("push", "-q", "origin", "main")
	w.prometheus.awaits("LandfallMainlineRed", "landfall_queue", queue)
	w.branch("mend", "f0/c.txt", "fine\n")
	w.land(s, "mend")
	w.ends(s, "mend", "landed")
	w.prometheus.awaitsEnd("LandfallMainlineRed")
}

// snapshotsAreRare: those of two days ago stay, since the configuration asks for more records than come.
func snapshotsAreRare(t *testing.T) {
	w := newWorld(t, "snapshots: {after: 1, every: 1s}\n")
	s := w.start()
	w.ready(s)
	folder := filepath.Join(w.config.Data, "snapshots")
	kept := func() []string {
		files, _ := filepath.Glob(filepath.Join(folder, "lander-*.snapshot"))
		return files
	}
	w.branch("one", "f0/b.txt", "fine\n")
	w.land(s, "one")
	w.ends(s, "one", "landed")
	w.until("the lander has a snapshot", func() bool { w.nonsense(s); return len(kept()) > 0 })
	s.Close()
	before := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(kept()[0], before, before); err != nil {
		t.Fatal(err)
	}
	w.config.Snapshots.After = 1_000_000
	s = w.watched(clock{every: time.Second, counts: 5 * time.Minute})
	// Records of a term that is over are read, and count for nothing.
	stale := events.Envelope{ID: "stale", Source: events.ServiceSelector, Instance: "gone", Queue: queue, Time: time.Now(), Term: 0, Message: &eventsv1.Decision{}}
	var written sync.WaitGroup
	for range 15_000 {
		written.Add(1)
		s.Log().AppendAsync(context.WithoutCancel(t.Context()), events.TopicDecisions, 0, stale, func(_ int64, err error) {
			if err != nil {
				t.Error(err)
			}
			written.Done()
		})
	}
	written.Wait()
	w.prometheus.awaits("LandfallSnapshotOld", "service_name", "landfall-lander", "messaging_destination_partition_id", "0")
}

func nonsenseIsPublished(t *testing.T) {
	w := newWorld(t, "")
	s := w.watched(clock{every: 250 * time.Millisecond, counts: time.Minute})
	w.nonsense(s)
	w.prometheus.awaits("LandfallDeadLetters", "service_name", "landfall-gateway")
	w.prometheus.awaitsEnd("LandfallDeadLetters")
	w.nonsense(s) // the series is there by now
	w.prometheus.awaits("LandfallDeadLetters", "service_name", "landfall-gateway")
}

func clickHouseIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	w := newWorld(t, fmt.Sprintf("clickhouse: {dsn: %q}\n", "clickhouse://landfall:x@"+l.Addr().String()+"/landfall"))
	w.prometheus.watch(quick, map[string]string{"one": w.start().MetricsURL()})
	w.prometheus.awaits("LandfallHistoryAway", "service_name", "landfall-historian")
	w.prometheus.awaits("LandfallHistoryAway", "service_name", "landfall-trainer")
	w.prometheus.awaits("LandfallServiceNotReady", "service_name", "landfall-historian")
}

// modelDrifts: changes land, each in a folder of its own, and from the next day on they all fail.
func modelDrifts(t *testing.T) {
	const changes = 30
	w := newWorld(t, "")
	for n := range changes {
		folder := fmt.Sprint("g", n)
		// Changes are looked at every second, so a step takes longer.
		w.write(folder+"/landfall.yaml", manifest(folder, "sleep 2; "+withoutBugs(folder)))
	}
	w.commit("slow steps")
	w.git("push", "-q", "origin", "main")
	outcomes := map[string]string{"good": "fine\n", "bad": "a bug\n"}
	for name, text := range outcomes {
		for n := range changes {
			w.branch(fmt.Sprint(name, n), fmt.Sprintf("g%d/%s.txt", n, name), text)
		}
	}
	s := w.watched(clock{every: time.Second, counts: time.Hour})
	for n := range changes {
		w.land(s, fmt.Sprint("good", n))
	}
	for n := range changes {
		w.ends(s, fmt.Sprint("good", n), "landed")
	}
	time.Sleep(25 * time.Second) // a day passes
	if a := w.prometheus.fires("LandfallModelDrifted"); a != nil {
		t.Errorf("it fires while changes land: %v", a)
	}
	for n := range changes {
		w.land(s, fmt.Sprint("bad", n))
	}
	w.prometheus.awaits("LandfallModelDrifted", "landfall_queue", queue)
}

// clockIsSet: the machine's clock is another one for the health of a process, and what it serves is scraped.
func clockIsSet(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	quiet := slog.New(slog.DiscardHandler)
	process := health.New("one", "test", board{}, quiet)
	process.Wall = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	measures := telemetry.New(telemetry.Options{Instance: "one", Version: "test", Logger: quiet})
	telemetry.Measure(measures.Meter(events.ServiceLander), memory.New(memory.Options{Partitions: 1}), process.Service(events.ServiceLander), func(int32) time.Time { return time.Time{} })
	go process.Run(t.Context())
	address, err := measures.Serve(t.Context(), "127.0.0.1:0", process, quiet)
	if err != nil {
		t.Fatal(err)
	}
	p := newPrometheus(t)
	p.watch(quick, map[string]string{"one": "http://" + address.String()})
	ahead.Store(int64(-time.Hour))
	p.awaits("LandfallClockJumped", "instance", "one")
	p.awaitsEnd("LandfallClockJumped")
}

// board is a broker's that answers, and keeps nothing.
type board struct{}

func (board) Ends(context.Context, []string) (map[health.TopicPartition]int64, error) {
	return nil, nil
}
func (board) Post(context.Context, []health.Beat) error   { return nil }
func (board) Read(context.Context) ([]health.Beat, error) { return nil, nil }
