package speculation

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"
)

// sum is a set of changes as the sum of their 128-bit digests. Addition makes it independent of order,
// so "holds k" passes from an assumption into the mainline without any label changing (M24).
type sum [2]uint64

func (s sum) plus(o sum) sum { return sum{s[0] + o[0], s[1] + o[1]} }

// label names a version of a target as the core knows it: which of the changes that affect the target
// the tree holds, landed ones included.
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

// history is, for each target, the sum of what has landed in it at each move of the mainline.
type history struct {
	targets map[string]*landedSums
	// everything sums what affects every target: changes and pushes whose targets are unknown (M4).
	everything landedSums
	// repository sums all that has landed, for the whole-repository target.
	repository landedSums
	sequences  map[string]uint64 // commit → sequence
	commits    []string          // in order, the last keptMoves
	sequence   uint64
}

// landedSums are the sums after each move at which they changed, oldest first.
type landedSums struct {
	at  []uint64
	sum []sum
}

// before gives the sum as of a sequence, nothing if that is further back than is kept.
func (l *landedSums) before(sequence uint64) sum {
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] > sequence })
	if i == 0 {
		return sum{}
	}
	return l.sum[i-1]
}

// add counts s in from a move on. Moves come in any order: a push may be analysed after what came next.
func (l *landedSums) add(sequence uint64, s sum) {
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] >= sequence })
	if i == len(l.at) || l.at[i] != sequence {
		start := l.before(sequence)
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

func newHistory() *history {
	return &history{targets: map[string]*landedSums{}, sequences: map[string]uint64{}}
}

// move notes the mainline's next head.
func (h *history) move(commit string, sequence uint64) {
	h.sequence = sequence
	h.sequences[commit] = sequence
	h.commits = append(h.commits, commit)
	if len(h.commits) > keptMoves {
		delete(h.sequences, h.commits[0])
		h.commits = append([]string(nil), h.commits[1:]...)
	}
}

func (h *history) landed(target string, sequence uint64, s sum) {
	l := h.targets[target]
	if l == nil {
		l = &landedSums{}
		h.targets[target] = l
	}
	l.add(sequence, s)
}

// at is what the target's version on the mainline holds as of a sequence.
func (h *history) at(target string, sequence uint64) sum {
	if target == WholeRepository {
		return h.repository.before(sequence)
	}
	s := h.everything.before(sequence)
	if l := h.targets[target]; l != nil {
		s = s.plus(l.before(sequence))
	}
	return s
}

func (h *history) forget(target string) { delete(h.targets, target) }
