// Package rows makes the rows of the history from a record of the log: one for the table of events, and those for the tables of changes,
// builds, steps, decisions, predictions and observations. It is pure: the same record always gives the same rows, so a row that is
// written again is the same row.
//
// The tables stand in schemas/clickhouse.
package rows

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"landfall.build/events"
)

// Record is a record of the log.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	events.Envelope
	// Counts is set if the record has an effect: its writer's term was in force.
	Counts bool
	// Err is set, and Message is nil, for a record that cannot be decoded; then Raw is its value.
	Err error
	Raw []byte
}

// Table is a table of facts, in the order in which a batch writes them.
type Table int

// The tables.
const (
	Changes Table = iota
	Builds
	Steps
	Decisions
	Predictions
	Observations
	tables
)

// Tables returns all tables of facts.
func Tables() []Table { return []Table{Changes, Builds, Steps, Decisions, Predictions, Observations} }

// Name returns the table's name in the database.
func (t Table) Name() string {
	return [...]string{"changes", "builds", "steps", "decisions", "predictions", "observations"}[t]
}

// Columns returns the table's columns, in the order of a row's values.
func (t Table) Columns() []string {
	return [...][]string{changeColumns, buildColumns, stepColumns, decisionColumns, predictionColumns, observationColumns}[t]
}

// EventColumns are the columns of the table of events, in the order of Events' fields.
var EventColumns = []string{"topic", "partition", "offset", "id", "type", "source", "instance", "queue", "subject", "time", "term", "counts", "error", "payload"}

// Events are rows of the table of events, by column.
type Events struct {
	Topic     []string
	Partition []uint32
	Offset    []uint64
	ID        []string
	Type      []string
	Source    []string
	Instance  []string
	Queue     []string
	Subject   []string
	Time      []time.Time
	Term      []int64
	Counts    []bool
	Error     []string
	Payload   []string
}

// Columns returns the slices in the order of EventColumns.
func (e *Events) Columns() []any {
	return []any{e.Topic, e.Partition, e.Offset, e.ID, e.Type, e.Source, e.Instance, e.Queue, e.Subject, e.Time, e.Term, e.Counts, e.Error, e.Payload}
}

// Set is the rows of consecutive records of one partition of one topic.
type Set struct {
	Events Events
	facts  [tables][]any
	bytes  int
	buffer []byte
	forms  forms
}

// Facts returns the rows of a table: the values of one row after the other, one for each column.
func (s *Set) Facts(t Table) []any { return s.facts[t] }

// Reset empties the set and keeps its memory.
func (s *Set) Reset() {
	e := &s.Events
	clear(e.Payload)
	e.Topic, e.Partition, e.Offset, e.ID, e.Type = e.Topic[:0], e.Partition[:0], e.Offset[:0], e.ID[:0], e.Type[:0]
	e.Source, e.Instance, e.Queue, e.Subject, e.Time = e.Source[:0], e.Instance[:0], e.Queue[:0], e.Subject[:0], e.Time[:0]
	e.Term, e.Counts, e.Error, e.Payload = e.Term[:0], e.Counts[:0], e.Error[:0], e.Payload[:0]
	for t := range s.facts {
		clear(s.facts[t])
		s.facts[t] = s.facts[t][:0]
	}
	s.bytes = 0
}

// Len returns the number of records.
func (s *Set) Len() int { return len(s.Events.Offset) }

// Bytes returns the approximate size of the set.
func (s *Set) Bytes() int { return s.bytes }

// First returns the offset of the first record. The set must not be empty.
func (s *Set) First() int64 { return int64(s.Events.Offset[0]) }

// Last returns the offset of the last record. The set must not be empty.
func (s *Set) Last() int64 { return int64(s.Events.Offset[len(s.Events.Offset)-1]) }

const typePrefix = "landfall.events.v1."

// rowOverhead is the approximate size of a row without its payload.
const rowOverhead = 200

// Add adds the rows of the next record.
func (s *Set) Add(r Record) {
	kind, payload, failure := s.describe(r)
	e := &s.Events
	e.Topic = append(e.Topic, r.Topic)
	e.Partition = append(e.Partition, uint32(r.Partition))
	e.Offset = append(e.Offset, uint64(r.Offset))
	e.ID = append(e.ID, r.ID)
	e.Type = append(e.Type, kind)
	e.Source = append(e.Source, r.Source)
	e.Instance = append(e.Instance, r.Instance)
	e.Queue = append(e.Queue, r.Queue)
	e.Subject = append(e.Subject, r.Subject)
	e.Time = append(e.Time, within(r.Time))
	e.Term = append(e.Term, r.Term)
	e.Counts = append(e.Counts, r.Counts)
	e.Error = append(e.Error, failure)
	e.Payload = append(e.Payload, payload)
	s.bytes += len(payload) + rowOverhead
	if r.Counts && r.Message != nil {
		s.addFacts(r)
	}
}

func (s *Set) add(t Table, values ...any) {
	s.facts[t] = append(s.facts[t], values...)
	s.bytes += rowOverhead
}

// describe returns a record's type, its message as JSON, and what is wrong with it.
func (s *Set) describe(r Record) (kind, payload, failure string) {
	if r.Err != nil {
		failure = strings.ToValidUTF8(r.Err.Error(), "?")
	}
	if r.Message == nil {
		if len(r.Raw) > 0 {
			payload = `{"undecodable_hex":"` + hex.EncodeToString(r.Raw) + `"}`
		}
		return "", payload, failure
	}
	kind = strings.TrimPrefix(events.TypeOf(r.Message), typePrefix)
	var err error
	if s.forms == nil {
		s.forms = forms{}
	}
	if s.buffer, err = s.forms.appendJSON(s.buffer[:0], r.Message.ProtoReflect(), maxDepth); err != nil {
		return kind, "", fmt.Sprintf("it has no form as JSON: %v", err)
	}
	return kind, string(s.buffer), failure
}

// earliest and latest bound times: DateTime64(6) holds 1900 to 2299, and a record with a wrong clock must not fail its batch.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2299, 1, 1, 0, 0, 0, 0, time.UTC)
)

func within(t time.Time) time.Time {
	if t.Before(earliest) {
		return earliest
	}
	if t.After(latest) {
		return latest
	}
	return t.UTC().Truncate(time.Microsecond)
}

// at converts a stamp in microseconds since 1970.
func at(us int64) time.Time {
	if us < 0 {
		return earliest
	}
	return within(time.UnixMicro(us))
}

// stamp converts a stamp for a nullable column; 0 is null.
func stamp(us int64) *time.Time {
	if us <= 0 {
		return nil
	}
	t := at(us)
	return &t
}

func seconds(from, to int64) float64 { return float64(to-from) / 1e6 }
