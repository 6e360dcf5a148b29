package simulate

import (
	"io"
	"testing"
)

// A course may take minutes: what is told moves while it does, and ends with all that there was.
func TestProgressMovesWithinACourse(t *testing.T) {
	f := &flags{}
	c := f.command(nil, nil)
	c.SetErr(io.Discard)
	if err := c.ParseFlags([]string{"--changes", "40", "--workers", "20", "--policies", "landfall", "--seeds", "2", "--parallel", "1", "--cancellations", "0.1"}); err != nil {
		t.Fatal(err)
	}
	study, err := f.study(workloadPaper)
	if err != nil {
		t.Fatal(err)
	}
	if study.Settings, err = f.settings(t.Context(), workloadPaper, nil); err != nil {
		t.Fatal(err)
	}
	var courses, within int
	var changes int64
	study.Progress = func(done, of int, left, ofChanges int64) {
		if of != 4 || ofChanges != 160 || done < courses || left < changes {
			t.Errorf("%d of %d courses and %d of %d changes after %d and %d", done, of, left, ofChanges, courses, changes)
		}
		if done == courses && left > changes {
			within++
		}
		courses, changes = done, left
	}
	if _, err := study.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if courses != 4 || changes != 160 || within < 150 {
		t.Errorf("in the end %d of 4 courses and %d of 160 changes, %d times within a course", courses, changes, within)
	}
}
