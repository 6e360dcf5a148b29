package historian

import (
	"strconv"

	"landfall.build/services/exposition"
)

// Measurements are what the historian measures, for Prometheus.
func (h *Historian) Measurements() []exposition.Family {
	lag := exposition.Family{
		Name: "landfall_historian_lag_records", Kind: exposition.Gauge,
		Help: "Records of the partitions that this process writes that are in the log and not yet in ClickHouse.",
	}
	for lane, records := range h.Lag() {
		lag.Add(float64(records), "topic", lane.Topic, "partition", strconv.Itoa(int(lane.Partition)))
	}
	failing := exposition.Family{
		Name: "landfall_historian_failing", Kind: exposition.Gauge,
		Help: "Partitions that cannot be written now, and 1 more while ClickHouse cannot be opened; the log says why.",
	}
	failing.Add(float64(h.troubles.count()))
	written := exposition.Family{
		Name: "landfall_historian_written_records_total", Kind: exposition.Counter,
		Help: "Records that this process has written since it began, those that it wrote again after a failure too.",
	}
	written.Add(float64(h.written.Load()))
	return []exposition.Family{lag, failing, written}
}
