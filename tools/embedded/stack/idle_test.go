package stack_test

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/services/gateway/view"
)

// TestTheBaseIsProvenBeforeAnybodyFails: with nothing in the queue, its targets are verified, and what is red is named. The first
// change that fails there waits and is not blamed, another lands, and one that repairs it lands too.
func TestTheBaseIsProvenBeforeAnybodyFails(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("f0/landfall.yaml", `targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: has-no-bug, run: ["sh", "-c", "! grep -rn bug f0 --include=*.txt"]}]}]`)
	r.write("f0/a.txt", "a bug\n")
	r.commit("red before the queue")
	r.git("push", "-q", "origin", "main")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	await(t, "the red target of the mainline is named, and all others are proven", func() bool {
		q, err := c.Queues(t.Context())
		return err == nil && slices.Equal(q[0].RedBeforeQueue, []string{"//f0"}) && q[0].Unproven == 0
	})
	if text := prints(t, s.URL(), "queue"); !strings.Contains(text, "mainline RED since before the queue in //f0") {
		t.Errorf("the queue reads\n%s", text)
	}
	for _, name := range []string{"queue", "status"} {
		if text := prints(t, s.URL(), name); !strings.Contains(text, "  red       //f0, step has-no-bug: f0/a.txt:1:a bug\n") || !strings.Contains(text, "landfall logs --target '//f0'") {
			t.Errorf("landfall %s does not say why //f0 is red:\n%s", name, text)
		}
	}
	for _, args := range [][]string{{}, {"--target", "//f0"}} {
		if text := prints(t, s.URL(), "logs", args...); !strings.HasPrefix(text, "==> //f0, attempt ") || !strings.Contains(text, "f0/a.txt:1:a bug") {
			t.Errorf("landfall logs %v prints\n%s", args, text)
		}
	}

	r.branch("innocent", "f0/b.txt", "fine\n")
	r.branch("elsewhere", "f1/b.txt", "fine\n")
	r.branch("repair", "f0/a.txt", "fine\n")
	land(t, c, "innocent", "innocent")
	land(t, c, "elsewhere", "elsewhere")
	expect(t, c, "elsewhere", "landed")
	blocked := until(t, c, "innocent", func(v view.Change) bool {
		return strings.Contains(v.Why, "//f0, which has been red on the mainline since before the queue; nobody is rejected for that")
	})
	if blocked.LastRefusal != nil {
		t.Errorf("the guard had to ask: %+v", blocked.LastRefusal)
	}
	land(t, c, "repair", "repair")
	expect(t, c, "repair", "landed")
	expect(t, c, "innocent", "landed")
}
