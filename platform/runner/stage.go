package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	"landfall.build/platform/journal"
)

// QueueCore is the state of one queue in a stage. One goroutine calls its methods.
type QueueCore interface {
	// Apply folds one counted input of the queue at its offset.
	Apply(input proto.Message, offset int64)
	// Decide returns the record for the inputs since the last Fold, nil for none. It changes nothing that a later answer
	// could show: asking twice, or not at all, makes no difference.
	Decide() proto.Message
	// Fold takes a record as written.
	Fold(output proto.Message)
	// Snapshot returns the state as a message; nil inputs and outputs are not part of it.
	Snapshot() proto.Message
}

// Stage is a service with one input and one output: it answers each counted record of the input with one record, or with
// silence. Profiler, prioritizer and selector are stages.
//
// What is written stands: an input that a record of the own topic answers is not decided again, so a new version of the code
// changes no past.
type Stage struct {
	// Name is the service's, as in events.Topics.
	Name string
	// Input and Output are topics; the stage writes Output alone.
	Input, Output string
	// New returns the state of one queue that knows nothing yet, Restore the state that a message was made of.
	New     func(queue string) QueueCore
	Restore func(queue string, state []byte) (QueueCore, error)
	// Position is the offset in landfall.speculations that a record of the stage answers, InputPosition
	// that of an input.
	Position      func(output proto.Message) int64
	InputPosition func(e journal.Entry) int64
	// Warnings, if set, are what people should be told when a record is written, such as that a model cannot be used.
	Warnings func(output proto.Message) []string
	// Reports: no gateway reads the input, so the stage itself says which of its records cannot be decoded.
	Reports bool
	// Answered, if set, is called for everything that the log answers; it is how a replay verifies a log.
	Answered func(Answer)
}

// Answer is what the log says to one input of a stage.
type Answer struct {
	// Input is nil for a record that answers none.
	Input *journal.Entry
	// Written is the record that answers it, nil for silence; Next is the record behind the silence.
	Written, Next *journal.Entry
	// Decide returns what the code says now.
	Decide func() proto.Message
}

// Service returns the stage as the runner takes it.
func (s Stage) Service() Service {
	return Service{
		Name: s.Name, Output: s.Output, Sources: []string{s.Input},
		New:     func() Core { return newAnswers(s) },
		Restore: func(state []byte, term int64) (Core, error) { return restoreAnswers(s, state, term) },
	}
}

// answers is a stage on one partition.
type answers struct {
	stage  Stage `snapshot:"-"`
	queues map[string]QueueCore
	input  *journal.Terms
	// output begins with the claim of the owner that took the snapshot.
	output *journal.Terms
	// own are counted records of the stage that are ahead of the inputs applied so far, in order.
	own  []journal.Entry `snapshot:"-"`
	live bool            `snapshot:"-"`
	// held is an input of which it is not known yet whether an own record answers it.
	held *journal.Entry `snapshot:"-"`
	// asked is the last input, if the stage has not decided on it; nil also behind silence.
	asked *journal.Entry `snapshot:"-"`
	// notes are to be carried out before anything else.
	notes []Effect `snapshot:"-"`
	// next is the offset behind the last input, counted or not; position is the highest that an input had.
	next, position int64
	// restored from a snapshot, the stage is stale once it finds an own record for a position that the snapshot had passed.
	restored, stale bool `snapshot:"-"`
}

func newAnswers(s Stage) *answers {
	return &answers{stage: s, queues: map[string]QueueCore{}, input: journal.NewTerms(s.Input), output: journal.NewTerms(s.Output), position: -1}
}

func (a *answers) queue(name string) QueueCore {
	c := a.queues[name]
	if c == nil {
		c = a.stage.New(name)
		a.queues[name] = c
	}
	return c
}

// NeedsOwn implements Core: before the claim is read, an input waits for the own record that may answer it.
func (a *answers) NeedsOwn() bool { return !a.live && len(a.own) == 0 }

// GoLive implements Core.
func (a *answers) GoLive(time.Time) {
	a.live = true
	a.advance()
}

// Stale implements Core.
func (a *answers) Stale() bool { return a.stale }

// Next implements Core.
func (a *answers) Next(string) int64 { return a.next }

// CanBatch implements Core: each input is answered before the next one is applied.
func (a *answers) CanBatch(journal.Entry) bool { return a.asked == nil && len(a.notes) == 0 }

// Apply implements Core.
func (a *answers) Apply(in Input) {
	e := in.Record
	if e == nil {
		return
	}
	a.next, a.asked = e.Offset+1, nil
	if errors.Is(e.Err, events.ErrUndecodable) && a.stage.Reports {
		a.notes = append(a.notes, DeadLetter{Entry: *e, Reason: e.Err.Error()})
	}
	if !a.input.Counts(*e) {
		return
	}
	a.held = e
	a.advance()
}

// advance applies the held input once it is known whether an own record answers it.
func (a *answers) advance() {
	e := a.held
	if e == nil {
		return
	}
	at := a.stage.InputPosition(*e)
	orphans := 0
	for len(a.own) > 0 && a.stage.Position(a.own[0].Message) < at {
		if orphans++; a.stage.Answered != nil {
			a.stage.Answered(Answer{Written: &a.own[0]})
		}
		a.own = a.own[1:]
	}
	if orphans > 0 {
		// The topic was written to by somebody else, or repeats a record. Waiting for its input would never end.
		a.notes = append(a.notes, Log{slog.LevelError, "records of the stage's own answer no input; they are left out", []any{
			"service", a.stage.Name, "topic", a.stage.Output, "partition", e.Partition, "records", orphans,
			"before", fmt.Sprintf("%s/%d/%d", e.Topic, e.Partition, e.Offset)}})
	}
	if a.NeedsOwn() {
		return
	}
	a.held, a.position = nil, max(a.position, at)
	c := a.queue(e.Queue)
	c.Apply(e.Message, e.Offset)
	if len(a.own) == 0 {
		a.asked = e
		return
	}
	answer := Answer{Input: e, Next: &a.own[0], Decide: c.Decide}
	if answer.Next.Queue == e.Queue && a.stage.Position(answer.Next.Message) == at {
		answer.Written, answer.Next, a.own = answer.Next, nil, a.own[1:]
	}
	if a.stage.Answered != nil {
		a.stage.Answered(answer)
	}
	if answer.Written != nil {
		c.Fold(answer.Written.Message)
	}
}

// Decide implements Core.
func (a *answers) Decide() []Effect {
	effects := slices.Clone(a.notes)
	if a.asked == nil {
		return effects
	}
	out := a.queues[a.asked.Queue].Decide()
	if out == nil {
		return effects
	}
	effects = append(effects, Append{
		Queue: a.asked.Queue, Identity: []string{strconv.FormatInt(a.stage.Position(out), 10)}, Trace: a.asked.Trace, Message: out,
	})
	if a.stage.Warnings != nil {
		for _, text := range a.stage.Warnings(out) {
			effects = append(effects, Log{slog.LevelWarn, text, []any{"queue", a.asked.Queue}})
		}
	}
	return effects
}

// Fold implements Core.
func (a *answers) Fold(done Effect) {
	out, is := done.(Append)
	switch {
	case !is:
		if len(a.notes) > 0 {
			a.notes = a.notes[1:]
		}
	case out.Own == nil:
		a.queues[out.Queue].Fold(out.Message)
		a.asked = nil
	case a.output.Counts(*out.Own) && out.Own.Source == a.stage.Name:
		a.stale = a.stale || a.restored && a.stage.Position(out.Message) <= a.position
		a.own = append(a.own, *out.Own)
		a.advance()
	}
}

// Snapshot implements Core.
func (a *answers) Snapshot() proto.Message {
	m := &snapshotv1.Stage{Next: a.next, Position: a.position, Terms: a.input.Snapshot()}
	for _, name := range slices.Sorted(maps.Keys(a.queues)) {
		state, err := proto.Marshal(a.queues[name].Snapshot())
		if err != nil {
			panic(err) // a message of our own, in memory
		}
		m.Queues = append(m.Queues, &snapshotv1.StageQueue{Queue: name, State: state})
	}
	return m
}

func restoreAnswers(s Stage, state []byte, term int64) (*answers, error) {
	m := &snapshotv1.Stage{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	a := newAnswers(s)
	for _, q := range m.Queues {
		c, err := s.Restore(q.Queue, q.State)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", q.Queue, err)
		}
		a.queues[q.Queue] = c
	}
	a.next, a.position, a.restored = m.Next, m.Position, true
	a.input = journal.RestoreTerms(s.Input, m.Terms)
	a.output.Restore(s.Name, term)
	return a, nil
}
