// Package releasetest gives tests the last release.
package releasetest

import (
	"errors"
	"testing"

	"landfall.build/tools/release"
)

// Last returns the last release. A test is skipped, with the reason, where the clone's history does not reach back to it; where all of the
// history is, it has to be there.
func Last(t *testing.T, clone string) release.Release {
	t.Helper()
	last, err := release.Last(t.Context(), clone)
	if errors.Is(err, release.ErrNoHistory) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return last
}
