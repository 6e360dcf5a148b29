package timeline

import (
	"maps"
	"slices"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// moment is from when on a worker without a step is idle for a cause.
type moment struct {
	at    time.Time
	cause Cause
	// needs are the labels and resources that the open steps need, of queues that the caller may read, and kinds what each kind of step
	// needs, of all queues, as in event. They are of the cause Needs alone.
	needs, kinds []string
}

// between parts the names of what a step needs.
const between = "\x00"

// event is a count that rises or falls.
type event struct {
	at   time.Time
	kind Cause
	// needs is what the steps need, joined by between.
	needs string
	by    int
}

// running is the kind of the events of runs.
const running Cause = "running"

// merge returns from when on an idle worker of a pool would be idle for which cause, beginning at begin.
func merge(activities []Activity, begin, to time.Time) []moment {
	type state struct {
		counts map[Cause]int
		needs  map[string]int
	}
	type change struct {
		event
		queue int
	}
	var changes []change
	states := make([]state, len(activities))
	for i, a := range activities {
		states[i] = state{map[Cause]int{}, map[string]int{}}
		for _, e := range eventsOf(a) {
			changes = append(changes, change{e, i})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	now := func() (m moment) {
		m.cause = NoStep
		needs, kinds := map[string]bool{}, map[string]bool{}
		for i, s := range states {
			if c := causeOf(s.counts, activities[i].Activity); slices.Index(Causes(), c) < slices.Index(Causes(), m.cause) {
				m.cause = c
			}
			for kind, count := range s.needs {
				if count == 0 {
					continue
				}
				kinds[kind] = true
				for n := range strings.SplitSeq(kind, between) {
					needs[n] = needs[n] || !activities[i].Hidden
				}
			}
		}
		if m.cause == Needs {
			maps.DeleteFunc(needs, func(_ string, told bool) bool { return !told })
			m.needs, m.kinds = slices.Sorted(maps.Keys(needs)), slices.Sorted(maps.Keys(kinds))
		}
		return m
	}
	list := []moment{{at: begin, cause: NoStep}}
	for i, c := range changes {
		s := states[c.queue]
		if s.counts[c.kind] += c.by; c.needs != "" {
			s.needs[c.needs] += c.by
		}
		if i+1 < len(changes) && changes[i+1].at.Equal(c.at) {
			continue
		}
		m := now()
		if m.at = c.at; !m.at.After(begin) {
			m.at = begin
			list = list[:0]
		}
		if n := len(list); n > 0 && list[n-1].cause == m.cause && slices.Equal(list[n-1].needs, m.needs) && slices.Equal(list[n-1].kinds, m.kinds) {
			continue
		}
		if m.at.After(to) {
			break
		}
		list = append(list, m)
	}
	return list
}

// causeOf returns why a worker would be idle of a queue with so many open steps of each kind.
func causeOf(counts map[Cause]int, a view.Activity) Cause {
	switch {
	case counts[NotKnown] > 0 && a.Limit > 0 && counts[running] >= a.Limit:
		return Limited
	case counts[NotKnown] > 0:
		return NotKnown
	}
	for _, c := range []Cause{Needs, Exclusive, Dependencies, Preparing} {
		if counts[c] > 0 {
			return c
		}
	}
	return NoStep
}

// eventsOf returns when the counts of a queue's open and running steps, and of the trees that are made, rise and fall.
func eventsOf(a Activity) (list []event) {
	span := func(kind Cause, s view.Span, needs string) {
		if !s.To.IsZero() && !s.To.After(s.From) {
			return
		}
		list = append(list, event{s.From, kind, needs, 1})
		if !s.To.IsZero() {
			list = append(list, event{s.To, kind, needs, -1})
		}
	}
	for _, r := range a.Runs {
		span(running, view.Span{From: r.From, To: r.To}, "")
	}
	held := heldOf(a)
	// A version that several builds ask for is open once.
	type open struct {
		spans  []view.Span
		claims *eventsv1.StepClaims
		waits  []view.Version
	}
	opens := map[view.Version]*open{}
	for _, ask := range a.Asks {
		made := ask.From
		if ask.Prepared == nil {
			made = ask.Until
		}
		span(Preparing, view.Span{From: ask.Scheduled, To: made}, "")
		if ask.Prepared == nil {
			continue
		}
		claims := claimsOf(ask.Prepared)
		for i, w := range ask.Prepared.Versions {
			v := view.Version{Target: w.Target, Hash: w.Hash}
			if w.Trivial || w.Absent || w.Hash == "" {
				continue
			}
			if opens[v] == nil {
				opens[v] = &open{claims: claims[i], waits: waitsOf(ask.Prepared, i)}
			}
			opens[v].spans = append(opens[v].spans, view.Span{From: ask.From, To: ask.Until})
		}
	}
	// Of steps that take the same only matters when one of them is open: however many there are, they are told once.
	type kind struct{ needs, exclusive string }
	ready := map[kind][]view.Span{}
	for v, o := range opens {
		exclusive := slices.Sorted(slices.Values(o.claims.GetExclusive()))
		k := kind{strings.Join(needsOf(o.claims), between), strings.Join(exclusive, between)}
		for _, s := range openSpans(union(o.spans), a.Attempts[v]) {
			// It is blocked for as long as what it waits for is not there.
			free := []view.Span{s}
			for _, of := range o.waits {
				free = split(free, untilSettled(a.Attempts[of]), func(blocked view.Span) { span(Dependencies, blocked, "") })
			}
			ready[k] = append(ready[k], free...)
		}
	}
	for k, spans := range ready {
		var taken []view.Span // by steps that run: a version's own runs are not among the times in which it is open
		if k.exclusive != "" {
			for name := range strings.SplitSeq(k.exclusive, between) {
				taken = append(taken, held[name]...)
			}
			taken = union(taken)
		}
		cause := NotKnown
		if k.needs != "" {
			cause = Needs
		}
		for _, s := range union(spans) {
			// Both lists are in order and overlap nothing of their own: what ended before s does so before all that follow.
			for len(taken) > 0 && !taken[0].To.IsZero() && !taken[0].To.After(s.From) {
				taken = taken[1:]
			}
			rest := []view.Span{s}
			for _, by := range taken {
				if len(rest) == 0 || !s.To.IsZero() && !by.From.Before(s.To) {
					break
				}
				rest = split(rest, by, func(blocked view.Span) { span(Exclusive, blocked, "") })
				for ; len(rest) > 1; rest = rest[1:] {
					span(cause, rest[0], k.needs)
				}
			}
			for _, r := range rest {
				span(cause, r, k.needs)
			}
		}
	}
	return list
}

func claimsOf(p *eventsv1.BuildPrepared) map[int]*eventsv1.StepClaims {
	out := map[int]*eventsv1.StepClaims{}
	for _, c := range p.Claims {
		out[int(c.Version)] = c
	}
	return out
}

// waitsOf returns the versions without which a step is not started.
func waitsOf(p *eventsv1.BuildPrepared, at int) (list []view.Version) {
	if len(p.Needs) != len(p.Versions) || !p.Needs[at].GetGiven() {
		return nil
	}
	for _, i := range p.Needs[at].Versions {
		if int(i) < len(p.Versions) {
			if w := p.Versions[i]; !w.Trivial && !w.Absent && w.Hash != "" {
				list = append(list, view.Version{Target: w.Target, Hash: w.Hash})
			}
		}
	}
	return list
}

// needsOf returns the labels and resources that a step takes.
func needsOf(c *eventsv1.StepClaims) []string {
	list := slices.Clone(c.GetLabels())
	for _, r := range c.GetResources() {
		list = append(list, r.Name)
	}
	return list
}

// heldOf returns the runs that had each name to themselves.
func heldOf(a Activity) map[string][]view.Span {
	out := map[string][]view.Span{}
	known := map[view.Version]bool{}
	for _, ask := range a.Asks {
		for _, c := range ask.Prepared.GetClaims() {
			if len(c.Exclusive) == 0 || int(c.Version) >= len(ask.Prepared.Versions) {
				continue
			}
			w := ask.Prepared.Versions[c.Version]
			v := view.Version{Target: w.Target, Hash: w.Hash}
			if known[v] {
				continue
			}
			known[v] = true
			for _, name := range c.Exclusive {
				out[name] = append(out[name], a.Attempts[v]...)
			}
		}
	}
	return out
}

// untilSettled returns the time before one of the runs settled their version.
func untilSettled(runs []view.Span) view.Span {
	for _, r := range runs {
		if r.Settled {
			return view.Span{To: r.To}
		}
	}
	return view.Span{}
}

// union returns spans that do not overlap, in order. A span without an end goes on.
func union(spans []view.Span) (out []view.Span) {
	slices.SortFunc(spans, func(a, b view.Span) int { return a.From.Compare(b.From) })
	for _, s := range spans {
		switch n := len(out); {
		case !s.To.IsZero() && !s.To.After(s.From):
		case n > 0 && (out[n-1].To.IsZero() || !s.From.After(out[n-1].To)):
			if s.To.IsZero() || !out[n-1].To.IsZero() && s.To.After(out[n-1].To) {
				out[n-1].To = s.To
			}
		default:
			out = append(out, s)
		}
	}
	return out
}

// openSpans returns when a version that was asked for in some spans waited for a worker, by its runs: until each begins, and after
// one that left no result until the next. After one that left a result it waits only if it runs again, for somebody who asked later.
func openSpans(asked, runs []view.Span) (out []view.Span) {
	from := time.Time{}
	clipped := func(until time.Time, later bool) {
		for _, s := range asked {
			if later && s.From.Before(from) {
				continue
			}
			part := view.Span{From: s.From, To: s.To}
			if part.From.Before(from) {
				part.From = from
			}
			if !until.IsZero() && (part.To.IsZero() || until.Before(part.To)) {
				part.To = until
			}
			if part.To.IsZero() || part.To.After(part.From) {
				out = append(out, part)
			}
		}
	}
	settled := false
	for _, r := range runs {
		clipped(r.From, settled)
		if r.To.IsZero() {
			return out // it runs
		}
		from, settled = r.To, r.Settled
	}
	if n := len(runs); n == 0 || !runs[n-1].Settled && !runs[n-1].Failed {
		clipped(time.Time{}, false)
	}
	return out
}

// split takes a span out of others, and calls f with what of them lies in it. Without a beginning it reaches back, without an end
// forward.
func split(spans []view.Span, by view.Span, f func(view.Span)) (rest []view.Span) {
	for _, s := range spans {
		inner := view.Span{From: view.Later(s.From, by.From), To: s.To}
		if !by.To.IsZero() && (s.To.IsZero() || by.To.Before(s.To)) {
			inner.To = by.To
		}
		if !inner.To.IsZero() && !inner.To.After(inner.From) {
			rest = append(rest, s)
			continue
		}
		f(inner)
		if inner.From.After(s.From) {
			rest = append(rest, view.Span{From: s.From, To: inner.From})
		}
		if !inner.To.IsZero() && (s.To.IsZero() || s.To.After(inner.To)) {
			rest = append(rest, view.Span{From: inner.To, To: s.To})
		}
	}
	return rest
}
