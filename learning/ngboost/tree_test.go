package ngboost

import (
	"math"
	"math/rand/v2"
	"testing"

	"landfall.build/events/seedtest"
)

// randomTable has features of few and of many values, some missing.
func randomTable(random *rand.Rand, rows, features int) columns {
	c := columns{count: rows, values: make([][]float32, features), names: make([]string, features)}
	for f := range c.values {
		c.values[f] = make([]float32, rows)
		values := 2 + random.IntN(40)
		missing := 0.0
		if f%3 == 0 {
			missing = random.Float64() / 2
		}
		for i := range c.values[f] {
			c.values[f][i] = float32(random.IntN(values)) / 7
			if f%4 == 1 {
				c.values[f][i] = float32(random.NormFloat64())
			}
			if random.Float64() < missing {
				c.values[f][i] = float32(math.NaN())
			}
		}
	}
	return c
}

// naive grows a tree by trying every threshold and side for missing values, with
// the squared error computed from scratch, and gives each row's leaf value.
func naive(c columns, target []float64, rows []int32, depth, minLeaf int, fitted []float64) {
	mean := func(rows []int32) (sum float64) {
		for _, i := range rows {
			sum += target[i] / float64(len(rows))
		}
		return sum
	}
	squares := func(rows []int32) (sum float64) {
		m := mean(rows)
		for _, i := range rows {
			sum += (target[i] - m) * (target[i] - m)
		}
		return sum
	}
	best, bestLeft, bestRight := math.Inf(1), []int32(nil), []int32(nil)
	for _, values := range c.values {
		thresholds := []float32{math.MaxFloat32}
		for _, i := range rows {
			if v := values[i]; v == v {
				thresholds = append(thresholds, v)
			}
		}
		for _, threshold := range thresholds {
			for _, missingLeft := range []bool{false, true} {
				var left, right []int32
				for _, i := range rows {
					if v := values[i]; v <= threshold || v != v && missingLeft {
						left = append(left, i)
					} else {
						right = append(right, i)
					}
				}
				if len(left) < minLeaf || len(right) < minLeaf {
					continue
				}
				if cost := squares(left) + squares(right); cost < best-1e-9 {
					best, bestLeft, bestRight = cost, left, right
				}
			}
		}
	}
	if depth == 0 || bestLeft == nil {
		for _, i := range rows {
			fitted[i] = mean(rows)
		}
		return
	}
	naive(c, target, bestLeft, depth-1, minLeaf, fitted)
	naive(c, target, bestRight, depth-1, minLeaf, fitted)
}

func TestBothGrowersFindTheSplitsOfTheNaiveOne(t *testing.T) {
	seed := seedtest.Or(t, 21)
	random := rand.New(rand.NewPCG(seed, 0))
	for trial := range 60 {
		rows, features := 20+random.IntN(60), 1+random.IntN(6)
		c := randomTable(random, rows, features)
		target := make([]float64, rows)
		for i := range target {
			target[i] = random.NormFloat64()
		}
		batch := everyRow(rows)
		if trial%2 == 1 {
			batch = newSampler(Config{RowFraction: 0.7, ColumnFraction: 1, Seed: uint64(trial)}, rows, features).take(batch, rows*7/10)
		}
		depth, minLeaf := 1+random.IntN(4), 1+random.IntN(4)
		want := make([]float64, rows)
		naive(c, target, batch, depth, minLeaf, want)
		growers := map[string]grower{
			"exact":     newExactGrower(presort(c), depth, minLeaf),
			"histogram": newHistogramGrower(bin(c, 256), depth, minLeaf),
		}
		for name, g := range growers {
			grown := newTree(depth)
			gains := make([]float64, features)
			g.grow(grown, target, batch, everyRow(features), gains)
			for _, i := range batch {
				if got := grown.at(c.values, i); math.Abs(got-want[i]) > 1e-9 {
					t.Fatalf("seed %d, trial %d (%d rows, %d features, depth %d, leaves of %d): %s gives row %d %g, naive %g",
						seed, trial, len(batch), features, depth, minLeaf, name, i, got, want[i])
				}
			}
			checkGains(t, gains, target, batch, want)
		}
	}
}

// checkGains holds the sum of gains against the squared error removed.
func checkGains(t *testing.T, gains, target []float64, batch []int32, fitted []float64) {
	t.Helper()
	var mean, before, after, sum float64
	for _, i := range batch {
		mean += target[i] / float64(len(batch))
	}
	for _, i := range batch {
		before += (target[i] - mean) * (target[i] - mean)
		after += (target[i] - fitted[i]) * (target[i] - fitted[i])
	}
	for _, g := range gains {
		sum += g
	}
	if math.Abs(sum-(before-after)) > 1e-8 {
		t.Fatalf("gains sum to %g, splits removed %g", sum, before-after)
	}
}

func TestRefinedBinsFindTheExactThreshold(t *testing.T) {
	seed := seedtest.Or(t, 22)
	const rows = 3000
	random := rand.New(rand.NewPCG(seed, 0))
	values, target := make([]float32, rows), make([]float64, rows)
	for i := range values {
		values[i] = float32(random.NormFloat64())
		if values[i] > 0.314159 {
			target[i] = 1
		}
	}
	c := columns{count: rows, values: [][]float32{values}, names: []string{"x"}}
	exact, binned := newTree(1), newTree(1)
	newExactGrower(presort(c), 1, 1).grow(exact, target, everyRow(rows), everyRow(1), make([]float64, 1))
	newHistogramGrower(bin(c, 16), 1, 1).grow(binned, target, everyRow(rows), everyRow(1), make([]float64, 1))
	if exact.nodes[0] != binned.nodes[0] {
		t.Errorf("seed %d: 15 bins split at %v, exact at %v", seed, binned.nodes[0], exact.nodes[0])
	}
}

func TestBinsHoldEveryValueOnceAndInOrder(t *testing.T) {
	seed := seedtest.Or(t, 23)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		c := randomTable(random, 1+random.IntN(2000), 5)
		bins := 3 + random.IntN(254)
		b := bin(c, bins)
		for f, values := range c.values {
			if len(b.spans[f]) > bins-1 {
				t.Fatalf("seed %d: %d bins, at most %d", seed, len(b.spans[f]), bins-1)
			}
			for i, v := range values {
				code := b.codes[f][i]
				if v != v != (code == missingBin) {
					t.Fatalf("seed %d: %g has code %d", seed, v, code)
				}
				if v == v && (v < b.spans[f][code].low || v > b.spans[f][code].high) {
					t.Fatalf("seed %d: %g is in bin %v", seed, v, b.spans[f][code])
				}
			}
		}
	}
}

func TestMidpointPartsEveryPairOfNeighbours(t *testing.T) {
	seed := seedtest.Or(t, 24)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		low := math.Float32frombits(random.Uint32())
		if low != low || math.IsInf(float64(low), 0) || low == math.MaxFloat32 {
			continue
		}
		high := math.Nextafter32(low, math.MaxFloat32)
		if m := midpoint(low, high); !(low <= m && m < high) {
			t.Fatalf("seed %d: between %g and %g: %g", seed, low, high, m)
		}
	}
}
