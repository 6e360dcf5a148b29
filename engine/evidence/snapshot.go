package evidence

import "landfall.build/engine/snapshotv1"

// Snapshot returns the ledger as a message. It shares the finished steps, which nobody changes.
func (l *Ledger) Snapshot() *snapshotv1.EvidenceLedger {
	m := &snapshotv1.EvidenceLedger{Forgotten: l.forgotten, Sequence: l.sequence, Quarantines: l.quarantines.list}
	for v, r := range l.results {
		result := &snapshotv1.EvidenceResult{Withdrawn: r.withdrawn, Outdated: r.outdated, Trivial: r.trivial, After: r.after}
		for _, a := range r.attempts {
			result.Attempts = append(result.Attempts, a.finished)
			result.Sequences = append(result.Sequences, a.sequence)
		}
		if len(r.attempts) == 0 {
			result.Target, result.Hash = v.Target, v.Hash
		}
		m.Results = append(m.Results, result)
	}
	for _, v := range l.withdrawals {
		m.Withdrawals = append(m.Withdrawals, &snapshotv1.EvidenceWithdrawal{Target: v.Target, Hash: v.Hash, UpTo: l.withdrawn[v].withdrawn, Outdated: l.withdrawn[v].outdated})
	}
	return m
}

// Restore returns the ledger that a message was made of.
func Restore(m *snapshotv1.EvidenceLedger) *Ledger {
	l := NewLedger()
	l.forgotten, l.sequence, l.quarantines = m.GetForgotten(), m.GetSequence(), NewQuarantines(m.GetQuarantines())
	for _, result := range m.GetResults() {
		v := Version{result.Target, result.Hash}
		r := &Result{withdrawal: withdrawal{result.Withdrawn, result.Outdated}, trivial: result.Trivial, after: result.After}
		for i, finished := range result.Attempts {
			v = Version{finished.Target, finished.Hash}
			a := attempt{number: finished.Attempt, finished: finished}
			if i < len(result.Sequences) { // a release before kept none
				a.sequence = result.Sequences[i]
			}
			r.attempts = append(r.attempts, a)
		}
		r.tally()
		r.quarantined = l.quarantines.Has(v.Target)
		l.results[v] = r
	}
	for _, w := range m.GetWithdrawals() {
		v := Version{w.Target, w.Hash}
		l.withdrawals, l.withdrawn[v] = append(l.withdrawals, v), withdrawal{w.UpTo, w.Outdated}
	}
	return l
}
