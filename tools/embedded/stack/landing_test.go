package stack_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
)

const queue = "main"

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

func land(t *testing.T, c *client.Client, change string, refs ...string) {
	t.Helper()
	body := api.LandBody{Change: change}
	for _, r := range refs {
		body.Entries = append(body.Entries, api.LandEntry{Ref: r})
	}
	reply, err := clienttest.Land(t.Context(), c, queue, body)
	if err != nil {
		t.Fatalf("land %s: %v", change, err)
	}
	if reply.Outcome != api.OutcomeAdmitted {
		t.Fatalf("land %s: %+v", change, reply)
	}
}

// settled waits until a change has left the queue.
func settled(t *testing.T, c *client.Client, change string) view.Change {
	t.Helper()
	return until(t, c, change, func(v view.Change) bool {
		return slices.Contains([]string{"landed", "rejected", "ejected", "cancelled"}, v.State)
	})
}

func until(t *testing.T, c *client.Client, change string, ok func(view.Change) bool) view.Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		v, err := c.Change(ctx, queue, change)
		if err == nil && ok(v) {
			return v
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is %s: %s (%v); %+v", change, v.State, v.Why, err, v.Timeline)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestChangesLandOrAreRejectedOnARealMainline is the main job, small: independent changes, two that pass
// alone and break together, a textual conflict, a failing one, a stack, a requirement.
func TestChangesLandOrAreRejectedOnARealMainline(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.branch("one", "f0/b.txt", "b\n")
	r.branch("other", "f1/b.txt", "b\n")
	r.branch("failing", "f2/b.txt", "a bug\n")
	r.branch("text-a", "f3/a.txt", "changed so\n")
	r.branch("text-b", "f3/a.txt", "changed otherwise\n")
	r.branch("stack-1", "f0/s.txt", "1\n")
	r.git("checkout", "-q", "-b", "stack-2", "stack-1")
	r.write("f1/s.txt", "2\n")
	r.commit("stack-2")
	r.git("push", "-q", "origin", "stack-2")
	r.git("checkout", "-q", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	for _, name := range []string{"one", "other", "failing", "text-a", "text-b"} {
		land(t, c, name, name)
	}
	land(t, c, "stack", "stack-1", "stack-2")
	want := map[string]string{"one": "landed", "other": "landed", "failing": "rejected", "text-a": "landed", "text-b": "rejected", "stack": "landed"}
	for name, state := range want {
		if v := settled(t, c, name); v.State != state {
			t.Errorf("%s is %s, want %s: %s", name, v.State, state, v.Why)
		}
	}
	if v := settled(t, c, "failing"); v.Rejection == nil || v.Rejection.Class != "step_failed" || len(v.Rejection.Failed) == 0 || v.Rejection.Failed[0].Target != "//f2" {
		t.Errorf("the rejection names %+v", v.Rejection)
	}
	if v := settled(t, c, "text-b"); v.Rejection == nil || v.Rejection.Class != "merge_conflict" || v.Rejection.Conflicting != "text-a" {
		t.Errorf("the textual conflict is %+v", v.Rejection)
	}
	log := r.mainline()
	if i := slices.Index(log, "stack-1"); i < 0 || i+1 >= len(log) || log[i+1] != "stack-2" {
		t.Errorf("the stack is not one ordered unit: %v", log)
	}
	if len(log) != 1+5 {
		t.Errorf("the mainline is %v", log)
	}
}

// TestAChangeBuiltOnOneThatItRequiresLandsAfterTheSquashOfThatOne has branches of one line of commits that all edit one line, of
// which some are asked for while what they stand on is pending, and one when that has landed.
func TestAChangeBuiltOnOneThatItRequiresLandsAfterTheSquashOfThatOne(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.git("checkout", "-q", "-b", "work")
	for _, name := range []string{"a-draft", "a", "b", "c", "late"} {
		r.write("f3/a.txt", "as "+name+" has it\n")
		r.commit(name)
		r.git("push", "-q", "origin", "HEAD:refs/heads/"+name)
	}
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	requiring := func(change, required string) {
		reply, err := clienttest.Land(t.Context(), c, queue, api.LandBody{Change: change, Entries: []api.LandEntry{{Ref: change}}, Requires: []string{required}})
		if err != nil || reply.Outcome != api.OutcomeAdmitted {
			t.Fatal(reply, err)
		}
	}
	land(t, c, "a", "a")
	requiring("b", "a")
	requiring("c", "b")
	for _, name := range []string{"a", "b", "c"} {
		if v := settled(t, c, name); v.State != "landed" {
			t.Fatalf("%s is %s: %s", name, v.State, v.Why)
		}
	}
	requiring("late", "c")
	if v := settled(t, c, "late"); v.State != "landed" {
		t.Fatalf("late is %s: %s", v.State, v.Why)
	}
	if log := r.mainline(); len(log) != 5 || log[4] != "late" {
		t.Errorf("the mainline is %v", log)
	}
	if text := r.run(r.bare, "git", "show", "main:f3/a.txt"); text != "as late has it" {
		t.Errorf("f3/a.txt holds %q", text)
	}
}

// TestARestartLandsNothingTwiceAndLosesNothing stops everything while changes are pending, and starts it
// again on the same data directory.
func TestARestartLandsNothingTwiceAndLosesNothing(t *testing.T) {
	together(t)
	r := newRepository(t)
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		r.branch(name, fmt.Sprintf("f%d/c%d.txt", i%folders, i), "x\n")
		land(t, c, name, name)
		if i == 3 {
			s.Close()
			s, c = start(t, config)
		}
	}
	for i := range 6 {
		if v := settled(t, c, fmt.Sprintf("c%d", i)); v.State != "landed" {
			t.Errorf("c%d is %s: %s", i, v.State, v.Why)
		}
	}
	s.Close()
	s, c = start(t, config)
	defer s.Close()
	for i := range 6 {
		if v := settled(t, c, fmt.Sprintf("c%d", i)); v.State != "landed" {
			t.Errorf("after another restart, c%d is %s", i, v.State)
		}
	}
	log := r.mainline()
	slices.Sort(log)
	if want := []string{"c0", "c1", "c2", "c3", "c4", "c5", "first"}; !slices.Equal(log, want) {
		t.Errorf("the mainline holds %v, want each once: %v", log, want)
	}
}

// TestARedDirectPushIsNobodysFaultButItsOwn: M23a. Who is affected waits, who repairs it lands.
func TestARedDirectPushIsNobodysFaultButItsOwn(t *testing.T) {
	together(t)
	r := newRepository(t)
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	r.branch("before", "f1/x.txt", "x\n")
	land(t, c, "before", "before")
	settled(t, c, "before")
	r.git("fetch", "-q")
	r.git("reset", "-q", "--hard", "origin/main")
	r.write("f0/pushed.txt", "a bug\n")
	r.commit("pushed past the queue")
	r.git("push", "-q", "origin", "main")
	r.branch("affected", "f0/y.txt", "y\n")
	// One that waits ahead of the repair, and does not merge with it, must not hold it up.
	r.branch("in-the-way", "f0/pushed.txt", "a bug, still\n")
	r.branch("elsewhere", "f2/y.txt", "y\n")
	r.git("checkout", "-q", "-B", "repair", "main")
	r.write("f0/pushed.txt", "mended\n")
	r.commit("repair")
	r.git("push", "-q", "origin", "repair")
	land(t, c, "affected", "affected")
	land(t, c, "in-the-way", "in-the-way")
	land(t, c, "elsewhere", "elsewhere")
	if v := settled(t, c, "elsewhere"); v.State != "landed" {
		t.Errorf("elsewhere is %s: %s", v.State, v.Why)
	}
	until(t, c, "affected", func(v view.Change) bool { return strings.Contains(v.Why, "//f0") })
	if v, err := c.Change(t.Context(), queue, "affected"); err != nil || v.State == "rejected" {
		t.Fatalf("affected is %s: %s (%v)", v.State, v.Why, err)
	}
	until(t, c, "in-the-way", func(v view.Change) bool { return strings.Contains(v.Why, "//f0") })
	until(t, c, "affected", func(v view.Change) bool { return strings.Contains(v.Why, "broke") })
	land(t, c, "repair", "repair")
	if v := settled(t, c, "repair"); v.State != "landed" {
		t.Errorf("repair is %s: %s", v.State, v.Why)
	}
	if v := settled(t, c, "affected"); v.State != "landed" {
		t.Errorf("affected is %s: %s", v.State, v.Why)
	}
}

// TestNobodyIsRejectedForWhatTheMainlineHadBeforeTheQueue: the first head is red in //f0. A change that is red there too waits,
// with that sentence. One that breaks //f2, which was green, is rejected, though nothing had proven //f2 before.
func TestNobodyIsRejectedForWhatTheMainlineHadBeforeTheQueue(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/old.txt", "a bug\n")
	r.commit("before the queue")
	r.git("push", "-q", "origin", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	r.branch("innocent", "f0/y.txt", "y\n")
	r.branch("guilty", "f2/y.txt", "a bug\n")
	r.git("checkout", "-q", "-B", "repair", "main")
	r.write("f0/old.txt", "mended\n")
	r.commit("repair")
	r.git("push", "-q", "origin", "repair")
	land(t, c, "innocent", "innocent")
	land(t, c, "guilty", "guilty")
	if v := settled(t, c, "guilty"); v.State != "rejected" || !strings.Contains(v.Why, "//f2") {
		t.Errorf("guilty is %s: %s", v.State, v.Why)
	}
	until(t, c, "innocent", func(v view.Change) bool {
		if v.State == "rejected" {
			t.Fatalf("innocent is rejected: %s", v.Why)
		}
		return strings.Contains(v.Why, "//f0, which has been red on the mainline since before the queue")
	})
	if q, err := c.Queues(t.Context()); err != nil || !slices.Equal(q[0].MainlineRed, []string{"//f0"}) || !slices.Equal(q[0].RedBeforeQueue, q[0].MainlineRed) {
		t.Errorf("the mainline is not red in //f0 alone: %+v (%v)", q, err)
	}
	land(t, c, "repair", "repair")
	for _, id := range []string{"repair", "innocent"} {
		if v := settled(t, c, id); v.State != "landed" {
			t.Errorf("%s is %s: %s", id, v.State, v.Why)
		}
	}
}

// TestARetryProvesTheMainlineAgain: //f0 fails by chance on the mainline, and a change is blocked for it. It stays blocked if a
// retry fails too; once a retry passes, it lands.
func TestARetryProvesTheMainlineAgain(t *testing.T) {
	together(t)
	r := newRepository(t)
	weather := outside(t)
	if err := os.WriteFile(weather, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("f0/landfall.yaml", fmt.Sprintf(`targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: sun, run: ["test", "!", "-e", %q]}]}]`, weather))
	r.commit("depends on the weather")
	r.git("push", "-q", "origin", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	r.branch("innocent", "f0/y.txt", "y\n")
	land(t, c, "innocent", "innocent")
	blocked := func(v view.Change) bool {
		if v.State == "rejected" {
			t.Fatalf("innocent is rejected: %s", v.Why)
		}
		return strings.Contains(v.Why, "//f0, which has been red on the mainline since before the queue") && strings.Contains(v.Why, "landfall retry innocent")
	}
	until(t, c, "innocent", blocked)
	retried := 0
	retry := func() {
		t.Helper()
		retried++
		if reply, err := c.Retry(t.Context(), queue, "innocent"); err != nil || reply.Outcome != api.OutcomeRetried || reply.Revision != 1 {
			t.Fatalf("the retry: %+v, %v", reply, err)
		}
	}
	failures := func(v view.Change) (n int) {
		for _, e := range v.Timeline {
			if e.Kind == "step_failed" {
				n++
			}
		}
		return n
	}
	before, err := c.Change(t.Context(), queue, "innocent")
	if err != nil {
		t.Fatal(err)
	}
	retry()
	until(t, c, "innocent", func(v view.Change) bool { return failures(v) > failures(before) && blocked(v) })
	if err := os.Remove(weather); err != nil {
		t.Fatal(err)
	}
	retry()
	if v := settled(t, c, "innocent"); v.State != "landed" {
		t.Errorf("innocent is %s: %s", v.State, v.Why)
	}
	if _, err := c.Retry(t.Context(), queue, "innocent"); err == nil {
		t.Error("what has landed can be retried")
	}
}

// TestAChangeThatTheRemoteRefusesHoldsUpNobody: a hook of the remote will not have it. What meets it lands past it, and
// then the change is ejected with the remote's words.
func TestAChangeThatTheRemoteRefusesHoldsUpNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.branch("secret", "f0/secret.txt", "x\n")
	r.branch("same-target", "f0/y.txt", "y\n")
	r.branch("elsewhere", "f1/y.txt", "y\n")
	hook := "#!/bin/sh\nwhile read old new ref; do\n\tif git diff --name-only $old $new | grep -q secret; then echo 'no secrets here' >&2; exit 1; fi\ndone\n"
	r.hook("pre-receive", hook)
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	lands := func(name string) {
		t.Helper()
		land(t, c, name, name)
		if v := settled(t, c, name); v.State != "landed" {
			t.Errorf("%s is %s: %s", name, v.State, v.Why)
		}
	}
	// That it landed before says nothing of whether the remote takes anything now. So the other one comes once the first is
	// refused: it might pass it by before, and then nothing would land any more.
	lands("elsewhere")
	land(t, c, "secret", "secret")
	until(t, c, "secret", func(v view.Change) bool {
		return slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return e.Kind == "land_void" })
	})
	lands("same-target")
	if v := settled(t, c, "secret"); v.State != "ejected" || !strings.Contains(v.Why, "no secrets here") {
		t.Errorf("secret is %s: %s", v.State, v.Why)
	}
}
