package ngboost

import (
	"math/rand/v2"
	"slices"
)

// sampler draws the rows and columns of each round.
type sampler struct {
	random        *rand.Rand
	rows, columns []int32
	batch, width  int // how many to draw
}

func newSampler(c Config, rows, columns int) *sampler {
	return &sampler{
		random:  rand.New(rand.NewPCG(c.Seed, 0x6e67626f6f7374)),
		rows:    everyRow(rows),
		columns: everyRow(columns),
		batch:   max(1, int(c.RowFraction*float64(rows))),
		width:   max(1, int(c.ColumnFraction*float64(columns))),
	}
}

func everyRow(count int) []int32 {
	all := make([]int32, count)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// next returns the rows and columns of the next round, each ascending; they are
// valid until the next call.
func (s *sampler) next() (rows, columns []int32) {
	return s.take(s.rows, s.batch), s.take(s.columns, s.width)
}

// take brings a sample without replacement to the front of all.
func (s *sampler) take(all []int32, count int) []int32 {
	if count == len(all) {
		return all
	}
	for k := range count {
		other := k + s.random.IntN(len(all)-k)
		all[k], all[other] = all[other], all[k]
	}
	slices.Sort(all[:count])
	return all[:count]
}
