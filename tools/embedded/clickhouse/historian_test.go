package clickhouse_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/ownership"
	"landfall.build/services/historian"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
)

// run runs a historian until stop is called.
func run(t testing.TB, dsn string, log journal.Log, interval time.Duration) (h *historian.Historian, stop func()) {
	t.Helper()
	h = historian.New(historian.Options{Log: log, Open: open(dsn, log.ID()), Logger: loud(t), Interval: interval})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx, ownership.Static{Log: loud(t), Partitions: log.Partitions()})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return h, stop
}

// caughtUp waits until the history has all of the log.
func caughtUp(t testing.TB, dsn string, log journal.Log) {
	t.Helper()
	w, err := warehouse.Open(t.Context(), warehouse.Options{DSN: dsn, LogID: log.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, topic := range events.Topics() {
		for p := range log.Partitions() {
			patiently(t, func() error {
				end, err := log.End(t.Context(), topic.Name, p)
				if err != nil {
					return err
				}
				at, err := w.Position(t.Context(), topic.Name, p)
				if err == nil && at.Next < end {
					err = errors.New(topic.Name + " is behind for half a minute")
				}
				return err
			})
		}
	}
}

func TestTheHistoryIsAFoldOfTheLogWheneverTheHistorianIsStopped(t *testing.T) {
	seed := seedtest.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(seed, log)
	for range 500 { // before any historian: backfilled
		invent.next(t)
	}
	for range 8 {
		_, stop := run(t, dsn, log, 20*time.Millisecond)
		for range 150 {
			invent.next(t)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		stop()
	}
	h, _ := run(t, dsn, log, 20*time.Millisecond)
	caughtUp(t, dsn, log)
	compare(t, foldLog(t, log), queryHistory(t, dsn))
	patiently(t, func() error {
		for lane, behind := range h.Lag() {
			if behind != 0 {
				return errors.New(lane.Topic + " says that it is behind")
			}
		}
		return nil
	})
}

func TestTwoHistoriansAtOnceWriteOneHistory(t *testing.T) {
	seed := seedtest.Of(t)
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(seed, log)
	run(t, dsn, log, 15*time.Millisecond)
	run(t, dsn, log, 40*time.Millisecond)
	for range 1500 {
		invent.next(t)
	}
	caughtUp(t, dsn, log)
	compare(t, foldLog(t, log), queryHistory(t, dsn))
}

// TestABatchThatWasBegunIsCompletedWithItsBounds: a batch of which only the events arrived is written again with
// the same bounds, and no block is there twice even to who reads without FINAL.
func TestABatchThatWasBegunIsCompletedWithItsBounds(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	dsn := database(t)
	invent := newInventor(7, log)
	for range 300 {
		invent.next(t)
	}
	ctx := t.Context()
	w, err := warehouse.Open(ctx, warehouse.Options{DSN: dsn, LogID: log.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := connectTo(t, dsn)
	for _, topic := range []string{events.TopicBuilds, events.TopicDecisions} {
		set := firstRecords(t, log, topic, 10)
		if err := w.Write(ctx, topic, 0, 0, set); err != nil {
			t.Fatal(err)
		}
		// As if the crash had come before the views had their rows of the block, and before the position moved.
		if err := c.Exec(ctx, "TRUNCATE TABLE runs"); err != nil {
			t.Fatal(err)
		}
		if err := c.Exec(ctx, "ALTER TABLE positions DELETE WHERE topic = ? SETTINGS mutations_sync = 1", topic); err != nil {
			t.Fatal(err)
		}
		at, err := w.Position(ctx, topic, 0)
		if err != nil || at.Next != 0 || at.Open != 9 {
			t.Fatalf("%s stands at %+v, %v", topic, at, err)
		}
	}
	run(t, dsn, log, 10*time.Millisecond)
	caughtUp(t, dsn, log)
	var runs uint64
	if err := c.QueryRow(ctx, "SELECT count() FROM runs FINAL").Scan(&runs); err != nil || int(runs) != len(foldForAnalysts(t, log).runs) {
		t.Errorf("%d of %d runs are there, %v", runs, len(foldForAnalysts(t, log).runs), err)
	}
	for _, table := range []string{"events", "decisions", "predictions"} {
		var all, distinct uint64
		if err := c.QueryRow(ctx, "SELECT (SELECT count() FROM "+table+"), (SELECT count() FROM "+table+" FINAL)").Scan(&all, &distinct); err != nil {
			t.Fatal(err)
		}
		if all != distinct {
			t.Errorf("%s has %d rows, %d of them distinct", table, all, distinct)
		}
	}
	compare(t, foldLog(t, log), queryHistory(t, dsn))
}

// firstRecords returns the first n of the only partition of a topic.
func firstRecords(t *testing.T, log journal.Log, topic string, n int) *rows.Set {
	t.Helper()
	cursor, err := log.Follow(t.Context(), topic, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	set, terms := &rows.Set{}, journal.NewTerms(topic)
	for range n {
		e, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		set.Add(rows.Record{Topic: topic, Offset: e.Offset, Envelope: e.Envelope, Counts: terms.Counts(e)})
	}
	return set
}

// The end of one insert is not that of the next one's connection, however late the goroutines of the client get to run.
func TestOneBatchAfterAnotherOnABusyMachine(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	invent := newInventor(7, log)
	for range 300 {
		invent.next(t)
	}
	w, err := warehouse.Open(t.Context(), warehouse.Options{DSN: database(t), LogID: log.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	set := firstRecords(t, log, events.TopicBuilds, 10)
	var done atomic.Bool
	defer done.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for !done.Load() { // be busy
			}
		}()
	}
	for i := range 40 {
		if err := w.Write(t.Context(), events.TopicBuilds, 0, 0, set); err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
}

func connectTo(t testing.TB, dsn string) driver.Conn {
	t.Helper()
	o, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestADatabaseOfAnotherLogOrOfOtherTablesIsRefusedByName(t *testing.T) {
	dsn := database(t)
	ctx := t.Context()
	openAs := func(id string) error {
		w, err := warehouse.Open(ctx, warehouse.Options{DSN: dsn, LogID: id})
		if err == nil {
			w.Close()
		}
		return err
	}
	for range 2 { // applied once, and found applied
		if err := openAs("mine"); err != nil {
			t.Fatal(err)
		}
	}
	// Nothing is to be made any more, and who may not make anything is enough.
	if w, err := warehouse.Open(ctx, warehouse.Options{DSN: dsn + "?allow_ddl=0", LogID: "mine"}); err != nil {
		t.Error(err)
	} else {
		w.Close()
	}
	if err := openAs("another"); !errors.Is(err, warehouse.ErrOtherLog) || !strings.Contains(err.Error(), "mine") {
		t.Errorf("another log: %v", err)
	}
	c := connectTo(t, dsn)
	alter := func(statement string) {
		t.Helper()
		if err := c.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	alter("ALTER TABLE steps DROP COLUMN output_bytes")
	if err := openAs("mine"); !errors.Is(err, warehouse.ErrUnknownTables) || !strings.Contains(err.Error(), "steps has no column output_bytes") {
		t.Errorf("a table altered by hand: %v", err)
	}
	alter("ALTER TABLE steps ADD COLUMN output_bytes UInt64")
	if err := openAs("mine"); err != nil {
		t.Errorf("mended: %v", err)
	}
	alter("INSERT INTO migrations VALUES (99, '0099_future', 'x', now64(3))")
	if err := openAs("mine"); !errors.Is(err, warehouse.ErrUnknownTables) || !strings.Contains(err.Error(), "newer landfall") {
		t.Errorf("a newer landfall's: %v", err)
	}
	for _, bad := range []string{"", "nonsense", "clickhouse://127.0.0.1:1/landfall", "clickhouse://127.0.0.1:1"} {
		_, err := warehouse.Open(ctx, warehouse.Options{DSN: bad})
		if err == nil {
			t.Errorf("DSN %q was taken", bad)
		}
	}
	if _, err := warehouse.Open(ctx, warehouse.Options{DSN: "clickhouse://u:secret@host:x y/landfall"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a DSN that cannot be read shows its password: %v", err)
	}
}

func TestEveryViewAnswers(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(3, log)
	for range 2000 {
		invent.next(t)
	}
	run(t, dsn, log, 10*time.Millisecond)
	caughtUp(t, dsn, log)
	c := connectTo(t, dsn)
	var views []string
	if err := c.QueryRow(t.Context(), "SELECT groupArray(name) FROM system.tables WHERE database = currentDatabase() AND engine = 'View'").Scan(&views); err != nil || len(views) < 10 {
		t.Fatalf("views %v, %v", views, err)
	}
	for _, view := range views {
		var n uint64
		if err := c.QueryRow(t.Context(), "SELECT count() FROM "+view).Scan(&n); err != nil || n == 0 && view != "training_duration" { // few invented builds have no failed step
			t.Errorf("%s: %d rows, %v", view, n, err)
		}
	}
	var wrong uint64
	if err := c.QueryRow(t.Context(), "SELECT countIf(abs(admission + analysis + worker + building + behind + push - total) > 0.00001 OR least(admission, analysis, worker, building, behind, push) < 0) FROM time_to_land").Scan(&wrong); err != nil || wrong != 0 {
		t.Errorf("%d changes have parts that do not add up, %v", wrong, err)
	}
}
