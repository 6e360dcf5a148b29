package kills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"landfall.build/tools/proof/kills/fleet"
	"landfall.build/tools/proof/kills/verdict"
)

func TestWhatCannotBeRunIsSaidBeforeAnythingIsStarted(t *testing.T) {
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for words, args := range map[string][]string{
		"--kills is 0":     {"--kills", "0"},
		"--broker is":      {"--broker", "rabbit"},
		"is not empty":     {"--keep", taken},
		"unknown argument": {"now"},
	} {
		c := Command("test")
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SetArgs(args)
		err := c.ExecuteContext(t.Context())
		if words == "unknown argument" {
			words = "unknown command"
		}
		if err == nil || errors.As(err, &Broken{}) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestKafkaWithoutItsScriptIsNamed(t *testing.T) {
	script := filepath.Join(t.TempDir(), "nothing")
	if _, err := apacheKafka(t.Context(), script, t.TempDir()); err == nil || !strings.Contains(err.Error(), script) {
		t.Error(err)
	}
}

func TestTheConfigurationOfEachInstanceIsValid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder: 'quoted' #1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	p := place{dir}
	for i, instance := range instances {
		listen := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+i))
		c, err := p.configure(instance, filepath.Join(dir, "cache"), []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}, listen)
		if err != nil {
			t.Fatal(err)
		}
		if c.Gateway.Listen != listen || len(c.Broker.Brokers) != 3 || c.Broker.Replication != 3 || c.Data != filepath.Join(dir, "data") {
			t.Errorf("%+v, %+v, %s", c.Gateway, c.Broker, c.Data)
		}
	}
}

// TestOfAServiceOneInstanceStallsAtATime: with both stopped, nobody could take over.
func TestOfAServiceOneInstanceStallsAtATime(t *testing.T) {
	tm := &torment{fleet: fleet.New(t.TempDir(), nil), counts: &counts{}, brokers: &brokers{}, busy: map[string]bool{}}
	release, began := make(chan struct{}), make(chan string, 4)
	stall := func(name string) {
		tm.during(name, func() {
			began <- name
			<-release
		})
	}
	stall(member("lander", "one"))
	stall(member("lander", "two"))
	stall(member("selector", "two"))
	if a, b := <-began, <-began; a == member("lander", "two") || b == member("lander", "two") {
		t.Errorf("%s and %s stall", a, b)
	}
	close(release)
	tm.wg.Wait()
	stall(member("lander", "two"))
	if name := <-began; name != member("lander", "two") {
		t.Error(name)
	}
	tm.wg.Wait()
}

// TestAnInterruptedRunCountsTheRoundsBefore, and keeps what its help promises to keep.
func TestAnInterruptedRunCountsTheRoundsBefore(t *testing.T) {
	for _, c := range []struct {
		name              string
		keep              bool
		problems          int
		wrong, stays, one bool
	}{
		{name: "nothing went wrong"},
		{name: "something did", problems: 1, wrong: true, stays: true},
		{name: "all is kept", keep: true, stays: true, one: true},
	} {
		dir := filepath.Join(t.TempDir(), "rounds")
		for number := range 3 {
			if err := os.MkdirAll(roundIn(dir, number), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var said, out bytes.Buffer
		r := &run{progress: &said}
		if c.keep {
			r.keep = dir
		}
		err := r.interrupted(ctx, &out, dir, 2, verdict.Line{Schedules: 1, Seed: 7, Crashes: 30}, c.problems)
		if errors.As(err, &Broken{}) != c.wrong || !c.wrong && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !strings.Contains(said.String(), "interrupted in round 2") || !strings.HasPrefix(out.String(), `{"schedules":1,"seed":7,`) {
			t.Errorf("%s: %s%s", c.name, said.String(), out.String())
		}
		exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
		if exists(dir) != c.stays || exists(roundIn(dir, 2)) != c.one || exists(roundIn(dir, 1)) != c.stays {
			t.Errorf("%s: kept %t, the interrupted round %t", c.name, exists(dir), exists(roundIn(dir, 2)))
		}
	}
}

// TestARoundThatCannotBePlayedTakesNothingFromTheRoundsBefore: what they came to is said, and what they broke comes first.
func TestARoundThatCannotBePlayedTakesNothingFromTheRoundsBefore(t *testing.T) {
	failed := errors.New("no broker")
	for problems, wrong := range []bool{false, true} {
		var said, out bytes.Buffer
		r := &run{progress: &said}
		err := r.unplayed(&out, "there", 2, verdict.Line{Schedules: 1, Seed: 7, Crashes: 30}, problems, failed)
		if errors.As(err, &Broken{}) != wrong || errors.Is(err, failed) == wrong {
			t.Errorf("%d problems: %v", problems, err)
		}
		if text := said.String() + fmt.Sprint(err); !strings.Contains(text, "round 2") || !strings.Contains(text, "kept in there") {
			t.Errorf("%d problems: %s", problems, text)
		}
		if !strings.HasPrefix(out.String(), `{"schedules":1,"seed":7,`) {
			t.Errorf("%d problems: the last line is %q", problems, out.String())
		}
	}
}
