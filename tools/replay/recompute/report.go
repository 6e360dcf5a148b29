package recompute

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/platform/journal"
)

// Report is the outcome of a verification.
type Report struct {
	LogID string
	// Version is that of this code.
	Version     string
	AllVersions bool
	// Services in the order of the flow.
	Services []Service
}

// Service is what was found of one service, over all partitions.
type Service struct {
	Service, Topic string
	// Records are those of the service in its topic, claims left out. Each was compared, or did not count, or is
	// of another version, or is given.
	Records int64
	// Compared is Identical and Different.
	Compared, Identical, Different int64
	// Silent counts inputs that were answered by silence, and are again; Missing those that this code answers.
	Silent, Missing int64
	// Given are records that rest on what no log holds: of the lander, all but its intentions and what closes them.
	Given int64
	// NotCounted are records of a term that another claim had ended.
	NotCounted int64
	// Others counts the records of other versions, by version.
	Others map[string]int64
	// Unanswered says that there are inputs behind the last record: nothing can be said of them yet.
	Unanswered bool
	// Torn counts offsets at the ends of partitions that hold no whole record, read topics included.
	Torn int64
	// Differences are the first of them, in the order of the log.
	Differences []Difference
}

// Difference is one record that is not what this code says.
type Difference struct {
	Service, Topic string
	Partition      int32
	// Offset is that of the record, -1 if there is none.
	Offset         int64
	Queue, Version string
	// Reason says in a few words what is wrong.
	Reason string
	// Written and Computed are of one type; nil if there is none.
	Written, Computed proto.Message
	// Causes are the inputs that it answers.
	Causes []journal.Entry
}

// Differences counts the records that are not what this code says, and those that it misses.
func (r *Report) Differences() (n int64) {
	for _, s := range r.Services {
		n += s.Different + s.Missing
	}
	return n
}

// Compared counts the records that were compared.
func (r *Report) Compared() (n int64) {
	for _, s := range r.Services {
		n += s.Compared
	}
	return n
}

// Others counts the records of other versions, by version.
func (r *Report) Others() map[string]int64 {
	sum := map[string]int64{}
	for _, s := range r.Services {
		for version, n := range s.Others {
			sum[version] += n
		}
	}
	return sum
}

// First is the first difference, in the order of the flow; nil if there is none.
func (r *Report) First() *Difference {
	for i := range r.Services {
		if len(r.Services[i].Differences) > 0 {
			return &r.Services[i].Differences[0]
		}
	}
	return nil
}

// Err is nil if nothing differs, and names the first difference otherwise.
func (r *Report) Err() error {
	d := r.First()
	if d == nil {
		return nil
	}
	return fmt.Errorf("%d records are not what this code says; the first: %s", r.Differences(), d)
}

// String is the difference in a line.
func (d *Difference) String() string {
	at := fmt.Sprintf("%s/%d/%d", d.Topic, d.Partition, d.Offset)
	if d.Offset < 0 {
		at = fmt.Sprintf("%s/%d", d.Topic, d.Partition)
	}
	return fmt.Sprintf("%s, %s of queue %q: %s", d.Service, at, d.Queue, d.Reason)
}

// add sums the findings of a partition.
func (r *Report) add(s Service, kept int) {
	var sum *Service
	for i := range r.Services {
		if r.Services[i].Service == s.Service {
			sum = &r.Services[i]
		}
	}
	if sum == nil {
		r.Services = append(r.Services, s)
		return
	}
	sum.Records += s.Records
	sum.Compared += s.Compared
	sum.Identical += s.Identical
	sum.Different += s.Different
	sum.Silent += s.Silent
	sum.Missing += s.Missing
	sum.Given += s.Given
	sum.NotCounted += s.NotCounted
	sum.Unanswered = sum.Unanswered || s.Unanswered
	sum.Torn += s.Torn
	for version, n := range s.Others {
		sum.Others[version] += n
	}
	sum.Differences = append(sum.Differences, s.Differences[:min(len(s.Differences), max(0, kept-len(sum.Differences)))]...)
}

// same compares two messages as they would be written.
func same(a, b proto.Message) (bool, error) {
	encoding := proto.MarshalOptions{Deterministic: true}
	x, err := encoding.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := encoding.Marshal(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(x, y), nil
}

// compare counts a record, and notes a difference. computed is nil if this code writes nothing. A record that
// cannot be is different whatever is computed: impossible says why.
func (c *check) compare(e *journal.Entry, version, impossible string, computed proto.Message, causes func() []journal.Entry) error {
	f := &c.findings
	f.Compared++
	identical := false
	reason := impossible
	if impossible == "" && computed != nil {
		var err error
		if identical, err = same(e.Message, computed); err != nil {
			return fmt.Errorf("encode the record at %d again: %w", e.Offset, err)
		}
		reason = "this code writes another record"
	} else if impossible == "" {
		reason = "this code writes no record"
	}
	if identical {
		f.Identical++
		return nil
	}
	f.Different++
	c.note(Difference{Offset: e.Offset, Queue: e.Queue, Version: version, Reason: reason, Written: e.Message, Computed: computed}, causes)
	return nil
}

// note keeps a difference, if there is room.
func (c *check) note(d Difference, causes func() []journal.Entry) {
	if len(c.findings.Differences) >= c.verification.o.Kept {
		return
	}
	d.Service, d.Topic, d.Partition = c.service, c.output, c.partition
	if causes != nil {
		d.Causes = causes()
	}
	c.findings.Differences = append(c.findings.Differences, d)
}
