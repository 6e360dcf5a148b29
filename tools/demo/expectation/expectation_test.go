package expectation

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/sample"
)

// outcome is a run of the sample that went as it has to.
type outcome struct {
	sample   *sample.Repository
	changes  map[string]view.Change
	mainline Mainline
}

func makeSample(t *testing.T) *sample.Repository {
	t.Helper()
	r, err := sample.Make(t.Context(), filepath.Join(t.TempDir(), "sample.git"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func perfect(r *sample.Repository) *outcome {
	o := &outcome{sample: r, changes: map[string]view.Change{}}
	taken := map[string]bool{}
	var last *sample.Change
	for i := range r.Changes {
		c := &r.Changes[i]
		switch {
		case c.Name == sample.Slow:
			last = c // it is bypassed by all others
		case c.Want == sample.Landed, c.Rivals != "" && !taken[c.Rivals]:
			taken[c.Rivals] = true
			o.land(c)
		default:
			o.reject(c, c.Want)
		}
	}
	o.push("0f", r.Direct.Title())
	o.land(last)
	o.change("search-limit", func(v *view.Change) { v.Landing.Bypassed = []string{sample.Slow} })
	return o
}

func (o *outcome) push(id, title string) {
	o.mainline.Commits = append(o.mainline.Commits, id)
	o.mainline.Titles = append(o.mainline.Titles, title)
}

func (o *outcome) land(c *sample.Change) {
	v := view.Change{Landing: &view.Landing{}}
	v.Change, v.State, v.Revision = c.Name, view.StateLanded, 1
	if c.Better != nil {
		v.Revision = 2
	}
	for _, commit := range c.Commits {
		id := fmt.Sprintf("c%d", len(o.mainline.Commits))
		o.push(id, commit.Title)
		v.Commits = append(v.Commits, id)
	}
	o.changes[c.Name] = v
}

func (o *outcome) reject(c *sample.Change, as sample.Ending) {
	v := view.Change{}
	v.Change, v.State, v.Revision = c.Name, as.State, 1
	if as.Class != "" {
		v.Rejection = &view.Rejection{Class: as.Class}
	}
	o.changes[c.Name] = v
}

func (o *outcome) change(name string, edit func(*view.Change)) {
	v := o.changes[name]
	edit(&v)
	o.changes[name] = v
}

func TestARunThatWentAsItHasToHasNoProblems(t *testing.T) {
	o := perfect(makeSample(t))
	got := Check(o.sample, o.changes, o.mainline)
	if len(got.Problems) > 0 || len(got.Ends) != len(o.sample.Changes) {
		t.Errorf("%d ends, problems:\n%s", len(got.Ends), strings.Join(got.Problems, "\n"))
	}
	for _, e := range got.Ends {
		if !e.AsExpected {
			t.Errorf("%s is %s, and that is not as expected", e.Change.Name, e.Got)
		}
	}
}

// swap exchanges two commits of the mainline.
func (o *outcome) swap(a, b string) {
	i, j := slices.Index(o.mainline.Commits, a), slices.Index(o.mainline.Commits, b)
	for _, list := range [][]string{o.mainline.Commits, o.mainline.Titles} {
		list[i], list[j] = list[j], list[i]
	}
}

func (o *outcome) first(name string) string { return o.changes[name].Commits[0] }

func TestWhateverGoesAnotherWayIsAProblem(t *testing.T) {
	r := makeSample(t)
	for name, c := range map[string]struct {
		spoil func(*outcome)
		want  string
	}{
		"an innocent is rejected": {func(o *outcome) { o.reject(o.sample.Find("ring"), sample.StepFailed) }, "ring is rejected (step_failed), not landed"},
		"a failing change lands":  {func(o *outcome) { o.land(o.sample.Find("lru-grow")) }, "lru-grow is landed, not rejected (step_failed)"},
		"the reason is another":   {func(o *outcome) { o.reject(o.sample.Find("spin"), sample.StepFailed) }, "spin is rejected (step_failed), not ejected (timed_out)"},
		"both rivals land": {func(o *outcome) {
			o.land(o.sample.Find("delivery-pickup"))
			o.land(o.sample.Find("calendar-rename"))
		}, "exactly one of its rivals landed (2 did)"},
		"no rival lands": {func(o *outcome) {
			for _, n := range []string{"hours-early", "hours-late", "hours-saturday"} {
				o.reject(o.sample.Find(n), sample.NoMerge)
			}
		}, "exactly one of its rivals landed (0 did)"},
		"a loser fails for another reason": {func(o *outcome) { o.reject(o.sample.Find("banner-corner"), sample.StepFailed) }, "banner-corner is rejected (step_failed)"},
		"a change is lost":                 {func(o *outcome) { delete(o.changes, "ring") }, "ring is not known"},
		"it is still pending":              {func(o *outcome) { o.change("ring", func(v *view.Change) { v.State = "testing" }) }, "ring is testing"},
		"the first revision lands": {func(o *outcome) { o.change(sample.Resubmitted, func(v *view.Change) { v.Revision = 1 }) },
			"lru-resize ended with revision 1"},
		"a commit is not on the mainline": {func(o *outcome) { o.change("ring", func(v *view.Change) { v.Commits = []string{"elsewhere"} }) },
			"Commit elsewhere of ring is not on the mainline"},
		"something lands twice": {func(o *outcome) { o.push("ff", "Add a ring buffer") }, "Commit ff (Add a ring buffer) of the mainline is of no change"},
		"two changes claim a commit": {func(o *outcome) { o.change("ring", func(v *view.Change) { v.Commits = o.changes["lru-peek"].Commits }) },
			" and of "},
		"a stack lands in part":     {func(o *outcome) { o.change("sales-histogram", func(v *view.Change) { v.Commits = v.Commits[:2] }) }, "landed as 2 commits, not as 3"},
		"a stack is torn":           {func(o *outcome) { o.swap(o.first("sales-histogram"), o.first("ring")) }, "sales-histogram do not follow each other"},
		"the direct push is lost":   {func(o *outcome) { o.mainline.Titles[slices.Index(o.mainline.Commits, "0f")] = "gone" }, "on the mainline 0 times"},
		"a requirement comes after": {func(o *outcome) { o.swap(o.first("trie-remove"), o.first("search-forget")) }, "search-forget landed before trie-remove"},
		"the hotfix is late":        {func(o *outcome) { o.swap(o.first(sample.Hotfix), o.first(sample.Slow)) }, "moved to the front, landed after"},
		"nobody bypasses":           {func(o *outcome) { o.change("search-limit", func(v *view.Change) { v.Landing.Bypassed = nil }) }, "No change landed past"},
		"a rejected change has commits": {func(o *outcome) { o.change("lru-grow", func(v *view.Change) { v.Commits = []string{"c0"} }) },
			"lru-grow is rejected (step_failed) and has commits"},
	} {
		o := perfect(r)
		c.spoil(o)
		got := Check(o.sample, o.changes, o.mainline)
		if !slices.ContainsFunc(got.Problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s: no problem says %q, but:\n%s", name, c.want, strings.Join(got.Problems, "\n"))
		}
	}
}
