package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/historian/warehouse"
	"landfall.build/services/trainer/dataset"
)

// past is a history of one queue that is written into the tables by hand, and kept beside, for the dumb twin.
type past struct {
	random *rand.Rand
	insert func(table string, columns string, values ...any)
	offset uint64

	ends   map[string]time.Time // of changes that count for success
	passed map[string]bool
	said   []said
}

// said is one row of predictions.
type said struct {
	kind, change, other string
	at                  time.Time
	mark                float32 // the vector's first number, another one each time; 0: it has no vector
	schema              uint32
}

var dawn = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (p *past) moment(hours int) time.Time {
	return dawn.Add(time.Duration(p.random.Int64N(int64(time.Duration(hours) * time.Hour)))).Truncate(time.Millisecond)
}

func (p *past) predict(kind, change, other string, at time.Time) {
	p.offset++
	q := said{kind: kind, change: change, other: other, at: at, mark: float32(p.offset), schema: features.Version}
	width := len(features.OfChange())
	if kind == "conflict" {
		width = len(features.OfPair())
	}
	vector := make([]float32, width)
	vector[0], vector[1] = q.mark, float32(math.NaN())
	switch p.random.IntN(8) {
	case 0:
		vector, q.mark = nil, 0
	case 1:
		q.schema++
	}
	p.said = append(p.said, q)
	p.insert("predictions", "queue, offset, item, kind, position, at, change, revision, other, other_revision, value, std, source, features, schema",
		"q", p.offset, uint32(0), kind, p.offset, at, change, uint64(1), other, uint64(1), 0.7, 2.5, "prior, and its builds", vector, q.schema)
}

// vectors returns the predictions of a kind that have one, in the order of the log.
func (p *past) vectors(kind, change, other string) (out []said) {
	for _, q := range p.said {
		if q.kind == kind && q.change == change && q.other == other && q.mark != 0 {
			out = append(out, q)
		}
	}
	return out
}

func (p *past) change(name string) {
	var landed, rejected, cancelled *time.Time
	ended := p.moment(200)
	reason := ""
	switch p.random.IntN(6) {
	case 0, 1:
		landed = &ended
		p.ends[name], p.passed[name] = ended, true
	case 2, 3:
		rejected, reason = &ended, []string{"step_failed", "invalid"}[p.random.IntN(2)]
		p.ends[name] = ended
	case 4:
		rejected, reason = &ended, "merge_conflict" // that is not what it did itself
	default:
		cancelled = &ended
	}
	p.insert("changes", "queue, change, revision, admitted_at, landed_at, rejected_at, cancelled_at, reason_class", "q", name, uint64(1), dawn, landed, rejected, cancelled, reason)
	for range p.random.IntN(4) {
		p.predict("success", name, "", p.moment(200))
	}
}

// emptyHistory returns a database with the history's tables, in which nothing is.
func emptyHistory(t *testing.T) (dsn string) {
	t.Helper()
	dsn = database(t)
	w, err := warehouse.Open(t.Context(), warehouse.Options{DSN: dsn, LogID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	return dsn
}

// TestM30WhatIsTrainedOnIsWhatStoodInTheHistoryBeforeItCameTrue: rows of all three kinds, against a twin that looks through
// what was written.
func TestM30WhatIsTrainedOnIsWhatStoodInTheHistoryBeforeItCameTrue(t *testing.T) {
	dsn := emptyHistory(t)
	c := connectTo(t, dsn)
	seed := seedtest.Of(t)
	tables := map[string]batch{}
	p := &past{random: rand.New(rand.NewPCG(seed, 0)), ends: map[string]time.Time{}, passed: map[string]bool{}}
	p.insert = func(table, columns string, values ...any) {
		t.Helper()
		if tables[table] == nil {
			b, err := c.PrepareBatch(context.Background(), "INSERT INTO "+table+" ("+columns+")")
			if err != nil {
				t.Fatal(err)
			}
			tables[table] = b
		}
		if err := tables[table].Append(values...); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	for i := range 300 {
		p.change(fmt.Sprint("c", i))
	}
	durations := p.builds()
	pairs, outcomes := p.pairs()
	for table, b := range tables {
		if err := b.Send(); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}

	source, err := dataset.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	read := func(kind eventsv1.ModelKind) *dataset.Set {
		t.Helper()
		set, err := source.Read(t.Context(), "q", kind, dawn)
		if err != nil || len(set.Rows) == 0 {
			t.Fatalf("%v: %d rows, %v", kind, len(set.Rows), err)
		}
		for i, r := range set.Rows {
			source, _, _ := strings.Cut(r.Source, ",") // without what builds of the change have added
			if r.At > r.Ended || i > 0 && r.At < set.Rows[i-1].At || len(r.Vector) != len(prediction.SchemaOf(kind)) || r.Vector[1] == r.Vector[1] || source != "prior" || r.Predicted != 0.7 || r.Std != 2.5 {
				t.Fatalf("%v: row %d is %+v", kind, i, r)
			}
		}
		return set
	}

	// Of success any vector before the end may be taken, but one of each change.
	success := read(eventsv1.ModelKind_MODEL_KIND_SUCCESS)
	marks := map[float32]string{}
	want := 0
	for name, ended := range p.ends {
		could := 0
		for _, q := range p.vectors("success", name, "") {
			if !q.at.After(ended) {
				marks[q.mark] = name
				could++
			}
		}
		if could > 0 {
			want++
		}
	}
	taken := map[string]bool{}
	for _, r := range success.Rows {
		name := marks[r.Vector[0]]
		if name == "" || taken[name] || r.Ended != p.ends[name].UnixMicro() || r.Target == 1 != p.passed[name] {
			t.Fatalf("of change %q, taken %v: %+v", name, taken[name], r)
		}
		taken[name] = true
	}
	if len(success.Rows)+success.OtherSchema != want || success.OtherSchema == 0 {
		t.Errorf("%d rows of success and %d of another schema, want %d", len(success.Rows), success.OtherSchema, want)
	}
	for kind, twin := range map[eventsv1.ModelKind][]dataset.Row{eventsv1.ModelKind_MODEL_KIND_DURATION: durations, eventsv1.ModelKind_MODEL_KIND_CONFLICT: pairs} {
		got := read(kind)
		key := func(r dataset.Row) string { return fmt.Sprint(r.Vector[0], r.At, r.Ended, r.Target, r.Censored) }
		var have, should []string
		for _, r := range got.Rows {
			have = append(have, key(r))
		}
		for _, r := range twin {
			should = append(should, key(r))
		}
		slices.Sort(have)
		slices.Sort(should)
		if !slices.Equal(have, should) || got.OtherSchema == 0 {
			t.Errorf("%v: %d rows, the twin has %d, and %d are of another schema:\n%v\n%v", kind, len(have), len(should), got.OtherSchema, have, should)
		}
	}
	var said []string
	if err := c.QueryRow(t.Context(), "SELECT groupArray(concat(change, other, toString(toUnixTimestamp64Micro(at)), ' ', if(actual = 1, 'true', 'false'))) FROM conflict_outcomes WHERE predicted = 0.7").Scan(&said); err != nil {
		t.Fatal(err)
	}
	slices.Sort(said)
	slices.Sort(outcomes)
	if !slices.Equal(said, outcomes) || len(said) == 0 {
		t.Errorf("what came true of pairs: %d, the twin has %d:\n%v\n%v", len(said), len(outcomes), said, outcomes)
	}
	if queues, err := source.Queues(t.Context()); err != nil || !slices.Equal(queues, []string{"q"}) {
		t.Errorf("queues: %v, %v", queues, err)
	}
	if set, err := source.Read(t.Context(), "another", eventsv1.ModelKind_MODEL_KIND_SUCCESS, dawn); err != nil || len(set.Rows) != 0 {
		t.Errorf("of another queue: %v, %v", set, err)
	}
	if err := c.Exec(t.Context(), "DROP VIEW training_success"); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Read(t.Context(), "q", eventsv1.ModelKind_MODEL_KIND_SUCCESS, dawn); !errors.Is(err, dataset.ErrNoHistory) {
		t.Errorf("without its view: %v", err)
	}
}

// TestRowsOfOneMomentAreInOneOrder: the pairs of a change are predicted in one record, and the order in which they were written is
// none of a model's.
func TestRowsOfOneMomentAreInOneOrder(t *testing.T) {
	const n = 60
	random := seedtest.Random(t)
	var first []float32
	for range 2 {
		dsn := emptyHistory(t)
		c := connectTo(t, dsn)
		for offset, i := range random.Perm(n) {
			vector := make([]float32, len(features.OfPair()))
			vector[0], vector[1] = float32(i+1), float32(math.NaN())
			if err := c.Exec(t.Context(), "INSERT INTO predictions (queue, offset, item, kind, position, at, change, revision, other, other_revision, value, std, source, features, schema) VALUES ('q', 1, ?, 'conflict', 1, ?, 'c', 1, ?, 1, 0.7, 0, 'prior', ?, ?)",
				offset, dawn, fmt.Sprint("o", i), vector, features.Version); err != nil {
				t.Fatal(err)
			}
			if err := c.Exec(t.Context(), "INSERT INTO observations (queue, offset, item, position, at, change, revision, other, other_revision, conflict) VALUES ('q', 2, ?, 2, ?, 'c', 1, ?, 1, false)",
				offset, dawn.Add(time.Minute), fmt.Sprint("o", i)); err != nil {
				t.Fatal(err)
			}
		}
		source, err := dataset.Open(dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		set, err := source.Read(t.Context(), "q", eventsv1.ModelKind_MODEL_KIND_CONFLICT, dawn)
		if err != nil || len(set.Rows) != n {
			t.Fatalf("%d rows, %v", len(set.Rows), err)
		}
		var marks []float32
		for _, r := range set.Rows {
			marks = append(marks, r.Vector[0])
		}
		if first != nil && !slices.Equal(first, marks) {
			t.Errorf("the same rows are %v and %v", first, marks)
		}
		first = marks
	}
}

// builds invents builds with steps, and gives the rows that those make which can be learned from.
func (p *past) builds() (rows []dataset.Row) {
	for i := range 300 {
		name, change := fmt.Sprint("b", i), fmt.Sprint("d", i%100)
		if i < 100 {
			for range p.random.IntN(4) {
				p.predict("duration", change, "", p.moment(200))
			}
		}
		if p.random.IntN(10) == 0 {
			change = "" // of the mainline itself
		}
		scheduled := p.moment(200)
		p.insert("builds", "queue, build, change, revision, scheduled_at", "q", name, change, uint64(1), scheduled)
		var first, last time.Time
		counts, censored := true, false
		for k := range 1 + p.random.IntN(3) {
			started := scheduled.Add(time.Duration(p.random.IntN(100_000)) * time.Millisecond)
			finished := started.Add(time.Duration(1+p.random.IntN(100_000)) * time.Millisecond)
			outcome := []string{"passed", "passed", "passed", "passed", "aborted", "failed"}[p.random.IntN(6)]
			counts = counts && outcome != "failed"
			censored = censored || outcome == "aborted"
			if k == 0 || started.Before(first) {
				first = started
			}
			if finished.After(last) {
				last = finished
			}
			p.insert("steps", "queue, target, hash, attempt, precedence, outcome, started_at, finished_at, seconds, build",
				"q", fmt.Sprint("//t", k), name, uint32(1), uint64(1), outcome, started, finished, finished.Sub(started).Seconds(), name)
		}
		var newest *said
		for _, q := range p.vectors("duration", change, "") {
			if !q.at.After(scheduled) && (newest == nil || q.at.After(newest.at)) {
				newest = &q
			}
		}
		if change != "" && counts && newest != nil && newest.schema == features.Version {
			rows = append(rows, dataset.Row{
				At: newest.at.UnixMicro(), Ended: last.UnixMicro(), Vector: []float32{newest.mark}, Censored: censored, Target: float64(last.Sub(first).Milliseconds()) / 1000,
			})
		}
	}
	return rows
}

// pairs invents pairs of which it came to light whether they break, and gives the rows of them: by the first vector. outcomes are
// the last predictions before that, with or without one.
func (p *past) pairs() (rows []dataset.Row, outcomes []string) {
	for i := range 200 {
		change, other := fmt.Sprint("e", i), fmt.Sprint("o", i%7)
		for range p.random.IntN(3) {
			p.predict("conflict", change, other, p.moment(100))
		}
		at := p.moment(200)
		breaks := p.random.IntN(5) == 0
		if last := p.said[len(p.said)-1]; last.kind == "conflict" && last.change == change {
			outcomes = append(outcomes, fmt.Sprint(change, other, last.at.UnixMicro(), breaks))
		}
		p.offset++
		p.insert("observations", "queue, offset, item, position, at, change, revision, other, other_revision, conflict", "q", p.offset, uint32(0), p.offset, at, change, uint64(1), other, uint64(1), breaks)
		if v := p.vectors("conflict", change, other); len(v) > 0 && !v[0].at.After(at) && v[0].schema == features.Version {
			r := dataset.Row{At: v[0].at.UnixMicro(), Ended: at.UnixMicro(), Vector: []float32{v[0].mark}}
			if breaks {
				r.Target = 1
			}
			rows = append(rows, r)
		}
		if p.random.IntN(3) == 0 {
			p.predict("conflict", change, other, at.Add(time.Hour)) // too late to have been a prediction
		}
	}
	return rows, outcomes
}

// batch is what rows are written by.
type batch interface {
	Append(values ...any) error
	Send() error
}
