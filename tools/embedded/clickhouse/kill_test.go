package clickhouse_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events/seedtest"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/services/historian"
	"landfall.build/tools/embedded/broker"
)

// What the process that runs nothing but a historian is told, and how often the test below kills.
const (
	historianBroker = "LANDFALL_TEST_HISTORIAN_BROKER"
	historianSecret = "LANDFALL_TEST_HISTORIAN_SECRET"
	historianDSN    = "LANDFALL_TEST_HISTORIAN_DSN"
	killsWanted     = "LANDFALL_TEST_KILLS"
)

// runHistorian is that process. It ends when it is killed, or its parent is gone.
func runHistorian() error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	log, err := kafka.Open(ctx, kafka.Options{Brokers: []string{os.Getenv(historianBroker)}, Client: func() []kgo.Opt { return broker.WithSecret(os.Getenv(historianSecret)) }, Log: quiet()})
	if err != nil {
		return err
	}
	h := historian.New(historian.Options{Log: log, Open: open(os.Getenv(historianDSN), log.ID()), Logger: quiet(), Interval: 5 * time.Millisecond})
	return h.Run(ctx, ownership.Static{Log: quiet(), Partitions: log.Partitions()})
}

// startHistorian returns a kill -9 of it.
func startHistorian(t *testing.T, b *broker.Broker, dsn string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), historianBroker+"="+b.Addr(), historianSecret+"="+b.SecretFile(), historianDSN+"="+dsn)
	cmd.Stderr = os.Stderr
	// Its end tells the process that the test is gone, however the test ended.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	kill = func() {
		if !ended {
			ended = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}

func TestTheHistoryIsAFoldOfTheLogThroughKillsOfBothSides(t *testing.T) {
	kills := 6
	if text := os.Getenv(killsWanted); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := seedtest.Of(t)
	t.Logf("%d kills", kills)
	random := rand.New(rand.NewPCG(seed, 0))
	b, err := broker.Start(t.Context(), broker.Options{Dir: t.TempDir(), Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, Log: quiet(), Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	server := start(t, t.TempDir())
	invent := newInventor(seed, log)
	for range 300 {
		invent.next(t)
	}
	kill := startHistorian(t, b, server.DSN())
	for n := range kills {
		// Under load, and for about as long as it takes to catch up or not.
		for until := time.Now().Add(time.Duration(random.IntN(900)) * time.Millisecond); time.Now().Before(until); {
			invent.next(t)
		}
		victims := []string{"historian", "server"}
		if n%4 == 3 {
			victims = append(victims, "both")
		}
		switch victim := victims[random.IntN(len(victims))]; victim {
		case "historian", "both":
			kill()
			if victim == "both" {
				syscall.Kill(server.Process(), syscall.SIGKILL)
			}
			kill = startHistorian(t, b, server.DSN())
		default:
			syscall.Kill(server.Process(), syscall.SIGKILL)
		}
	}
	patiently(t, func() error {
		o, err := driver.ParseDSN(server.DSN())
		if err != nil {
			return err
		}
		c, err := driver.Open(o)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Exec(t.Context(), "SELECT 1 FROM positions")
	})
	caughtUp(t, server.DSN(), log)
	want := foldLog(t, log)
	compare(t, want, queryHistory(t, server.DSN()))
	c := connectTo(t, server.DSN())
	var twice []string
	for _, table := range []string{"events", "decisions", "predictions"} {
		var all, distinct uint64
		if err := c.QueryRow(t.Context(), "SELECT (SELECT count() FROM "+table+"), (SELECT count() FROM "+table+" FINAL)").Scan(&all, &distinct); err != nil {
			t.Fatal(err)
		}
		twice = append(twice, fmt.Sprintf("%s %d", table, all-distinct))
	}
	t.Logf("%.0f records; rows written twice and not merged yet: %s", want["records"], strings.Join(twice, ", "))
}
