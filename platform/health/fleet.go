package health

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"landfall.build/events"
)

const (
	// silentAfter is how long an instance that works may be silent: five beats.
	silentAfter = 10 * time.Second
	// graceAfter is how long a partition may be without work, or the board unreadable, before people hear of it: a group needs as
	// long to give a partition to another.
	graceAfter = 10 * time.Second
	// stalledAfter is how long an owner may take nothing although there is something.
	stalledAfter = time.Minute
	// forgetAfter is when an instance that is gone is no longer shown.
	forgetAfter = time.Hour
)

// Fleet is all instances of all services of a log, as the board shows them. Whether an instance lives is decided by when this
// process saw its beat change, so clocks may differ.
type Fleet struct {
	// queues has the names of the queues by partition.
	queues map[int32][]string
	now    func() time.Time

	mu sync.Mutex
	// begun and read are when the board was read first and last. lost is since when it cannot be read, and why the error.
	begun, read, lost time.Time
	why               error
	seen              map[instanceKey]*seen
	work              map[workKey]*work
	ends              map[TopicPartition]int64
}

type instanceKey struct{ service, instance string }

// seen is an instance: its last beat, and when it came.
type seen struct {
	beat  Beat
	heard time.Time
	// replaced has the processes that posted under this name before others did, and doubled is when one of them posted again: two
	// processes have one name.
	replaced map[string]bool
	doubled  time.Time
}

type workKey struct {
	service   string
	partition int32
}

// work is what is known of the work of a service on a partition.
type work struct {
	// last is when an instance was last able to work on it, and posted what the last one that did posted.
	last   time.Time
	posted Posted
	// taken is how many records the owner has taken. stuck is since when it has taken none although some are left, zero while
	// none are left.
	taken int64
	stuck time.Time
}

// NewFleet is for queues on a log of so many partitions.
func NewFleet(queues []string, partitions int32) *Fleet {
	f := &Fleet{queues: map[int32][]string{}, now: time.Now, seen: map[instanceKey]*seen{}, work: map[workKey]*work{}}
	for _, name := range slices.Sorted(slices.Values(queues)) {
		p := events.PartitionOf(name, partitions)
		f.queues[p] = append(f.queues[p], name)
	}
	return f
}

// Watch reads the board until the context ends, and calls changed after each time.
func (f *Fleet) Watch(ctx context.Context, board Board, changed func()) {
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, beatPatience)
		beats, ends, err := readBoard(asking, board)
		cancel()
		if ctx.Err() != nil {
			return
		}
		f.take(beats, ends, err)
		changed()
		select {
		case <-ctx.Done():
		case <-time.After(beatEvery):
		}
	}
}

func readBoard(ctx context.Context, board Board) ([]Beat, map[TopicPartition]int64, error) {
	beats, err := board.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	topics := map[string]bool{}
	for _, b := range beats {
		for _, p := range b.Partitions {
			for topic := range p.Next {
				topics[topic] = true
			}
		}
	}
	if len(topics) == 0 {
		return beats, nil, nil
	}
	ends, err := board.Ends(ctx, slices.Sorted(maps.Keys(topics)))
	return beats, ends, err
}

// take takes what the board shows.
func (f *Fleet) take(beats []Beat, ends map[TopicPartition]int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if err != nil {
		if f.why = err; f.lost.IsZero() {
			f.lost = now
		}
		return
	}
	if f.begun.IsZero() {
		f.begun, f.read = now, now
	}
	// While the board was not read no service could be heard, because the broker was away or this process stood still. Silence
	// is counted from now.
	if away := now.Sub(f.read); away > beatEvery+beatPatience {
		for _, s := range f.seen {
			s.heard = s.heard.Add(away)
		}
		for _, w := range f.work {
			if w.last = w.last.Add(away); !w.stuck.IsZero() {
				w.stuck = w.stuck.Add(away)
			}
		}
	}
	f.read, f.lost, f.why = now, time.Time{}, nil
	f.ends = ends
	for _, b := range beats {
		f.hear(b, now)
	}
	for service := range required {
		for partition := range f.queues {
			f.follow(workKey{service, partition}, now)
		}
	}
}

// hear takes the beat of an instance.
func (f *Fleet) hear(b Beat, now time.Time) {
	key := instanceKey{b.Service, b.Instance}
	s := f.seen[key]
	switch {
	case s == nil:
		// Whether it lives is not known before it changes; its stamp is the best guess until then.
		s = &seen{beat: b, heard: b.At, replaced: map[string]bool{}}
		if s.heard.After(now) {
			s.heard = now
		}
		f.seen[key] = s
	case !s.beat.At.Equal(b.At) || s.beat.Boot != b.Boot:
		s.heard = now
	}
	if s.beat.Boot != b.Boot {
		if s.replaced[b.Boot] {
			s.doubled = now
		}
		if len(s.replaced) > maxReplaced {
			clear(s.replaced)
		}
		s.replaced[s.beat.Boot] = true
	}
	s.beat = b
}

// maxReplaced bounds what is remembered of the processes of one name.
const maxReplaced = 20

// required has what stands still without a service, for people. Services that are not here are no part of landing.
var required = map[string]string{
	events.ServiceGateway:     "",
	events.ServiceAnalyzer:    "new changes are not analysed until one is",
	events.ServiceEnumerator:  "nothing is decided until one does",
	events.ServiceProfiler:    "nothing is decided until one does",
	events.ServicePrioritizer: "nothing is decided until one does",
	events.ServiceSelector:    "nothing is decided until one does",
	events.ServiceBuilder:     "no step runs until one is",
	events.ServiceLander:      "nothing lands until one does",
}

// shared reports whether every instance of a service works on every partition.
func shared(service string) bool {
	return service == events.ServiceGateway || service == events.ServiceAnalyzer || service == events.ServiceBuilder
}

// holder returns the living instance that works on a partition, the one with the highest term if there are several.
func (f *Fleet) holder(key workKey, now time.Time) (s *seen, p Posted) {
	for _, k := range slices.SortedFunc(maps.Keys(f.seen), func(a, b instanceKey) int { return cmp.Compare(a.instance, b.instance) }) {
		one := f.seen[k]
		if k.service != key.service || now.Sub(one.heard) > silentAfter {
			continue
		}
		for _, posted := range one.beat.Partitions {
			better := s == nil || posted.Term > p.Term || posted.Term == p.Term && posted.CaughtUp && !p.CaughtUp
			if posted.Partition == key.partition && better {
				s, p = one, posted
			}
		}
	}
	return s, p
}

func (f *Fleet) behind(p Posted) (records int64) {
	for topic, next := range p.Next {
		records += max(0, f.ends[TopicPartition{topic, p.Partition}]-next)
	}
	return records
}

// follow notes whether a partition is being worked on.
func (f *Fleet) follow(key workKey, now time.Time) {
	w := f.work[key]
	if w == nil {
		w = &work{last: f.begun}
		// Somebody who was there before this process may have posted it.
		known := false
		for k, s := range f.seen {
			at := slices.IndexFunc(s.beat.Partitions, func(p Posted) bool { return p.Partition == key.partition })
			if k.service == key.service && at >= 0 && (!known || s.heard.After(w.last)) {
				known, w.last, w.posted = true, s.heard, s.beat.Partitions[at]
			}
		}
		f.work[key] = w
	}
	s, p := f.holder(key, now)
	if s == nil {
		w.stuck = time.Time{}
		return
	}
	taken := int64(0)
	for _, next := range p.Next {
		taken += next
	}
	switch another := p.Term != w.posted.Term || !p.Since.Equal(w.posted.Since); {
	case f.behind(p) == 0:
		w.stuck = time.Time{}
	case w.stuck.IsZero() || another || taken != w.taken:
		w.stuck = now
	}
	w.taken = taken
	if w.posted = p; p.CaughtUp {
		w.last = s.heard
	}
}

// Missing is a service that a queue needs and that is not at work.
type Missing struct {
	Service string `json:"service"`
	// Partition, and Queues on it.
	Partition int32     `json:"partition"`
	Queues    []string  `json:"queues"`
	Since     time.Time `json:"since"`
	// Sentence is for people: what is wrong, for how long, and what follows.
	Sentence string `json:"sentence"`
}

// For returns m for somebody who may read only these of its queues: its sentence names no others.
func (m Missing) For(queues []string) Missing {
	m.Sentence = strings.Replace(m.Sentence, place(m.Partition, m.Queues), place(m.Partition, queues), 1)
	m.Queues = queues
	return m
}

// place returns a partition and the queues on it, for sentences.
func place(partition int32, queues []string) string {
	word := "queue"
	if len(queues) > 1 {
		word = "queues"
	}
	return fmt.Sprintf("partition %d (%s %s)", partition, word, strings.Join(queues, ", "))
}

// Instance is one process of a service.
type Instance struct {
	Service  string    `json:"service"`
	Instance string    `json:"instance"`
	Version  string    `json:"version"`
	Alive    bool      `json:"alive"`
	Started  time.Time `json:"started"`
	Heard    time.Time `json:"heard"`
	Workers  int       `json:"workers,omitempty"`
	Busy     int       `json:"busy,omitempty"`
	// Capacity is empty for other services than the builder.
	Capacity
	// Partitions that it works on.
	Partitions []int32 `json:"partitions,omitempty"`
	// Trouble is what keeps it from working.
	Trouble string `json:"trouble,omitempty"`
}

// Ownership is who works on a partition.
type Ownership struct {
	Service   string   `json:"service"`
	Partition int32    `json:"partition"`
	Queues    []string `json:"queues"`
	// Instance is empty if there is none.
	Instance string `json:"instance,omitempty"`
	// Term is the offset of the claim under which it writes, -1 for a service that claims nothing.
	Term  int64     `json:"term"`
	Since time.Time `json:"since,omitzero"`
	// State is working, reading, stalled, or unowned; of the past claimed, for whether the owner was at work then is not known, nor how far
	// it was behind.
	State         string `json:"state"`
	BehindRecords int64  `json:"behind_records"`
}

// States of an ownership.
const (
	StateWorking = "working"
	StateReading = "reading"
	StateStalled = "stalled"
	StateUnowned = "unowned"
	StateClaimed = "claimed"
)

// Report is all of a fleet.
type Report struct {
	Instances  []Instance  `json:"instances"`
	Partitions []Ownership `json:"partitions"`
	Missing    []Missing   `json:"missing"`
}

// flow returns the services in the order of the flow.
func flow() []string {
	return []string{
		events.ServiceGateway, events.ServiceAnalyzer, events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer,
		events.ServiceSelector, events.ServiceBuilder, events.ServiceLander, events.ServiceOutcomes, events.ServiceWebhooks, events.ServiceHosts, events.ServiceTracer, events.ServiceHistorian, events.ServiceTrainer,
	}
}

// Report returns the fleet as it is now.
func (f *Fleet) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The report is as of the last reading.
	now := f.read
	r := Report{Instances: []Instance{}, Partitions: []Ownership{}, Missing: []Missing{}}
	if at := f.now(); !f.lost.IsZero() && at.Sub(f.lost) >= graceAfter {
		return f.cutOff(r, at)
	}
	if f.begun.IsZero() {
		return r
	}
	for _, service := range flow() {
		r.Instances = append(r.Instances, f.instances(service, now)...)
		for _, partition := range slices.Sorted(maps.Keys(f.queues)) {
			key := workKey{service, partition}
			o, t := f.look(key, now)
			if o.Instance != "" || required[service] != "" {
				r.Partitions = append(r.Partitions, o)
			}
			if t != nil {
				r.Missing = append(r.Missing, *t)
			}
		}
	}
	return r
}

// starting reports whether this process has read the board for so short that services which have begun with it are not due on it yet.
func (f *Fleet) starting(now time.Time) bool { return now.Sub(f.begun) < graceAfter }

// Starting is the Service of what Fleet.Starting returns.
const Starting = "starting"

// Starting returns, for each partition with queues, which services would be missing by what the board shows, although this process has
// only just begun to read it; nothing once they have had their time. After that Report says what is missing.
func (f *Fleet) Starting() (list []Missing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun.IsZero() || !f.starting(f.read) {
		return nil
	}
	for _, partition := range slices.Sorted(maps.Keys(f.queues)) {
		var names []string
		for _, service := range flow() {
			if required[service] == "" {
				continue
			}
			key := workKey{service, partition}
			w := f.work[key]
			if o, _ := f.look(key, f.read); w != nil && f.read.Sub(w.last) >= graceAfter && o.State != StateWorking {
				names = append(names, service)
			}
		}
		if len(names) > 0 {
			list = append(list, Missing{Service: Starting, Partition: partition, Queues: f.queues[partition], Since: f.begun.UTC().Truncate(time.Second),
				Sentence: "The services are starting: " + starters(names) + " not seen at work yet."})
		}
	}
	return list
}

// starters returns the names with their verb: "a is", "a and b are", "a, b and c are".
func starters(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are"
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cutOff reports that the broker does not answer: then nothing is known of anybody.
func (f *Fleet) cutOff(r Report, now time.Time) Report {
	for _, partition := range slices.Sorted(maps.Keys(f.queues)) {
		r.Missing = append(r.Missing, Missing{
			Service: "broker", Partition: partition, Queues: f.queues[partition], Since: f.lost.UTC(),
			Sentence: fmt.Sprintf("The log's broker has not answered the gateway for %s: nothing is known from after that, and nothing lands until it answers.", age(now.Sub(f.lost))),
		})
	}
	return r
}

func (f *Fleet) instances(service string, now time.Time) (out []Instance) {
	for key, s := range f.seen {
		if key.service != service || now.Sub(s.heard) > forgetAfter {
			continue
		}
		i := Instance{
			Service: service, Instance: key.instance, Version: s.beat.Version, Alive: now.Sub(s.heard) <= silentAfter,
			Started: s.beat.Started.UTC().Truncate(time.Second), Heard: s.heard.UTC().Truncate(time.Second), Workers: s.beat.Workers, Busy: s.beat.Busy, Capacity: s.beat.Can, Trouble: s.beat.Trouble,
		}
		for _, p := range s.beat.Partitions {
			i.Partitions = append(i.Partitions, p.Partition)
		}
		slices.Sort(i.Partitions)
		if now.Sub(s.doubled) < silentAfter {
			i.Trouble = "two processes use this name; give each its own with --instance"
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Instance) int { return cmp.Compare(a.Instance, b.Instance) })
	return out
}

// look returns who works on a partition, and what is wrong with that, nil if nothing is.
func (f *Fleet) look(key workKey, now time.Time) (Ownership, *Missing) {
	o := Ownership{Service: key.service, Partition: key.partition, Queues: f.queues[key.partition], Term: NoTerm, State: StateUnowned}
	w := f.work[key]
	s, p := f.holder(key, now)
	if s == nil && w != nil {
		o.BehindRecords = f.behind(w.posted)
	}
	if s != nil {
		o.Instance, o.Term, o.Since, o.BehindRecords = s.beat.Instance, p.Term, p.Since.UTC().Truncate(time.Second), f.behind(p)
		o.State = StateReading
		if p.CaughtUp {
			o.State = StateWorking
		}
	}
	effect := required[key.service]
	if effect == "" || w == nil {
		return o, nil
	}
	where := place(key.partition, o.Queues)
	since, text := w.last, ""
	idle := now.Sub(w.last)
	switch {
	case o.State == StateWorking && !w.stuck.IsZero() && now.Sub(w.stuck) > stalledAfter:
		o.State, since = StateStalled, w.stuck
		text = fmt.Sprintf("The %s of %s, %s, has taken none of the %d records before it for %s; look at its log, or start it again.",
			key.service, where, o.Instance, o.BehindRecords, age(now.Sub(w.stuck)))
	case o.State == StateWorking || idle < graceAfter || f.starting(now):
		return o, nil
	case o.State == StateReading:
		since = latest(w.last, f.begun)
		text = fmt.Sprintf("The %s of %s, %s, is still reading the log after %s, with %d records left; it works after that.",
			key.service, where, o.Instance, age(now.Sub(since)), o.BehindRecords)
	case shared(key.service):
		text = fmt.Sprintf("No %s has been alive for %s; %s.", key.service, age(idle), effect)
	default:
		text = fmt.Sprintf("No %s has owned %s for %s; %s.", key.service, where, age(idle), effect)
	}
	return o, &Missing{Service: key.service, Partition: key.partition, Queues: o.Queues, Since: since.UTC().Truncate(time.Second), Sentence: text}
}

// age returns a duration for people.
func age(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
