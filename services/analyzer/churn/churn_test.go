package churn

import (
	"fmt"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

func TestLinesCountsWhatADiffShows(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		added, deleted int
	}{
		{"nothing", "", "", 0, 0},
		{"equal", "a\nb\n", "a\nb\n", 0, 0},
		{"new file", "", "a\nb\n", 2, 0},
		{"deleted file", "a\nb\n", "", 0, 2},
		{"one line changed", "a\nb\nc\n", "a\nx\nc\n", 1, 1},
		{"moved line", "a\nb\nc\nd\n", "b\nc\nd\na\n", 1, 1},
		{"last newline missing", "a\nb", "a\nb\n", 1, 1},
		{"binary", "a\nb\n", "a\x00\nb\n", 0, 0},
	} {
		if added, deleted := Lines([]byte(c.old), []byte(c.new)); added != c.added || deleted != c.deleted {
			t.Errorf("%s: +%d -%d, want +%d -%d", c.name, added, deleted, c.added, c.deleted)
		}
	}
}

// longestCommon returns the length of the longest common subsequence, by the table.
func longestCommon(a, b []string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestLinesEqualsTheTableOnRandomTexts(t *testing.T) {
	random := seedtest.Random(t)
	for range 2000 {
		text := func() []string {
			lines := make([]string, random.IntN(14))
			for i := range lines {
				lines[i] = fmt.Sprintf("%d\n", random.IntN(5))
			}
			return lines
		}
		a, b := text(), text()
		common := longestCommon(a, b)
		added, deleted := Lines([]byte(strings.Join(a, "")), []byte(strings.Join(b, "")))
		if added != len(b)-common || deleted != len(a)-common {
			t.Fatalf("%q → %q: +%d -%d, want +%d -%d", a, b, added, deleted, len(b)-common, len(a)-common)
		}
	}
}

func TestLinesOfFilesThatDifferEverywhereAreCountedWithoutOrder(t *testing.T) {
	var old, new strings.Builder
	for i := range 3 * maxEdits {
		fmt.Fprintf(&old, "old %d\n", i)
		fmt.Fprintf(&new, "new %d\nsame\n", i)
	}
	if added, deleted := Lines([]byte(old.String()), []byte(new.String())); added != 6*maxEdits || deleted != 3*maxEdits {
		t.Errorf("+%d -%d, want +%d -%d", added, deleted, 6*maxEdits, 3*maxEdits)
	}
}
