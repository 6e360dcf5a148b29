package builder

import (
	"context"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
)

// maxForgotten bounds the versions in one record.
const maxForgotten = 1 << 11

// forgetting is when a queue's evidence is searched next for what may be forgotten. Each search goes through all of it, so the
// next one waits until there is twice as much.
type forgetting struct {
	// at is the number of versions at which it is searched next.
	at int
	// writing is set while a record is being written; until is the offset behind the last one, which may not be folded yet.
	writing bool
	until   int64
}

// forgetEvidence writes a record by which all readers forget the evidence that no pending change has asked for in a long time.
// shared.mu is held.
func (s *session) forgetEvidence(ctx context.Context, name string, q *steps.Queue) {
	f, keep := s.forgetting[name], s.Configuration.Builder.Remember
	if f == nil {
		f = &forgetting{at: 2 * keep}
		s.forgetting[name] = f
	}
	if q.Remembered() < f.at || f.writing || s.shared.builds[s.partitionOf(name)] < f.until {
		return
	}
	versions := q.Forgettable(keep)
	rest := q.Remembered() - len(versions)
	if f.at = 2 * max(rest, keep); len(versions) < rest/4 {
		f.at = 2 * q.Remembered()
		return
	}
	f.writing = true
	s.task(func() func() {
		until := int64(0)
		for some := range slices.Chunk(versions, maxForgotten) {
			offset, err := s.publishAt(ctx, name, "", "", evidence.ForgottenRecord(some))
			if err != nil {
				break // the process ends
			}
			until = offset + 1
		}
		return func() { f.writing, f.until = false, until }
	})
}
