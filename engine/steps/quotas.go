package steps

import (
	"slices"

	"landfall.build/engine/lineup"
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// quotas counts the running steps of authors, teams and the queue (M33b). Each lease in the log names the accounts that it counts for.
type quotas struct {
	settings *eventsv1.Quotas
	of       *quota.Quotas
	accounts map[quota.Account]*account
	// leased counts the leases by account, lapsed ones too.
	leased map[quota.Account]int
	// payers are the authors of live builds.
	payers map[string]*payer
}

// account counts the leases in force, and during a choice the steps that were listed.
type account struct {
	quota.Quota
	running int
	payers  []*payer
}

// payer is an author of live builds.
type payer struct {
	author   string
	accounts []*account
	builds   int
	// full is how many of accounts are at their limit.
	full int
}

func newQuotas(settings *eventsv1.Quotas, leased map[quota.Account]int) quotas {
	return quotas{settings: settings, of: quota.New(settings), leased: leased, accounts: map[quota.Account]*account{}, payers: map[string]*payer{}}
}

// SetQuotas sets the limits on running steps; nil sets none. Callers of Next set it before.
func (q *Queue) SetQuotas(settings *eventsv1.Quotas) {
	if q.choice.quotas.settings == settings {
		return
	}
	q.choice.quotas = newQuotas(settings, q.choice.quotas.leased)
	for _, l := range q.leases {
		if l.counted {
			q.choice.quotas.count(l, 1)
		}
	}
	for _, b := range q.order {
		q.addPayer(b)
	}
}

// addPayer adds a live build to its author's. Builds of the mainline have no payer.
func (q *Queue) addPayer(b *build) {
	b.payer = nil
	if q.choice.quotas.of != nil && b.change().GetChange() != "" {
		b.payer = q.choice.quotas.payer(b.author)
		b.payer.builds++
	}
	q.changeEntry(b)
}

// knowAuthor gives builds their author once their change is admitted. Readers that do not decide may read the schedule first.
func (q *Queue) knowAuthor(c *lineup.Change) {
	for _, b := range q.ofChange[c.ID()] {
		if b.author == "" && b.change().GetRevision() == c.Revision() {
			q.dropPayer(b)
			b.author = quota.AuthorOf(c.Admission.Author)
			q.addPayer(b)
		}
	}
}

// dropPayer removes a build that is no longer live from its author's.
func (q *Queue) dropPayer(b *build) {
	p := b.payer
	if b.payer = nil; p == nil {
		return
	}
	if p.builds--; p.builds > 0 {
		return
	}
	delete(q.choice.quotas.payers, p.author)
	for _, a := range p.accounts {
		a.payers = slices.DeleteFunc(a.payers, func(o *payer) bool { return o == p })
		q.choice.quotas.forget(a)
	}
}

func (s *quotas) payer(author string) *payer {
	p := s.payers[author]
	if p != nil {
		return p
	}
	p = &payer{author: author}
	s.payers[author] = p
	for _, of := range s.of.Of(author) {
		a := s.account(of.Account)
		a.Limit = of.Limit
		a.payers, p.accounts = append(a.payers, p), append(p.accounts, a)
		p.full += boolean(a.isFull())
	}
	return p
}

func (s *quotas) account(of quota.Account) *account {
	a := s.accounts[of]
	if a == nil {
		a = &account{Quota: quota.Quota{Account: of}}
		s.accounts[of] = a
	}
	return a
}

// forget drops an account without running steps and authors.
func (s *quotas) forget(a *account) {
	if a.running == 0 && len(a.payers) == 0 {
		delete(s.accounts, a.Account)
	}
}

func (a *account) isFull() bool { return a.Limit > 0 && a.running >= a.Limit }

// add adds n running steps.
func (a *account) add(n int) {
	was := a.isFull()
	a.running += n
	if by := boolean(a.isFull()) - boolean(was); by != 0 {
		for _, p := range a.payers {
			p.full += by
		}
	}
}

// add adds n running steps to an author's accounts.
func (p *payer) add(n int) {
	if p != nil {
		for _, a := range p.accounts {
			a.add(n)
		}
	}
}

// isFull reports whether no further step may run for an author.
func (p *payer) isFull() bool { return p != nil && p.full > 0 }

// room returns how many further steps may run for an author, at most so many.
func (p *payer) room(most int) int {
	if p != nil {
		for _, a := range p.accounts {
			if a.Limit > 0 {
				most = min(most, a.Limit-a.running)
			}
		}
	}
	return max(0, most)
}

// quotas returns for whom a lease of an author's step counts. An urgent one is not bound.
func (p *payer) quotas(urgent bool) (list []*eventsv1.StepQuota) {
	if p == nil {
		return nil
	}
	for _, a := range p.accounts {
		limit := uint32(a.Limit)
		if urgent {
			limit = 0
		}
		list = append(list, &eventsv1.StepQuota{Kind: a.Kind, Name: a.Name, Limit: limit})
	}
	return list
}

func (s *quotas) count(l *Lease, n int) {
	for _, of := range l.Quotas {
		a := s.account(accountOf(of))
		a.add(n)
		s.forget(a)
	}
}

func accountOf(of *eventsv1.StepQuota) quota.Account {
	return quota.Account{Kind: of.GetKind(), Name: of.GetName()}
}

// holdLease makes a lease the one of its version.
func (q *Queue) holdLease(l *Lease) {
	q.leases[l.Version] = l
	for _, of := range l.Quotas {
		q.choice.quotas.leased[accountOf(of)]++
	}
	q.countLease(l, true)
}

// dropLease drops a version's lease, if it has one.
func (q *Queue) dropLease(v Version) {
	l := q.leases[v]
	if l == nil {
		return
	}
	delete(q.leases, v)
	leased := q.choice.quotas.leased
	for _, of := range l.Quotas {
		if leased[accountOf(of)]--; leased[accountOf(of)] == 0 {
			delete(leased, accountOf(of))
		}
	}
	q.countLease(l, false)
}

// countLease counts a lease while it is in force at the time of the last choice.
func (q *Queue) countLease(l *Lease, held bool) {
	in := held && l.UntilUs >= q.choice.nowUs
	if in != l.counted {
		l.counted = in
		q.choice.quotas.count(l, boolean(in)-boolean(!in))
	}
}

// countTaken counts steps whose lease may not have been read, each for the first build that wants it, and returns what takes
// that back.
func (q *Queue) countTaken(taken []Version) (payers []*payer) {
	if q.choice.quotas.of == nil {
		return nil
	}
	for _, v := range taken {
		w := q.wanted[v]
		if l := q.leases[v]; w == nil || l != nil && l.counted {
			continue
		}
		for _, a := range w.askers {
			if a.successor == "" && a.open[a.place] {
				a.payer.add(1)
				payers = append(payers, a.payer)
				break
			}
		}
	}
	return payers
}

// admits reports whether a lease of a version keeps to its quotas: of those in force at a time, and of other versions, fewer
// name each than may. Lapsed ones that stand in its way are returned.
func (q *Queue) admits(c Lease, stampUs int64) (lapsed []Version, admits bool) {
	for _, of := range c.Quotas {
		limit := int(of.GetLimit())
		if limit == 0 || q.choice.quotas.leased[accountOf(of)] < limit {
			continue
		}
		running, had := 0, len(lapsed)
		for v, l := range q.leases {
			switch {
			case v == c.Version || !l.counts(accountOf(of)):
			case l.UntilUs >= stampUs:
				running++
			default:
				lapsed = append(lapsed, v)
			}
		}
		if running >= limit {
			return nil, false
		}
		if running+len(lapsed)-had < limit {
			lapsed = lapsed[:had]
		}
	}
	return lapsed, true
}

func (l *Lease) counts(of quota.Account) bool {
	return slices.ContainsFunc(l.Quotas, func(o *eventsv1.StepQuota) bool { return accountOf(o) == of })
}

// Full is a quota under which no further step may run, and how many do.
type Full struct {
	quota.Quota
	Running int
}

// OverQuota returns the quota for which steps of a pending revision of a change wait, the author's before the team's before the
// queue's, and whether others of its steps run; nil if none waits for a quota. A lease counts until it ends or another worker takes
// over, lapsed or not.
func (q *Queue) OverQuota(c *eventsv1.ChangeRef) (full *Full, runs bool) {
	pending := q.lineup.PendingAt(c)
	if q.choice.quotas.of == nil || pending == nil || pending.Urgent {
		return nil, false
	}
	for _, of := range slices.Backward(q.choice.quotas.of.Of(quota.AuthorOf(pending.Admission.Author))) {
		if running := q.choice.quotas.leased[of.Account]; running >= of.Limit {
			waits, runs := q.progress(c)
			if !waits {
				return nil, false
			}
			return &Full{of, running}, runs
		}
	}
	return nil, false
}

// progress reports whether a change has a step that no worker runs, or no build at all, and whether it has one that a worker runs.
func (q *Queue) progress(c *eventsv1.ChangeRef) (waits, runs bool) {
	builds := false
	for _, b := range q.ofChange[c.GetChange()] {
		if b.successor != "" || b.change().GetRevision() != c.GetRevision() {
			continue
		}
		builds = true
		for i, open := range b.open {
			if open && q.leases[b.asked[i].Version] == nil {
				waits = true
			} else if open {
				runs = true
			}
		}
	}
	return waits || !builds, runs
}

// fullWith returns the quota for which an author's steps wait behind those of a list, nil if none does.
func (p *payer) fullWith(list []Step) *Full {
	if p == nil {
		return nil
	}
	for _, a := range slices.Backward(p.accounts) {
		listed := 0
		for _, s := range list {
			listed += boolean(slices.ContainsFunc(s.Quotas, func(of *eventsv1.StepQuota) bool { return accountOf(of) == a.Account }))
		}
		if a.running+listed >= a.Limit {
			return &Full{a.Quota, a.running}
		}
	}
	return nil
}
