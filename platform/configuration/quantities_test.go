package configuration

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"landfall.build/events/seedtest"
)

func TestSizesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]Size{"0B": 0, "1B": 1, "1023B": 1023, "1KiB": 1024, "64MiB": 64 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "1536KiB": 1536 << 10} {
		if got, err := parseSize(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s is %d, written %s, %v", text, got, got, err)
		}
	}
	for _, text := range []string{"", "1", "MiB", "1.5MiB", "-1B", "1 MiB", "1MB", "1mib", "99999999999999999999B", "9007199254740992KiB", "8388608TiB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
	random := seedtest.Random(t)
	for range 10_000 {
		size := Size(random.Int64N(1<<50) >> random.IntN(50))
		if got, err := parseSize(size.String()); err != nil || got != size {
			t.Fatalf("%d is written %s and read as %d, %v", size, size, got, err)
		}
	}
}

func TestDurationsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "30m": 30 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "20ms": 20 * time.Millisecond, "1h0m5s": time.Hour + 5*time.Second, "10m10s": 610 * time.Second} {
		if got, err := ParseDuration(text); err != nil || got != want || formatDuration(got) != text {
			t.Errorf("%s is %d, written %s, %v", text, got, formatDuration(got), err)
		}
	}
	for _, text := range []string{"", "0", "90", "-1s", "+1s", "1d", "1us", "1ns", ".5s", "1.s", "1 s", "1s ", "9999999999h"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	random := seedtest.Random(t)
	for range 10_000 {
		duration := time.Duration(random.Int64N(1<<40)>>random.IntN(40)) * time.Millisecond
		if got, err := ParseDuration(formatDuration(duration)); err != nil || got != duration {
			t.Fatalf("%v is written %s and read as %v, %v", duration, formatDuration(duration), got, err)
		}
	}
}

// The dumb twin follows the definition by recursion.
func TestEditDistanceEqualsItsDefinition(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		last := func(s string) byte { return s[len(s)-1] }
		cost := 1
		if last(a) == last(b) {
			cost = 0
		}
		best := min(slow(a[:len(a)-1], b)+1, slow(a, b[:len(b)-1])+1, slow(a[:len(a)-1], b[:len(b)-1])+cost)
		if len(a) > 1 && len(b) > 1 && last(a) == b[len(b)-2] && a[len(a)-2] == last(b) {
			best = min(best, slow(a[:len(a)-2], b[:len(b)-2])+1)
		}
		return best
	}
	random := seedtest.Random(t)
	for range 500 {
		a, b := randomText(random, "abc", 5), randomText(random, "abc", 5)
		if got, want := editDistance(a, b), slow(a, b); got != want {
			t.Fatalf("distance of %q and %q is %d, want %d", a, b, got, want)
		}
	}
}

func TestSuggestionsAreCloseOrNone(t *testing.T) {
	names := []string{"branch", "strategy", "workers", "bypass_threshold", "poll"}
	for wrong, want := range map[string]string{
		"brnach": "branch", "Workers": "workers", "bypass-threshold": "bypass_threshold", "bypassThreshold": "bypass_threshold",
		"worker": "workers", "pol": "poll", "colour": "", "": "", strings.Repeat("branch", 100): "",
	} {
		if got := Closest(wrong, names); got != want {
			t.Errorf("for %q %q is suggested, want %q", wrong, got, want)
		}
	}
}

// git itself is the twin. Names that git expands or that mean an option are ours to refuse.
func TestBranchNamesAreThoseOfGit(t *testing.T) {
	check := func(branch string) {
		t.Helper()
		err := exec.Command("git", "check-ref-format", "refs/heads/"+branch).Run()
		if err != nil {
			if _, ran := err.(*exec.ExitError); !ran {
				t.Fatal(err)
			}
		}
		if ours := branchDefect(branch); (ours == "") != (err == nil) {
			t.Errorf("%q: ours %q, git %v", branch, ours, err)
		}
	}
	for _, branch := range []string{"main", "release/1.0", "a.lock", "a.lock/b", "a..b", ".a", "a/.b", "a/", "/a", "a//b", "a b", "a~", "a^", "a:b", "a?", "a*", "a[", "a]", "a\\b", "a@{b", "a@b", "a.", "é", "a.lockx"} {
		check(branch)
	}
	random := seedtest.Random(t)
	for range 150 {
		if branch := randomText(random, "ab./@{-lock~", 7); branch != "" && branch[0] != '-' && branch != "@" {
			check(branch)
		}
	}
	for _, branch := range []string{"HEAD", "@", "-x"} {
		if branchDefect(branch) == "" {
			t.Errorf("%s is taken", branch)
		}
	}
}

func randomText(random *rand.Rand, letters string, longest int) string {
	text := make([]byte, random.IntN(longest+1))
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
