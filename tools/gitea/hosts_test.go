package gitea_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAPullRequestIsLandedByItsLabel: it is rejected with the reason, mended, landed by a comment, and closed as merged.
func TestAPullRequestIsLandedByItsLabel(t *testing.T) {
	w := newWorld(t, options{})
	head := w.branch("one", "f1/b.txt", "a bug\n")
	number := w.open("one")
	w.label("ada", number)
	w.awaitStatus(head, "failure", "has-no-bug")
	w.await("the comment says why", func() bool {
		all := w.comments(number)
		return len(all) == 1 && strings.Contains(all[0], "**Rejected.**") && strings.Contains(all[0], "f1/b.txt:1:a bug")
	})
	w.await("the label is off", func() bool { return len(w.pull(number).Labels) == 0 })
	head = w.push("one", "f1/b.txt", "fine\n")
	w.say("ada", number, "mended\n\n/landfall land")
	w.awaitMerged(number)
	w.awaitStatus(head, "success", "Landed as ")
	w.await("the comment says that it landed", func() bool {
		all := w.comments(number)
		return len(all) == 1 && strings.Contains(all[0], "**Landed**") && strings.Contains(all[0], w.pull(number).Commit)
	})
	if n := len(w.statuses(head)); n > 6 {
		t.Errorf("the status was set %d times", n)
	}
}

func TestTenPullRequestsLandAtOnce(t *testing.T) {
	for _, strategy := range []string{"squash", "rebase", "merge"} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t, options{strategy: strategy})
			var numbers []int
			for i := range 10 {
				name := fmt.Sprintf("c%d", i)
				w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), "fine\n")
				numbers = append(numbers, w.open(name))
			}
			for _, number := range numbers {
				w.label("ada", number)
			}
			for _, number := range numbers {
				w.awaitMerged(number)
			}
			t.Logf("%s: %d writes to Gitea for 10 changes", strategy, len(w.proxy.written()))
		})
	}
}
