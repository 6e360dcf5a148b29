package stack_test

import (
	"strings"
	"testing"

	"landfall.build/services/gateway/view"
)

// TestAChangeThatAffectsEverythingWaitsForARedMainline: the first landing is on a mainline that is red in //f0, and it is verified as
// the whole repository. Every command names what is red, a retry that fails changes nothing of that, and once //f0 is repaired the
// change goes on by itself. One that repairs //f0 itself lands.
func TestAChangeThatAffectsEverythingWaitsForARedMainline(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/a.txt", "a bug\n")
	r.commit("red before the queue")
	r.git("push", "-q", "origin", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	r.branch("targets", "run.sh", "exit 0\n")
	land(t, c, "targets", "targets")
	const sentence = "It fails in //:repository, and //f0 has been red on the mainline since before the queue; nobody is rejected for that. " +
		"Once a commit repairs it, there or in this change, it goes on by itself. If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry targets` runs it again there."
	told := func(v view.Change) bool {
		return v.Why == sentence && v.Failure != nil && v.Failure.Whose == view.WhoseMainline &&
			strings.HasPrefix(v.Failure.Sentence, "//f0 has been red on the mainline since before the queue: not your change: ")
	}
	until(t, c, "targets", told)
	failures := func(v view.Change) (n int) {
		for _, e := range v.Timeline {
			if e.Kind == "step_failed" {
				n++
			}
		}
		return n
	}
	before, err := c.Change(t.Context(), queue, "targets")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Retry(t.Context(), queue, "targets"); err != nil {
		t.Fatal(err)
	}
	until(t, c, "targets", func(v view.Change) bool { return failures(v) > failures(before) && told(v) })
	for command, want := range map[string]string{
		"queue":   "It fails in //:repository, and //f0 has been red on the mainline since before the queue",
		"status":  "targets: //f0 has been red on the mainline since before the queue: not your change: ",
		"explain": "targets: //f0 has been red on the mainline since before the queue: not your change: ",
	} {
		args := []string{"targets"}
		if command == "queue" {
			args = nil
		}
		if text := prints(t, s.URL(), command, args...); !strings.Contains(text, want) || strings.Contains(text, "being verified") || strings.Contains(text, "could not be verified") || strings.Contains(text, "//f3") {
			t.Errorf("%s reads\n%s", command, text)
		}
	}

	// The repair affects everything too.
	r.git("checkout", "-q", "-B", "repair", "main")
	r.write("f0/a.txt", "fine\n")
	r.write("run2.sh", "exit 0\n")
	r.commit("repair")
	r.git("push", "-q", "origin", "repair")
	land(t, c, "repair", "repair")
	expect(t, c, "repair", "landed")
	expect(t, c, "targets", "landed")
}

// TestWhereTheBaseIsProvenWhenNeededTheWholeRepositoryIsRed: nothing has verified the mainline's own targets, so the guard asks for
// the whole repository. A repair of one target has the whole verified again, and the change goes on by itself.
func TestWhereTheBaseIsProvenWhenNeededTheWholeRepositoryIsRed(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/a.txt", "a bug\n")
	r.commit("red before the queue")
	r.git("push", "-q", "origin", "main")
	s, c := newPeerStack(t, r)
	r.branch("targets", "run.sh", "exit 0\n")
	r.branch("guilty", "f1/b.txt", "a bug\n")
	r.branch("repair", "f0/a.txt", "fine\n")
	land(t, c, "targets", "targets")
	until(t, c, "targets", func(v view.Change) bool {
		return strings.HasPrefix(v.Why, "It fails in //:repository, which has been red on the mainline since before the queue;") && v.Failure != nil &&
			strings.HasPrefix(v.Failure.Sentence, "//:repository has been red on the mainline since before the queue: not your change: ")
	})
	land(t, c, "guilty", "guilty")
	until(t, c, "guilty", func(v view.Change) bool {
		return strings.HasPrefix(v.Why, "It fails in //f1, and //:repository has been red on the mainline since before the queue;") && v.Failure != nil &&
			strings.HasPrefix(v.Failure.Sentence, "//f1 fails; whether without your change too is not known while the mainline is red in //:repository: ")
	})
	if text := prints(t, s.URL(), "queue"); strings.Contains(text, "could not be verified") {
		t.Errorf("the queue reads\n%s", text)
	}
	land(t, c, "repair", "repair")
	expect(t, c, "repair", "landed")
	expect(t, c, "targets", "landed")
	expect(t, c, "guilty", "rejected")
}
