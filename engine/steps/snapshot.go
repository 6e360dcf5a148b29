package steps

import (
	"cmp"
	"fmt"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the queue as a message. It shares messages that nobody changes.
func (q *Queue) Snapshot() *snapshotv1.Steps {
	m := &snapshotv1.Steps{
		Mentions: q.memory.mentions, Schedules: q.schedules, Starts: q.starts, LeftHeads: q.memory.leftHeads, Ledger: q.ledger.Snapshot(), Lineup: q.lineup.Snapshot(),
	}
	w := &snapshotWriter{m: m, targets: map[string]uint32{}, versions: map[Version]uint32{}}
	for v, number := range q.memory.named {
		m.VersionMentions[w.version(v)] = number
	}
	live := slices.SortedFunc(slices.Values(q.order), func(a, b *build) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.schedule, b.schedule))
	})
	m.Live, m.Closed = w.builds(live), w.builds(q.closed)
	for _, p := range q.early {
		m.Early = append(m.Early, p)
	}
	for change, of := range q.memory.trees {
		t := &snapshotv1.StepsTrees{Change: change, Revision: of.revision, SinceUs: of.sinceUs}
		for v := range of.versions {
			t.Versions = append(t.Versions, w.version(v))
		}
		m.Trees = append(m.Trees, t)
	}
	for _, v := range q.memory.mainline {
		m.Mainline = append(m.Mainline, w.version(v))
	}
	for _, l := range q.leases {
		m.Leases = append(m.Leases, &snapshotv1.StepsLease{
			Version: w.version(l.Version), Attempt: l.Attempt, Id: l.ID, Worker: l.Worker, Build: l.Build, UntilUs: l.UntilUs,
			Exclusive: l.Exclusive, Quotas: l.Quotas})
	}
	m.Estimates = &snapshotv1.StepsEstimates{
		Targets: outcomesMessages(q.estimates.targets), Packages: outcomesMessages(q.estimates.packages),
		Queue: q.estimates.queue.message(), ScaleUs: q.estimates.scaleUs,
		WorkCount: q.estimates.work.count, WorkMeanUs: q.estimates.work.mean,
	}
	m.GivenUs = q.fair.givenUs
	for _, g := range q.fair.gone {
		m.GoneEndsUs, m.GoneWorths = append(m.GoneEndsUs, g.endUs), append(m.GoneWorths, g.worth)
	}
	for v, want := range q.wanted {
		m.Wanted, m.WantedUs, m.WantedRisks = append(m.Wanted, w.version(v)), append(m.WantedUs, want.us), append(m.WantedRisks, want.risk)
	}
	return m
}

func (h *outcomes) message() *snapshotv1.StepsOutcomes {
	return &snapshotv1.StepsOutcomes{TookCount: h.took.count, TookMeanUs: h.took.mean, FailedCount: h.failed.count, FailedMean: h.failed.mean}
}

func outcomesMessages(of map[string]*outcomes) map[string]*snapshotv1.StepsOutcomes {
	out := make(map[string]*snapshotv1.StepsOutcomes, len(of))
	for name, h := range of {
		out[name] = h.message()
	}
	return out
}

func outcomesByName(m map[string]*snapshotv1.StepsOutcomes) map[string]*outcomes {
	out := make(map[string]*outcomes, len(m))
	for name, h := range m {
		of := outcomesFrom(h)
		out[name] = &of
	}
	return out
}

func outcomesFrom(m *snapshotv1.StepsOutcomes) outcomes {
	return outcomes{took: average{m.GetTookCount(), m.GetTookMeanUs()}, failed: average{m.GetFailedCount(), m.GetFailedMean()}}
}

// snapshotWriter writes each target and each version once.
type snapshotWriter struct {
	m        *snapshotv1.Steps
	targets  map[string]uint32
	versions map[Version]uint32
}

func (w *snapshotWriter) target(name string) uint32 {
	i, had := w.targets[name]
	if !had {
		i = uint32(len(w.m.Targets))
		w.targets[name], w.m.Targets = i, append(w.m.Targets, name)
	}
	return i
}

func (w *snapshotWriter) version(v Version) uint32 {
	i, had := w.versions[v]
	if !had {
		i = uint32(len(w.m.VersionTargets))
		w.versions[v] = i
		w.m.VersionTargets = append(w.m.VersionTargets, w.target(v.Target))
		w.m.VersionHashes, w.m.VersionMentions = append(w.m.VersionHashes, v.Hash), append(w.m.VersionMentions, 0)
	}
	return i
}

func (w *snapshotWriter) builds(list []*build) (out []*snapshotv1.StepsBuild) {
	for _, b := range list {
		m := &snapshotv1.StepsBuild{
			Scheduled: b.scheduled, Offset: b.origin.Offset, Trace: b.origin.Trace, Schedule: b.schedule, Started: b.started,
			Prepared: b.prepared, Successor: b.successor, Revived: b.revived, SinceUs: b.sinceUs, Author: b.author,
			Share: &snapshotv1.StepsShare{BeganUs: b.share.beganUs, SinceUs: b.share.sinceUs, GotUs: b.share.gotUs, ThroughUs: b.share.throughUs},
		}
		if b.value != b.scheduled.GetValue() {
			m.Value = &b.value
		}
		if slices.ContainsFunc(b.asked, func(a asked) bool { return len(a.needs) > 0 || a.waits }) {
			for _, a := range b.asked {
				n := &eventsv1.VersionNeeds{Given: a.waits}
				for _, of := range a.needs {
					n.Versions = append(n.Versions, uint32(of))
				}
				m.Needs = append(m.Needs, n)
			}
		}
		for i, a := range b.asked {
			if a.group > 0 {
				for len(m.Groups) < len(b.ordered) {
					m.Groups = append(m.Groups, &eventsv1.StepGroup{Ordered: b.ordered[len(m.Groups)]})
				}
				of := m.Groups[a.group-1]
				of.Versions = append(of.Versions, uint32(i))
			}
			if a.claims != nil {
				m.Claims = append(m.Claims, &eventsv1.StepClaims{
					Version: uint32(len(m.Asked)), Exclusive: a.claims.GetExclusive(), Resources: a.claims.GetResources(), Labels: a.claims.GetLabels()})
			}
			m.Asked, m.AskedParts = append(m.Asked, w.version(a.Version)), append(m.AskedParts, a.part)
		}
		out = append(out, m)
	}
	return out
}

// Restore returns the queue that a message was made of.
func Restore(m *snapshotv1.Steps) (*Queue, error) {
	q := New()
	q.memory.mentions, q.schedules, q.starts = m.GetMentions(), m.GetSchedules(), m.GetStarts()
	q.ledger = evidence.Restore(m.GetLedger())
	var err error
	if q.lineup, err = lineup.Restore(m.GetLineup()); err != nil {
		return nil, err
	}
	r := &snapshotReader{targets: m.GetTargets()}
	if err := r.readVersions(m); err != nil {
		return nil, err
	}
	for i, v := range r.versions {
		if number := m.VersionMentions[i]; number > 0 {
			q.memory.named[v] = number
		}
	}
	q.estimates = estimates{
		targets: outcomesByName(m.GetEstimates().GetTargets()), packages: outcomesByName(m.GetEstimates().GetPackages()),
		queue: outcomesFrom(m.GetEstimates().GetQueue()), scaleUs: max(1, m.GetEstimates().GetScaleUs()),
		work: average{m.GetEstimates().GetWorkCount(), m.GetEstimates().GetWorkMeanUs()},
	}
	if len(m.GetWantedUs()) != len(m.GetWanted()) || len(m.GetWantedRisks()) != len(m.GetWanted()) {
		return nil, fmt.Errorf("the lists of %d, %d and %d wanted versions differ in length", len(m.GetWanted()), len(m.GetWantedUs()), len(m.GetWantedRisks()))
	}
	if q.fair.givenUs = m.GetGivenUs(); len(m.GetGoneEndsUs()) != len(m.GetGoneWorths()) {
		return nil, fmt.Errorf("the lists of %d and %d builds that are over differ in length", len(m.GetGoneEndsUs()), len(m.GetGoneWorths()))
	}
	for i, endUs := range m.GetGoneEndsUs() {
		q.fair.gone = append(q.fair.gone, goneBuild{endUs, m.GoneWorths[i]})
	}
	for i, at := range m.GetWanted() {
		v := r.version(at)
		q.wanted[v] = &wanted{Version: v, us: m.WantedUs[i], risk: m.WantedRisks[i]}
	}
	for _, b := range r.builds(m.GetLive()) {
		q.insert(b)
		if b.started > 0 {
			q.want(b)
			b.sort()
		}
	}
	q.closed = r.builds(m.GetClosed())
	q.memory.leftHeads = m.GetLeftHeads()
	for _, p := range m.GetEarly() {
		q.early[p.Build] = p
	}
	for _, t := range m.GetTrees() {
		of := &trees{t.Revision, make(map[Version]bool, len(t.Versions)), t.SinceUs}
		for _, i := range t.Versions {
			of.versions[r.version(i)] = true
		}
		q.memory.trees[t.Change] = of
	}
	for _, i := range m.GetMainline() {
		v := r.version(i)
		q.memory.mainline[v.Target] = v
	}
	for _, l := range m.GetLeases() {
		v := r.version(l.Version)
		q.holdLease(&Lease{Version: v, Attempt: l.Attempt, ID: l.Id, Worker: l.Worker, Build: l.Build, UntilUs: l.UntilUs, Exclusive: l.Exclusive, Quotas: l.Quotas})
	}
	return q, r.err
}

// snapshotReader looks indices up. An index that is out of range sets err and gives something empty.
type snapshotReader struct {
	targets  []string
	versions []Version
	err      error
}

func (r *snapshotReader) readVersions(m *snapshotv1.Steps) error {
	n := len(m.GetVersionTargets())
	if len(m.GetVersionHashes()) != n || len(m.GetVersionMentions()) != n {
		return fmt.Errorf("the lists of %d, %d and %d versions differ in length", n, len(m.GetVersionHashes()), len(m.GetVersionMentions()))
	}
	r.versions = make([]Version, n)
	for i, t := range m.GetVersionTargets() {
		r.versions[i] = Version{Target: r.target(t), Hash: m.VersionHashes[i]}
	}
	return nil
}

func (r *snapshotReader) target(i uint32) string { return at(r, "target", r.targets, i) }

func (r *snapshotReader) version(i uint32) Version { return at(r, "version", r.versions, i) }

func at[V any](r *snapshotReader, what string, list []V, i uint32) (v V) {
	if int(i) >= len(list) {
		r.err = fmt.Errorf("there is no %s %d of %d", what, i, len(list))
		return v
	}
	return list[i]
}

func (r *snapshotReader) builds(list []*snapshotv1.StepsBuild) (out []*build) {
	for _, m := range list {
		if m.GetScheduled().GetBuild() == "" || len(m.Asked) != len(m.AskedParts) {
			r.err = fmt.Errorf("the build %q asks for %d versions at %d landing commits", m.GetScheduled().GetBuild(), len(m.Asked), len(m.AskedParts))
			return nil
		}
		b := &build{
			scheduled: m.Scheduled, origin: Origin{m.Offset, m.Trace}, schedule: m.Schedule, started: m.Started,
			prepared: m.Prepared, successor: m.Successor, revived: m.Revived, value: m.Scheduled.GetValue(), sinceUs: m.SinceUs, author: m.Author,
			share: share{m.Share.GetBeganUs(), m.Share.GetSinceUs(), m.Share.GetGotUs(), m.Share.GetThroughUs()},
		}
		if m.Value != nil {
			b.value = *m.Value
		}
		if m.Started > 0 {
			versions := make([]asked, len(m.Asked))
			for i, v := range m.Asked {
				versions[i] = asked{Version: r.version(v), part: m.AskedParts[i]}
			}
			for _, c := range m.Claims {
				if int(c.GetVersion()) >= len(versions) {
					r.err = fmt.Errorf("the build %q has claims of version %d of %d", m.GetScheduled().GetBuild(), c.GetVersion(), len(versions))
					return nil
				}
				versions[c.GetVersion()].claims = &eventsv1.StepClaims{Exclusive: c.GetExclusive(), Resources: c.GetResources(), Labels: c.GetLabels()}
			}
			if !r.readNeeds(m, versions) {
				return nil
			}
			place := make([]int, len(versions))
			for i := range place {
				place[i] = i
			}
			b.set(versions, setGroups(versions, place, m.Groups))
		}
		out = append(out, b)
	}
	return out
}

// readNeeds fills in what versions depend on, and reports whether they are there.
func (r *snapshotReader) readNeeds(m *snapshotv1.StepsBuild, versions []asked) bool {
	for i, needs := range m.Needs {
		if i < len(versions) {
			versions[i].waits = needs.GetGiven()
		}
		for _, of := range needs.GetVersions() {
			if i >= len(versions) || int(of) >= len(versions) {
				r.err = fmt.Errorf("version %d of the %d of build %q depends on version %d", i, len(versions), m.Scheduled.GetBuild(), of)
				return false
			}
			versions[i].needs = append(versions[i].needs, int(of))
		}
	}
	return true
}
