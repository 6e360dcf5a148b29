package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/runner"
	"landfall.build/services/outcomes"
	"landfall.build/tools/embedded/broker"
)

var goProgram = regexp.MustCompile("(?s)```go\n(package main\n.*?)```")

// TestTheConsumerOfTheGuideHandlesEachOutcomeOnce: it is compiled as it stands there. Meanwhile one owner takes over from another that
// goes on for a while, and the program itself is killed and started again.
func TestTheConsumerOfTheGuideHandlesEachOutcomeOnce(t *testing.T) {
	together(t)
	guide, err := os.ReadFile("../../../docs/guides/integrator.md")
	if err != nil {
		t.Fatal(err)
	}
	found := goProgram.FindSubmatch(guide)
	if found == nil {
		t.Fatal("the guide has no program in Go")
	}
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "bot")
	if err := os.WriteFile(source, found[1], 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(dir, "broker"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	secret, err := broker.ReadSecret(b.SecretFile())
	if err != nil {
		t.Fatal(err)
	}
	open := func() *kafka.Log {
		l, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, ClientID: "test", Log: slog.New(slog.DiscardHandler), Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	}
	bot := &program{t: t, binary: binary, dir: dir, broker: b.Addr(), secret: secret}
	bot.start()
	defer bot.kill()

	log := open()
	term, err := runner.Claim(t.Context(), log, events.ServiceLander, "l", "test", events.TopicChanges, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	put := func(service string, term int64, m proto.Message) {
		t.Helper()
		if _, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{Source: service, Queue: "main", Time: time.Now(), Term: term, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	land := func(change string) {
		ref := &eventsv1.ChangeRef{Change: change, Revision: 1}
		put(events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: change, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}})
		put(events.ServiceLander, term, &eventsv1.LandIntended{Change: ref, Commits: []string{change}})
		put(events.ServiceLander, term, &eventsv1.ChangeLanded{Change: ref, Commits: []string{change}})
		want = append(want, "main "+change+" admitted", "main "+change+" landed")
	}
	owner := func(instance string) *runner.Owner {
		o := outcomes.Options{JSON: true, Options: runner.Options{Log: open(), Instance: instance, Version: "test", Logger: slog.New(slog.DiscardHandler)}}
		r, err := runner.Take(t.Context(), o.Options, outcomes.Service(o), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r
	}
	work := func(until int64, owners ...*runner.Owner) {
		t.Helper()
		awaitThat(t, func() bool {
			for _, r := range owners {
				if _, err := r.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			end, err := log.End(t.Context(), events.TopicOutcomes, 0)
			if err != nil {
				t.Fatal(err)
			}
			return end >= until
		}, func() string { return "the outcomes are not written" })
	}
	for i := range 3 {
		land(fmt.Sprint("a", i))
	}
	first := owner("1")
	work(1+6, first)
	bot.handles(want)
	second := owner("2")
	for i := range 3 {
		land(fmt.Sprint("b", i))
	}
	// Both write what is new: of the first one nothing counts less for being replaced.
	work(2+6+2*6, first, second)
	bot.handles(want)
	bot.kill()
	land("c")
	work(2+6+2*6+2, second)
	bot.start()
	bot.handles(want)
}

// program is the consumer in a process of its own.
type program struct {
	t                           *testing.T
	binary, dir, broker, secret string
	command                     *exec.Cmd
	mu                          sync.Mutex
	out                         bytes.Buffer
}

// Write takes what it prints.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Fields(strings.ReplaceAll(p.out.String(), " ", "_"))
}

func (p *program) start() {
	p.command = exec.Command(p.binary, p.broker)
	p.command.Dir, p.command.Env, p.command.Stdout = p.dir, append(os.Environ(), "BROKER_SECRET="+p.secret), p
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) kill() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	p.command = nil
}

// handles waits until the program has handled so much, and a little longer, and compares it.
func (p *program) handles(want []string) {
	p.t.Helper()
	awaitThat(p.t, func() bool { return len(p.lines()) >= len(want) }, func() string { return fmt.Sprint("it has handled ", p.lines(), ", not ", want) })
	time.Sleep(300 * time.Millisecond) // what repeats would have come
	got := p.lines()
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], " ", "_")
	}
	if !slices.Equal(got, want) {
		p.t.Fatalf("it has handled %v, want %v", got, want)
	}
}

// awaitThat waits for something for half a minute.
func awaitThat(t *testing.T, holds func() bool, otherwise func() string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal(otherwise())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
