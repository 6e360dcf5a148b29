package stack_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
)

// onMain returns a hook that runs a script for a push to the mainline, with $old and $new.
func onMain(script string) string {
	return "#!/bin/sh\nwhile read old new ref; do\n\t[ $ref = refs/heads/main ] || continue\n\t" + script + "\ndone\n"
}

// printed returns what a command of the program prints.
func printed(t *testing.T, s *stack.Stack, args ...string) string {
	t.Helper()
	root := &cobra.Command{Use: "landfall", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(client.Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(args, "--server", s.URL()))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("landfall %s: %v", args, err)
	}
	return out.String()
}

// utc is a time in a sentence, timeline a line of what happened.
var (
	utc      = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`)
	timeline = regexp.MustCompile(`(?m)^  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  .*\n`)
)

// tells checks that every place that shows a change has the remote's sentence, first and once, with a time since began, and no
// place promises a moment.
func tells(t *testing.T, s *stack.Stack, c *client.Client, change, sentence string, began time.Time) {
	t.Helper()
	e, err := c.Explain(t.Context(), queue, change, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Reasons) == 0 || !strings.HasPrefix(e.Reasons[0].Sentence, "“"+sentence) {
		t.Errorf("the first reason is not the remote's: %+v", e.Reasons)
	}
	if e.ETA != nil && e.ETA.Unknown == "" {
		t.Errorf("there is an estimate: %+v", e.ETA)
	}
	for _, args := range [][]string{{"queue"}, {"status", change}, {"explain", change}} {
		out := printed(t, s, args...)
		now := timeline.ReplaceAllString(out, "")
		said := strings.Count(now, sentence)
		if args[0] == "queue" { // it may be in the queue's line too, and is in the line of each change
			said = 0
			for line := range strings.Lines(now) {
				said = max(said, strings.Count(line, sentence))
			}
		}
		when := utc.FindString(now)
		at, err := time.Parse("2006-01-02 15:04:05 UTC", when)
		if err != nil || at.Before(began.Truncate(time.Second)) || at.After(time.Now()) {
			t.Errorf("landfall %s has the time %q, not one since %s", args[0], when, began)
		}
		if said != 1 || strings.Contains(out, "any moment") {
			t.Errorf("landfall %s has the sentence %d times: %s", args[0], said, out)
		}
	}
}

func overview(t *testing.T, c *client.Client) view.Overview {
	t.Helper()
	queues, err := c.Queues(t.Context())
	if err != nil || len(queues) != 1 {
		t.Fatalf("queues: %+v, %v", queues, err)
	}
	return queues[0]
}

func refusedOnce(v view.Change) bool {
	return slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return e.Kind == "land_void" })
}

// TestAHookThatRefusesOneAuthorEjectsThatChangeAlone, and pauses nothing.
func TestAHookThatRefusesOneAuthorEjectsThatChangeAlone(t *testing.T) {
	together(t)
	r := newRepository(t)
	const sentence = "commits by mallory are not accepted"
	r.hook("pre-receive", onMain("if git log --format=%ae $old..$new | grep -q mallory; then echo '"+sentence+"' >&2; exit 1; fi"))
	r.git("checkout", "-q", "-B", "theirs", "main")
	r.write("f0/theirs.txt", "x\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "theirs", "--author", "M <mallory@example.com>")
	r.git("push", "-q", "origin", "theirs")
	r.git("checkout", "-q", "main")
	r.branch("other", "f1/other.txt", "x\n")
	s, c := newPeerStack(t, r)
	began := time.Now()
	land(t, c, "theirs", "theirs")
	until(t, c, "theirs", refusedOnce)
	tells(t, s, c, "theirs", sentence, began)
	if p := overview(t, c).PausedByRemote; p != nil {
		t.Errorf("landings are paused: %+v", p)
	}
	land(t, c, "other", "other")
	expect(t, c, "other", "landed")
	if v := expect(t, c, "theirs", "ejected"); !strings.Contains(v.Why, sentence) || strings.Count(v.Why, sentence) != 1 {
		t.Errorf("ejected: %s", v.Why)
	}
}

// TestAHookThatRefusesEverybodyPausesTheQueue, for as long as it does, and ejects no change. The update hook prints a megabyte.
func TestAHookThatRefusesEverybodyPausesTheQueue(t *testing.T) {
	together(t)
	for name, script := range map[string]string{"update": "", "update that prints a megabyte": "yes 'and so on' | head -c 1000000 >&2; "} {
		t.Run(name, func(t *testing.T) {
			together(t)
			r, thawed := newRepository(t), newGate(t)
			const sentence = "You are not allowed to push to main."
			r.hook("update", "#!/bin/sh\n[ \"$1\" != refs/heads/main ] || "+thawed.isOpen()+" || { echo '"+sentence+"' >&2; "+script+"exit 1; }\n")
			s, c := newPeerStack(t, r)
			began := time.Now()
			for i := range 2 {
				change := fmt.Sprint("c", i)
				r.branch(change, fmt.Sprintf("f%d/%s.txt", i, change), "x\n")
				land(t, c, change, change)
				until(t, c, change, func(v view.Change) bool { return v.State == view.StatePassed })
			}
			await(t, "landings are paused", func() bool { return overview(t, c).PausedByRemote != nil })
			p := overview(t, c).PausedByRemote
			if !strings.HasPrefix(p.Message, sentence) || strings.Count(p.Sentence, sentence) != 1 || len(p.Message) > 300 || p.Since.Before(began.Truncate(time.Second)) || p.Since.After(time.Now()) {
				t.Errorf("paused: %+v", p)
			}
			if out := printed(t, s, "status"); strings.Count(out, sentence) != 1 || !strings.Contains(out, "PAUSED by the remote: “"+sentence) {
				t.Errorf("landfall status: %s", out)
			}
			for i := range 2 {
				tells(t, s, c, fmt.Sprint("c", i), sentence, began)
			}
			thawed.open(t)
			steer(t, s, "", "resume")
			for i := range 2 {
				expect(t, c, fmt.Sprint("c", i), "landed")
			}
			await(t, "landings go on", func() bool { return overview(t, c).PausedByRemote == nil })
		})
	}
}

// TestAFrozenFolderStopsNobodyElse, though its hook's words are those of a freeze: what is ready is tried at once, and the third
// change that lands past the refused one ejects it.
func TestAFrozenFolderStopsNobodyElse(t *testing.T) {
	together(t)
	r := newRepository(t)
	const sentence = "f0 is frozen until Monday"
	r.hook("pre-receive", onMain("if git diff --name-only $old $new | grep -q ^f0/; then echo '"+sentence+"' >&2; exit 1; fi"))
	s, c := newPeerStack(t, r)
	r.branch("frozen", "f0/frozen.txt", "x\n")
	began := time.Now()
	land(t, c, "frozen", "frozen")
	until(t, c, "frozen", refusedOnce)
	tells(t, s, c, "frozen", sentence, began)
	for others := 0; ; others++ {
		if e, err := c.Explain(t.Context(), queue, "frozen", false); err != nil {
			t.Fatal(err)
		} else if e.State == "ejected" {
			break
		}
		if others == 200 { // it is tried after 1, 2, 4 ... seconds
			t.Fatal("it is still there")
		}
		name := fmt.Sprint("other", others)
		r.branch(name, "f1/"+name+".txt", "x\n")
		land(t, c, name, name)
		expect(t, c, name, "landed")
	}
	if v := expect(t, c, "frozen", "ejected"); !strings.Contains(v.Why, sentence) || strings.Count(v.Why, sentence) != 1 {
		t.Errorf("ejected: %s", v.Why)
	}
	await(t, "landings go on", func() bool { return overview(t, c).PausedByRemote == nil && overview(t, c).Unreachable == nil })
}

// TestAHookThatRefusesForSomeSecondsEjectsNobody: its words are of no kind that is known.
func TestAHookThatRefusesForSomeSecondsEjectsNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	tries := newGate(t)
	const sentence = "come back later"
	r.hook("pre-receive", onMain(fmt.Sprintf("echo >>'%[1]s'; [ $(wc -l <'%[1]s') -gt 5 ] || { echo '%[2]s' >&2; exit 1; }", tries, sentence)))
	s, c := newPeerStack(t, r)
	began := time.Now()
	for i := range 2 {
		change := fmt.Sprint("c", i)
		r.branch(change, fmt.Sprintf("f0/%s.txt", change), "x\n")
		land(t, c, change, change)
	}
	until(t, c, "c0", refusedOnce)
	tells(t, s, c, "c0", sentence, began)
	for i := range 2 {
		expect(t, c, fmt.Sprint("c", i), "landed")
	}
	await(t, "landings go on", func() bool { return overview(t, c).PausedByRemote == nil })
}
