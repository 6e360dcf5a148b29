package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/memory"
	"landfall.build/tools/embedded/broker"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	c := Command("one", func(file string) (*configuration.Configuration, error) {
		return nil, errors.New("there is no configuration " + file)
	}, discard())
	var stdout, stderr bytes.Buffer
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	c.SetArgs(args)
	c.SilenceErrors = true
	err = c.ExecuteContext(t.Context())
	t.Logf("landfall replay %s\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	return stdout.String(), err
}

// forge appends a decision that no selector would make, under the selector's term.
func forge(t *testing.T, log journal.Log) (offset int64) {
	t.Helper()
	written := entries(t, log, events.TopicDecisions)
	last := written[len(written)-1]
	d := proto.Clone(last.Message).(*eventsv1.Decision)
	d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{
		Change: &eventsv1.ChangeRef{Change: "c0", Revision: 1}, Decision: "forged"}}})
	last.Envelope.Message = d
	offsets, err := log.Append(t.Context(), events.TopicDecisions, last.Partition, last.Envelope)
	if err != nil {
		t.Fatal(err)
	}
	return offsets[0]
}

// TestAStoppedDataDirectoryIsReplayed is the command on a log that a broker left behind, and on one that runs.
func TestAStoppedDataDirectoryIsReplayed(t *testing.T) {
	data := t.TempDir()
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(data, "broker"), Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, Log: discard(), Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	play(t, log, "one", 4)
	if _, err := run(t, "--verify", "--data", data); err != nil {
		t.Errorf("while the broker runs: %v", err)
	}
	log.Close()
	b.Close()
	for _, dir := range []string{data, filepath.Join(data, "broker")} {
		out, err := run(t, "--verify", "--data", dir)
		if err != nil || !strings.Contains(out, "byte for byte") {
			t.Errorf("%v", err)
		}
	}
	if out, err := run(t, "--at", "-0s", "--data", data); err != nil || !strings.Contains(out, "queue main: 4 pending") {
		t.Errorf("%v", err)
	}
	if _, err := run(t, "--verify", "--data", t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no log") {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestTheCommandSaysWhatItNeeds(t *testing.T) {
	for _, args := range [][]string{{}, {"--verify", "--at", "1"}, {"--verify"}, {"--at", "1", "surplus"}} {
		if _, err := run(t, args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}

// TestAFlagOfTheOtherHalfIsRefused: ignored, it would look heeded.
func TestAFlagOfTheOtherHalfIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--verify", "--queue", "main"}, {"--verify", "--change", "c1"}, {"--verify", "--finished", "3"}, {"--at", "1", "--all-versions"}, {"--at", "1", "--full"},
	} {
		// The last flag is the one that does not fit, or its value follows it.
		flag := args[len(args)-1]
		if !strings.HasPrefix(flag, "--") {
			flag = args[len(args)-2]
		}
		if _, err := run(t, append(args, "--data", t.TempDir())...); err == nil || !strings.Contains(err.Error(), flag+" is") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestAnOffsetThatIsNotThereIsRefusedWithTheLastOneThatIs.
func TestAnOffsetThatIsNotThereIsRefusedWithTheLastOneThatIs(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	look := func(at int64) error {
		_, err := Moment{At: fmt.Sprint(at)}.Look(t.Context(), log)
		return err
	}
	if err := look(0); err == nil || !strings.Contains(err.Error(), "holds no record") {
		t.Errorf("of a log without speculations: %v", err)
	}
	play(t, log, "one", 3)
	end, err := log.End(t.Context(), events.TopicSpeculations, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := look(end - 1); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := look(end); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no offset %d: its last one is %d", end, end-1)) {
		t.Errorf("the one behind it: %v", err)
	}
}

// TestAVerificationThatComparedNothingFailsUnlessTheLogIsEmpty.
func TestAVerificationThatComparedNothingFailsUnlessTheLogIsEmpty(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	if _, err := verified(t, Verification{Version: "one"}, log); err != nil {
		t.Errorf("of an empty log: %v", err)
	}
	if _, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{ID: "1", Source: events.ServiceGateway, Queue: "main", Term: -1,
		Message: &eventsv1.ChangeCancelled{Change: "c1", Revision: 1}}); err != nil {
		t.Fatal(err)
	}
	out, err := verified(t, Verification{Version: "one"}, log)
	if differs := (Differs{}); !errors.Is(err, ErrNothing) || errors.As(err, &differs) || strings.Contains(out, "every one") {
		t.Errorf("%v\n%s", err, out)
	}
}

func verified(t *testing.T, v Verification, log journal.Log) (string, error) {
	t.Helper()
	var out, progress bytes.Buffer
	err := v.Run(t.Context(), log, &out, &progress)
	return out.String(), err
}

func TestTheFirstDifferenceIsShownWithItsCauseAndTheExitCodeIsOne(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	play(t, log, "one", 3)
	// Alter the record rather than add one: a copy of the log in which one build is scheduled for another change.
	altered := memory.New(memory.Options{ID: log.ID(), Partitions: 1})
	offset := int64(-1)
	for _, topic := range events.Topics() {
		c, err := log.Follow(t.Context(), topic.Name, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for e, ok, err := c.TryNext(); ok && err == nil; e, ok, err = c.TryNext() {
			if d, is := e.Message.(*eventsv1.Decision); is && offset < 0 {
				d = proto.Clone(d).(*eventsv1.Decision)
				d.Items[0].GetBuildScheduled().Why = "because"
				e.Message, offset = d, e.Offset
			}
			if _, err := altered.Append(t.Context(), topic.Name, 0, e.Envelope); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, err := verified(t, Verification{Version: "one"}, altered)
	var differs Differs
	if !errors.As(err, &differs) || differs.Records < 1 || differs.ExitCode() != 1 {
		t.Errorf("the error is %v", err)
	}
	for _, part := range []string{"items[0].build_scheduled.why", `written:  "because"`, "computed: ", "input    landfall.priorities/0/", "Priority of prioritizer"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
	out, err = verified(t, Verification{Version: "one", JSON: true}, altered)
	var s Summary
	if uerr := json.Unmarshal([]byte(out), &s); uerr != nil || !errors.As(err, &differs) {
		t.Fatalf("%v, %v", uerr, err)
	}
	if d := s.First; d == nil || d.Service != events.ServiceSelector || d.Offset != offset || len(d.Fields) != 1 || len(d.Inputs) != 1 || s.Differences != differs.Records {
		t.Errorf("%+v", s)
	}
	if err := VerifyQuietly(t.Context(), altered, discard()); err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("%v", err)
	}
	if err := VerifyQuietly(t.Context(), log, discard()); err != nil {
		t.Error(err)
	}
	if err := VerifyQuietly(t.Context(), memory.New(memory.Options{Partitions: 1}), discard()); err == nil {
		t.Error("an empty log passes for a verified one")
	}
}

func TestAForgedAnswerIsADifference(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	play(t, log, "one", 2)
	offset := forge(t, log)
	out, err := verified(t, Verification{Version: "one"}, log)
	if !errors.As(err, &Differs{}) || !strings.Contains(out, "answers no input") {
		t.Errorf("a forged decision at %d: %v\n%s", offset, err, out)
	}
}

// TestWhatOnlyOtherVersionsWroteIsNoSuccess: a check that compared nothing has shown nothing.
func TestWhatOnlyOtherVersionsWroteIsNoSuccess(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	play(t, log, "one", 2)
	out, err := verified(t, Verification{Version: "two"}, log)
	if err == nil || errors.As(err, &Differs{}) || !strings.Contains(err.Error(), "--all-versions") || !strings.Contains(out, "records of version one") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = verified(t, Verification{Version: "two", AllVersions: true}, log); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = verified(t, Verification{Version: "one"}, memory.New(memory.Options{Partitions: 1})); err != nil || !strings.Contains(out, "no derived records") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTheQueueAtEachOffsetIsWhatTheFactsUpToItSay compares the view with counting the facts that the enumerator
// had read, at every record of it, by offset and by stamp.
func TestTheQueueAtEachOffsetIsWhatTheFactsUpToItSay(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	play(t, log, "one", 5)
	pending := 0
	for _, e := range entries(t, log, events.TopicSpeculations) {
		s := e.Message.(*eventsv1.Speculation)
		for _, f := range s.Facts {
			if f.GetChangeAdmitted() != nil {
				pending++
			}
		}
		if s.Positions.Changes == 0 {
			continue // its settings: nothing of the queue is known yet
		}
		at := Moment{At: time.UnixMicro(s.StampUs).UTC().Format(time.RFC3339Nano)}
		for i, m := range []Moment{{At: itoa(e.Offset)}, at} {
			past, err := m.Look(t.Context(), log)
			if err != nil || len(past) != 1 {
				t.Fatalf("at %s: %d queues, %v", m.At, len(past), err)
			}
			p := past[0]
			if i == 0 && (p.Offset != e.Offset || p.Queue.Pending != pending || len(p.Pending) != pending || !p.Stamp.Equal(time.UnixMicro(s.StampUs))) {
				t.Errorf("at %s: %d pending, not %d: %+v", m.At, p.Queue.Pending, pending, p)
			}
			// Several records may have one stamp.
			if i == 1 && (p.Offset < e.Offset || p.Stamp.After(time.UnixMicro(s.StampUs))) {
				t.Errorf("at %s it is as of offset %d, not %d", m.At, p.Offset, e.Offset)
			}
		}
	}
	if pending != 5 {
		t.Errorf("%d changes are pending at the end", pending)
	}
}

func TestAChangeIsExplainedAsItWas(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	play(t, log, "one", 2)
	var out, progress bytes.Buffer
	end, err := log.End(t.Context(), events.TopicSpeculations, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Moment{At: itoa(end - 1), Change: "c1"}).Show(t.Context(), log, &out, &progress); err != nil || !strings.Contains(out.String(), "Change c1") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := (Moment{At: itoa(end - 1), Change: "c1", Full: true}).Show(t.Context(), log, &out, &progress); err != nil || !strings.Contains(out.String(), "numbers as of offset") {
		t.Errorf("%v\n%s", err, out.String())
	}
	past, err := Moment{At: itoa(end - 1), Change: "c1", Full: true}.Look(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	f := past[0].Explanation.Full
	if f == nil || f.Omitted != "" || f.Verdict == nil || len(f.Builds) == 0 || f.Position > past[0].Offset {
		t.Fatalf("in full c1 is explained by %+v", f)
	}
	for _, b := range f.Builds {
		if b.Then == nil || math.Abs(b.Then.Needed-b.Needed) > 1e-9 || math.Abs(b.Then.Value-b.Value) > 1e-9 {
			t.Errorf("what %+v was scheduled on is explained by %+v", b, b.Then)
		}
	}
	for _, m := range []Moment{{At: itoa(end - 1), Change: "nobody"}, {At: itoa(end), Queue: "another"}, {At: "2000-01-01"}, {At: "0"}, {At: "yesterday"}} {
		if past, err := m.Look(t.Context(), log); err == nil {
			t.Errorf("%+v: %+v", m, past)
		}
	}
	two := memory.New(memory.Options{Partitions: 2})
	if _, err := (Moment{At: "3"}).Look(t.Context(), two); err == nil || !strings.Contains(err.Error(), "--queue") {
		t.Errorf("an offset of no partition: %v", err)
	}
}
