package whatif

import (
	"context"
	"errors"
	"testing"
	"time"
)

// stand is a simulation that is held by the test.
type stand struct {
	begun   chan Question
	answer  chan error
	further chan float64
	told    chan string
	runner  *Runner
}

func newStand() *stand {
	s := &stand{begun: make(chan Question, 9), answer: make(chan error), further: make(chan float64), told: make(chan string, 1000)}
	s.runner = New(func(ctx context.Context, q Question, progress func(float64)) (Outcome, error) {
		s.begun <- q
		for {
			select {
			case share := <-s.further:
				progress(share)
			case err := <-s.answer:
				return Outcome{Present: SettingFigures{540, 2400, 3.1, 11}, Chosen: SettingFigures{180, 1140, 1.5, 11.2}, Changes: 420}, err
			case <-ctx.Done():
				return Outcome{}, ctx.Err()
			}
		}
	}, func(queue string) { s.told <- queue })
	s.runner.clock = func() time.Time { return time.Unix(1_770_000_000, 0) }
	return s
}

// ends waits until what ran has ended.
func (s *stand) ends(t *testing.T, queue string) *Simulation {
	t.Helper()
	for {
		select {
		case <-s.told:
			if run, _ := s.runner.Of(queue); run.State != Running {
				return run
			}
		case <-time.After(time.Minute):
			t.Fatal("it never ends")
		}
	}
}

var (
	four  = Setting{4, 0.05, 0.5}
	eight = Setting{8, 0.05, 0.5}
)

func TestOneSimulationRunsAtATime(t *testing.T) {
	s := newStand()
	if run, running := s.runner.Of("shop"); run != nil || running != "" {
		t.Fatal(run, running)
	}
	if err := s.runner.Start(Question{"shop", four, eight, 500}, "Ada"); err != nil {
		t.Fatal(err)
	}
	<-s.begun
	for _, queue := range []string{"shop", "tools"} {
		if err := s.runner.Start(Question{queue, four, eight, 500}, "Bo"); !errors.Is(err, ErrRunning) {
			t.Error(queue, err)
		}
	}
	if s.runner.Cancel("tools") {
		t.Error("what does not run was cancelled")
	}
	for _, share := range []float64{0.3, 0.305, 0.2, 2} { // less than a hundredth more is not told
		s.further <- share
	}
	s.answer <- nil
	run := s.ends(t, "shop")
	const want = "With 8 workers instead of 4: half of 420 changes wait up to 3 min instead of 9 min, 95 of 100 up to 19 min instead of 40 min; each takes 1.5 instead of 3.1 times as long as alone, and the workers are busy for 11.2 h instead of 11 h."
	if run.State != Done || run.Done != 1 || run.Who != "Ada" || run.Result == nil || run.Result.Sentence != want || run.EndedAt.IsZero() {
		t.Errorf("%+v %+v", run, run.Result)
	}
	if told := len(s.told); told > 4 {
		t.Errorf("%d more times it was told", told)
	}
	// Another question may come now, and the answer to the last one stays until then.
	if err := s.runner.Start(Question{"tools", four, eight, 500}, ""); err != nil {
		t.Fatal(err)
	}
	<-s.begun
	if run, running := s.runner.Of("shop"); run.State != Done || running != "tools" {
		t.Error(run, running)
	}
	s.answer <- errors.New("the log is away")
	if run := s.ends(t, "tools"); run.State != Failed || run.Message != "the log is away" || run.Result != nil {
		t.Errorf("%+v", run)
	}
}

func TestASimulationIsCancelledByAReaderOrWithTheGateway(t *testing.T) {
	for name, end := range map[string]func(*Runner){"cancelled": func(r *Runner) {
		if !r.Cancel("shop") {
			t.Error("it does not run")
		}
	}, "closed": (*Runner).Close} {
		s := newStand()
		if err := s.runner.Start(Question{"shop", four, eight, 500}, "Ada"); err != nil {
			t.Fatal(err)
		}
		<-s.begun
		end(s.runner)
		if run, running := s.runner.Of("shop"); run.State != Cancelled || run.Message != "" || running != "" {
			t.Errorf("%s: %+v %s", name, run, running)
		}
		if err := s.runner.Start(Question{"shop", four, eight, 500}, ""); (err != nil) != (name == "closed") {
			t.Error(name, err)
		}
		s.runner.Close()
	}
}

func TestWhatIsTriedHasBoundsAndIsSaidInWords(t *testing.T) {
	for _, s := range []Setting{{0, 0.1, 0.1}, {MaxWorkers + 1, 0, 0}, {1, -0.1, 0}, {1, 1.1, 0}, {1, 0, -1}, {1, 0, 2.1}} {
		if s.Validate() == "" {
			t.Errorf("%+v is let through", s)
		}
	}
	for want, chosen := range map[string]Setting{
		"With 1 worker instead of 4 and a threshold of 0.2 instead of 0.05 and no bypasses: ": {1, 0.2, 2},
		"With a bypass threshold of 0.7 instead of 0.5: ":                                     {4, 0.05, 0.7},
	} {
		if wrong := chosen.Validate(); wrong != "" {
			t.Error(wrong)
		}
		if says := sentence(Question{Present: four, Chosen: chosen}, Outcome{}); says[:len(want)] != want {
			t.Errorf("it says %s", says)
		}
	}
	for seconds, want := range map[float64]string{0: "0 s", 4.2: "4.2 s", 62: "62 s", 100: "1.7 min", 5999: "100 min", 9000: "2.5 h", 90_000: "25 h"} {
		if says := Duration(seconds); says != want {
			t.Errorf("%v s are %s, want %s", seconds, says, want)
		}
	}
}
