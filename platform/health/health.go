// Package health holds whether the services of a process can work, and shows it to other processes.
//
// A service registers, and sets which partitions it works on and how far it has read them. Every few seconds the process asks
// the broker where the topics end, and posts what its services are doing to the Board: a consumer group for each instance of a
// service, whose committed offsets are how far it has read, and whose metadata is the rest. None of it is in the log.
// A Fleet reads the board, and reports which services are at work. The methods of a nil Service and a nil Partition do nothing.
package health

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Process is the health of the services of a process.
type Process struct {
	instance, version string
	boot              string
	started           time.Time
	logger            *slog.Logger
	board             Board
	poke              chan struct{}
	// Wall is the machine's clock, time.Now if nil. It is set before Run.
	Wall func() time.Time

	mu       sync.Mutex
	services map[string]*Service
	// lost is since when the broker has not answered, zero while it does, and why is its error.
	lost time.Time
	why  error
	// ahead is how far the machine's clock has moved more than the process's time, as of the last jump; jumped is the sum of all jumps.
	ahead, jumped time.Duration
}

// New returns the health of a process whose instance has a name. The board may be nil: then the broker is not asked.
func New(instance, version string, board Board, logger *slog.Logger) *Process {
	return &Process{
		instance: instance, version: version, boot: rand.Text()[:12], started: time.Now(), logger: logger, board: board,
		poke: make(chan struct{}, 1), services: map[string]*Service{},
	}
}

// Service registers a service, and returns its health.
func (p *Process) Service(name string) *Service {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.services[name]
	if s == nil {
		s = &Service{process: p, name: name, partitions: map[int32]*Partition{}}
		p.services[name] = s
	}
	return s
}

// changed has Run post at once.
func (p *Process) changed() {
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Service is the health of one service of a process.
type Service struct {
	process *Process
	name    string

	mu         sync.Mutex
	joined     bool
	trouble    string
	partitions map[int32]*Partition
	workers    int
	busy       atomic.Int64
	can        Capacity
}

// SetJoined sets whether the process may be given partitions: until then the service is not ready.
func (s *Service) SetJoined(joined bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	changed := s.joined != joined
	s.joined = joined
	s.mu.Unlock()
	if changed {
		s.process.changed()
	}
}

// SetTrouble sets what keeps the service from working, "" for nothing.
func (s *Service) SetTrouble(text string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = text
}

// SetWorkers sets how many workers there are.
func (s *Service) SetWorkers(n int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers = n
}

// SetCapacity sets what the workers can run.
func (s *Service) SetCapacity(c Capacity) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.can = c
}

// Peers returns the other living instances of the service, as the board shows them. Clocks may differ, so an instance lives if
// its beat changes while the board is looked at, which takes some seconds.
func (s *Service) Peers(ctx context.Context) ([]Beat, error) {
	if s == nil || s.process.board == nil {
		return nil, nil
	}
	earlier, err := s.process.board.Read(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, b := range earlier {
		at[b.Service+"."+b.Instance] = b.At
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(2*beatEvery + beatPatience):
	}
	later, err := s.process.board.Read(ctx)
	return slices.DeleteFunc(later, func(b Beat) bool {
		return b.Service != s.name || b.Instance == s.process.instance || at[b.Service+"."+b.Instance].Equal(b.At)
	}), err
}

// AddBusy adds to the number of workers that are busy.
func (s *Service) AddBusy(n int) {
	if s != nil {
		s.busy.Add(int64(n))
	}
}

// Begin notes that the service works on a partition, under a term or NoTerm. A partition that it worked on before begins again.
func (s *Service) Begin(partition int32, term int64) *Partition {
	if s == nil {
		return nil
	}
	p := &Partition{service: s, number: partition, term: term, since: time.Now(), topics: map[string]position{}}
	s.mu.Lock()
	s.partitions[partition] = p
	s.mu.Unlock()
	s.process.changed()
	return p
}

// NoTerm is the term of a service that does not claim partitions.
const NoTerm = -1

// Partition is a partition that a service works on.
type Partition struct {
	service *Service
	number  int32
	term    int64
	since   time.Time

	mu sync.Mutex
	// topics has how far each is read.
	topics map[string]position
	// caughtUp is set once everything is read that was there when the service began.
	caughtUp atomic.Bool
}

// position is how far a topic is read, and where it ended when the broker was asked last.
type position struct{ next, end int64 }

// Read notes that a topic is read up to an offset.
func (p *Partition) Read(topic string, next int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.topics[topic]
	at.next = next
	p.topics[topic] = at
}

// CaughtUp notes that everything is read that was there when the service began.
func (p *Partition) CaughtUp() {
	if p != nil && p.caughtUp.CompareAndSwap(false, true) {
		p.service.process.changed()
	}
}

// End notes that the service has given the partition up.
func (p *Partition) End() {
	if p == nil {
		return
	}
	s := p.service
	s.mu.Lock()
	if s.partitions[p.number] == p {
		delete(s.partitions, p.number)
	}
	s.mu.Unlock()
	s.process.changed()
}

// behind returns how many records are not read, of each topic and of all of them.
func (p *Partition) behind() (byTopic map[string]int64, records int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byTopic = map[string]int64{}
	for topic, at := range p.topics {
		byTopic[topic] = max(0, at.end-at.next)
		records += byTopic[topic]
	}
	return byTopic, records
}

// setEnds sets where the topics end.
func (p *Partition) setEnds(ends map[TopicPartition]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for topic, at := range p.topics {
		at.end = ends[TopicPartition{topic, p.number}]
		p.topics[topic] = at
	}
}

// posted returns what is posted of the partition.
func (p *Partition) posted() Posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Posted{Partition: p.number, Term: p.term, Since: p.since, CaughtUp: p.caughtUp.Load(), Next: map[string]int64{}}
	for topic, at := range p.topics {
		out.Next[topic] = at.next
	}
	return out
}

// Check reports whether a service of this process can work.
type Check struct {
	Service string `json:"service"`
	Ready   bool   `json:"ready"`
	// Why is the reason that it cannot, "" if it can.
	Why        string           `json:"why,omitempty"`
	Workers    int              `json:"workers,omitempty"`
	Busy       int              `json:"busy,omitempty"`
	Partitions []PartitionCheck `json:"partitions,omitempty"`
}

// PartitionCheck is a partition that a service of this process works on.
type PartitionCheck struct {
	Partition int32 `json:"partition"`
	// Term is the offset of the claim; NoTerm if the service claims nothing.
	Term          int64     `json:"term"`
	Since         time.Time `json:"since"`
	CaughtUp      bool      `json:"caught_up"`
	BehindRecords int64     `json:"behind_records"`
	// Topics has how many records of each topic are not read.
	Topics map[string]int64 `json:"topics"`
}

// Checks returns the health of each service, by name.
func (p *Process) Checks() []Check {
	p.mu.Lock()
	services := maps.Clone(p.services)
	p.mu.Unlock()
	var out []Check
	for _, name := range slices.Sorted(maps.Keys(services)) {
		out = append(out, services[name].Check())
	}
	return out
}

// Ready is nil if every service of the process can work, or has something to stand by for.
func (p *Process) Ready() error {
	for _, c := range p.Checks() {
		if !c.Ready {
			return fmt.Errorf("%s: %s", c.Service, c.Why)
		}
	}
	return nil
}

// Ready is nil if the service can work.
func (s *Service) Ready() error {
	if s == nil {
		return nil
	}
	if c := s.Check(); !c.Ready {
		return errors.New(c.Why)
	}
	return nil
}

// Check returns the health of the service.
func (s *Service) Check() Check {
	s.process.mu.Lock()
	lost, why := s.process.lost, s.process.why
	s.process.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Check{Service: s.name, Ready: true, Workers: s.workers, Busy: int(s.busy.Load())}
	for _, number := range slices.Sorted(maps.Keys(s.partitions)) {
		p := s.partitions[number]
		shown := PartitionCheck{Partition: number, Term: p.term, Since: p.since.UTC(), CaughtUp: p.caughtUp.Load()}
		shown.Topics, shown.BehindRecords = p.behind()
		c.Partitions = append(c.Partitions, shown)
		if !shown.CaughtUp {
			c.Ready, c.Why = false, fmt.Sprintf("partition %d is still being read; %d records are left", number, shown.BehindRecords)
		}
	}
	switch {
	case !lost.IsZero():
		c.Ready, c.Why = false, fmt.Sprintf("the broker has not answered for %s: %v", time.Since(lost).Round(time.Second), why)
	case s.trouble != "":
		c.Ready, c.Why = false, s.trouble
	case !s.joined && len(s.partitions) == 0:
		c.Ready, c.Why = false, "it has not joined its group yet"
	}
	return c
}

// Run asks the broker where the topics end, and posts the health of the services, until the context ends.
func (p *Process) Run(ctx context.Context) {
	if p.board == nil {
		return
	}
	for ctx.Err() == nil {
		p.lookAtClock()
		p.beat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(beatEvery):
		case <-p.poke:
			// Other changes of the same moment are posted with it.
			select {
			case <-ctx.Done():
			case <-time.After(pokePause):
			}
		}
	}
}

const (
	// Together they report a broker that is away within ten seconds.
	beatEvery    = 2 * time.Second
	beatPatience = 4 * time.Second
	// pokePause bounds how often changes that follow each other are posted.
	pokePause = 200 * time.Millisecond
)

// beat asks the broker once, and posts once.
func (p *Process) beat(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, beatPatience)
	defer cancel()
	p.mu.Lock()
	services := slices.Collect(maps.Values(p.services))
	p.mu.Unlock()
	topics := map[string]bool{standby: true}
	for _, s := range services {
		s.each(func(part *Partition) {
			for topic := range part.posted().Next {
				topics[topic] = true
			}
		})
	}
	if len(services) == 0 {
		return
	}
	ends, err := p.board.Ends(asking, slices.Sorted(maps.Keys(topics)))
	if err == nil {
		for _, s := range services {
			s.each(func(part *Partition) { part.setEnds(ends) })
		}
		err = p.board.Post(asking, p.beats(services))
	}
	if ctx.Err() == nil {
		p.setAnswered(err)
	}
}

// setAnswered notes whether the broker answered: err is nil if it did.
func (p *Process) setAnswered(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && !p.lost.IsZero():
		p.logger.Info("the broker answers again", "after", time.Since(p.lost).Round(time.Second).String())
		p.lost, p.why = time.Time{}, nil
	case err != nil && p.lost.IsZero():
		p.logger.Warn("the broker does not answer; this process waits for it, and is not ready", "error", err)
		p.lost, p.why = time.Now(), err
	case err != nil:
		p.why = err
	}
}

// leastJump is what a clock is set by at least for it to be a jump; what is less adds up.
const leastJump = time.Second

// lookAtClock notes how far the machine's clock was set: by as much as it moved otherwise than the time that has passed.
func (p *Process) lookAtClock() {
	wall := time.Now
	if p.Wall != nil {
		wall = p.Wall
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Round takes the monotonic reading away, and Since uses it.
	ahead := wall().Round(0).Sub(p.started.Round(0)) - time.Since(p.started)
	jump := ahead - p.ahead
	if jump.Abs() < leastJump {
		return
	}
	p.logger.Warn("the clock of this machine was set, or the machine slept", "by", jump.Round(time.Millisecond).String())
	p.ahead = ahead
	p.jumped += jump.Abs()
}

// ClockJumped returns by how much the machine's clock was set since the process began, forward and back added up.
func (s *Service) ClockJumped() time.Duration {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	return s.process.jumped
}

// BrokerSilent returns how long the broker has not answered, 0 while it does.
func (s *Service) BrokerSilent() time.Duration {
	s.process.mu.Lock()
	defer s.process.mu.Unlock()
	if s.process.lost.IsZero() {
		return 0
	}
	return time.Since(s.process.lost)
}

// each calls f with each partition that the service works on.
func (s *Service) each(f func(*Partition)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.partitions {
		f(p)
	}
}

// beats returns what is posted of the services.
func (p *Process) beats(services []*Service) (out []Beat) {
	now := time.Now()
	for _, s := range services {
		s.mu.Lock()
		b := Beat{
			Service: s.name, Instance: p.instance, Version: p.version, Boot: p.boot, Started: p.started, At: now,
			Workers: s.workers, Busy: int(s.busy.Load()), Can: s.can, Trouble: s.trouble,
		}
		s.mu.Unlock()
		s.each(func(part *Partition) { b.Partitions = append(b.Partitions, part.posted()) })
		out = append(out, b)
	}
	return out
}
