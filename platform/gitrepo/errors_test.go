package gitrepo

import (
	"fmt"
	"os"
	"testing"
)

// TestAFullDiskOfOursIsToldFromTheRemotes.
func TestAFullDiskOfOursIsToldFromTheRemotes(t *testing.T) {
	said := func(text string) error {
		return fmt.Errorf("fetch: %w: %w", ErrUnreachable, &CommandError{Args: []string{"fetch"}, Code: 128, Stderr: text})
	}
	for _, c := range []struct {
		err  error
		full bool
	}{
		{said("fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output\n"), true},
		{said("error: file write error: Disk quota exceeded"), true},
		{said("remote: fatal: write error: No space left on device\nfatal: early EOF"), false},
		{said("fatal: remote error: No space left on device"), false},
		{said("fatal: Could not read from remote repository."), false},
		{fmt.Errorf("no such thing"), false},
		{nil, false},
	} {
		if DiskFull(c.err) != c.full {
			t.Errorf("%v: %v", c.err, !c.full)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if err := os.WriteFile("/dev/full", []byte("x"), 0); !DiskFull(fmt.Errorf("keep: %w", err)) {
			t.Errorf("%v is not seen as a full disk", err)
		}
	}
}
