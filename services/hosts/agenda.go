package hosts

import (
	"cmp"
	"maps"
	"slices"
)

// slot is a place on the agenda. Each review has at most one.
type slot struct {
	key key
	// final puts what has ended first.
	final bool
	// atUS is when the review is to be taken up, if it is not ready; else when it was looked at last.
	atUS int64
	list *[]slot
}

func compareSlots(a, b slot) int {
	if a.final != b.final {
		if a.final {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.atUS, b.atUS), cmp.Compare(a.key.number, b.key.number), cmp.Compare(a.key.queue, b.key.queue))
}

// agenda holds the reviews of one host of which something is to be done, in the order in which it is: now, or at a time.
type agenda struct {
	ready, later []slot
	// flying is how many tasks are under way at the host. Each host has a room of its own: one that does not answer holds up no other.
	flying int
}

// agendaOf returns the agenda of the host of a queue.
func (c *Core) agendaOf(queue string) *agenda {
	host := c.settings[queue].Host
	a := c.agendas[host]
	if a == nil {
		a = &agenda{}
		c.agendas[host] = a
	}
	return a
}

// put gives a review a place in a list.
func (a *agenda) put(r *review, list *[]slot, s slot) {
	s.list, r.at = list, s
	r.at.list = list
	i, _ := slices.BinarySearchFunc(*list, s, compareSlots)
	*list = slices.Insert(*list, i, s)
}

// unplan takes a review off the agenda.
func (r *review) unplan() {
	if r.at.list == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(*r.at.list, r.at, compareSlots); found {
		*r.at.list = slices.Delete(*r.at.list, i, i+1)
	}
	r.at = slot{}
}

// touch has a review looked at again for what is to be done.
func (c *Core) touch(k key) {
	if c.live {
		c.touched = append(c.touched, k)
	}
}

// settle brings the agenda up to date: with the reviews that changed, and those whose time has come.
func (c *Core) settle() {
	if !c.live {
		return
	}
	for _, host := range slices.Sorted(maps.Keys(c.agendas)) {
		for a := c.agendas[host]; len(a.later) > 0 && a.later[0].atUS <= c.now; {
			k := a.later[0].key
			r := c.reviews[k]
			r.unplan()
			c.touch(k)
			c.advance(k, r)
		}
	}
	for _, k := range c.touched {
		if r := c.reviews[k]; r != nil {
			c.place(k, r)
		}
	}
	c.touched = c.touched[:0]
}

// place gives a review its place on the agenda, and forgets one that nobody asks for.
func (c *Core) place(k key, r *review) {
	r.unplan()
	s, configured := c.settings[k.queue]
	c.count(k, r)
	if !configured || r.busy {
		return
	}
	a, final := c.agendaOf(k.queue), r.state().ended()
	switch {
	case r.mustLook() && r.nextUS > c.now:
		a.put(r, &a.later, slot{key: k, atUS: r.nextUS})
	case r.mustLook():
		a.put(r, &a.ready, slot{key: k, final: final, atUS: r.lookUS})
	case r.pull == nil:
	case r.report(s, c.now).empty():
		if r.kept.StampUs == 0 {
			delete(c.reviews, k)
		} else if at := r.wakeUS(c.now); at > 0 {
			a.put(r, &a.later, slot{key: k, atUS: at})
		}
	case max(r.nextUS, r.waitUS) > c.now:
		a.put(r, &a.later, slot{key: k, atUS: max(r.nextUS, r.waitUS)})
	default:
		a.put(r, &a.ready, slot{key: k, final: final, atUS: r.lookUS})
	}
}

// count keeps what the reviews of a queue add up to.
func (c *Core) count(k key, r *review) {
	if asks := r.kept.RequestId != "" && !r.kept.Over && !r.isShown(); asks != r.asks {
		r.asks = asks
		if asks {
			c.asking[k.queue]++
		} else {
			c.asking[k.queue]--
		}
	}
	if checked := r.isChecked(); checked != r.checked {
		r.checked = checked
		of := c.checked[k.queue]
		if of == nil {
			of = map[int64]bool{}
			c.checked[k.queue] = of
		}
		if checked {
			of[k.number] = true
		} else {
			delete(of, k.number)
		}
	}
}

// wakeUS returns the first time after now at which there may be something to report though nothing has happened; 0 for none.
func (r *review) wakeUS(nowUS int64) (first int64) {
	for _, at := range []int64{r.statusUS + statusEvery.Microseconds(), r.endedUS + placePatience.Microseconds(), r.mergedUS + mergedPause.Microseconds()} {
		if at > nowUS && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}
