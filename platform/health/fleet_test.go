package health

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
)

// scene is a fleet under a clock of its own, with one partition that holds the queue shop.
type scene struct {
	t     *testing.T
	fleet *Fleet
	now   time.Time
	beats map[instanceKey]Beat
	ends  int64
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, fleet: NewFleet([]string{"shop"}, 1), now: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), beats: map[instanceKey]Beat{}}
	s.fleet.now = func() time.Time { return s.now }
	return s
}

// post lets an instance post; without partitions it stands by.
func (s *scene) post(service, instance string, partitions ...Posted) {
	s.beats[instanceKey{service, instance}] = Beat{Service: service, Instance: instance, Boot: instance, At: s.now.Add(time.Hour), Started: s.now, Partitions: partitions}
}

// owns is a partition under a term, read up to an offset.
func owns(term, next int64) Posted {
	return Posted{Term: term, CaughtUp: true, Next: map[string]int64{events.TopicDecisions: next}}
}

// pass lets time pass while the board is read as ever, and at its end.
func (s *scene) pass(d time.Duration) {
	for ; d > beatEvery; d -= beatEvery {
		s.now = s.now.Add(beatEvery)
		s.read()
	}
	s.now = s.now.Add(d)
	s.read()
}

func (s *scene) read() {
	var beats []Beat
	for _, b := range s.beats {
		beats = append(beats, b)
	}
	s.fleet.take(beats, map[TopicPartition]int64{{events.TopicDecisions, 0}: s.ends}, nil)
}

// missing returns the sentence about a service, "" if there is none.
func (s *scene) missing(service string) string {
	for _, m := range s.fleet.Report().Missing {
		if m.Service == service {
			return m.Sentence
		}
	}
	return ""
}

func (s *scene) owner(service string) Ownership {
	for _, o := range s.fleet.Report().Partitions {
		if o.Service == service {
			return o
		}
	}
	s.t.Fatalf("no %s in the report", service)
	return Ownership{}
}

func (s *scene) want(service, sentence string) {
	s.t.Helper()
	if got := s.missing(service); got != sentence {
		s.t.Errorf("%s: %q, want %q", service, got, sentence)
	}
}

func TestTheHighestTermOwnsAPartition(t *testing.T) {
	s := newScene(t)
	s.post(events.ServiceLander, "old", owns(5, 10))
	s.post(events.ServiceLander, "new", owns(9, 12))
	s.post(events.ServiceLander, "standby")
	s.ends = 15
	s.pass(0)
	if o := s.owner(events.ServiceLander); o.Instance != "new" || o.Term != 9 || o.BehindRecords != 3 || o.State != StateWorking {
		t.Errorf("%+v", o)
	}
	s.want(events.ServiceLander, "")
}

func TestAnOwnerThatFallsSilentIsMissedAfterTenSeconds(t *testing.T) {
	s := newScene(t)
	for range 5 {
		s.post(events.ServiceLander, "one", owns(5, 10))
		s.pass(2 * time.Second)
	}
	s.pass(9 * time.Second)
	s.want(events.ServiceLander, "")
	s.pass(26 * time.Second)
	s.want(events.ServiceLander, "No lander has owned partition 0 (queue shop) for 35 s; nothing lands until one does.")
	if o := s.owner(events.ServiceLander); o.Instance != "" || o.State != StateUnowned {
		t.Errorf("%+v", o)
	}
	s.post(events.ServiceLander, "two", owns(11, 10))
	s.pass(2 * time.Second)
	s.want(events.ServiceLander, "")
}

// TestServicesThatBeginWithTheLogAreNotSaidToBeStarting: they may be at work before they have posted it.
func TestServicesThatBeginWithTheLogAreNotSaidToBeStarting(t *testing.T) {
	s := newScene(t)
	for range 4 {
		s.read()
		if list := s.fleet.Starting(); len(list) > 0 {
			t.Fatalf("%+v", list)
		}
		s.pass(2 * time.Second)
	}
}

// TestAfterARestartServicesHaveTheirTime: what the board shows is of a quarter of an hour ago, since when nothing ran.
func TestAfterARestartServicesHaveTheirTime(t *testing.T) {
	s := newScene(t)
	for service := range required {
		s.post(service, "one", owns(5, 10))
		b := s.beats[instanceKey{service, "one"}]
		b.At = s.now
		s.beats[instanceKey{service, "one"}] = b
	}
	s.now = s.now.Add(16 * time.Minute)
	s.read()
	starting := func(want string) {
		t.Helper()
		got := ""
		for _, m := range s.fleet.Starting() {
			if got += m.Sentence; m.Service != Starting || !slices.Equal(m.Queues, []string{"shop"}) {
				t.Errorf("%+v", m)
			}
		}
		if got != want {
			t.Errorf("starting: %q, want %q", got, want)
		}
	}
	for range 4 {
		if missing := s.fleet.Report().Missing; len(missing) > 0 {
			t.Fatalf("missing: %+v", missing)
		}
		starting("The services are starting: analyzer, enumerator, profiler, prioritizer, selector, builder and lander are not seen at work yet.")
		s.pass(2 * time.Second)
	}
	for service := range required {
		if service != events.ServiceLander {
			s.post(service, "two", owns(7, 10))
		}
	}
	reading := owns(7, 10)
	reading.CaughtUp = false
	s.post(events.ServiceBuilder, "two", reading)
	s.pass(time.Second)
	starting("The services are starting: builder and lander are not seen at work yet.")
	s.pass(time.Second)
	starting("")
	s.want(events.ServiceLander, "No lander has owned partition 0 (queue shop) for 16 min; nothing lands until one does.")
	s.want(events.ServiceBuilder, "The builder of partition 0 (queue shop), two, is still reading the log after 10 s, with 0 records left; it works after that.")
	s.want(events.ServiceSelector, "")
}

// TestClocksMayDiffer: every beat of this scene is stamped an hour ahead. What counts is when the reader saw it change.
func TestClocksMayDiffer(t *testing.T) {
	s := newScene(t)
	s.post(events.ServiceBuilder, "one", owns(NoTerm, 10))
	s.pass(0)
	s.pass(40 * time.Second)
	s.want(events.ServiceBuilder, "No builder has been alive for 40 s; no step runs until one is.")
}

func TestAnInstanceThatStandsByOwnsNothing(t *testing.T) {
	s := newScene(t)
	for range 10 {
		s.post(events.ServiceLander, "one")
		s.pass(2 * time.Second)
	}
	if got := s.missing(events.ServiceLander); !strings.HasPrefix(got, "No lander has owned partition 0") {
		t.Errorf("%q", got)
	}
}

func TestAnOwnerThatStillReadsIsNamedWithWhatIsLeft(t *testing.T) {
	s := newScene(t)
	s.ends = 100
	for range 10 {
		p := owns(5, 40)
		p.CaughtUp = false
		s.post(events.ServiceLander, "one", p)
		s.pass(2 * time.Second)
	}
	s.want(events.ServiceLander, "The lander of partition 0 (queue shop), one, is still reading the log after 18 s, with 60 records left; it works after that.")
}

func TestAnOwnerThatTakesNothingIsStalled(t *testing.T) {
	s := newScene(t)
	s.ends = 12
	for range 40 {
		s.post(events.ServiceSelector, "one", owns(5, 10))
		s.pass(2 * time.Second)
	}
	s.want(events.ServiceSelector, "The selector of partition 0 (queue shop), one, has taken none of the 2 records before it for 78 s; look at its log, or start it again.")
	s.post(events.ServiceSelector, "one", owns(5, 11))
	s.pass(2 * time.Second)
	s.want(events.ServiceSelector, "")
}

// TestOfRecordsThatHaveJustComeNoneWasDueBefore: nothing happened for half an hour, and then there are records.
func TestOfRecordsThatHaveJustComeNoneWasDueBefore(t *testing.T) {
	s := newScene(t)
	s.ends = 10
	for range 1000 {
		s.post(events.ServiceSelector, "one", owns(5, 10))
		s.pass(2 * time.Second)
	}
	s.ends = 12
	for range 31 {
		s.post(events.ServiceSelector, "one", owns(5, 10))
		s.pass(2 * time.Second)
		s.want(events.ServiceSelector, "")
	}
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(2 * time.Second)
	s.want(events.ServiceSelector, "The selector of partition 0 (queue shop), one, has taken none of the 2 records before it for 62 s; look at its log, or start it again.")
}

// TestWhileTheReaderStoodStillNobodyFellSilent: the machine slept, or the process was stopped. What came first after that is no
// older for it.
func TestWhileTheReaderStoodStillNobodyFellSilent(t *testing.T) {
	s := newScene(t)
	s.ends = 10
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(0)
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(2 * time.Second)
	s.now = s.now.Add(33 * time.Minute)
	s.want(events.ServiceSelector, "")
	s.read()
	s.want(events.ServiceSelector, "")
	s.ends = 12
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(2 * time.Second)
	s.want(events.ServiceSelector, "")
	s.pass(12 * time.Second)
	s.want(events.ServiceSelector, "No selector has owned partition 0 (queue shop) for 12 s; nothing is decided until one does.")
}

// TestWhoHasJustBegunHasNotStalled: the records that are left were left by the owner before.
func TestWhoHasJustBegunHasNotStalled(t *testing.T) {
	s := newScene(t)
	s.ends = 12
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(0)
	s.post(events.ServiceSelector, "one", owns(5, 10))
	s.pass(5 * time.Minute)
	s.want(events.ServiceSelector, "No selector has owned partition 0 (queue shop) for 5 min; nothing is decided until one does.")
	s.post(events.ServiceSelector, "two", owns(7, 10))
	s.pass(2 * time.Second)
	s.want(events.ServiceSelector, "")
}

// TestWhileTheBoardCannotBeReadNobodyFallsSilent: the reader heard nothing, which is not their fault.
func TestWhileTheBoardCannotBeReadNobodyFallsSilent(t *testing.T) {
	s := newScene(t)
	s.post(events.ServiceLander, "one", owns(5, 10))
	s.pass(0)
	s.post(events.ServiceLander, "one", owns(5, 10))
	s.pass(2 * time.Second)
	s.fleet.take(nil, nil, errors.New("refused"))
	s.now = s.now.Add(9 * time.Second)
	if r := s.fleet.Report(); len(r.Missing) != 0 || len(r.Instances) != 1 || len(r.Partitions) == 0 {
		t.Errorf("before others would get a partition that nobody works on, it shows %+v", r)
	}
	s.now = s.now.Add(41 * time.Second)
	r := s.fleet.Report()
	if len(r.Missing) != 1 || r.Missing[0].Service != "broker" || !strings.Contains(r.Missing[0].Sentence, "has not answered the gateway for 50 s") || !slices.Equal(r.Missing[0].Queues, []string{"shop"}) {
		t.Errorf("%+v", r.Missing)
	}
	s.pass(0)
	s.want(events.ServiceLander, "")
}

func TestTwoProcessesOfOneNameAreNoticed(t *testing.T) {
	s := newScene(t)
	post := func(boot string) {
		s.post(events.ServiceBuilder, "one", owns(NoTerm, 10))
		b := s.beats[instanceKey{events.ServiceBuilder, "one"}]
		b.Boot = boot
		s.beats[instanceKey{events.ServiceBuilder, "one"}] = b
		s.pass(2 * time.Second)
	}
	trouble := func() string {
		for _, i := range s.fleet.Report().Instances {
			if i.Service == events.ServiceBuilder {
				return i.Trouble
			}
		}
		return "no builder"
	}
	post("a")
	post("b") // a was started again
	if got := trouble(); got != "" {
		t.Errorf("after a restart: %q", got)
	}
	post("a")
	if got := trouble(); !strings.HasPrefix(got, "two processes use this name") {
		t.Errorf("with two: %q", got)
	}
}
