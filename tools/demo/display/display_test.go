package display

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/plainmerge"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/demo/tally"
)

func update(name, state string, position int, events ...view.Event) client.Seen {
	return client.Seen{Change: &view.Update{
		Summary: view.Summary{Change: name, Author: "Ada", State: state, Position: position, Why: "because"}, Events: events,
	}}
}

func TestWithoutATerminalThereIsALineForEachEventThatMatters(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&out)
	l.Phase("beginning")
	l.Seen(update("one", view.StateWaiting, 1, view.Event{Kind: "admitted", Text: "Admitted."}))
	l.Seen(update("one", view.StateLanded, 0, view.Event{Kind: view.StateLanded, Text: "Landed as \x1b[31mabc."}))
	l.Note("somebody pushes")
	l.End()
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		got = append(got, strings.Join(strings.Fields(line)[1:], " "))
	}
	if want := []string{"beginning", "one Landed as [31mabc.", "somebody pushes"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestTheTableFitsTheTerminalAndKeepsQueueOrder(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&out)
	l.size = func() (int, int) { return 60, 14 }
	l.Expect(30)
	for i := range 25 {
		l.Seen(update(fmt.Sprintf("change-%d", 25-i), view.StateTesting, 25-i))
	}
	l.Seen(update("gone", view.StateLanded, 0, view.Event{Kind: view.StateLanded, Text: strings.Repeat("long ", 50)}))
	l.draw()
	text := strings.ReplaceAll(strings.ReplaceAll(out.String(), "\r\x1b[K", ""), "\x1b[J", "")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 13 || l.drawn != len(lines) {
		t.Errorf("%d lines of a terminal of 14, %d by its own count", len(lines), l.drawn)
	}
	for _, line := range lines {
		if n := len([]rune(line)); n > 59 {
			t.Errorf("%d columns of 60: %q", n, line)
		}
	}
	if !strings.Contains(lines[0], "1 of 30 decided") || !strings.Contains(lines[1], "change-1 ") || !strings.Contains(lines[2], "change-2 ") {
		t.Errorf("%q", lines[:3])
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "more") }) {
		t.Errorf("nobody says that there are more: %q", lines)
	}
	out.Reset()
	l.draw()
	if !strings.HasPrefix(out.String(), fmt.Sprintf("\x1b[%dA", len(lines))) {
		t.Errorf("it is not drawn in place: %q", out.String()[:20])
	}
}

func TestTheStoryGivesReasonsGroupByGroup(t *testing.T) {
	at := time.Unix(1000, 0)
	change := func(name, group string) *sample.Change {
		return &sample.Change{Name: name, Group: group, Commits: []sample.Commit{{Title: name}}}
	}
	summary := view.Summary{AdmittedAt: at, FinishedAt: at.Add(2500 * time.Millisecond)}
	failed := summary
	failed.Failure = &view.Fault{Sentence: "your change breaks //lib: lib/x.go:3: undefined: y"}
	proof := []view.Step{{State: view.StepPassed}, {State: view.StepTrivial}}
	ends := []expectation.End{
		{Change: change("good", "First"), Got: sample.Landed, AsExpected: true,
			View: view.Change{Summary: summary, Landing: &view.Landing{Proof: proof, Commits: []string{"a", "b"}, Bypassed: []string{"slow"}}}},
		{Change: change("bad", "Second"), Got: sample.StepFailed, AsExpected: true,
			View: view.Change{Summary: failed, Rejection: &view.Rejection{Class: "step_failed", Failed: []view.Step{{Target: "//lib"}}}}},
		{Change: change("worse", "Second"), Got: sample.NoMerge,
			View: view.Change{Summary: summary, Rejection: &view.Rejection{Class: "merge_conflict", Conflicting: "good", Message: "x was changed"}}},
	}
	var out bytes.Buffer
	Story(&out, ends)
	want := `
First
  ok good                           landed      2.5s  1 step proves it, as 2 commits, past slow

Second
  ok bad                            rejected    2.5s  your change breaks //lib: lib/x.go:3: undefined: y
  !! worse                          rejected    2.5s  merge_conflict with good: x was changed
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestCostsAndDamageAreTold(t *testing.T) {
	var out bytes.Buffer
	Costs(&out, tally.Tally{Builds: 3, BuildsAborted: 1, StepsRun: 9, StepsReused: 4}, time.Second, 3*time.Second)
	r := &sample.Repository{Changes: []sample.Change{{Name: "bad", Commits: []sample.Commit{{Title: "Do harm"}}}}}
	chain := &plainmerge.Chain{Refused: []string{"late"}}
	Damage(&out, &plainmerge.Damage{Breaking: []plainmerge.Breaking{{Name: "bad", Targets: []string{"//lib"}}}, RedHeads: 2, Heads: 5}, chain, r)
	for _, want := range []string{"3 builds (1 given up), 9 steps run", "4 times", "half within 1.0s, 95 % within 3.0s", "broken the mainline 1 times",
		"red after 2 of 5 merges", "bad (Do harm) broke //lib", "1 could not be merged at all: late"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
