package hosts

import (
	"cmp"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

const (
	// fullEvery is the time between two lists of all open pull requests. In between those that changed are listed.
	fullEvery = time.Hour
	// fresh is how long after its last change something else may come to a pull request that has the same time: hosts give seconds.
	fresh = 3 * time.Second
	// refreshes is how many pull requests are looked at again after a list, of those of which the host does not say what changed: a check
	// that they wait for, or what it showed before the start.
	refreshes = 40
	// keptFor is how long a pull request is remembered that is over.
	keptFor = 24 * time.Hour
	// slack is how long before the newest record of a pull request a change may have been that nobody has looked at.
	slack = time.Hour
)

// list holds what a host last listed of a queue's pull requests.
type list struct {
	// updated is when each had changed, newest the last of these times, fullUS when all were listed.
	updated        map[int64]int64
	newest, fullUS int64
}

// since returns from when on changes are to be listed; 0 for all that is open.
func (c *Core) since(queue string) int64 {
	l := c.lists[queue]
	if l == nil || c.now-l.fullUS >= fullEvery.Microseconds() {
		return 0
	}
	return l.newest
}

// sweep takes a list: those are looked at of which there is news, those that are known and no longer open, and some of those of which the
// host would not say.
func (c *Core) sweep(o Listing) {
	queue, full := o.List.Queue, o.List.SinceUS == 0
	before := c.lists[queue]
	first := before == nil
	now := &list{updated: map[int64]int64{}, fullUS: c.now}
	if first {
		before = &list{}
	}
	if !full {
		now = before
	}
	// What was changed before there was anything is nobody's request.
	horizon := cmp.Or(c.newest, c.now) - slack.Microseconds()
	open := map[int64]bool{}
	for _, l := range o.Pulls {
		k := key{queue, l.Number}
		r, known := c.reviews[k]
		now.newest = max(now.newest, l.UpdatedUS)
		open[l.Number] = l.Open && l.Fits
		seen, listed := before.updated[l.Number]
		if known && !listed {
			seen = r.kept.UpdatedUs
		}
		news := seen != l.UpdatedUS
		if now.updated[l.Number] = l.UpdatedUS; c.now-l.UpdatedUS < fresh.Microseconds() {
			delete(now.updated, l.Number)
		}
		switch {
		case !open[l.Number] && (!known || r.kept.Over):
			delete(now.updated, l.Number)
		case !known && first && !l.Labelled && l.UpdatedUS < horizon:
		case news, known && r.pull != nil && r.pull.Head != l.Head:
			c.review(k).noticed = true
		}
	}
	c.lists[queue] = now
	if full {
		for k, r := range c.reviews {
			if k.queue == queue && !open[k.number] && !r.kept.Over && r.kept.StampUs > 0 {
				r.noticed = true
				c.touch(k)
			}
		}
	}
	c.refresh(queue)
	c.forget(queue)
}

// refresh has some reviews looked at of which the host does not say that there is news: those that were not since the start, the newest
// requests first, and then those that wait for something.
func (c *Core) refresh(queue string) {
	var all []key
	for k, r := range c.reviews {
		if k.queue == queue && !r.noticed && !r.busy && (r.lacks() || r.pull == nil && !r.kept.Over && r.kept.Head != "" && !r.isShown()) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b key) int {
		r, s := c.reviews[a], c.reviews[b]
		return cmp.Or(cmp.Compare(r.lookUS, s.lookUS), cmp.Compare(s.kept.StampUs, r.kept.StampUs), cmp.Compare(a.number, b.number))
	})
	for _, k := range all[:min(len(all), refreshes)] {
		c.review(k).noticed = true
	}
}

// forget drops the reviews that have long been over. What was taken of their timelines is not taken again if they are opened again: the
// list before has shown all that was not taken up to then.
func (c *Core) forget(queue string) {
	for k, r := range c.reviews {
		if k.queue == queue && r.kept.Over && !r.noticed && !r.busy && c.now-r.kept.StampUs > keptFor.Microseconds() {
			c.floors[queue] = max(c.floors[queue], r.kept.Handled)
			r.unplan()
			delete(c.reviews, k)
		}
	}
}

// noticeCheck takes news of a check: it is of those that have its commit, or if that is not known of those that wait for something.
func (c *Core) noticeCheck(m *eventsv1.HostNoticed) {
	of := func(k key, r *review) {
		if m.Commit != "" && r.kept.Head == m.Commit || m.Commit == "" && r.lacks() {
			r.noticed = true
			c.touch(k)
		}
	}
	if c.live {
		for number := range c.checked[m.Queue] {
			k := key{m.Queue, number}
			of(k, c.reviews[k])
		}
		return
	}
	for k, r := range c.reviews {
		if k.queue == m.Queue && r.isChecked() {
			of(k, r)
		}
	}
}
