package profile

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
)

// BenchmarkSnapshot is of a large queue.
func BenchmarkSnapshot(b *testing.B) {
	p := largeProfile(b)
	var data []byte
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			var err error
			if data, err = proto.Marshal(p.Snapshot()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(data))/1e6, "MB")
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m := &snapshotv1.ProfileState{}
			if err := proto.Unmarshal(data, m); err != nil {
				b.Fatal(err)
			}
			if _, err := Restore(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
