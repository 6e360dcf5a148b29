package fitting

import (
	"math/rand/v2"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/trainer/dataset"
)

// BenchmarkTrain is one whole training, from rows to the verdict, of a queue with 20,000 rows in its history.
func BenchmarkTrain(b *testing.B) {
	const n = 20_000
	r := rand.New(rand.NewPCG(1, 2))
	for name, set := range map[string]*dataset.Set{
		"success":  outcomes(r, eventsv1.ModelKind_MODEL_KIND_SUCCESS, n, 2),
		"duration": builds(r, n, 1),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Train(b.Context(), set, Options{Now: start + 1_000_000_000_000}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
