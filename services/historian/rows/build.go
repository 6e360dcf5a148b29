package rows

import (
	"math"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// buildRow holds a part of what is known of a build; see changeRow.
type buildRow struct {
	queue, build, change string
	revision             uint64
	base                 string
	assumed              []string
	targets              *uint32
	needed, value        *float64
	why                  string
	scheduled, prepared  *time.Time
	preparation          string
	preparationSeconds   *float64
	finished, aborted    *time.Time
	abortWhy             string
}

var buildColumns = []string{
	"queue", "build", "change", "revision", "base", "assumed", "targets", "needed", "value", "why", "scheduled_at", "prepared_at", "preparation",
	"preparation_seconds", "finished_at", "aborted_at", "abort_why",
}

func (s *Set) addBuild(b buildRow) {
	if b.build == "" {
		return
	}
	s.add(Builds, b.queue, b.build, b.change, b.revision, b.base, filled(b.assumed), b.targets, b.needed, b.value, b.why, b.scheduled, b.prepared,
		b.preparation, b.preparationSeconds, b.finished, b.aborted, b.abortWhy)
}

func (s *Set) addPreparation(r Record, m *eventsv1.BuildPrepared) {
	took := seconds(m.StartedUs, m.FinishedUs)
	s.addBuild(buildRow{
		queue: r.Queue, build: m.Build, change: m.Change.GetChange(), revision: m.Change.GetRevision(), base: m.Base, assumed: refs(m.Assumed),
		prepared: stampOr(m.FinishedUs, r), preparation: enumName(m.Outcome.String(), "PREPARATION_OUTCOME_"), preparationSeconds: &took,
	})
}

var stepColumns = []string{
	"queue", "target", "hash", "attempt", "precedence", "outcome", "started_at", "finished_at", "seconds", "worker", "build", "failed_command",
	"reason", "output_bytes", "command_names", "command_seconds", "command_exit_codes",
	"group_id", "unreported",
}

func (s *Set) addStep(r Record, m *eventsv1.StepFinished) {
	names, took, codes := make([]string, len(m.Commands)), make([]float64, len(m.Commands)), make([]int32, len(m.Commands))
	for i, c := range m.Commands {
		names[i], took[i], codes[i] = c.GetName(), float64(c.GetDurationUs())/1e6, c.GetExitCode()
	}
	s.add(Steps, r.Queue, m.Target, m.Hash, m.Attempt, math.MaxUint64-uint64(r.Offset), enumName(m.Outcome.String(), "STEP_OUTCOME_"),
		at(m.StartedUs), at(m.FinishedUs), seconds(m.StartedUs, m.FinishedUs), m.Worker, m.Build, m.FailedCommand, m.Reason, uint64(max(0, m.OutputBytes)),
		names, took, codes, m.Group, m.Unreported)
}

// enumName returns the short name of an enum value: timed_out for STEP_OUTCOME_TIMED_OUT. An unknown value is its number.
func enumName(value, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(value, prefix))
}

func reasonClass(c eventsv1.ReasonClass) string { return enumName(c.String(), "REASON_CLASS_") }
