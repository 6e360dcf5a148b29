package stack_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/tally"
	"landfall.build/tools/embedded/stack"
)

// These tests are named after what other merge queues did wrong: defects that were found in them
// (peers_defects_test.go) and faults that their authors met in production (peers_faults_test.go).

// TestEveryTestThatTheListOfFaultsNamesIsThere: docs/paper/peers.md.
func TestEveryTestThatTheListOfFaultsNamesIsThere(t *testing.T) {
	list := named(t, "docs/paper/peers.md")
	rows := regexp.MustCompile(`(?m)^\| .* \| .* \| .*`+"`(Test\\w+)`"+`.* \|$`).FindAllString(list, -1)
	if len(rows) != 10+5 {
		t.Errorf("%d rows have a test", len(rows))
	}
}

// TestEveryTestThatTheListOfBadInputNamesIsThere, and every row has one; and every fuzz test is in the list.
func TestEveryTestThatTheListOfBadInputNamesIsThere(t *testing.T) {
	list := named(t, "docs/guides/bad-input.md")
	for _, row := range regexp.MustCompile(`(?m)^\| .*\|$`).FindAllString(list, -1) {
		if !strings.HasSuffix(row, "| test |") && !strings.HasSuffix(row, "| fuzz test |") && !strings.Contains(row, "`Test") && !strings.Contains(row, "`Fuzz") {
			t.Errorf("no test: %s", row)
		}
	}
	for name := range declared(t) {
		if strings.HasPrefix(name, "Fuzz") && !strings.Contains(list, "`"+name+"`") {
			t.Errorf("%s is not in the list", name)
		}
	}
}

// named reads a document of which every test that it names must be there.
func named(t *testing.T, document string) string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	there := declared(t)
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(list, -1) {
		if !there[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
	return string(list)
}

const root = "../../.."

// declared returns the names of all tests of the workspace.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, module := range []string{"events", "engine", "platform", "learning", "services", "tools"} {
		if err := filepath.WalkDir(filepath.Join(root, module), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				names[string(found[1])] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// together runs a test beside others: most of it is waiting. On a Kafka that they share they take turns.
func together(t *testing.T) {
	t.Helper()
	if os.Getenv(kafkatest.Variable) == "" {
		t.Parallel()
	}
}

// gate is a file that steps and hooks look for, with a named pipe that they wait at.
type gate string

func newGate(t *testing.T) gate {
	t.Helper()
	g := gate(outside(t))
	if err := syscall.Mkfifo(g.pipe(), 0o666); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g gate) pipe() string { return string(g) + ".pipe" }

// open lets through all that wait, and all that come: who opens the pipe to read waits for a writer, which there is until the test ends.
func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(g), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(g.pipe(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
}

// isOpen returns a shell command, await one that waits.
func (g gate) isOpen() string { return fmt.Sprintf("[ -e '%s' ]", g) }
func (g gate) await() string  { return fmt.Sprintf("{ %s || : <'%s'; }", g.isOpen(), g.pipe()) }

// once returns a shell command that succeeds the first time that it is run.
func (g gate) once() string { return fmt.Sprintf("mkdir '%s' 2>/dev/null", g) }

func (g gate) was(t *testing.T) bool {
	t.Helper()
	_, err := os.Stat(string(g))
	return err == nil
}

// step replaces what verifies a folder of the mainline.
func (r *repository) step(folder, script string, dependencies ...string) {
	r.t.Helper()
	deps := ""
	for _, d := range dependencies {
		deps += fmt.Sprintf("%q, ", d)
	}
	if deps != "" {
		deps = fmt.Sprintf("    deps: [%s]\n", deps[:len(deps)-2])
	}
	r.write(folder+"/landfall.yaml", fmt.Sprintf("targets:\n  - name: %s\n    kind: test\n    sources: [\"*.txt\"]\n%s    steps:\n      - name: step\n        run: [sh, -c, %q]\n", folder, deps, script))
	r.commit("the step of " + folder)
	r.git("push", "-q", "origin", "main")
}

func warnings(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func clientOf(t *testing.T, s *stack.Stack) *client.Client {
	t.Helper()
	c, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newPeerStack(t *testing.T, r *repository) (*stack.Stack, *client.Client) {
	t.Helper()
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Base.Prove = configuration.ProveWhenNeeded // these tests count builds, and steps that fail once
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	return s, c
}

func expect(t *testing.T, c *client.Client, change, state string) view.Change {
	t.Helper()
	v := settled(t, c, change)
	if v.State != state {
		t.Fatalf("%s is %s, not %s: %s", change, v.State, state, v.Why)
	}
	return v
}

// retried asks for the same commits again and gives the revision that this made.
func retried(t *testing.T, c *client.Client, change string) uint64 {
	t.Helper()
	reply, err := c.Retry(t.Context(), queue, change)
	if err != nil || reply.Outcome != api.OutcomeAdmitted {
		t.Fatalf("retry %s: %+v, %v", change, reply, err)
	}
	return reply.Revision
}

// await waits until something holds that nobody tells.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

// records returns the messages of one type on a topic that readers take, in order.
func records[M proto.Message](t *testing.T, s *stack.Stack, topic string) (out []M) {
	t.Helper()
	each(t, s.Log(), topic, func(e journal.Entry, counts bool) {
		if m, is := e.Message.(M); is && counts {
			out = append(out, m)
		}
	})
	return out
}

func each(t *testing.T, log journal.Log, topic string, do func(e journal.Entry, counts bool)) {
	t.Helper()
	if err := tally.Records(t.Context(), log, topic, events.PartitionOf(queue, log.Partitions()), do); err != nil {
		t.Fatal(err)
	}
}

// put appends a record as a service would that needs no term.
func put(t *testing.T, log journal.Log, topic, service, change string, m proto.Message) {
	t.Helper()
	_, err := log.Append(context.WithoutCancel(t.Context()), topic, events.PartitionOf(queue, log.Partitions()), events.Envelope{
		ID: events.DeriveID(t.Name(), topic, change), Source: service, Instance: "peer", Queue: queue, Subject: change, Term: -1, Message: m,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// bury puts a dead letter about a change where people look.
func bury(t *testing.T, s *stack.Stack, change string) {
	t.Helper()
	put(t, s.Log(), events.TopicDeadLetters, events.ServiceBuilder, change, &eventsv1.DeadLetter{
		Topic: events.TopicDecisions, Service: events.ServiceBuilder, Queue: queue, Change: change, Reason: "tried five times",
	})
}
