package client

import (
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/whatif"
)

func TestAWhatIfIsPrintedSideBySide(t *testing.T) {
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.Local)
	present := whatif.Setting{Workers: 4, Threshold: 0.05, BypassThreshold: 0.5}
	run := &whatif.Simulation{State: whatif.Done, Present: present, Chosen: whatif.Setting{Workers: 8, Threshold: 0.05, BypassThreshold: 2}, StartedAt: at, Result: &whatif.Comparison{
		Present: whatif.SettingFigures{WaitP50: 540, WaitP95: 2460, Slowdown: 3.125, WorkerHours: 11.04}, Chosen: whatif.SettingFigures{WaitP50: 178, WaitP95: 1130, Slowdown: 1.54, WorkerHours: 11.3},
		Changes: 421, From: at, To: at.Add(time.Hour), Sentence: "With 8 workers instead of 4: less.",
	}}
	ended := func(state, message string) *whatif.Simulation {
		return &whatif.Simulation{State: state, Chosen: present, StartedAt: at, Message: message}
	}
	for _, c := range []struct {
		is        api.WhatIf
		want, err string
	}{
		{api.WhatIf{Run: run}, `
                                                 WAIT P50  WAIT P95  SLOWDOWN  WORKERS
present: 4 workers, threshold 0.05, bypass threshold 0.5  9 min  41 min  3.12  11 h
chosen: 8 workers, threshold 0.05, no bypasses  3 min  19 min  1.54  11.3 h

With 8 workers instead of 4: less.
They arrived from 2026-01-05 10:00:00 to 2026-01-05 11:00:00.`, ""},
		{api.WhatIf{Present: present}, "Nothing was simulated since the gateway began. At present: 4 workers, threshold 0.05, bypass threshold 0.5. Try `landfall what-if --workers 8`.", ""},
		{api.WhatIf{Run: ended(whatif.Cancelled, "")}, "cancelled: 4 workers, threshold 0.05, bypass threshold 0.5, begun 2026-01-05 10:00:00.", ""},
		{api.WhatIf{Run: ended(whatif.Failed, "no \x1b[31mlog")}, "", "the simulation failed: no log"},
		{api.WhatIf{Missing: "This gateway simulates nothing."}, "This gateway simulates nothing.", ""},
	} {
		var out strings.Builder
		err := writeWhatIf(&out, c.is)
		if said := ""; err != nil {
			if said = err.Error(); said != c.err {
				t.Errorf("it fails with %s, want %s", said, c.err)
			}
		} else if c.err != "" || strings.Join(strings.Fields(out.String()), " ") != strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("it prints\n%s\nwant\n%s", out.String(), c.want)
		}
	}
}
