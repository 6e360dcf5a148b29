package view

import (
	"fmt"

	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
)

// Quota is a limit on steps that run at the same time, under which no further one may.
type Quota struct {
	// Of is queue, team or author, and Name that of the team or the author.
	Of   string `json:"of"`
	Name string `json:"name,omitempty"`
	// Steps is how many may run, Running how many do.
	Steps   int `json:"steps"`
	Running int `json:"running"`
}

func quotaOf(full *steps.Full) *Quota {
	if full == nil {
		return nil
	}
	of := map[eventsv1.QuotaKind]string{
		eventsv1.QuotaKind_QUOTA_KIND_QUEUE: "queue", eventsv1.QuotaKind_QUOTA_KIND_TEAM: "team", eventsv1.QuotaKind_QUOTA_KIND_AUTHOR: "author",
	}[full.Kind]
	return &Quota{of, full.Name, full.Limit, full.Running}
}

// clause is why steps wait.
func (o *Quota) clause() string {
	who, setting := "the queue", "quotas.queue"
	switch o.Of {
	case "team":
		who, setting = "team "+o.Name, "quotas.teams"
	case "author":
		who, setting = person(pushedWord(o.Name, maxPushedAuthor)), "quotas.author"
	}
	if o.Running < o.Steps {
		return fmt.Sprintf("%s may have %s running at the same time (%s), and others come first", who, count(o.Steps, "step"), setting)
	}
	return fmt.Sprintf("%s has %d of %s running (%s)", who, o.Running, count(o.Steps, "step"), setting)
}

// overQuota returns the quota for which steps of a pending change wait, and whether others of its steps run; nil if none waits for one.
func (q *Queue) overQuota(r ref) (o *Quota, runs bool) {
	if !q.HasQuotas() {
		return nil, false
	}
	q.choice.SetQuotas(q.known.Settings().GetQuotas())
	full, runs := q.choice.OverQuota(&eventsv1.ChangeRef{Change: r.change, Revision: r.revision})
	return quotaOf(full), runs
}

func (o *Quota) reason() Reason {
	return Reason{Code: ReasonQuota, Sentence: "It waits: " + o.clause() + "."}
}
