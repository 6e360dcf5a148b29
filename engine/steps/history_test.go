package steps

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// history makes random records of a queue; some are repeats, late, or of builds that nobody knows.
type history struct {
	r        *rand.Rand
	clock    int64
	ids      int
	known    []string
	admitted int
	// treesOf: trees are said to be of changes.
	treesOf bool
	// quotas bound the steps of the authors.
	quotas *eventsv1.Quotas
}

// authors are those of changes.
var authors = []string{"Ada <ada@example.com>", "Bob", "Eve <EVE@example.com>", ""}

// setQuotas draws how many steps may run for whom.
func (h *history) setQuotas() *eventsv1.Quotas {
	h.quotas = &eventsv1.Quotas{Queue: uint32(h.r.IntN(5)), Author: uint32(h.r.IntN(3))}
	if h.r.IntN(2) == 0 {
		h.quotas.Authors = []*eventsv1.AuthorQuota{{Who: []string{"bob", "nobody"}, Steps: 1}}
	}
	if h.r.IntN(2) == 0 {
		h.quotas.Teams = []*eventsv1.TeamQuota{{Name: "team", Who: []string{"*@Example.com"}, Steps: uint32(1 + h.r.IntN(3))}}
	}
	return h.quotas
}

// leaseQuotas are those of some author, or of nobody.
func (h *history) leaseQuotas() (list []*eventsv1.StepQuota) {
	if h.quotas == nil || h.r.IntN(4) == 0 {
		return nil
	}
	bound := uint32(min(1, h.r.IntN(8)))
	for _, of := range quota.New(h.quotas).Of(quota.AuthorOf(authors[h.r.IntN(len(authors))])) {
		list = append(list, &eventsv1.StepQuota{Kind: of.Kind, Name: of.Name, Limit: bound * uint32(of.Limit)})
	}
	return list
}

func (h *history) id() string {
	if len(h.known) == 0 || h.r.IntN(12) == 0 {
		return "nobody"
	}
	return h.known[max(0, len(h.known)-1-h.r.IntN(8))]
}

func (h *history) change() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", max(0, h.admitted-h.r.IntN(4))), Revision: uint64(1 + h.r.IntN(8)/7)}
}

// built is what a build is of: a change, or the mainline.
func (h *history) built() *eventsv1.ChangeRef {
	if h.r.IntN(8) == 0 {
		return &eventsv1.ChangeRef{}
	}
	return h.change()
}

func (h *history) version() *eventsv1.TargetVersion {
	return &eventsv1.TargetVersion{
		Target: fmt.Sprintf("//t%d", h.r.IntN(5)), Hash: fmt.Sprintf("h%d", h.r.IntN(2)), Part: uint32(h.r.IntN(3)),
		Trivial: h.r.IntN(9) == 0, Absent: h.r.IntN(9) == 0,
	}
}

// exclusiveOf is what the steps of a target have to themselves.
func exclusiveOf(target string) []string {
	return map[string][]string{"//t1": {"db"}, "//t2": {"db", "port"}, "//t3": {"port"}}[target]
}

func (h *history) next() proto.Message {
	h.clock += int64(h.r.IntN(20))
	switch h.r.IntN(14) {
	case 0, 1, 2:
		d := &eventsv1.Decision{StampUs: h.clock}
		fresh := []string{""}
		for range h.r.IntN(3) {
			h.ids++
			id := fmt.Sprintf("b%d", h.ids)
			if h.r.IntN(15) == 0 {
				id = h.id()
			}
			fresh = append(fresh, id)
			h.known = append(h.known, id)
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
				Build: id, Base: fmt.Sprint("m", h.r.IntN(3)), Value: float64(h.r.IntN(3)), Idle: h.r.IntN(6) == 0, Change: &eventsv1.AssumedChange{Change: h.built()}, Steps: &eventsv1.StepPolicy{
					FailedRetries: uint32(h.r.IntN(2)), TimedOutRetries: uint32(h.r.IntN(2)), InfrastructureRetries: uint32(h.r.IntN(2))},
			}}})
		}
		if h.r.IntN(3) == 0 {
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildRevalued{BuildRevalued: &eventsv1.BuildRevalued{
				Build: h.id(), Value: float64(h.r.IntN(3))}}})
		}
		for range h.r.IntN(3) {
			heir := fresh[h.r.IntN(len(fresh))]
			if h.r.IntN(6) == 0 {
				heir = h.id()
			}
			d.Items = append(d.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{
				Build: h.id(), SupersededBy: heir}}})
		}
		return d
	case 3, 4, 5:
		id := h.id()
		if h.r.IntN(10) == 0 {
			id = fmt.Sprintf("b%d", h.ids+1+h.r.IntN(2)) // before its schedule is read
		}
		p := &eventsv1.BuildPrepared{Build: id, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		if h.r.IntN(6) == 0 {
			p.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE
		}
		if h.treesOf && h.r.IntN(4) > 0 {
			p.Change = h.change()
		}
		for range h.r.IntN(5) {
			v := h.version()
			if names := exclusiveOf(v.Target); len(names) > 0 {
				p.Claims = append(p.Claims, &eventsv1.StepClaims{Version: uint32(len(p.Versions)), Exclusive: names})
			}
			p.Versions = append(p.Versions, v)
		}
		for i := range p.Versions {
			if of := h.r.IntN(4); of > 0 {
				for len(p.Groups) < of {
					p.Groups = append(p.Groups, &eventsv1.StepGroup{Ordered: len(p.Groups) == 1})
				}
				p.Groups[of-1].Versions = append(p.Groups[of-1].Versions, uint32(i))
			}
		}
		if h.r.IntN(2) == 0 {
			for _, v := range p.Versions {
				n := &eventsv1.VersionNeeds{Given: h.r.IntN(2) == 0}
				if of := h.r.IntN(len(p.Versions)); v.Target+v.Hash < p.Versions[of].Target+p.Versions[of].Hash { // no cycles
					n.Versions = append(n.Versions, uint32(of))
				}
				p.Needs = append(p.Needs, n)
			}
		}
		return p
	case 6, 7, 8:
		v := h.version()
		var group []*eventsv1.LeasedVersion
		for range h.r.IntN(3) {
			if w := h.version(); len(exclusiveOf(w.Target)) == 0 {
				group = append(group, &eventsv1.LeasedVersion{Target: w.Target, Hash: w.Hash, Attempt: uint32(1 + h.r.IntN(2)*20)})
			}
		}
		return &eventsv1.StepLeased{
			Group: group, Target: v.Target, Hash: v.Hash, Attempt: uint32(1 + h.r.IntN(2)*20), Lease: fmt.Sprintf("l%d", h.r.IntN(4)), Worker: "w", Build: h.id(),
			StampUs: h.clock, UntilUs: h.clock + int64(h.r.IntN(40)), Exclusive: exclusiveOf(v.Target), Quotas: h.leaseQuotas(),
		}
	case 9, 10:
		v := h.version()
		start := h.clock - int64(h.r.IntN(50))
		if h.r.IntN(4) == 0 {
			return &eventsv1.StepFinished{
				Target: v.Target, Hash: v.Hash, Attempt: uint32(1 + h.r.IntN(20)), Outcome: eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, Unreported: true}
		}
		outcome := eventsv1.StepOutcome(1 + h.r.IntN(5))
		if outcome == eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT {
			start -= int64(h.r.IntN(30_000)) // so that builds are late
		}
		return &eventsv1.StepFinished{
			Target: v.Target, Hash: v.Hash, Attempt: uint32(1 + h.r.IntN(2)*20), Outcome: outcome, StartedUs: start, FinishedUs: h.clock,
		}
	}
	if h.r.IntN(4) == 0 {
		f := &eventsv1.EvidenceForgotten{}
		for range 1 + h.r.IntN(4) {
			v := h.version()
			f.Versions = append(f.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash})
		}
		return f
	}
	return h.fact()
}

// fact is one of landfall.changes; some come too late, or of nobody.
func (h *history) fact() proto.Message {
	c := h.change()
	switch h.r.IntN(12) {
	case 11:
		return &eventsv1.ChangeMoved{Change: c.Change}
	case 0:
		return nil
	case 10:
		if h.r.IntN(2) == 0 {
			return &eventsv1.TargetQuarantined{Target: h.version().Target, UntilUs: 1}
		}
		return &eventsv1.QuarantineEnded{Target: h.version().Target}
	case 1, 2, 3:
		h.admitted++
		return &eventsv1.ChangeAdmitted{Admission: h.admission(fmt.Sprintf("c%d", h.admitted), 1)}
	case 4:
		return &eventsv1.ChangeRevised{Admission: h.admission(c.Change, 2)}
	case 5:
		return &eventsv1.ChangeCancelled{Change: c.Change, Revision: uint64(h.r.IntN(2))}
	case 7:
		return &eventsv1.MainlineMoved{To: fmt.Sprint("m", h.r.IntN(3))}
	case 6:
		commits := []string{fmt.Sprint("m", h.r.IntN(3))}
		if h.r.IntN(2) == 0 {
			return &eventsv1.LandIntended{Change: c, Commits: commits}
		}
		return &eventsv1.ChangeLanded{Change: c, Commits: commits, Proof: []*eventsv1.Proof{{Version: h.version()}}}
	}
	failed := []*eventsv1.Proof{{Version: h.version(), Attempt: uint32(1 + h.r.IntN(2)*20)}}
	switch h.r.IntN(4) {
	case 0:
		return &eventsv1.ChangeRetried{Change: c, Failed: failed}
	case 1:
		return &eventsv1.Refused{Change: c, BaseOutdated: failed}
	}
	return &eventsv1.ChangeRejected{Change: c, Reason: &eventsv1.Reason{Failed: failed}}
}

func (h *history) admission(change string, revision uint64) *eventsv1.Admission {
	return &eventsv1.Admission{Change: change, Revision: revision, Author: authors[h.admitted%len(authors)], LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}
}
