// Package flakes counts which targets contradict themselves: a version that failed and then passed, with nothing changed, is a
// flake. The lander quarantines by these rates (M24a), and the gateway shows them.
package flakes

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Bounds on what is kept of one queue: targets with a flake, and versions that failed and have not passed or whose failures were
// taken back.
const (
	MaxTargets = 10_000
	maxOpen    = 10_000
)

// halveAt is how many versions of a target count fully. Beyond, what came before weighs half, so that a target that was mended
// loses its rate.
const halveAt = 200

// Target is what is known of a target that has had a flake.
type Target struct {
	Name string
	// Versions have passed since the first flake, Flakes of them after a failure; older ones weigh less.
	Versions, Flakes int64
	// LostUS is the time that attempts took, in microseconds, which failed and were contradicted.
	LostUS int64
	// LastUS is when the last flake was seen, LastBuild the build that it was in.
	LastUS    int64
	LastBuild string
}

// Rate returns the share of versions that were flakes.
func (t Target) Rate() float64 { return float64(t.Flakes) / float64(max(1, t.Versions)) }

// Stats are the flakes of one queue, a fold of its finished steps. The zero value is not usable; see New.
type Stats struct {
	targets map[string]*Target
	// open has the versions that failed and have not passed, or whose failures were taken back; order has them oldest first.
	open  map[evidence.Version]open
	order []evidence.Version
}

// open is a version that has not passed since its last failure, or since that was taken back.
type open struct {
	// failed is set if a failure counts. lostUS is the time that such failures took, in microseconds.
	failed bool
	lostUS int64
	// takenBack is the number of the last attempt whose failure does not count.
	takenBack uint32
}

// New returns the state of a queue without flakes.
func New() *Stats {
	return &Stats{targets: map[string]*Target{}, open: map[evidence.Version]open{}}
}

// Apply folds a finished step that counts, each attempt once, and returns the target if it is a flake, else nil.
func (s *Stats) Apply(f *eventsv1.StepFinished) *Target {
	v := evidence.Version{Target: f.Target, Hash: f.Hash}
	took := max(0, f.FinishedUs-f.StartedUs)
	switch f.Outcome {
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		if o := s.open[v]; f.Attempt > o.takenBack {
			o.failed, o.lostUS = true, o.lostUS+took
			s.keep(v, o)
		}
		return nil
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
	default:
		return nil
	}
	lost, flake := s.open[v].lostUS, s.open[v].failed
	t := s.targets[f.Target]
	if t == nil && flake && len(s.targets) < MaxTargets {
		t = &Target{Name: f.Target}
		s.targets[f.Target] = t
	}
	s.forget(v)
	if t == nil {
		return nil
	}
	if t.Versions++; t.Versions >= 2*halveAt {
		t.Versions, t.Flakes = t.Versions/2, t.Flakes/2
	}
	if !flake {
		return nil
	}
	t.Flakes++
	t.LostUS += lost
	t.LastUS, t.LastBuild = f.FinishedUs, f.Build
	return t
}

// TakeBack folds a record of landfall.changes by which failures do not count any more since they had a cause outside of the trees: a
// ChangeRetried (M23a), and a refusal that has the mainline run once more (M23c). A pass after them is no flake. What a change was
// rejected for, and passes when it is submitted again, is one. The record stands in another topic than the steps: a failure after the
// retry that is read before it does not count either.
func (s *Stats) TakeBack(m proto.Message) {
	var failed []*eventsv1.Proof
	switch f := m.(type) {
	case *eventsv1.ChangeRetried:
		failed = f.GetFailed()
	case *eventsv1.Refused:
		failed = f.GetBaseOutdated()
	}
	for _, p := range failed {
		v := evidence.VersionOf(p)
		s.keep(v, open{takenBack: max(s.open[v].takenBack, p.GetAttempt())})
	}
}

func (s *Stats) keep(v evidence.Version, o open) {
	if _, had := s.open[v]; !had {
		s.order = append(s.order, v)
	}
	s.open[v] = o
	if len(s.order) > maxOpen {
		delete(s.open, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

func (s *Stats) forget(v evidence.Version) {
	if _, had := s.open[v]; !had {
		return
	}
	delete(s.open, v)
	if i := slices.Index(s.order, v); i >= 0 {
		s.order = slices.Delete(s.order, i, i+1)
	}
}

// Restart forgets the rate of a target: what it did before a quarantine is no reason for another.
func (s *Stats) Restart(target string) {
	if t := s.targets[target]; t != nil {
		t.Versions, t.Flakes = 0, 0
	}
}

// Of returns what is known of a target, the zero value if it has had no flake.
func (s *Stats) Of(target string) Target {
	if t := s.targets[target]; t != nil {
		return *t
	}
	return Target{}
}

// Targets returns the targets that have had a flake, those with the highest rate first.
func (s *Stats) Targets() []Target {
	list := make([]Target, 0, len(s.targets))
	for _, t := range s.targets {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b Target) int {
		switch {
		case a.Rate() > b.Rate():
			return -1
		case a.Rate() < b.Rate():
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

// Above returns the targets, sorted, of which at least so many versions have passed since the first flake, and more than the
// rate of them were flakes.
func (s *Stats) Above(rate float64, versions int64) []Target {
	var list []Target
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		if t := s.targets[name]; t.Versions >= versions && t.Rate() > rate {
			list = append(list, *t)
		}
	}
	return list
}

// Snapshot returns the state as a message.
func (s *Stats) Snapshot() *snapshotv1.Flakes {
	m := &snapshotv1.Flakes{}
	for _, name := range slices.Sorted(maps.Keys(s.targets)) {
		t := s.targets[name]
		m.Targets = append(m.Targets, &snapshotv1.FlakyTarget{
			Target: t.Name, Versions: t.Versions, Flakes: t.Flakes, LostUs: t.LostUS, LastUs: t.LastUS, LastBuild: t.LastBuild,
		})
	}
	for _, v := range s.order {
		o := s.open[v]
		m.Open = append(m.Open, &snapshotv1.FlakyVersion{Target: v.Target, Hash: v.Hash, LostUs: o.lostUS, TakenBack: o.takenBack, Failed: o.failed})
	}
	return m
}

// Restore returns the state that a message was made of.
func Restore(m *snapshotv1.Flakes) *Stats {
	s := New()
	for _, t := range m.GetTargets() {
		s.targets[t.Target] = &Target{
			Name: t.Target, Versions: t.Versions, Flakes: t.Flakes, LostUS: t.LostUs, LastUS: t.LastUs, LastBuild: t.LastBuild,
		}
	}
	for _, of := range m.GetOpen() {
		v := evidence.Version{Target: of.Target, Hash: of.Hash}
		s.open[v] = open{failed: of.Failed || of.TakenBack == 0, lostUS: of.LostUs, takenBack: of.TakenBack}
		s.order = append(s.order, v)
	}
	return s
}
