package rows

import (
	"fmt"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// changeRow holds a part of what is known of a revision of a change. Empty values are unknown. The table merges the rows of one revision
// by minimum, maximum and union.
type changeRow struct {
	queue, change                            string
	revision                                 uint64
	received, admitted                       *time.Time
	author, team, title, uri                 string
	entries, commits                         *uint32
	benefit                                  *float64
	requires                                 []string
	analyzed                                 *time.Time
	analyses                                 []uint64
	files, added, deleted, targets           *uint32
	all                                      *uint8
	decided, intended                        *time.Time
	landed, rejected, ejected, cancelled     *time.Time
	reasonClass, reasonMessage, commit, base string
	bypasses                                 []string
	refusals, voids                          []uint64
}

var changeColumns = []string{
	"queue", "change", "revision", "received_at", "admitted_at", "author", "team", "title", "uri", "entries", "landing_commits", "benefit",
	"requires", "analyzed_at", "analyses", "files_changed", "lines_added", "lines_deleted", "targets", "affects_all", "decided_at", "intended_at",
	"landed_at", "rejected_at", "ejected_at", "cancelled_at", "reason_class", "reason_message", "commit", "base", "bypasses",
	"refusals", "voids",
}

func (s *Set) addChange(c changeRow) {
	s.add(Changes, c.queue, c.change, c.revision, c.received, c.admitted, c.author, c.team, c.title, c.uri, c.entries, c.commits, c.benefit,
		filled(c.requires), c.analyzed, filled(c.analyses), c.files, c.added, c.deleted, c.targets, c.all, c.decided, c.intended,
		c.landed, c.rejected, c.ejected, c.cancelled, c.reasonClass, c.reasonMessage, c.commit, c.base, filled(c.bypasses),
		filled(c.refusals), filled(c.voids))
}

// filled replaces nil, which the client does not accept for an array.
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func number(n int) *uint32 {
	v := uint32(n)
	return &v
}

// addFacts adds the rows of a record that counts. It leaves out the facts that speculations repeat from other topics.
func (s *Set) addFacts(r Record) {
	switch m := r.Message.(type) {
	case *eventsv1.ChangeAdmitted:
		s.addAdmission(r, m.Admission)
	case *eventsv1.ChangeRevised:
		s.addAdmission(r, m.Admission)
	case *eventsv1.ChangeCancelled:
		s.addChange(changeRow{queue: r.Queue, change: m.Change, revision: m.Revision, cancelled: stampOr(m.StampUs, r)})
	case *eventsv1.ChangeAnalyzed:
		s.addAnalysis(r, m)
	case *eventsv1.LandIntended:
		s.addChange(changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), intended: stampOr(m.StampUs, r)})
	case *eventsv1.LandVoid:
		s.addChange(changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), voids: []uint64{uint64(r.Offset)}})
	case *eventsv1.ChangeLanded:
		c := changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), landed: stampOr(m.StampUs, r), base: m.Base, bypasses: refs(m.Bypasses)}
		if n := len(m.Commits); n > 0 {
			c.commit = m.Commits[n-1]
		}
		s.addChange(c)
	case *eventsv1.ChangeRejected:
		s.addChange(changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), rejected: stampOr(m.StampUs, r), base: m.Base,
			reasonClass: reasonClass(m.Reason.GetClass()), reasonMessage: m.Reason.GetMessage()})
	case *eventsv1.ChangeEjected:
		s.addChange(changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), ejected: stampOr(m.StampUs, r), base: m.Base,
			reasonClass: reasonClass(m.Reason.GetClass()), reasonMessage: m.Reason.GetMessage()})
	case *eventsv1.Refused:
		s.addChange(changeRow{queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), refusals: []uint64{uint64(r.Offset)}})
	case *eventsv1.BuildPrepared:
		s.addPreparation(r, m)
	case *eventsv1.StepFinished:
		s.addStep(r, m)
	case *eventsv1.Speculation:
		for _, b := range m.Delta.GetBuilds() {
			if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
				s.addBuild(buildRow{queue: r.Queue, build: b.Build, finished: stampOr(m.StampUs, r)})
			}
		}
	case *eventsv1.Decision:
		s.addDecision(r, m)
	case *eventsv1.Profile:
		s.addProfile(r, m)
	}
}

func (s *Set) addAdmission(r Record, a *eventsv1.Admission) {
	if a == nil {
		return
	}
	c := changeRow{
		queue: r.Queue, change: a.Change, revision: a.Revision, received: stamp(a.ReceivedUs), admitted: when(r),
		author: a.Author, team: a.Team, title: a.Title, uri: a.Uri, requires: a.Requires,
		entries: number(len(a.Entries)), commits: number(len(a.LandingCommits)),
	}
	benefit := a.Benefit
	c.benefit = &benefit
	s.addChange(c)
}

func (s *Set) addAnalysis(r Record, m *eventsv1.ChangeAnalyzed) {
	c := changeRow{
		queue: r.Queue, change: m.Change.GetChange(), revision: m.Change.GetRevision(), analyzed: stampOr(m.FinishedUs, r), analyses: []uint64{uint64(r.Offset)},
		files: &m.FilesChanged, added: &m.LinesAdded, deleted: &m.LinesDeleted,
	}
	if m.Affected != nil {
		c.targets = number(len(m.Affected.Targets))
		all := uint8(0)
		if m.Affected.All {
			all = 1
		}
		c.all = &all
	}
	s.addChange(c)
}

// when returns the time of the record, for a fact without a stamp.
func when(r Record) *time.Time {
	t := within(r.Time)
	return &t
}

func stampOr(us int64, r Record) *time.Time {
	if t := stamp(us); t != nil {
		return t
	}
	return when(r)
}

// refs formats revisions as change#revision.
func refs(list []*eventsv1.ChangeRef) []string {
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, fmt.Sprintf("%s#%d", c.GetChange(), c.GetRevision()))
	}
	return names
}
