package agendas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// history draws records of a partition with three queues, two of which are configured.
type history struct {
	random *rand.Rand
	next   int64
	// claims of the lander, whose records count only under the last one.
	claim int64
	heads map[string]string
	names map[string][]string // pending changes by queue
}

var configured = []string{"a", "b"}

func newHistory(random *rand.Rand) *history {
	return &history{random: random, claim: -1, heads: map[string]string{}, names: map[string][]string{}}
}

func (h *history) entry() journal.Entry {
	queue := []string{"a", "b", "unconfigured"}[h.random.IntN(3)]
	envelope := events.Envelope{Source: events.ServiceGateway, Queue: queue, Term: -1}
	names := h.names[queue]
	switch kind := h.random.IntN(8); {
	case h.claim < 0 || kind == 0:
		h.claim = h.next
		envelope.Source, envelope.Message = events.ServiceLander, &eventsv1.Claim{}
	case h.heads[queue] == "" || kind == 1:
		from := h.heads[queue]
		h.heads[queue] = fmt.Sprint("commit-", h.next)
		envelope.Source, envelope.Term = events.ServiceLander, h.claim-int64(h.random.IntN(2)) // of an earlier term, at times
		envelope.Message = &eventsv1.MainlineMoved{From: from, To: h.heads[queue], Initial: from == ""}
	case len(names) == 0 || kind < 5:
		name := fmt.Sprint("change-", h.next)
		h.names[queue] = append(names, name)
		envelope.Subject, envelope.Trace = name, fmt.Sprint("trace-", h.next)
		envelope.Message = &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: name, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}
	default:
		name := names[h.random.IntN(len(names))]
		envelope.Source, envelope.Subject = events.ServiceAnalyzer, name
		envelope.Message = &eventsv1.ChangeAnalyzed{
			Change: &eventsv1.ChangeRef{Change: name, Revision: 1}, Base: h.heads[queue],
			Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//" + name}}},
		}
	}
	h.next++
	return journal.Entry{Offset: h.next - 1, Envelope: envelope}
}

// TestAPartitionGoesOnFromItsSnapshot over random histories.
func TestAPartitionGoesOnFromItsSnapshot(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	for range 30 {
		h := newHistory(random)
		original := NewPartition(configured)
		restored := original
		for range 200 {
			e := h.entry()
			if counted := original.Read(e); restored != original && restored.Read(e) != counted {
				t.Fatalf("record %d counts: %v, and not after a restart", e.Offset, counted)
			}
			if random.IntN(10) > 0 {
				continue
			}
			bytes, err := original.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if restored, err = Unmarshal(bytes, configured, h.next); err != nil {
				t.Fatal(err)
			}
			fields.Same(original, restored)
		}
	}
	fields.Done("agendas")
}

func TestASnapshotThatDoesNotFitIsRefused(t *testing.T) {
	h := newHistory(seedtest.Random(t))
	p := NewPartition(configured)
	for range 20 {
		p.Read(h.entry())
	}
	good, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	nonsense, err := proto.Marshal(&snapshotv1.AnalyzerPartition{Configured: configured, Queues: []*snapshotv1.AnalyzerQueue{
		{Name: "a", Agenda: &snapshotv1.Agenda{Moves: []*snapshotv1.AgendaMove{{To: 7}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bytes      []byte
		configured []string
		end        int64
	}{
		"longer than the log": {good, configured, h.next - 1},
		"other queues":        {good, []string{"a"}, h.next},
		"no message":          {[]byte("\xff\xff"), configured, h.next},
		"no such text":        {nonsense, configured, h.next},
	} {
		if _, err := Unmarshal(c.bytes, c.configured, c.end); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// busy is a partition with 1,000 pending changes of 40 targets each, and a mainline that has moved often.
func busy(b *testing.B) *Partition {
	p, offset := NewPartition([]string{"main"}), int64(0)
	read := func(subject, trace string, m proto.Message) {
		p.Read(journal.Entry{Offset: offset, Envelope: events.Envelope{Source: events.ServiceGateway, Queue: "main", Subject: subject, Trace: trace, Term: -1, Message: m}})
		offset++
	}
	q := func() string { return p.Queue("main").Lineup.Head }
	admit := func(i int) {
		name := fmt.Sprintf("%016x", i)
		read(name, fmt.Sprintf("00-%032x-%016x-01", i, i), &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Change: name, Revision: 1, Title: "A change of moderate size", Author: "somebody@example.com",
			LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040x", i), Base: fmt.Sprintf("%040x", i+1)}},
		}})
		f := &eventsv1.ChangeAnalyzed{Change: &eventsv1.ChangeRef{Change: name, Revision: 1}, Base: q(), Outcome: 1, Affected: &eventsv1.Affected{}}
		for j := range 40 {
			f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//services/part%03d:target%03d", (i+j)%500, i%30)})
		}
		for j := range 3 {
			f.Textual = append(f.Textual, &eventsv1.Textual{Other: &eventsv1.ChangeRef{Change: fmt.Sprintf("%016x", max(0, i-1-j)), Revision: 1}})
		}
		read(name, "", f)
	}
	read("", "", &eventsv1.MainlineMoved{To: fmt.Sprintf("%040x", 0), Initial: true})
	for i := range 1256 {
		admit(i)
		if i < 256 {
			ref := &eventsv1.ChangeRef{Change: fmt.Sprintf("%016x", i), Revision: 1}
			commit := fmt.Sprintf("%040x", i+1<<20)
			read(ref.Change, "", &eventsv1.LandIntended{Change: ref, Commits: []string{commit}})
			read(ref.Change, "", &eventsv1.ChangeLanded{Change: ref, Commits: []string{commit}})
		}
	}
	return p
}

func BenchmarkSnapshot(b *testing.B) {
	p := busy(b)
	b.Logf("%d pending", len(p.Queue("main").Lineup.Order()))
	b.Run("marshal", func(b *testing.B) {
		for b.Loop() {
			bytes, _ := p.Marshal()
			b.ReportMetric(float64(len(bytes)), "bytes")
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		bytes, _ := p.Marshal()
		for b.Loop() {
			if _, err := Unmarshal(bytes, []string{"main"}, p.next); err != nil {
				b.Fatal(err)
			}
		}
	})
}
