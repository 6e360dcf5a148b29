package past

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/snapshot"
)

// readFrom is a log that knows the least offset from which a topic was followed.
type readFrom struct {
	journal.Log
	mu    sync.Mutex
	least int64
}

func (l *readFrom) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	l.mu.Lock()
	if topic == events.TopicBuilds {
		l.least = min(l.least, from)
	}
	l.mu.Unlock()
	return l.Log.Follow(ctx, topic, partition, from)
}

// started returns a past as a process has it that starts now, by a binary, and how far back it reads the log.
func started(t testing.TB, log journal.Log, dir, binary string, most int64) (*Past, *readFrom) {
	t.Helper()
	store, err := snapshot.Open(dir, snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Series(snapshot.SeriesKey{Key: snapshot.Key{Log: log.ID(), Service: events.ServiceGateway}, Name: main, Made: binary})
	if err != nil {
		t.Fatal(err)
	}
	spy := &readFrom{Log: log, least: 1 << 60}
	return New(Options{Log: spy, Queue: main, Limits: limits, Every: 100, Bytes: most, Kept: kept}), spy
}

func (p *Past) caught(t testing.TB) {
	t.Helper()
	if err := p.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (p *Past) check(t testing.TB, m served) {
	t.Helper()
	if got := p.answer(t, m.at, false); got != m.less {
		t.Fatalf("at %v %s", m.at, difference(m.less, got))
	}
	if got := p.answer(t, m.at, true); got != m.text {
		t.Fatalf("at %v with where steps wait %s", m.at, difference(m.text, got))
	}
}

func filesIn(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*.moment"))
	return files
}

const plenty = 1 << 30

// TestAStartAnswersFromWhatIsOnDisk: what was kept before answers as the log does, in whatever order moments are asked for, and without
// reading it from the beginning.
func TestAStartAnswersFromWhatIsOnDisk(t *testing.T) {
	random, log, dir := seedtest.Random(t), newLog(), t.TempDir()
	moments := record(t, random, log, 900, 0)
	first, _ := started(t, log, dir, "one", plenty)
	first.caught(t)
	n := len(filesIn(dir))
	if n < 10 || n != len(first.checkpoints) {
		t.Fatalf("%d files of %d checkpoints", n, len(first.checkpoints))
	}
	for i, at := range random.Perm(len(moments)) {
		if i%20 == 0 {
			first, _ = started(t, log, dir, "one", plenty)
			first.caught(t)
		}
		first.check(t, moments[at])
	}
	second, spy := started(t, log, dir, "one", plenty)
	second.caught(t)
	if second.check(t, moments[len(moments)-1]); spy.least == 0 {
		t.Error("the first question reads the log from its beginning")
	}
	if second.caught(t); len(filesIn(dir)) != n {
		t.Errorf("%d files, and no record has come", len(filesIn(dir)))
	}
}

// TestAQuotaIsSeenInThePast: what changes wait for rests on steps then, though nobody asked where they stand.
func TestAQuotaIsSeenInThePast(t *testing.T) {
	random, log, dir := seedtest.Random(t), newLog(), t.TempDir()
	moments := recordWith(t, random, log, 900, 0, &eventsv1.QueueSettings{Repository: "repo", Branch: "main", Workers: 2, Threshold: 0.5, Quotas: &eventsv1.Quotas{Queue: 1}})
	p, _ := started(t, log, dir, "one", plenty)
	p.caught(t)
	told := false
	for _, m := range moments {
		p.check(t, m)
		told = told || strings.Contains(m.less, "quotas.queue")
	}
	if !told {
		t.Error("no change ever waited for a quota")
	}
}

// TestWhatIsOnDiskAndNotFitIsMadeAgain: of another binary, cut off, damaged, of a log that is shorter.
func TestWhatIsOnDiskAndNotFitIsMadeAgain(t *testing.T) {
	random, log, dir := seedtest.Random(t), newLog(), t.TempDir()
	moments := record(t, random, log, 600, 0)
	check := func(p *Past) {
		t.Helper()
		for range 4 {
			p.check(t, moments[random.IntN(len(moments))])
		}
	}
	p, _ := started(t, log, dir, "one", plenty)
	p.caught(t)
	n := len(filesIn(dir))

	// By another binary.
	p, _ = started(t, log, dir, "two", plenty)
	check(p) // as without any
	p.caught(t)
	check(p)
	if got := len(filesIn(dir)); got != n {
		t.Errorf("another binary has %d files, and the first had %d", got, n)
	}

	// Cut off, and damaged: in the head and in the state, before a start and while it runs.
	for i, name := range filesIn(dir) {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		switch i % 4 {
		case 0:
			whole = whole[:random.IntN(len(whole))]
		case 1:
			whole[random.IntN(len(whole))] ^= 1
		case 2:
			whole = whole[:len(whole)-1]
		default:
			continue
		}
		if err := os.WriteFile(name, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check(p)
	p, _ = started(t, log, dir, "two", plenty)
	check(p)
	p.caught(t)
	for _, m := range moments {
		p.check(t, m)
	}
	for _, name := range filesIn(dir) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	check(p)

	// Of a log that is shorter, and says that it is the same.
	p, _ = started(t, log, dir, "two", plenty)
	p.caught(t)
	if len(filesIn(dir)) != n {
		t.Errorf("%d files, not %d", len(filesIn(dir)), n)
	}
	short, lost := beginningOf(t, log)
	p, _ = started(t, short, dir, "two", plenty)
	checked := 0
	for _, m := range moments {
		if m.at.Before(lost) {
			p.check(t, m)
			checked++
		}
	}
	if checked == 0 || len(p.checkpoints) == 0 || len(p.checkpoints) == n {
		t.Errorf("%d moments of the shorter log are checked, and %d of %d checkpoints kept", checked, len(p.checkpoints), n)
	}
	p.answers(t, time.Now())
}

// beginningOf returns a log that has lost the last third of each topic, and the time of the first record that it lacks.
func beginningOf(t testing.TB, log journal.Log) (*memory.Log, time.Time) {
	t.Helper()
	short, lost := newLog(), time.Now()
	for _, topic := range topics {
		end, err := log.End(t.Context(), topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		cursor, err := log.Follow(t.Context(), topic, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer cursor.Close()
		for {
			e, err := cursor.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if e.Offset >= end*2/3 {
				if e.Time.Before(lost) {
					lost = e.Time
				}
				break
			}
			if _, err := short.Append(t.Context(), topic, 0, e.Envelope); err != nil {
				t.Fatal(err)
			}
		}
	}
	return short, lost
}

// TestADiskIsNotFilled: the bytes stay below the bound, across starts too, and of old moments fewer are kept.
func TestADiskIsNotFilled(t *testing.T) {
	random, log, dir := seedtest.Random(t), newLog(), t.TempDir()
	moments := record(t, random, log, 900, 0)
	for _, most := range []int64{3 << 20, 2 << 20} {
		p, _ := started(t, log, dir, "one", most)
		p.caught(t)
		used := int64(0)
		for _, name := range filesIn(dir) {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			used += info.Size()
		}
		if used > most*11/10 || len(p.checkpoints) != len(filesIn(dir)) || len(p.checkpoints) < 3 {
			t.Errorf("%d checkpoints in %d files of %d bytes; %d may be used", len(p.checkpoints), len(filesIn(dir)), used, most)
		}
		p.check(t, moments[random.IntN(len(moments))])
	}
}

// TestADiskThatTakesNothingCostsOnlyTime.
func TestADiskThatTakesNothingCostsOnlyTime(t *testing.T) {
	random, log, dir := seedtest.Random(t), newLog(), t.TempDir()
	moments := record(t, random, log, 300, 0)
	p, _ := started(t, log, dir, "one", plenty)
	if err := os.RemoveAll(filepath.Join(dir, "gateway-0-main")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gateway-0-main"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.opened = true // it was there at the start
	p.caught(t)
	p.check(t, moments[random.IntN(len(moments))])
	if len(p.checkpoints) > 0 {
		t.Errorf("there are %d checkpoints", len(p.checkpoints))
	}
}

const childDir, childSeed = "LANDFALL_PAST_DIR", "LANDFALL_PAST_SEED"

// TestWhoMakesCheckpointsMayBeKilled: processes that make them are killed at any time, one after the other, and what they leave behind
// answers as the log does.
func TestWhoMakesCheckpointsMayBeKilled(t *testing.T) {
	story := func(seed uint64) (*memory.Log, []served) {
		log := newLog()
		return log, record(t, rand.New(rand.NewPCG(seed, 1)), log, 400, 0)
	}
	if dir := os.Getenv(childDir); dir != "" {
		var seed uint64
		if _, err := fmt.Sscan(os.Getenv(childSeed), &seed); err != nil {
			t.Fatal(err)
		}
		log, _ := story(seed)
		p, _ := started(t, log, dir, "one", 2<<20)
		fmt.Println("begins")
		p.caught(t)
		return
	}
	random, dir := seedtest.Random(t), t.TempDir()
	seed := random.Uint64()
	killed, longest := 0, 300*time.Millisecond
	for n := 0; n < 5 || killed == 0 && n < 20; n++ {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), childDir+"="+dir, childSeed+"="+fmt.Sprint(seed))
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("begins"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(longest))))
		_ = child.Process.Kill()
		if child.Wait() != nil {
			killed++
		} else { // it had ended
			longest /= 2
		}
		log, moments := story(seed)
		p, _ := started(t, log, dir, "one", 2<<20)
		for range 3 {
			p.check(t, moments[random.IntN(len(moments))])
		}
	}
	if killed == 0 {
		t.Error("nobody was killed at work")
	}
}
