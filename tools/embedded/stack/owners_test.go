package stack_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
)

// prints runs a command of landfall's against a gateway, and returns what it prints.
func prints(t *testing.T, server, name string, args ...string) string {
	t.Helper()
	for _, c := range client.Commands() {
		if c.Name() != name {
			continue
		}
		out := &bytes.Buffer{}
		c.SetArgs(append(args, "--server", server))
		c.SetOut(out)
		c.SetErr(out)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("landfall %s: %v\n%s", name, err, out)
		}
		return out.String()
	}
	t.Fatalf("there is no command %s", name)
	return ""
}

// TestTheOwnersOfAFlakyTargetAreNamed to whoever lists flakes, and to the author of a change that met the flake.
func TestTheOwnersOfAFlakyTargetAreNamed(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.write("CODEOWNERS", "* @everyone\n/f0/ @shop/money ada@example.com\n")
	ran := outside(t)
	r.write("f0/landfall.yaml", fmt.Sprintf(`targets: [{name: f0, kind: test, sources: ["*.txt"], steps: [{name: chance, run: [sh, -c, "test -e %[1]s || { touch %[1]s; exit 1; }"]}]}]`, ran))
	r.commit("fails once")
	r.git("push", "-q", "origin", "main")
	s, c := newPeerStack(t, r)
	for i, name := range []string{"met", "other"} {
		r.branch(name, fmt.Sprintf("f%d/b.txt", i), "b\n")
		land(t, c, name, name)
	}
	expect(t, c, "met", "landed")
	expect(t, c, "other", "landed")
	until(t, c, "met", func(v view.Change) bool { return len(v.Flaky) > 0 }) // landings are read from another topic
	flakes := prints(t, s.URL(), "flakes")
	if !strings.Contains(flakes, "//f0") || !strings.Contains(flakes, "@shop/money") || !strings.Contains(flakes, "ada@example.com") || strings.Contains(flakes, "@everyone") {
		t.Errorf("the flakes are\n%s", flakes)
	}
	const want = "flaky     //f0 passed only after it had failed, with nothing changed; owned by @shop/money, ada@example.com\n"
	if status := prints(t, s.URL(), "status", "met"); !strings.Contains(status, want) {
		t.Errorf("its author does not read %q in\n%s", want, status)
	}
	if status := prints(t, s.URL(), "status", "other"); strings.Contains(status, "flaky") {
		t.Errorf("who did not meet the flake reads\n%s", status)
	}
}

// TestTheCauseOfTargetsThatAreNotValidIsReadFirst: file and line are in the first three lines.
func TestTheCauseOfTargetsThatAreNotValidIsReadFirst(t *testing.T) {
	together(t)
	r := newRepository(t)
	s, c := newPeerStack(t, r)
	r.branch("invalid", "f1/landfall.yaml", "targets:\n  - name: f1\n    stepz: []\n")
	land(t, c, "invalid", "invalid")
	expect(t, c, "invalid", "rejected")
	for _, command := range []string{"status", "explain"} {
		text := prints(t, s.URL(), command, "invalid")
		head := strings.Join(strings.SplitN(text, "\n", 4)[:3], "\n")
		if !strings.Contains(head, "f1/landfall.yaml:3: ") || !strings.Contains(head, "stepz") {
			t.Errorf("landfall %s begins with\n%s", command, text)
		}
	}
}
