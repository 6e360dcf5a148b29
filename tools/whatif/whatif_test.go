package whatif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/whatif"
	"landfall.build/tools/simulate"
	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// as has the test's program run as something else.
const as = "LANDFALL_TEST_AS"

// taken is what a greedy program keeps.
var taken [][]byte

func TestMain(m *testing.M) {
	switch os.Getenv(as) {
	case "landfall":
		c := simulate.Command(nil, slog.New(slog.DiscardHandler))
		c.SetArgs(os.Args[2:])
		if err := c.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "waiting":
		fmt.Fprint(os.Stderr, "\r0 of 2 courses, 1 of 4 changes")
		time.Sleep(time.Hour) // a program in which nothing is left to run ends
	case "limits":
		fmt.Fprintln(os.Stderr, limits())
		os.Exit(1)
	case "greedy":
		for {
			taken = append(taken, bytes.Repeat([]byte{1}, 1<<20))
		}
	default:
		os.Exit(m.Run())
	}
}

// past is a log in which changes of a drawn repository went through the queue main, and half of them through another, on four workers.
func past(t *testing.T) *memory.Log {
	t.Helper()
	p := trace.PinnedPaper()
	p.Changes, p.Rate, p.Failure, p.True = 60, 300, 0.15, 0.05
	p.Median, p.P95, p.Shortest, p.Longest = 15*time.Second, time.Minute, time.Second, 10*time.Minute
	m := trace.PinnedMonorepo(p)
	m.Targets, m.Affected, m.Affected975 = 300, 8, 60
	k, err := policy.Named("landfall")
	if err != nil {
		t.Fatal(err)
	}
	log := memory.New(memory.Options{Partitions: 1})
	put := func(queue string, term int64, m *eventsv1.Speculation) {
		e := events.Envelope{ID: "x", Source: events.ServiceEnumerator, Queue: queue, Time: time.Now(), Term: term, Message: m}
		if m == nil {
			e.Message = &eventsv1.Claim{Instance: "i"}
		}
		if _, err := log.Append(t.Context(), events.TopicSpeculations, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	put("", -1, nil)
	for _, queue := range []string{"other", "main"} {
		f, err := forecast.New(forecast.Calibrated, 1, m.Start)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := course.Run(t.Context(), course.Options{
			Trace: m.Start(), Forecast: f, Kind: k, Workers: 4, Threshold: k.Threshold, Bypass: k.Bypass, Round: time.Second, Pool: &course.Pool{},
			Record: func(s *eventsv1.Speculation) { put(queue, 0, s) },
		}); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	return path
}

// left fails the test if a simulation leaves a file.
func left(t *testing.T) {
	t.Helper()
	if files, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(files) > 0 {
		t.Errorf("it leaves %v, %v", files, err)
	}
}

// TestMoreWorkersAreSimulatedOnTheQueuesOwnPast: with more of them changes wait for less, the same question has the same answer, and
// progress rises to the end.
func TestMoreWorkersAreSimulatedOnTheQueuesOwnPast(t *testing.T) {
	o := Options{Log: past(t), Program: program(t), Env: []string{as + "=landfall"}}
	setting := func(workers int) whatif.Setting {
		return whatif.Setting{Workers: workers, Threshold: 0.02, BypassThreshold: 0.5}
	}
	var before whatif.Outcome
	for i := range 2 {
		shown := 0.0
		is, err := New(o)(t.Context(), whatif.Question{Queue: "main", Present: setting(4), Chosen: setting(16), Changes: 50}, func(share float64) {
			if share < shown || share > 1 {
				t.Errorf("the progress goes from %v to %v", shown, share)
			}
			shown = share
		})
		if err != nil {
			t.Fatal(err)
		}
		p, c := is.Present, is.Chosen
		if is.Changes != 50 || !is.From.Before(is.To) || c.WaitP50 >= p.WaitP50 || c.WaitP95 >= p.WaitP95 || c.Slowdown >= p.Slowdown || c.Slowdown < 1 || p.WorkerHours <= 0 {
			t.Errorf("it finds %+v", is)
		}
		if shown < reading || i == 1 && is != before {
			t.Errorf("after %v of it: %+v, before %+v", shown, is, before)
		}
		before = is
	}
	if _, err := New(o)(t.Context(), whatif.Question{Queue: "ghost", Present: setting(4), Chosen: setting(16), Changes: 50}, func(float64) {}); err == nil || !strings.Contains(err.Error(), `nothing of a queue "ghost"`) {
		t.Error(err)
	}
	left(t)
}

// TestASimulationEndsWhenItIsCancelled, also while its process waits, and leaves nothing behind.
func TestASimulationEndsWhenItIsCancelled(t *testing.T) {
	o := Options{Log: past(t), Program: program(t), Env: []string{as + "=waiting"}}
	why := errors.New("nobody wants it")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := whatif.Setting{Workers: 4}
	_, err := New(o)(ctx, whatif.Question{Queue: "main", Present: s, Chosen: s, Changes: 50}, func(share float64) {
		if share > reading {
			cancel(why)
		}
	})
	if !errors.Is(err, why) {
		t.Errorf("it ends with %v", err)
	}
	left(t)
}

// TestAHungryProcessHasLittle: the lowest priority, and a bound of memory, at which it says what to do.
func TestAHungryProcessHasLittle(t *testing.T) {
	log := past(t)
	s := whatif.Setting{Workers: 4}
	for does, want := range map[string]string{"limits": limited, "greedy": greedy} {
		if want == "" {
			t.Logf("this system has no bound for %s", does)
			continue
		}
		o := Options{Log: log, Program: program(t), Env: []string{as + "=" + does}, memory: 1 << 28}
		if _, err := New(o)(t.Context(), whatif.Question{Queue: "main", Present: s, Chosen: s, Changes: 50}, func(float64) {}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", does, err, want)
		}
		left(t)
	}
}
