// Package whatif answers the what-ifs of a gateway: it reads the newest part of a queue's past from the log, and has it simulated by
// another process of the same program, which has little memory and gives way to others.
package whatif

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"landfall.build/platform/journal"
	"landfall.build/services/gateway/whatif"
	"landfall.build/tools/simulate/history"
)

// Bounds of a simulation.
const (
	// maxRecords is how many of the newest records of landfall.speculations are read, all queues of its partition together.
	maxRecords = 200_000
	// maxTrace and maxOutput bound what the process is given and what it prints, in bytes.
	maxTrace  = 64 << 20
	maxOutput = 1 << 20
	// maxMemory is what the process may take, in bytes; at softMemory it collects garbage more often.
	maxMemory  = 1 << 30
	softMemory = 640 << 20
)

// Shares of the progress: reading, and each of two simulations.
const (
	reading    = 0.2
	simulating = (1 - reading) / 2
)

// Options of a simulation.
type Options struct {
	Log journal.Log
	// Program runs as `landfall` with the arguments that it gets.
	Program string
	// Env is added to its environment, which is empty otherwise.
	Env []string
	// memory is maxMemory, but in tests.
	memory uint64
}

// New returns what simulates the past of queues in a log.
func New(o Options) whatif.Simulate {
	if o.memory == 0 {
		o.memory = maxMemory
	}
	return func(ctx context.Context, q whatif.Question, progress func(share float64)) (out whatif.Outcome, err error) {
		trace, err := os.CreateTemp("", "landfall-what-if-*.jsonl")
		if err != nil {
			return out, err
		}
		defer os.Remove(trace.Name())
		defer trace.Close()
		if out.Changes, out.From, out.To, err = o.write(ctx, trace, q, progress); err != nil {
			return out, err
		}
		for i, x := range []struct {
			setting whatif.Setting
			figures *whatif.SettingFigures
		}{{q.Present, &out.Present}, {q.Chosen, &out.Chosen}} {
			progress(reading + simulating*float64(i))
			if *x.figures, err = o.simulate(ctx, trace.Name(), x.setting, func(share float64) { progress(reading + simulating*(float64(i)+share)) }); err != nil {
				return out, err
			}
		}
		return out, nil
	}
}

// write writes the queue's newest decided changes as a trace. Half of the time it waits, so that it takes half of a processor at most.
func (o Options) write(ctx context.Context, to io.Writer, q whatif.Question, progress func(float64)) (changes int, first, last time.Time, err error) {
	since := time.Now()
	h, err := history.ReadNewest(ctx, o.Log, q.Queue, maxRecords, q.Changes, func(read, of int64) error {
		progress(reading * float64(read) / float64(of))
		if busy := time.Since(since); busy > 10*time.Millisecond {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(busy):
			}
			since = time.Now()
		}
		return nil
	})
	if errors.Is(err, history.ErrTooManyTargets) {
		err = errTooLarge
	}
	if err != nil {
		return 0, first, last, err
	}
	changes, first, last = h.Keep(q.Changes)
	_, err = h.WriteInSteps(&bounded{to, maxTrace})
	return changes, first, last, err
}

// bounded is a writer that takes so many bytes.
type bounded struct {
	io.Writer
	left int
}

var errTooLarge = errors.New("the changes affect too many targets to be simulated together; ask for fewer changes")

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLarge
	}
	return b.Writer.Write(p)
}

// simulate runs the other process.
func (o Options) simulate(ctx context.Context, trace string, s whatif.Setting, progress func(float64)) (out whatif.SettingFigures, err error) {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	cmd := exec.CommandContext(ctx, o.Program, "simulate", trace, "--pool", "--policies", ours, "--workers", strconv.Itoa(s.Workers),
		"--threshold", number(s.Threshold), "--bypass-threshold", number(s.BypassThreshold), "--round", "1s", "--parallel", "1", "--json")
	cmd.Env = append([]string{"GOMAXPROCS=1", "GOMEMLIMIT=" + strconv.Itoa(softMemory)}, o.Env...)
	cmd.WaitDelay = time.Second
	said := &meter{progress: progress}
	answer := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = &bounded{answer, maxOutput}, said
	ended := make(chan error, 1)
	go func() { ended <- run(cmd, o.memory) }()
	if err := <-ended; err != nil {
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case strings.Contains(said.last, "out of memory") || strings.Contains(said.last, "cannot allocate"):
			return out, fmt.Errorf("it needs more than %d MiB of memory; ask for fewer changes", o.memory>>20)
		}
		return out, fmt.Errorf("the simulation failed (%w): %s", err, strings.TrimSpace(said.last))
	}
	return figuresIn(answer.Bytes())
}

// run runs a process within its limits. A process has the priority of the thread that starts it, and ends with that thread: so it is a thread of
// its own, which ends with its goroutine, because that does not give it back.
func run(cmd *exec.Cmd, memory uint64) error {
	runtime.LockOSThread()
	confine(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	limit(cmd.Process.Pid, memory)
	return cmd.Wait()
}

// ours is the policy of landfall.
const ours = "landfall"

func figuresIn(text []byte) (out whatif.SettingFigures, err error) {
	var answer struct {
		Results []struct {
			Policy      string  `json:"policy"`
			WorkerHours float64 `json:"worker_hours"`
			Wait        struct {
				P50 float64 `json:"p50"`
				P95 float64 `json:"p95"`
			} `json:"wait_s"`
			Slowdown struct {
				Mean float64 `json:"mean"`
			} `json:"slowdown"`
		} `json:"results"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return out, fmt.Errorf("the simulation's answer: %w", err)
	}
	for _, r := range answer.Results {
		if r.Policy == ours {
			return whatif.SettingFigures{WaitP50: r.Wait.P50, WaitP95: r.Wait.P95, Slowdown: r.Slowdown.Mean, WorkerHours: r.WorkerHours}, nil
		}
	}
	return out, errors.New("the simulation's answer has no figures")
}

// meter reads the progress that the process prints on standard error, and keeps the beginning of the last line that is none.
type meter struct {
	progress func(float64)
	line     []byte
	last     string
}

var shownProgress = regexp.MustCompile(`^\d+ of \d+ courses, (\d+) of (\d+) changes$`)

// maxLine is how much of a line is kept, in bytes.
const maxLine = 300

// Write implements io.Writer.
func (m *meter) Write(p []byte) (int, error) {
	for _, c := range p {
		if c != '\r' && c != '\n' {
			if len(m.line) < maxLine {
				m.line = append(m.line, c)
			}
			continue
		}
		m.take()
	}
	// What is printed last has no end of line: the next one begins with it.
	if shownProgress.Match(m.line) {
		m.take()
	}
	return len(p), nil
}

func (m *meter) take() {
	text := string(m.line)
	m.line = m.line[:0]
	found := shownProgress.FindStringSubmatch(text)
	if found == nil {
		// A runtime that ends for lack of memory prints where each goroutine was behind that.
		if strings.TrimSpace(text) != "" && !strings.Contains(m.last, "out of memory") && !strings.Contains(m.last, "cannot allocate") {
			m.last = text
		}
		return
	}
	done, _ := strconv.ParseFloat(found[1], 64)
	if of, _ := strconv.ParseFloat(found[2], 64); of > 0 {
		m.progress(done / of)
	}
}
