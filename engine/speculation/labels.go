package speculation

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
)

// sum stands for a set of changes: it is the sum of their 128-bit digests. The order does not matter, so a label stays the
// same when a change that a tree assumed lands (M24).
type sum [2]uint64

func (s sum) plus(o sum) sum { return sum{s[0] + o[0], s[1] + o[1]} }

// label names a version of a target by the changes that affect the target and that the tree holds, landed ones included.
type label struct {
	target string
	held   sum
}

func digest(kind, id string, revision uint64, part uint32) sum {
	h := sha256.New()
	var n [20]byte
	binary.LittleEndian.PutUint64(n[0:], uint64(len(kind)))
	binary.LittleEndian.PutUint64(n[8:], revision)
	binary.LittleEndian.PutUint32(n[16:], part)
	h.Write(n[:])
	h.Write([]byte(kind))
	h.Write([]byte(id))
	d := h.Sum(nil)
	return sum{binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint64(d[8:])}
}

// landed holds, for each target, the sum of what has landed in it as of each move of the mainline.
type landed struct {
	targets map[string]*sums
	// everything sums what affects every target: changes and pushes whose targets are unknown (M4).
	everything sums
	// repository sums all that has landed, for the whole-repository target.
	repository sums
	sequences  map[string]uint64 // commit → the move that made it the head
	commits    []string          // the last keptMoves heads, oldest first
	sequence   uint64            // the last move
	swept      uint64            // the move at which sweep was last run
}

// sums are the sums after each move at which they changed, oldest first.
type sums struct {
	at  []uint64
	sum []sum
}

// asOf returns the sum as of a move, the zero sum if the move is older than those that are kept.
func (l *sums) asOf(sequence uint64) sum {
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] > sequence })
	if i == 0 {
		return sum{}
	}
	return l.sum[i-1]
}

// add counts s in from a move on. Moves come in any order: a push may be analysed after what came next.
func (l *sums) add(sequence uint64, s sum) {
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] >= sequence })
	if i == len(l.at) || l.at[i] != sequence {
		start := l.asOf(sequence)
		l.at, l.sum = slices.Insert(l.at, i, sequence), slices.Insert(l.sum, i, start)
	}
	for ; i < len(l.sum); i++ {
		l.sum[i] = l.sum[i].plus(s)
	}
	// What lies before the oldest kept move is needed only as that move's starting point.
	if last := l.at[len(l.at)-1]; last > keptMoves {
		drop := sort.Search(len(l.at), func(i int) bool { return l.at[i] > last-keptMoves }) - 1
		if drop > 0 {
			l.at, l.sum = append([]uint64(nil), l.at[drop:]...), append([]sum(nil), l.sum[drop:]...)
		}
	}
}

func newLanded() *landed {
	return &landed{targets: map[string]*sums{}, sequences: map[string]uint64{}}
}

// move notes the mainline's next head.
func (l *landed) move(commit string, sequence uint64) {
	l.sequence = sequence
	l.sequences[commit] = sequence
	l.commits = append(l.commits, commit)
	if len(l.commits) > keptMoves {
		if old := l.commits[0]; l.sequences[old]+keptMoves <= sequence { // else it was the head again since
			delete(l.sequences, old)
		}
		l.commits = append([]string(nil), l.commits[1:]...)
	}
}

func (l *landed) add(target string, sequence uint64, s sum) {
	of := l.targets[target]
	if of == nil {
		of = &sums{}
		l.targets[target] = of
	}
	of.add(sequence, s)
}

// addUnknown adds a landing whose targets are not known to the sums of all targets.
func (l *landed) addUnknown(sequence uint64, s sum) {
	l.repository.add(sequence, s)
	l.everything.add(sequence, s)
}

// at returns the sum of what a target's version on the mainline holds as of a move.
func (l *landed) at(target string, sequence uint64) sum {
	if target == WholeRepository {
		return l.repository.asOf(sequence)
	}
	s := l.everything.asOf(sequence)
	if of := l.targets[target]; of != nil {
		s = s.plus(of.asOf(sequence))
	}
	return s
}

func (l *landed) forget(target string) { delete(l.targets, target) }
