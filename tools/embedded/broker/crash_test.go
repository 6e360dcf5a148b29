package broker_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/embedded/broker"
)

// childDir is set in the environment of the process that runs nothing but a broker, to be killed.
const childDir = "LANDFALL_TEST_BROKER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		runChild(dir)
		return
	}
	os.Exit(m.Run())
}

func runChild(dir string) {
	b, err := broker.Start(context.Background(), broker.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(b.Addr())
	// Its parent's end closes standard input: nothing outlives the test.
	bufio.NewReader(os.Stdin).ReadString('\n')
}

// child starts a broker in a process of its own and returns its address and a kill -9 of it.
func child(t *testing.T, dir string) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the broker's process did not say its address: %v", err)
	}
	return strings.TrimSpace(line), kill
}

// secretIn returns a client's options for the broker of a directory.
func secretIn(dir, addr string) func() []kgo.Opt {
	return func() []kgo.Opt { return broker.WithSecret(broker.SecretIn(dir, []string{addr})) }
}

// acknowledged is what one partition's writer was promised.
type acknowledged struct {
	mu sync.Mutex
	at map[int64]string
}

func TestKillingTheBrokerLosesNothingAcknowledged(t *testing.T) {
	const rounds, partitions = 4, 4
	seed := seedtest.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	addr, kill := child(t, dir)
	log, err := kafka.Open(context.Background(), kafka.Options{Brokers: []string{addr}, Client: secretIn(dir, addr), Log: quiet(), Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()

	stop := make(chan struct{})
	var writers sync.WaitGroup
	var promised [partitions]acknowledged
	for p := range int32(partitions) {
		promised[p].at = map[int64]string{}
		sizes := rand.New(rand.NewPCG(seed, uint64(p)+1))
		writers.Go(func() {
			inFlight := make(chan struct{}, 64)
			for i := 0; ; i++ {
				select {
				case <-stop:
					for range cap(inFlight) {
						inFlight <- struct{}{}
					}
					return
				case inFlight <- struct{}{}:
				}
				size := sizes.IntN(2000)
				if i%100 == 99 {
					size = events.MaxRecordBytes * 3 / 2 // in two parts
				}
				id := fmt.Sprintf("%06d", i)
				log.AppendAsync(context.Background(), events.TopicBuilds, p, step(id, size), func(offset int64, err error) {
					if err != nil {
						t.Errorf("append %s to %d: %v", id, p, err)
					} else {
						promised[p].mu.Lock()
						promised[p].at[offset] = id
						promised[p].mu.Unlock()
					}
					<-inFlight
				})
			}
		})
	}
	count := func() (n int) {
		for p := range promised {
			promised[p].mu.Lock()
			n += len(promised[p].at)
			promised[p].mu.Unlock()
		}
		return n
	}
	for range rounds {
		for before := count(); count() < before+500; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		kill()
		var again string
		if again, kill = child(t, dir); again != addr {
			t.Fatalf("the address was %s and is %s", addr, again)
		}
	}
	close(stop)
	writers.Wait()

	repeats := 0
	for p := range int32(partitions) {
		offsets, err := log.Append(context.Background(), events.TopicBuilds, p, step("last", 0))
		if err != nil {
			t.Fatal(err)
		}
		c, err := log.Follow(context.Background(), events.TopicBuilds, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		seen, next := map[string]bool{}, 0
		missing := promised[p].at
		for {
			e, err := c.Next(context.Background())
			if err != nil || e.Err != nil {
				t.Fatalf("partition %d, record %06d: %v %v", p, next, err, e.Err)
			}
			if e.Offset == offsets[0] {
				break
			}
			if missing[e.Offset] == e.ID {
				delete(missing, e.Offset)
			}
			if seen[e.ID] {
				repeats++
				continue
			}
			if seen[e.ID] = true; e.ID != fmt.Sprintf("%06d", next) {
				t.Fatalf("partition %d: %s is at %d, where %06d belongs: the order is broken", p, e.ID, e.Offset, next)
			}
			next++
		}
		if len(missing) > 0 {
			t.Errorf("partition %d lost %d acknowledged records, e.g. %v", p, len(missing), missing)
		}
		c.Close()
		t.Logf("partition %d: %d records", p, next)
	}
	t.Logf("%d records were written twice, which their ids tell", repeats)
}
