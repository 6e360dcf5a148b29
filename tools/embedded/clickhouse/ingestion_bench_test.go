package clickhouse_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/historian"
	"landfall.build/services/historian/rows"
)

// benchmarkRecords is how many finished steps a round of the benchmark writes.
const benchmarkRecords = 150_000

// finishedSteps returns a log of finished steps such as a busy builder writes: the record that history has most of.
func finishedSteps(b *testing.B) journal.Log {
	b.Helper()
	log := memory.New(memory.Options{Partitions: 1})
	output := make([]byte, 200)
	for i := range output {
		output[i] = byte('a' + i%17)
	}
	for i := range benchmarkRecords {
		us := int64(1_767_607_200_000_000 + i*1000)
		_, err := log.Append(b.Context(), events.TopicBuilds, 0, events.Envelope{
			ID: fmt.Sprintf("%032x", i), Source: events.ServiceBuilder, Instance: "b1", Queue: "main", Term: -1, Time: time.UnixMicro(us),
			Message: &eventsv1.StepFinished{
				Target: fmt.Sprintf("//shop/cart:%d", i%500), Hash: fmt.Sprintf("%064x", i), Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
				Commands:   []*eventsv1.CommandFinished{{Name: "test", DurationUs: 1_500_000, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}},
				OutputTail: output, OutputBytes: 200, Worker: "b1/3", Build: fmt.Sprintf("%032x", i/20), StartedUs: us - 1_500_000, FinishedUs: us,
			}})
		if err != nil {
			b.Fatal(err)
		}
	}
	return log
}

// BenchmarkIngestion compares the historian, from the log to its acknowledged rows in all tables, with
// clickhouse-go alone, which inserts the very same rows, made beforehand, in the same blocks to the same tables. They take
// turns, so that what else the machine does is beside both: of the speeds, the best turn of each counts, of their ratio
// the median of all pairs of turns.
func BenchmarkIngestion(b *testing.B) {
	log := finishedSteps(b)
	server := start(b, b.TempDir())
	dsn := server.DSN()
	took := map[string][]time.Duration{}
	// Beside others on the machine, time says little and processor time much.
	own, its := map[string]float64{}, map[string]float64{}
	measure := func(name string, write func()) {
		began, mine, servers := time.Now(), processorTime(b, os.Getpid()), processorTime(b, server.Process())
		write()
		took[name] = append(took[name], time.Since(began))
		each := func(spent time.Duration) float64 { return spent.Seconds() * 1e6 / benchmarkRecords }
		own[name] = least(own[name], each(processorTime(b, os.Getpid())-mine))
		its[name] = least(its[name], each(processorTime(b, server.Process())-servers))
	}
	for b.Loop() {
		bare := func(sets []*rows.Set) {
			w := freshTables(b, dsn, log)
			measure("bare", func() {
				for _, set := range sets {
					insertBare(b, w, set)
				}
			})
		}
		bare(gather(b, log))
		// The rows that were made beforehand are gone, and what they cost the collector is not the historian's.
		runtime.GC()
		freshTables(b, dsn, log)
		// The log has it all: nobody waits for a batch to fill but the last one, and that wait is no throughput. Nor is the
		// opening of all lanes; this one is known once it is about to begin.
		h, stop := run(b, dsn, log, 10*time.Millisecond)
		behind := func() (records int64, known bool) {
			records, known = h.Lag()[historian.TopicPartition{Topic: events.TopicBuilds}]
			return records, known
		}
		for known := false; !known; time.Sleep(time.Millisecond) {
			_, known = behind()
		}
		measure("historian", func() {
			for records := int64(-1); records != 0; time.Sleep(time.Millisecond) {
				records, _ = behind()
			}
		})
		stop()
	}
	for name := range took {
		b.ReportMetric(benchmarkRecords/slices.Min(took[name]).Seconds(), name+"-events/s")
		b.ReportMetric(own[name], name+"-own-µs/event")
		b.ReportMetric(its[name], name+"-server-µs/event")
	}
	ratios := make([]float64, len(took["bare"]))
	for i := range ratios {
		ratios[i] = took["bare"][i].Seconds() / took["historian"][i].Seconds()
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-bare")
}

// least returns the smaller one, of what was measured before if anything was.
func least(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// processorTime returns what a process has used, of all of its threads.
func processorTime(b *testing.B, process int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	total := 0
	for _, field := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// gather makes all rows, in batches such as the historian makes.
func gather(b *testing.B, log journal.Log) (sets []*rows.Set) {
	cursor, err := log.Follow(b.Context(), events.TopicBuilds, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer cursor.Close()
	set := &rows.Set{}
	for range benchmarkRecords {
		e, err := cursor.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		set.Add(rows.Record{Topic: e.Topic, Offset: e.Offset, Envelope: e.Envelope, Counts: true})
		if set.Bytes() >= 8<<20 {
			sets, set = append(sets, set), &rows.Set{}
		}
	}
	return append(sets, set)
}

// freshTables drops what a round before wrote, and makes the tables again.
func freshTables(b *testing.B, dsn string, log journal.Log) driver.Conn {
	b.Helper()
	ctx := context.Background()
	w, err := open(dsn, log.ID())(ctx)
	if err != nil {
		b.Fatal(err)
	}
	c := connectTo(b, dsn)
	for _, table := range []string{"events", "builds", "steps", "positions"} {
		if err := c.Exec(ctx, "TRUNCATE TABLE "+table+" SYNC"); err != nil {
			b.Fatal(err)
		}
	}
	w.(interface{ Close() error }).Close()
	return c
}

func insertBare(b *testing.B, c driver.Conn, set *rows.Set) {
	b.Helper()
	insert := func(table string, fill func(driver.Batch) error) {
		batch, err := c.PrepareBatch(context.Background(), "INSERT INTO "+table)
		if err == nil {
			err = fill(batch)
		}
		if err == nil {
			err = batch.Send()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	insert("events (topic, partition, offset, id, type, source, instance, queue, subject, time, term, counts, error, payload)", func(batch driver.Batch) error {
		for i, column := range set.Events.Columns() {
			if err := batch.Column(i).Append(column); err != nil {
				return err
			}
		}
		return nil
	})
	for _, table := range []rows.Table{rows.Builds, rows.Steps} {
		columns := ""
		for i, name := range table.Columns() {
			if i > 0 {
				columns += ", "
			}
			columns += name
		}
		insert(table.Name()+" ("+columns+")", func(batch driver.Batch) error {
			for row := range slices.Chunk(set.Facts(table), len(table.Columns())) {
				if err := batch.Append(row...); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
