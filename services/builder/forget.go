package builder

import (
	"context"
	"slices"

	"landfall.build/services/builder/work"
	"landfall.build/services/evidence"
)

// maxForgotten bounds the versions in one record.
const maxForgotten = 1 << 11

// forgetting says when a queue's evidence is looked through next. Each look goes through all of it, so the next one
// waits until there is twice as much.
type forgetting struct {
	at int
	// writing: the record is being written, or is in the log before until and not folded yet.
	writing bool
	until   int64
}

// forgetEvidence has what nobody pending asked for in a long time taken out of every reader's memory. The floor's lock
// is held.
func (s *session) forgetEvidence(ctx context.Context, name string, q *work.Queue) {
	f, keep := s.forgetting[name], s.Configuration.Builder.Remember
	if f == nil {
		f = &forgetting{at: 2 * keep}
		s.forgetting[name] = f
	}
	if q.Remembered() < f.at || f.writing || s.floor.builds[s.partitionOf(name)] < f.until {
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
