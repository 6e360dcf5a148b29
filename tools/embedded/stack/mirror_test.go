package stack_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestALanderWithoutTheMirrorOfTheOneBeforeItPushesTheOpenIntention: a lander dies between LandIntended and the
// push, and the next one runs elsewhere, or its mirrors were deleted, as the operator's guide says they may be.
func TestALanderWithoutTheMirrorOfTheOneBeforeItPushesTheOpenIntention(t *testing.T) {
	together(t)
	r, pushes, first := newRepository(t), newGate(t), newGate(t)
	r.branch("change", "f0/b.txt", "b\n")
	// The first push reaches the remote, is never answered, and has no effect.
	r.hook("pre-receive", "#!/bin/sh\nif grep -q refs/heads/main; then if "+first.once()+"; then "+pushes.await()+"; exit 1; fi; fi; exit 0\n")
	data := t.TempDir()
	config := configured(t, r, data)
	s, c := start(t, config)
	await(t, "the gateway is ready", func() bool { _, err := c.Changes(t.Context(), queue, 1); return err == nil })
	land(t, c, "change", "change")
	await(t, "the push is under way", func() bool { return first.was(t) })
	s.Close()
	if err := os.RemoveAll(filepath.Join(data, "mirrors")); err != nil {
		t.Fatal(err)
	}
	s, c = start(t, config)
	defer s.Close()
	t.Cleanup(func() { pushes.open(t) })
	expect(t, c, "change", "landed")
}
