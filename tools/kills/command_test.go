package kills

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"landfall.build/tools/kills/fleet"
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

func TestFreePortsAreInARowAndFree(t *testing.T) {
	first, err := freePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	for port := first; port < first+6; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if allFree(first, 1) {
		t.Error("a port that is listened on is free")
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
