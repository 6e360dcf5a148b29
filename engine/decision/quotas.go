package decision

import (
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// payer holds the accounts of an author whose running steps have a quota (M33b). A nil payer has none.
type payer struct {
	own, team, queue *account
}

// account holds a limit on running steps, and the number of open steps that openWithin counted last.
type account struct {
	limit, steps int
}

// unbound is the limit of an account without a quota.
const unbound = 1 << 30

// accounts returns the accounts of a payer: its own, the team's, the queue's.
func (p *payer) accounts() []*account {
	if p == nil {
		return nil
	}
	return []*account{p.own, p.team, p.queue}
}

// budget holds the builds that keep the workers busy, and the accounts of their authors, for one decision.
type budget struct {
	loads   []load
	quotas  *quota.Quotas
	queue   *account
	teams   map[string]*account
	payers  map[string]*payer
	authors []*payer
	// groups holds the accounts of teams, and one for each author without a team.
	groups []*account
}

// payer returns the payer of a change's steps.
func (a *assignment) payer(c *eventsv1.ChangeRef) *payer {
	n := a.s.graph.NodeAt(c)
	if a.budget.quotas == nil || n == nil || n.Mainline {
		return nil
	}
	b := &a.budget
	p := b.payers[n.Author]
	if p != nil {
		return p
	}
	p = &payer{own: &account{limit: unbound}, queue: b.queue}
	team := ""
	for _, of := range b.quotas.Of(n.Author) {
		switch of.Kind {
		case eventsv1.QuotaKind_QUOTA_KIND_AUTHOR:
			p.own.limit = of.Limit
		case eventsv1.QuotaKind_QUOTA_KIND_QUEUE:
			p.queue.limit = of.Limit
		case eventsv1.QuotaKind_QUOTA_KIND_TEAM:
			if team = of.Name; b.teams[team] == nil {
				put(&b.teams, team, &account{limit: of.Limit})
				b.groups = append(b.groups, b.teams[team])
			}
			p.team = b.teams[team]
		}
	}
	if p.team == nil {
		p.team = &account{limit: unbound}
		b.groups = append(b.groups, p.team)
	}
	put(&b.payers, n.Author, p)
	b.authors = append(b.authors, p)
	return p
}

// openWithin returns how many open steps the loads have for which a function reports true. Of each account it counts at most times its
// limit.
func (a *assignment) openWithin(times int, which func(load) bool) int {
	sum := 0
	if a.budget.quotas == nil {
		for _, l := range a.budget.loads {
			if which(l) {
				sum += l.steps
			}
		}
		return sum
	}
	b := &a.budget
	b.queue.steps = 0
	for _, t := range b.groups {
		t.steps = 0
	}
	for _, p := range b.authors {
		p.own.steps = 0
	}
	for _, l := range a.budget.loads {
		switch {
		case !which(l):
		case l.payer == nil:
			sum += l.steps
		default:
			l.payer.own.steps += l.steps
		}
	}
	for _, p := range b.authors {
		p.team.steps += min(p.own.steps, times*p.own.limit)
	}
	for _, t := range b.groups {
		b.queue.steps += min(t.steps, times*t.limit)
	}
	return sum + min(b.queue.steps, times*b.queue.limit)
}
