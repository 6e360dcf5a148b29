package execution

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
)

func init() {
	// helper-refs sends descriptors that nobody receives, as many as its user may have under way.
	helpers["helper-refs"] = func([]string) {
		many := make([]int, 253)
		var err error
		for err == nil || err == unix.EAGAIN {
			var pair [2]int
			if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err != nil {
				break
			}
			for err == nil {
				err = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(many...), nil, unix.MSG_DONTWAIT)
			}
		}
		fmt.Println(err)
		if err := os.WriteFile("full", nil, 0o666); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	}
}

// TestAStepThatSendsAllDescriptorsKeepsNoOtherFromItsStart: the kernel counts by user how many descriptors are under way, and steps are
// started with some.
func TestAStepThatSendsAllDescriptorsKeepsNoOtherFromItsStart(t *testing.T) {
	network := sandbox.None
	if Available(t.Context(), sandbox.Outbound) == nil {
		network = sandbox.Outbound
	} else if err := Available(t.Context(), sandbox.None); err != nil {
		t.Skip(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max > 1<<22 {
		t.Skipf("a user may have %d files open here, %v: so many would take gigabytes", limit.Max, err)
	}
	greedy := boxed(t, Command{Name: "greedy", Argv: []string{"./helper", "helper-refs"}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Result, 1)
	go func() { ended <- Run(ctx, greedy) }()
	defer func() {
		cancel()
		<-ended
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(greedy.Worktree, "full")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the descriptors are not sent")
		}
	}
	for name, missing := range map[string]*lookups.Missing{"open": nil, "watched": {}} {
		t.Run(name, func(t *testing.T) {
			other := boxed(t, shell("exit 0"))
			other.Sandbox.Network, other.Missing = network, missing
			mustEnd(t, Run(t.Context(), other), Passed, "")
		})
	}
}
