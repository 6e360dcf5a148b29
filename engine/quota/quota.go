// Package quota says for whom the steps of a change are counted while they run, and how many of them may (M33b).
package quota

import (
	"strings"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// Account is a queue, a team or an author for whom running steps are counted. A queue has no name: its accounts are its own.
type Account struct {
	Kind eventsv1.QuotaKind
	Name string
}

// Quota is how many steps may run at the same time for an account; 0 is any number.
type Quota struct {
	Account
	Limit int
}

// Quotas holds the quotas of a queue. The nil value has none.
type Quotas struct {
	settings *eventsv1.Quotas
	authors  []*targets.NamePatterns
	teams    []*targets.NamePatterns
}

// New returns the quotas of a queue's settings, nil if they have none.
func New(settings *eventsv1.Quotas) *Quotas {
	if settings == nil {
		return nil
	}
	q := &Quotas{settings: settings}
	for _, a := range settings.GetAuthors() {
		q.authors = append(q.authors, patterns(a.GetWho()))
	}
	for _, t := range settings.GetTeams() {
		q.teams = append(q.teams, patterns(t.GetWho()))
	}
	return q
}

func patterns(who []string) *targets.NamePatterns {
	lower := make([]string, len(who))
	for i, text := range who {
		lower[i] = strings.ToLower(text)
	}
	return targets.NewNamePatterns(lower)
}

// maxAuthorBytes bounds the name of an author.
const maxAuthorBytes = 200

// AuthorOf returns who is counted for the steps of a change whose author is "Ada <ada@example.com>": the address if there is one,
// else the name, in lower case.
func AuthorOf(author string) string {
	if from, to := strings.LastIndexByte(author, '<'), strings.LastIndexByte(author, '>'); from >= 0 && to > from+1 {
		author = author[from+1 : to]
	}
	author = strings.ToLower(strings.TrimSpace(author))
	return strings.ToValidUTF8(author[:min(len(author), maxAuthorBytes)], "")
}

// Of returns the quotas that bind the steps of an author, at most one of each kind: the queue's, the team's and the author's.
func (q *Quotas) Of(author string) (list []Quota) {
	if q == nil {
		return nil
	}
	add := func(kind eventsv1.QuotaKind, name string, limit uint32) {
		if limit > 0 {
			list = append(list, Quota{Account{kind, name}, int(limit)})
		}
	}
	add(eventsv1.QuotaKind_QUOTA_KIND_QUEUE, "", q.settings.GetQueue())
	for i, t := range q.settings.GetTeams() {
		if q.teams[i].Has(author) {
			add(eventsv1.QuotaKind_QUOTA_KIND_TEAM, t.GetName(), t.GetSteps())
			break
		}
	}
	limit := q.settings.GetAuthor()
	for i, a := range q.settings.GetAuthors() {
		if q.authors[i].Has(author) {
			limit = a.GetSteps()
			break
		}
	}
	add(eventsv1.QuotaKind_QUOTA_KIND_AUTHOR, author, limit)
	return list
}
