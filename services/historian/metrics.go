package historian

import (
	"strconv"

	"landfall.build/platform/telemetry"
)

// Measurements returns the historian's metrics for Prometheus.
func (h *Historian) Measurements() []telemetry.Family {
	lag := telemetry.Family{
		Name: "landfall_historian_lag_records", Kind: telemetry.Gauge,
		Help: "Records of the partitions that this process writes that are in the log and not yet in ClickHouse.",
	}
	for tp, records := range h.Lag() {
		lag.Add(float64(records), "topic", tp.Topic, "partition", strconv.Itoa(int(tp.Partition)))
	}
	failing := telemetry.Family{
		Name: "landfall_historian_failing", Kind: telemetry.Gauge,
		Help: "Partitions that cannot be written now, and 1 more while ClickHouse cannot be opened; the log says why.",
	}
	failing.Add(float64(h.failures.count()))
	written := telemetry.Family{
		Name: "landfall_historian_written_records_total", Kind: telemetry.Counter,
		Help: "Records that this process has written since it began, those that it wrote again after a failure too.",
	}
	written.Add(float64(h.written.Load()))
	return []telemetry.Family{lag, failing, written}
}
