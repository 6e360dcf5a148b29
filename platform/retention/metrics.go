package retention

import (
	"syscall"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/telemetry"
)

// kindKey is what is kept: logs, mirrors, worktrees.
const kindKey = telemetry.Key("landfall.retention.kind")

// Measure registers what is measured of the account, and of the disk of the data directory.
func (a *Account) Measure(m metric.Meter, data string) {
	each := func(of *map[string]int64) func(telemetry.Observe) {
		return func(observe telemetry.Observe) {
			a.mu.Lock()
			defer a.mu.Unlock()
			for kind, bytes := range *of {
				observe(float64(bytes), kindKey.String(kind))
			}
		}
	}
	telemetry.Gauge(m, "landfall.retention.kept", "By", "Bytes in the data directory when it was last looked at, of logs of steps, mirrors, and worktrees with scratch folders.", each(&a.kept))
	telemetry.Total(m, "landfall.retention.deleted", "By", "Bytes that were deleted because they went beyond a bound of the configuration's retention.", each(&a.deleted))
	telemetry.Gauge(m, "landfall.disk.free", "By", "Bytes that may still be written to the disk of the data directory.", func(observe telemetry.Observe) {
		var disk syscall.Statfs_t
		if syscall.Statfs(data, &disk) == nil {
			observe(float64(disk.Bavail) * float64(disk.Bsize))
		}
	})
}
