package health

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
)

func newBoard(t *testing.T) (Board, *kadm.Client, *kfake.Cluster) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, events.TopicChanges, events.TopicDecisions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	return NewBoard(admin), admin, cluster
}

func TestTheBoardGivesBackWhatWasPostedLast(t *testing.T) {
	b, admin, _ := newBoard(t)
	now := time.UnixMilli(1_767_600_000_000)
	can := Capacity{Pool: "mac", Labels: []string{"arm", "gpu"}, Resources: map[string]int{"memory_gb": 16}}
	post := func(at time.Time, partitions ...Posted) {
		t.Helper()
		beat := Beat{Service: events.ServiceLander, Instance: "eu.west.1", Version: "1", Boot: "x", Started: now, At: at, Workers: 4, Busy: 2, Can: can, Trouble: "t\"\n", Partitions: partitions}
		if err := b.Post(t.Context(), []Beat{beat}); err != nil {
			t.Fatal(err)
		}
	}
	read := func() Beat {
		t.Helper()
		beats, err := b.Read(t.Context())
		if err != nil || len(beats) != 1 {
			t.Fatalf("%v, %+v", err, beats)
		}
		return beats[0]
	}
	// Somebody else's group, whose name is like one of ours, is left out.
	if err := admin.CommitAllOffsets(t.Context(), GroupPrefix+"x", kadm.Offsets{events.TopicChanges: {0: {Topic: events.TopicChanges, At: 1, LeaderEpoch: -1}}}); err != nil {
		t.Fatal(err)
	}
	part := func(n int32) Posted {
		return Posted{Partition: n, Term: 7, Since: now, CaughtUp: true, Next: map[string]int64{events.TopicChanges: 3, events.TopicDecisions: 4}}
	}
	post(now, part(0), part(2))
	got := read()
	if got.Service != events.ServiceLander || got.Instance != "eu.west.1" || got.Boot != "x" || got.Workers != 4 || got.Busy != 2 || got.Trouble != "t\"\n" || !got.Started.Equal(now) || len(got.Partitions) != 2 || !reflect.DeepEqual(got.Can, can) {
		t.Errorf("%+v", got)
	}
	slices.SortFunc(got.Partitions, func(a, b Posted) int { return int(a.Partition - b.Partition) })
	if p := got.Partitions[1]; p.Partition != 2 || p.Term != 7 || !p.CaughtUp || !p.Since.Equal(now) || p.Next[events.TopicChanges] != 3 || p.Next[events.TopicDecisions] != 4 {
		t.Errorf("%+v", p)
	}
	// What is more than fits is left out.
	can.Labels = slices.Repeat([]string{strings.Repeat("x", 60)}, 60)
	post(now.Add(time.Millisecond), part(0), part(2))
	if got := read(); !reflect.DeepEqual(got.Can, Capacity{Pool: "mac", Untold: true}) {
		t.Errorf("%+v", got)
	}
	// A partition that was given up is not shown, though its offsets stay.
	post(now.Add(time.Second), part(2))
	if got := read(); len(got.Partitions) != 1 || got.Partitions[0].Partition != 2 {
		t.Errorf("%+v", got)
	}
	post(now.Add(2 * time.Second))
	if got := read(); len(got.Partitions) != 0 || !got.At.Equal(now.Add(2*time.Second)) {
		t.Errorf("%+v", got)
	}
}

func TestAServiceIsReadyWhenItCanWork(t *testing.T) {
	b, _, cluster := newBoard(t)
	var out strings.Builder
	p := New("one", "1", b, slog.New(slog.NewTextHandler(&out, nil)))
	s := p.Service(events.ServiceLander)
	want := func(why string) {
		t.Helper()
		switch err := p.Ready(); {
		case why == "" && err != nil, why != "" && (err == nil || !strings.Contains(err.Error(), why)):
			t.Errorf("%v, want %q", err, why)
		}
	}
	want("it has not joined its group yet")
	s.SetJoined(true)
	want("") // it stands by
	part := s.Begin(1, 7)
	part.Read(events.TopicChanges, 0)
	want("partition 1 is still being read")
	part.CaughtUp()
	want("")
	s.SetTrouble("no disk")
	want("no disk")
	s.SetTrouble("")
	p.beat(t.Context())
	beats, err := b.Read(t.Context())
	if err != nil || len(beats) != 1 || len(beats[0].Partitions) != 1 || beats[0].Partitions[0].Term != 7 {
		t.Errorf("%v, %+v", err, beats)
	}
	part.End()
	want("")
	cluster.Close()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		p.beat(ctx)
		if ctx.Err() != nil {
			p.setAnswered(ctx.Err()) // the test's own patience is shorter than the beat's
		}
		cancel()
	}
	want("the broker has not answered")
	if s.BrokerSilent() <= 0 {
		t.Error("the broker is not silent")
	}
	if n := strings.Count(out.String(), "the broker does not answer"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, out.String())
	}
}

// TestAClockThatIsSetIsNoted, forward and back, and what is less than a second only once it adds up.
func TestAClockThatIsSetIsNoted(t *testing.T) {
	set := time.Duration(0)
	p := New("one", "1", nil, slog.New(slog.DiscardHandler))
	p.Wall = func() time.Time { return time.Now().Add(set) }
	s := p.Service(events.ServiceLander)
	for _, step := range []struct{ set, jumped time.Duration }{
		{0, 0}, {time.Hour, time.Hour}, {time.Hour, time.Hour}, {0, 2 * time.Hour}, {600 * time.Millisecond, 2 * time.Hour}, {-1200 * time.Millisecond, 2*time.Hour + 1200*time.Millisecond},
	} {
		set = step.set
		p.lookAtClock()
		if off := s.ClockJumped() - step.jumped; off.Abs() > 300*time.Millisecond {
			t.Errorf("set by %v: it jumped by %v, want %v", step.set, s.ClockJumped(), step.jumped)
		}
	}
}

func TestANilServiceTakesEverything(t *testing.T) {
	var s *Service
	s.SetJoined(true)
	s.SetTrouble("x")
	s.SetWorkers(1)
	s.AddBusy(1)
	p := s.Begin(0, 1)
	p.Read("t", 1)
	p.CaughtUp()
	p.End()
	if err := s.Ready(); err != nil {
		t.Error(err)
	}
}
