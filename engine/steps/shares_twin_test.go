package steps

import (
	"cmp"
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// twinAccount is what a change has to be given (M36).
type twinAccount struct {
	change         changeKey
	weight         float64
	through        float64
	since, passed  int64
	left           int64
	main           *twinBuild
	waiting, begun map[evidence.Version]int64
}

// sharing is what the twin knows of shares; the accounts are in the order in which they were opened.
type sharing struct {
	given    float64
	at       int64
	accounts []*twinAccount
}

func (s *twinState) account(c *eventsv1.ChangeRef) *twinAccount {
	for _, a := range s.shares.accounts {
		if a.change == keyOf(c) {
			return a
		}
	}
	return nil
}

// asking are the builds that ask for versions, as they began to.
func (s *twinState) asking() []*twinBuild {
	list := slices.DeleteFunc(s.live(), func(b *twinBuild) bool {
		return b.prepared == nil || b.prepared.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED
	})
	slices.SortFunc(list, func(a, b *twinBuild) int { return cmp.Compare(a.started, b.started) })
	return list
}

// inTurn returns the accounts in the order in which sharing is through with them.
func (s *twinState) inTurn() []*twinAccount {
	list := slices.Clone(s.shares.accounts)
	slices.SortStableFunc(list, func(a, b *twinAccount) int { return cmp.Compare(a.through, b.through) })
	return list
}

// given plays sharing on one worker from the last decision to a time.
func (s *twinState) given(now int64) float64 {
	given, left := s.shares.given, float64(max(0, now-s.shares.at))
	for s.shares.at > 0 {
		weight, next := 0.0, (*twinAccount)(nil)
		for _, a := range s.inTurn() {
			if a.through > given {
				weight += a.weight
				if next == nil {
					next = a
				}
			}
		}
		if next == nil {
			break
		}
		takes := (next.through - given) * weight
		if takes > left {
			return given + left/weight
		}
		given, left = next.through, left-takes
		for _, a := range s.shares.accounts {
			if a.through == given {
				a.passed = now - int64(left)
			}
		}
	}
	return given
}

// decided plays sharing to the stamp of a decision.
func (s *twinState) decided(stamp int64) {
	s.shares.given = s.given(stamp)
	s.shares.at = max(s.shares.at, stamp)
	s.closeAccounts()
}

func (s *twinState) closeAccounts() {
	asking := s.asking()
	s.shares.accounts = slices.DeleteFunc(s.shares.accounts, func(a *twinAccount) bool {
		return a.through <= s.shares.given && !slices.ContainsFunc(asking, func(b *twinBuild) bool { return keyOf(b.scheduled.Change.Change) == a.change })
	})
}

// settleShares takes over what a record has changed.
func (s *twinState) settleShares(m any) {
	for _, b := range s.asking() {
		if c := b.scheduled.Change.Change; s.account(c) == nil {
			s.shares.accounts = append(s.shares.accounts, &twinAccount{change: keyOf(c), weight: 1, through: s.shares.given, since: s.shares.at, passed: s.shares.at})
		}
	}
	for _, a := range s.shares.accounts {
		more := int64(0)
		for v, us := range a.waiting {
			if s.leases[v] != nil {
				more += us
			}
		}
		begins := more > 0
		if f, is := m.(*eventsv1.StepFinished); is && s.ended != nil {
			v := evidence.Version{Target: f.Target, Hash: f.Hash}
			if us, asks := a.begun[v]; asks {
				if s.moved {
					us = s.duration(v.Target)
				}
				more += max(0, f.FinishedUs-f.StartedUs) - us
			}
		}
		a.main = nil
		for _, b := range s.asking() {
			if keyOf(b.scheduled.Change.Change) == a.change && b.successor == "" && !b.scheduled.Idle && (a.main == nil || b.value > a.main.value || b.value == a.main.value && b.number < a.main.number) {
				a.main = b
			}
		}
		left, weight := int64(0), a.weight
		a.waiting, a.begun = map[evidence.Version]int64{}, map[evidence.Version]int64{}
		if a.main != nil {
			weight = max(a.main.value, 1.0/1024)
			for _, v := range a.main.asks {
				switch {
				case s.state(a.main, v) != evidence.Unknown:
				case s.leases[v] == nil:
					a.waiting[v] = s.us[v]
					left += s.us[v]
				default:
					a.begun[v] = s.us[v]
				}
			}
		}
		through := a.through
		if a.left == 0 && !begins && left > 0 {
			through, a.since = max(through, s.shares.given), s.shares.at
		}
		if more += left - a.left; more != 0 || weight != a.weight {
			through = s.shares.given + ((through-s.shares.given)*a.weight+float64(more))/weight
		}
		if through <= s.shares.given && s.shares.given < a.through {
			a.passed = s.shares.at
		}
		a.through, a.left, a.weight = through, left, weight
	}
	s.closeAccounts()
}

// owed returns the build whose step comes next because its change is owed one. gone are the versions that are taken, and offers
// the ranks of what builds offer.
func (s *twinState) owed(now int64, gone map[evidence.Version]bool, offers map[*twinBuild]Rank) *twinBuild {
	given, behind := s.given(now), 0.0
	var first, lacking, latest *twinBuild
	most := 0.0
	for _, a := range s.inTurn() {
		left := a.left
		for v, us := range a.waiting {
			if gone[v] {
				left -= us
			}
		}
		behind += float64(left)
		if a.through > given {
			behind -= (a.through - given) * a.weight
		}
		if left <= 0 {
			continue
		}
		if r, offered := offers[a.main]; offered && r.Ready && !r.Urgent {
			if first == nil {
				first = a.main
			}
			waited, shared := float64(now-a.since), float64(a.passed-a.since)
			if a.through <= given && waited >= 4*shared {
				return a.main
			}
			if a.through <= given && waited >= 2*shared && (latest == nil || waited/shared > most) {
				latest, most = a.main, waited/shared
			}
		}
		if lacking == nil && behind > float64(s.patience()) {
			lacking = first
		}
	}
	if lacking != nil {
		return lacking
	}
	return latest
}
