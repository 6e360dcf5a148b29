package clickhouse_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"landfall.build/events/seedtest"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/telemetry"
	"landfall.build/services/historian"
	"landfall.build/services/historian/warehouse"
)

// heard is what people read of a historian.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// TestAServerWithoutSpaceIsToldOnceAndCaughtUpWith: the disk is full for the server while the log grows; then it is not.
func TestAServerWithoutSpaceIsToldOnceAndCaughtUpWith(t *testing.T) {
	seed := seedtest.Of(t)
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(seed, log)
	for range 200 {
		invent.next(t)
	}
	var said heard
	metrics := telemetry.New(telemetry.Options{Logger: quiet()})
	h := historian.New(historian.Options{Meter: metrics.Meter("historian"), Log: log, Open: open(dsn, log.ID()), Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn})), Interval: 5 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx, ownership.Static{Log: quiet(), Partitions: log.Partitions()})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	caughtUp(t, dsn, log)

	c := connectTo(t, dsn)
	tables := []string{"events", "steps", "positions"} // what is in the middle fails too, with its events written
	for _, table := range tables {
		if err := c.Exec(t.Context(), "ALTER TABLE "+table+" MODIFY SETTING min_free_disk_bytes_to_perform_insert = 1000000000000000"); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		invent.next(t)
	}
	measured := func(want string) {
		t.Helper()
		patiently(t, func() error {
			var shown strings.Builder
			if err := metrics.Write(&shown); err != nil {
				return err
			}
			if zero := strings.Contains(shown.String(), "landfall_historian_failing{service_name=\"landfall-historian\"} 0\n"); zero != (want == "well") {
				return errors.New("the metrics say:\n" + shown.String())
			}
			return nil
		})
	}
	measured("failing")
	time.Sleep(time.Second) // tried again, a few times
	// Events may be written again before facts and positions may.
	for _, table := range tables {
		if err := c.Exec(t.Context(), "ALTER TABLE "+table+" RESET SETTING min_free_disk_bytes_to_perform_insert"); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			invent.next(t)
		}
		time.Sleep(300 * time.Millisecond)
	}
	caughtUp(t, dsn, log)
	compare(t, foldLog(t, log), queryHistory(t, dsn))
	measured("well")
	if text := said.String(); strings.Count(text, "cannot be written now") != 1 || !strings.Contains(text, "space") || strings.Count(text, "written again") != 1 {
		t.Errorf("people read:\n%s", text)
	}
}

// TestADatabaseThatIsMadeAnewBesideAHistorianHasNoGap: it is dropped and made again by another while one has nothing to write,
// which then writes on and finds nothing of what it had written.
func TestADatabaseThatIsMadeAnewBesideAHistorianHasNoGap(t *testing.T) {
	seed := seedtest.Of(t)
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(seed, log)
	for range 300 {
		invent.next(t)
	}
	_, stop := run(t, dsn, log, 5*time.Millisecond)
	caughtUp(t, dsn, log)
	o, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := connectTo(t, dsn).Exec(t.Context(), "DROP DATABASE "+o.Auth.Database+" SYNC"); err != nil {
		t.Fatal(err)
	}
	w, err := open(dsn, log.ID())(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.(io.Closer).Close()
	for range 200 {
		invent.next(t)
	}
	caughtUp(t, dsn, log)
	stop()
	compare(t, foldLog(t, log), queryHistory(t, dsn))
}

// between listens where a server is said to be, and passes on what goes to and fro; what comes from the server goes through
// alter first.
func between(t *testing.T, dsn string, alter func(first bool, p []byte)) (instead string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	there := u.Host
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", there)
			if err != nil {
				near.Close()
				continue
			}
			go func() {
				io.Copy(far, near)
				far.Close()
			}()
			go func() {
				defer near.Close()
				p := make([]byte, 64<<10)
				for first := true; ; first = false {
					n, err := far.Read(p)
					if n > 0 {
						alter(first, p[:n])
						if _, err := near.Write(p[:n]); err != nil {
							return
						}
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// TestASlowServerIsCaughtUpWith: each answer takes 60 ms; batches grow, and the history has it all.
func TestASlowServerIsCaughtUpWith(t *testing.T) {
	seed := seedtest.Of(t)
	log := memory.New(memory.Options{Partitions: 2})
	dsn := database(t)
	invent := newInventor(seed, log)
	_, stop := run(t, between(t, dsn, func(bool, []byte) { time.Sleep(60 * time.Millisecond) }), log, 5*time.Millisecond)
	for range 1500 {
		invent.next(t)
	}
	caughtUp(t, dsn, log)
	stop()
	compare(t, foldLog(t, log), queryHistory(t, dsn))
}

// TestAServerOfAnotherVersionOrWithoutAWordIsRefusedInTime: one that is too old is named with its version, and one that takes
// connections and says nothing is not waited for longer than its caller does.
func TestAServerOfAnotherVersionOrWithoutAWordIsRefusedInTime(t *testing.T) {
	dsn := database(t)
	old := between(t, dsn, func(first bool, p []byte) {
		// The first packet is a zero, the name with its length before it, and the major version.
		if name := "\x00\x0aClickHouse"; first && bytes.HasPrefix(p, []byte(name)) {
			p[len(name)] = 23
		}
	})
	if _, err := warehouse.Open(t.Context(), warehouse.Options{DSN: old}); err == nil || !strings.Contains(err.Error(), "version 23.") || !strings.Contains(err.Error(), "at least 24.8") {
		t.Errorf("a server of version 23: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	if _, err := warehouse.Open(ctx, warehouse.Options{DSN: "clickhouse://u:p@" + l.Addr().String() + "/landfall"}); err == nil || time.Since(began) > 20*time.Second {
		t.Errorf("a server that says nothing: %v after %v", err, time.Since(began))
	}
}
