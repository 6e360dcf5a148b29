package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/services/gateway/profilelog"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
	"landfall.build/tools/client"
)

// Moment says what is shown of the past.
type Moment struct {
	// At is a time (see client.ParseTime) or an offset of landfall.speculations.
	At string
	// Queue is the one that is shown; all of the log if "".
	Queue string
	// Change is explained instead of listed, if named.
	Change string
	// Finished is how many changes that had left the queue are listed.
	Finished int
	// Full adds to the explanation every number, then and before.
	Full bool
	JSON bool
}

// Past is a queue as it was.
type Past struct {
	// Partition and Offset name the last record of landfall.speculations that is part of it, Stamp its time.
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Stamp     time.Time `json:"stamp"`
	// Changes and Builds are the offsets up to which (exclusive) the enumerator had read its sources.
	Changes     int64             `json:"changes"`
	Builds      int64             `json:"builds"`
	Queue       view.Overview     `json:"queue"`
	Pending     []view.Summary    `json:"pending"`
	Finished    []view.Summary    `json:"finished,omitempty"`
	Explanation *view.Explanation `json:"explanation,omitempty"`
}

// cut is a consistent moment of a partition: what the enumerator had read, and what had been answered of it.
type cut struct {
	// until is the last stamp that is part of it; if that is zero, last is the last offset.
	until time.Time
	last  int64
	// found is the last record that is part of it, at offset; nil if there is none.
	found  *eventsv1.Speculation
	offset int64
}

// holds says whether a record of landfall.speculations is part of it.
func (c *cut) holds(offset int64, s *eventsv1.Speculation) bool {
	if c.until.IsZero() {
		return offset <= c.last
	}
	return !time.UnixMicro(s.StampUs).After(c.until)
}

// Show prints the queues as they were.
func (m Moment) Show(ctx context.Context, log journal.Log, out, progress io.Writer) error {
	meter := audit.NewMeter(progress)
	meter.What, meter.Of = "replay", "records"
	past, err := m.look(ctx, log, meter.Show)
	meter.End()
	if err != nil {
		return err
	}
	if m.JSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(past)
	}
	for i, p := range past {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "as of speculations/%d/%d, %s (changes before %d, builds before %d)\n", p.Partition, p.Offset,
			p.Stamp.Local().Format("2006-01-02 15:04:05.000000 -07:00"), p.Changes, p.Builds)
		if p.Explanation != nil {
			client.WriteExplanation(out, p.Stamp, *p.Explanation)
			continue
		}
		client.WriteQueue(out, p.Stamp, p.Queue, append(slices.Clone(p.Pending), p.Finished...))
	}
	return nil
}

// Look folds the log up to the moment, with the gateway's view: one Past for each queue that had something by then.
func (m Moment) Look(ctx context.Context, log journal.Log) ([]Past, error) {
	return m.look(ctx, log, func(audit.Progress) {})
}

// hasOffset refuses an offset that was not written yet: shown would be the last moment, as if it were that one.
func hasOffset(ctx context.Context, log journal.Log, partition int32, offset int64) error {
	end, err := log.End(ctx, events.TopicSpeculations, partition)
	switch {
	case err != nil:
		return err
	case end == 0:
		return fmt.Errorf("%s/%d has no offset %d: it holds no record", events.TopicSpeculations, partition, offset)
	case offset >= end:
		return fmt.Errorf("%s/%d has no offset %d: its last one is %d", events.TopicSpeculations, partition, offset, end-1)
	}
	return nil
}

func (m Moment) look(ctx context.Context, log journal.Log, show func(audit.Progress)) ([]Past, error) {
	at := cut{}
	if offset, err := strconv.ParseInt(m.At, 10, 64); err == nil && offset >= 0 {
		at.last = offset
	} else if at.until, err = client.ParseTime(m.At, time.Now()); err != nil {
		return nil, fmt.Errorf("%q is no offset, and %w", m.At, err)
	}
	from, to := int32(0), log.Partitions()
	switch {
	case m.Queue != "":
		from = events.PartitionOf(m.Queue, log.Partitions())
		to = from + 1
	case at.until.IsZero() && log.Partitions() > 1:
		return nil, fmt.Errorf("an offset is one of a partition, and this log has %d: name the queue with --queue", log.Partitions())
	}
	found := []Past{}
	for p := from; p < to; p++ {
		if at.until.IsZero() {
			if err := hasOffset(ctx, log, p, at.last); err != nil {
				return nil, err
			}
		}
		l := &look{Moment: m, log: log, partition: p, cut: at, begun: time.Now(), show: show}
		of, err := l.run(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, of...)
	}
	switch {
	case len(found) > 0:
	case m.Change != "":
		return nil, fmt.Errorf("no change %q was known, or still kept, at %s", m.Change, m.At)
	case m.Queue != "":
		return nil, fmt.Errorf("the log has nothing of a queue %q up to %s", m.Queue, m.At)
	default:
		return nil, fmt.Errorf("the log has nothing up to %s", m.At)
	}
	return found, nil
}

// look is a look at one partition.
type look struct {
	Moment
	cut
	log         journal.Log
	partition   int32
	begun       time.Time
	show        func(audit.Progress)
	done, total int64
}

// run finds the cut, then folds what is part of it.
func (l *look) run(ctx context.Context) ([]Past, error) {
	ends := map[string]int64{}
	for _, topic := range []string{events.TopicDecisions, events.TopicPriorities, events.TopicSpeculations, events.TopicProfiles, events.TopicBuilds, events.TopicChanges} {
		end, err := l.log.End(ctx, topic, l.partition)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", topic, l.partition, err)
		}
		ends[topic] = end
		l.total += end
	}
	err := l.counted(ctx, events.TopicSpeculations, ends[events.TopicSpeculations], func(e *journal.Entry) bool {
		s, is := e.Message.(*eventsv1.Speculation)
		if !is {
			return true
		}
		if !l.holds(e.Offset, s) {
			return false
		}
		l.found, l.offset = s, e.Offset
		return true
	})
	if err != nil || l.found == nil {
		return nil, err
	}
	views := map[string]*view.Queue{}
	fold := func(e *journal.Entry) bool {
		if e.Queue == "" || l.Queue != "" && e.Queue != l.Queue {
			return true
		}
		q := views[e.Queue]
		if q == nil {
			q = view.New(e.Queue, view.DefaultLimits())
			views[e.Queue] = q
		}
		q.Fold(*e)
		return true
	}
	// The order of the gateway: first whom everything else is about.
	for _, x := range []struct {
		topic string
		end   int64
		take  func(*journal.Entry) bool
	}{
		{events.TopicChanges, l.found.Positions.GetChanges(), fold},
		{events.TopicDecisions, ends[events.TopicDecisions], func(e *journal.Entry) bool {
			d, is := e.Message.(*eventsv1.Decision)
			return !is || d.Position <= l.offset && fold(e)
		}},
		{events.TopicBuilds, l.found.Positions.GetBuilds(), fold},
		{events.TopicProfiles, ends[events.TopicProfiles], func(e *journal.Entry) bool {
			p, is := e.Message.(*eventsv1.Profile)
			return !is || p.Position <= l.offset && fold(e)
		}},
		{events.TopicPriorities, ends[events.TopicPriorities], func(e *journal.Entry) bool {
			p, is := e.Message.(*eventsv1.Priority)
			return !is || p.Position <= l.offset && fold(e)
		}},
	} {
		if err := l.counted(ctx, x.topic, x.end, x.take); err != nil {
			return nil, err
		}
	}
	return l.past(ctx, views)
}

// past is what the views say.
func (l *look) past(ctx context.Context, views map[string]*view.Queue) (out []Past, err error) {
	names := make([]string, 0, len(views))
	for name := range views {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		q := views[name]
		p := Past{
			Partition: l.partition, Offset: l.offset, Stamp: time.UnixMicro(l.found.StampUs).UTC(),
			Changes: l.found.Positions.GetChanges(), Builds: l.found.Positions.GetBuilds(),
			Queue: q.Overview(), Pending: q.Pending(), Finished: q.Finished(l.Finished),
		}
		if l.Change != "" {
			e, known := q.Explain(l.Change)
			if !known {
				continue
			}
			p.Explanation = &e
			if l.Full {
				if e.Full, err = l.full(ctx, q, name); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// full tells every number, also of what was decided before.
func (l *look) full(ctx context.Context, q *view.Queue, name string) (*view.Full, error) {
	i, _ := q.Inquire(l.Change)
	reader := profilelog.Reader{Log: l.log, Unbounded: true}
	return i.Answer, reader.Answer(ctx, name, i, func(f func(*view.Queue)) { f(q) })
}

// counted gives the counted records of a topic up to an end, until take says that it has enough.
func (l *look) counted(ctx context.Context, topic string, end int64, take func(*journal.Entry) bool) error {
	r, err := reading.To(ctx, l.log, topic, l.partition, end, reading.Options{Read: func(n int64) {
		if l.done += n; time.Since(l.begun) >= quietly {
			l.show(audit.Progress{Done: int(l.done), Total: int(l.total)})
		}
	}})
	if err != nil {
		return err
	}
	defer r.Close()
	terms := journal.NewTerms(topic)
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		if terms.Counts(*e) && !take(e) {
			return nil
		}
	}
}
