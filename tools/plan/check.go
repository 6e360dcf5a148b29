package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"landfall.build/engine/memberset"
)

// problems collects everything that is wrong with a snapshot.
type problems struct {
	list []error
	more int
}

// maxProblems bounds the problems that are listed. The others are counted.
const maxProblems = 100

func (p *problems) add(where, format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, errors.New(printable(where+": "+fmt.Sprintf(format, args...))))
}

// printable escapes all in a text that would move the cursor or change the direction of writing.
func printable(text string) string {
	if !strings.ContainsFunc(text, unshowable) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unshowable(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// unshowable reports whether a character cannot be printed. The replacement character is one: it stands for bytes that are not text.
func unshowable(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.list, fmt.Errorf("and %d more problems", p.more))...)
	}
	return errors.Join(p.list...)
}

// finite returns a number, or the default if none is given.
func (p *problems) finite(where, name string, n number, otherwise float64) (x float64, ok bool) {
	switch {
	case !n.given:
		return otherwise, true
	case n.text != "":
		p.add(where, "%s is %s, which is not a number", name, shortened(n.text))
		return otherwise, false
	}
	return n.value, true
}

func (p *problems) probability(where, name string, n number, otherwise float64) float64 {
	x, ok := p.finite(where, name, n, otherwise)
	if ok && !(x >= 0 && x <= 1) {
		p.add(where, "%s is %v; it is a probability, from 0 to 1", name, x)
		return otherwise
	}
	return x
}

// maxSeconds is some 30,000 years. Beyond it microseconds are not exact.
const maxSeconds = 1e12

func (p *problems) seconds(where, name string, n number) float64 {
	x, ok := p.finite(where, name, n, 0)
	if ok && !(x >= 0 && x <= maxSeconds) {
		p.add(where, "%s is %v; it is a number of seconds, from 0 to %g", name, x, float64(maxSeconds))
		return 0
	}
	return x
}

func (p *problems) time(where, name, text string) (t time.Time, ok bool) {
	if text == "" {
		return t, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.add(where, "%s is %q; it is a time as in 2026-01-05T09:40:00Z", name, shortened(text))
	}
	return t, err == nil
}

// shortened returns the beginning of a text, for an error.
func shortened(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// check returns the queue that a document describes. If anything is wrong it is added to problems, and the queue is not to be used.
func (d *document) check(p *problems) *queue {
	q := &queue{
		slots: maxBuilds, threshold: p.probability("the snapshot", "threshold", d.Threshold, 0),
		abort: p.probability("the snapshot", "abort_threshold", d.AbortThreshold, 0),
		byID:  map[string]int{}, runs: map[pathKey]int{},
	}
	var known bool
	q.now, known = p.time("the snapshot", "now", d.Now)
	if d.BypassThreshold.given {
		x := p.probability("the snapshot", "bypass_threshold", d.BypassThreshold, 0)
		q.bypass = &x
	}
	if x, ok := p.finite("the snapshot", "slots", d.Slots, 0); ok && d.Slots.given {
		if x < 0 || x != math.Trunc(x) {
			p.add("the snapshot", "slots is %v; it is how many builds may run at a time", x)
		}
		q.slots = int(min(max(x, 0), maxBuilds))
		q.limited = x <= maxBuilds
	}
	for i := range d.Changes {
		q.changes = append(q.changes, d.Changes[i].check(i, q, p))
	}
	links := d.links(q, p)
	for i, c := range q.changes {
		c.order(links[i])
		d.Changes[i].checkClasses(i, c, q, p)
	}
	for i := range d.Builds {
		if b := d.Builds[i].check(i, q, known, p); b != nil {
			q.builds = append(q.builds, b)
		}
	}
	return q
}

func (f *changeForm) where(i int) string {
	if f.ID == "" {
		return fmt.Sprintf("changes[%d]", i)
	}
	return fmt.Sprintf("changes[%d] (%s)", i, shortened(f.ID))
}

func (f *changeForm) check(i int, q *queue, p *problems) *change {
	where := f.where(i)
	c := &change{id: f.ID, held: f.Held, assumedSuccess: !f.Success.given, benefit: 1}
	if first, twice := q.byID[f.ID]; f.ID == "" {
		p.add(where, "it has no id")
	} else if twice {
		p.add(where, "changes[%d] has the same id", first)
	} else if q.byID[f.ID] = i; strings.ContainsFunc(f.ID, unshowable) {
		p.add(where, "its id has a character that cannot be shown")
	}
	p.time(where, "admitted", f.Admitted)
	c.success = p.probability(where, "success", f.Success, 1)
	if x, ok := p.finite(where, "benefit", f.Benefit, 1); ok && !(x > 0) {
		p.add(where, "benefit is %v; it is above 0", x)
	} else if ok {
		c.benefit = x
	}
	if d := f.Duration; d != nil {
		if !d.Mean.given {
			p.add(where, "its duration has no mean")
		}
		c.timed = true
		c.duration.Mean, c.duration.Std = p.seconds(where, "the mean of its duration", d.Mean), p.seconds(where, "the std of its duration", d.Std)
	}
	return c
}

// links returns the members of each change, by their places in the queue.
func (d *document) links(q *queue, p *problems) []map[int]member {
	links := make([]map[int]member, len(q.changes))
	for i := range links {
		links[i] = map[int]member{}
	}
	for i := range d.Conflicts {
		f, where := &d.Conflicts[i], fmt.Sprintf("conflicts[%d]", i)
		m := member{conflicts: true, unmerged: f.MergeConflict, assumed: !f.Probability.given}
		m.conflict = p.probability(where, "probability", f.Probability, 0)
		if m.unmerged {
			m.conflict = 1 // M5
		}
		ahead, ok := q.find(where, "ahead", f.Ahead, p)
		behind, also := q.find(where, "behind", f.Behind, p)
		if !ok || !also || !inOrder(where, f.Ahead, f.Behind, ahead, behind, p) {
			continue
		}
		if _, twice := links[behind][ahead]; twice {
			p.add(where, "%s ahead of %s is listed twice", f.Ahead, f.Behind)
		}
		m.at = ahead
		links[behind][ahead] = m
	}
	for i := range d.Changes {
		for _, id := range d.Changes[i].Requires {
			where := d.Changes[i].where(i)
			ahead, ok := q.find(where, "requires", id, p)
			if !ok || !inOrder(where, id, d.Changes[i].ID, ahead, i, p) {
				continue
			}
			m := links[i][ahead]
			if m.required {
				p.add(where, "it requires %s twice", id)
			}
			m.at, m.required = ahead, true
			links[i][ahead] = m
		}
	}
	return links
}

func (q *queue) find(where, name, id string, p *problems) (place int, ok bool) {
	if place, ok = q.byID[id]; !ok {
		p.add(where, "%s names %q, which is not a change of the snapshot", name, shortened(id))
	}
	return place, ok
}

// inOrder reports whether one change is ahead of another in the queue. The other way round, conflicts would form a cycle.
func inOrder(where, idAhead, idBehind string, ahead, behind int, p *problems) bool {
	switch {
	case ahead == behind:
		p.add(where, "%s cannot be ahead of itself", idAhead)
	case ahead > behind:
		p.add(where, "%s cannot be ahead of %s, which is before it in the queue: that is a cycle; changes are in queue order", idAhead, idBehind)
	}
	return ahead < behind
}

func (f *changeForm) checkClasses(i int, c *change, q *queue, p *problems) {
	if len(f.Classes) == 0 {
		all := make([]int, len(c.ahead))
		for j := range all {
			all[j] = j
		}
		c.classes = [][]int{all}
		return
	}
	for x, ids := range f.Classes {
		where := fmt.Sprintf("%s: classes[%d]", f.where(i), x)
		set, ok := c.members(where, ids, q, p)
		if !ok {
			continue
		}
		class := []int{}
		for j := range c.ahead {
			if set.Has(j) {
				class = append(class, j)
			}
		}
		c.classes = append(c.classes, class)
	}
}

// members returns the set of the members of A(c) that have these ids.
func (c *change) members(where string, ids []string, q *queue, p *problems) (set memberset.Set, ok bool) {
	set, ok = memberset.New(len(c.ahead)), true
	for _, id := range ids {
		place, known := q.find(where, "it", id, p)
		if !known {
			ok = false
			continue
		}
		j := c.indexOf(place)
		switch {
		case j < 0:
			p.add(where, "it names %s, which is not ahead of %s", id, c.id)
			ok = false
		case set.Has(j):
			p.add(where, "it names %s twice", id)
			ok = false
		default:
			set.Add(j)
		}
	}
	return set, ok
}

// The states of a build.
const (
	stateRunning = "running"
	stateGreen   = "green"
	stateRed     = "red"
)

func (f *buildForm) check(i int, q *queue, timed bool, p *problems) *build {
	where := fmt.Sprintf("builds[%d]", i)
	place, ok := q.find(where, "change", f.Change, p)
	if !ok {
		return nil
	}
	b := &build{change: q.changes[place], state: f.State}
	b.assumed, ok = b.change.members(where+": assumed", f.Assumed, q, p)
	started, given := p.time(where, "started", f.Started)
	switch f.State {
	case stateRunning:
		switch {
		case f.Started == "":
			p.add(where, "it runs, but does not say since when: started is missing")
		case !timed:
			p.add(where, "it runs, but the snapshot has no now")
		case given && started.After(q.now):
			p.add(where, "it started at %s, after now", f.Started)
		case given:
			b.elapsed = q.now.Sub(started)
		}
		key := pathKey{place, b.assumed.Key()}
		if _, twice := q.runs[key]; ok && twice {
			p.add(where, "this very build of %s runs already", f.Change)
		}
		q.runs[key] = len(q.builds)
	case stateGreen, stateRed:
	default:
		p.add(where, "state is %q; it is one of %s", shortened(f.State), strings.Join([]string{stateRunning, stateGreen, stateRed}, ", "))
	}
	if len(f.Failed) > 0 && f.State != stateRed {
		p.add(where, "failed says which classes are red, but the build is %s", shortened(f.State))
	}
	for _, n := range f.Failed {
		x, finite := p.finite(where, "failed", n, 0)
		if finite && (x != math.Trunc(x) || x < 0 || x >= float64(len(b.change.classes))) {
			p.add(where, "failed has %v; %s has classes 0 to %d", x, f.Change, len(b.change.classes)-1)
		} else if finite {
			b.failed = append(b.failed, int(x))
		}
	}
	return b
}
