package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/timeline"
)

func TestATimelineIsPrintedByWorker(t *testing.T) {
	start := time.Date(2026, 1, 5, 10, 0, 0, 0, time.Local)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	made := timeline.Timeline{
		Pool: "default", From: at(0), To: at(100), Since: at(10), Queues: []timeline.PoolQueue{{Name: "shop", Paused: true}},
		Workers: []timeline.WorkerTimeline{
			{Worker: "m/1", BusyMS: 45_000, LostMS: 7_000, Steps: []timeline.StepRun{{State: "passed", From: at(20), To: at(50)}, {State: "aborted", From: at(5), To: at(25)}},
				Idle: []timeline.IdleTime{{From: at(50), To: at(55), Cause: timeline.NoStep}, {From: at(55), To: at(95), Cause: timeline.Needs, Needs: []string{"gpu"}}, {From: at(95), To: at(100), Cause: timeline.Needs}}},
			{Worker: "m/\x1b[31m2", Steps: []timeline.StepRun{}, Idle: []timeline.IdleTime{}},
		},
	}
	var out strings.Builder
	if err := writePoolTimeline(&out, made); err != nil {
		t.Fatal(err)
	}
	want := `pool default, 2026-01-05 10:00:00 to 2026-01-05 10:01:40
shown from 2026-01-05 10:00:10 on: of before not everything is kept, or it is too much to show at once
queue shop is paused: it lands nothing, its builds go on
WORKER    STEPS  BUSY  LOST  IDLE
m/1       2      47 %  7s   40s open steps need gpu, 5s no open step, 5s open steps need labels or resources
` + Plain("m/\x1b[31m2") + `   0      -     0s    -
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("it prints\n%s\nwant\n%s", got, want)
	}
}
