package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

const (
	// maxFlying is how many tasks are under way at a time at one host, on one partition.
	maxFlying = 8
	// firstPause and lastPause are between two tries of what failed.
	firstPause = time.Second
	lastPause  = 2 * time.Minute
	// placesEvery is the time between two questions to the gateway about a queue.
	placesEvery = 3 * time.Second
	// strangersAtOnce is how many answers of a queue those have at once who may not land, strangersEvery how long until there is one more. Hosts
	// take a bounded number of comments, and anybody may ask there.
	strangersAtOnce = 10
	strangersEvery  = time.Minute
)

// key names a pull request: numbers are those of the repository of the queue.
type key struct {
	queue  string
	number int64
}

// Core holds the pull requests of a partition: a fold of landfall.hosts and landfall.outcomes, and what the hosts last said. It
// implements runner.Core, and reads back what it writes.
//
// What the hosts are asked runs beside it, and is no part of the state: the next owner asks again.
type Core struct {
	// settings has the configured queues of the partition.
	settings map[string]Settings `snapshot:"-"`
	rules    *access.Rules       `snapshot:"-"`
	poll     time.Duration       `snapshot:"-"`
	terms    *journal.Terms
	// next and outcomes are the next offsets of landfall.hosts and landfall.outcomes to read.
	next, outcomes int64
	reviews        map[key]*review
	// floors has the last event of a timeline that was taken by queue: of pull requests that are not in reviews, no event up to it is taken.
	floors map[string]int64

	live bool  `snapshot:"-"`
	now  int64 `snapshot:"-"`
	// look is set when it is time to see which tasks have ended.
	look bool `snapshot:"-"`
	// listed and placed have when each queue was listed, and when the gateway was asked about it, in microseconds; 0 for at once.
	listed, placed map[string]int64 `snapshot:"-"`
	// listing and placing have the queues for which that is under way.
	listing, placing map[string]bool `snapshot:"-"`
	// lists has what the hosts last listed, by queue.
	lists map[string]*list `snapshot:"-"`
	// agendas hold what is to be taken up, by host, touched the reviews that changed since they were made.
	agendas map[string]*agenda `snapshot:"-"`
	touched []key              `snapshot:"-"`
	// asking counts the reviews by queue whose places are of interest; checked has those to which checks matter.
	asking  map[string]int            `snapshot:"-"`
	checked map[string]map[int64]bool `snapshot:"-"`
	// strangers bound the answers to those who may not land, by queue.
	strangers map[string]*rate.Limiter `snapshot:"-"`
	// newest is the time of the newest record of a pull request.
	newest int64           `snapshot:"-"`
	todo   []runner.Effect `snapshot:"-"`
}

// Effects that the service carries out. A Tell writes to the topic of another service; the others run beside the loop, and what comes of
// them is collected.
type (
	// Tell writes a fact.
	Tell struct {
		Queue, Topic, Subject string
		Identity              []string
		Message               proto.Message
	}
	// List asks for the pull requests of a queue's repository that changed since, or with 0 for all open ones; Look for one; Places for
	// the places of the queue's changes.
	List struct {
		Queue   string
		SinceUS int64
	}
	Look struct {
		Key    key
		After  int64
		Commit string
	}
	Places  struct{ Queue string }
	Collect struct{}
)

// What comes of them.
type (
	Results []any
	Listing struct {
		List  List
		Pulls []Listed
		Err   error
	}
	Looked struct {
		Key  key
		Pull Pull
		Err  error
	}
	Placed struct {
		Queue  string
		Places map[string]Place
		Err    error
	}
	Reported struct {
		Report Report
		// Done is what of it was done, in the order merged, status, comment, label; Comment the id of the comment.
		Done    Report
		Comment int64
		Err     error
	}
)

func newCore(settings map[string]Settings, rules *access.Rules, poll time.Duration) *Core {
	return &Core{settings: settings, rules: rules, poll: poll, terms: journal.NewTerms(events.TopicHosts), reviews: map[key]*review{}, floors: map[string]int64{},
		listed: map[string]int64{}, placed: map[string]int64{}, listing: map[string]bool{}, placing: map[string]bool{}, lists: map[string]*list{},
		agendas: map[string]*agenda{}, strangers: map[string]*rate.Limiter{}, asking: map[string]int{}, checked: map[string]map[int64]bool{}}
}

// NeedsOwn implements runner.Core: landfall.hosts is folded up to the claim before anything else.
func (c *Core) NeedsOwn() bool { return !c.live }

// Stale implements runner.Core: the state is a fold of what counts.
func (c *Core) Stale() bool { return false }

// CanBatch implements runner.Core.
func (c *Core) CanBatch(journal.Entry) bool { return true }

// Next implements runner.Core.
func (c *Core) Next(topic string) int64 {
	if topic == events.TopicHosts {
		return c.next
	}
	return c.outcomes
}

// GoLive implements runner.Core.
func (c *Core) GoLive(now time.Time) {
	c.live, c.now = true, now.UnixMicro()
	for k := range c.reviews {
		c.touch(k)
	}
	c.settle()
}

// Apply implements runner.Core.
func (c *Core) Apply(in runner.Input) {
	c.now = in.Now.UnixMicro()
	defer c.settle()
	switch {
	case in.Tick != nil:
		c.look = false
		for _, a := range c.agendas {
			c.look = c.look || a.flying > 0
		}
	case in.Record != nil && in.Record.Topic == events.TopicHosts:
		c.next = in.Record.Offset + 1
		if c.terms.Counts(*in.Record) {
			c.fold(in.Record.Message)
		}
	case in.Record != nil:
		c.outcomes = in.Record.Offset + 1
		if m, is := in.Record.Message.(*eventsv1.ChangeOutcome); is && in.Record.Err == nil {
			c.outcome(m)
		}
	default:
		if results, is := in.Outcome.(Results); is {
			c.look = false
			for _, r := range results {
				c.agendaOf(queueOf(r)).flying--
				c.result(r)
			}
		}
	}
}

// review returns the state of a pull request, and makes one if there is none.
func (c *Core) review(k key) *review {
	r := c.reviews[k]
	if r == nil {
		r = &review{kept: &eventsv1.HostedChange{Host: c.settings[k.queue].Host, Queue: k.queue, Number: k.number, Change: ChangeOf(k.number), Handled: c.floors[k.queue]}}
		c.reviews[k] = r
	}
	c.touch(k)
	return r
}

// fold takes a counted record of landfall.hosts.
func (c *Core) fold(m proto.Message) {
	switch m := m.(type) {
	case *eventsv1.HostNoticed:
		c.newest = max(c.newest, m.StampUs)
		if m.Number > 0 {
			c.review(key{m.Queue, m.Number}).noticed = true
			return
		}
		c.noticeCheck(m)
	case *eventsv1.HostedChange:
		c.newest = max(c.newest, m.StampUs)
		k := key{m.Queue, m.Number}
		r := c.review(k)
		r.kept, r.busy = m, false
		if c.live {
			c.advance(k, r)
		}
	}
}

// outcome takes an outcome, whoever wrote it.
func (c *Core) outcome(m *eventsv1.ChangeOutcome) {
	number, is := numberOf(m.Change)
	if !is {
		return
	}
	if _, configured := c.settings[m.Queue]; !configured {
		return
	}
	k := key{m.Queue, number}
	r, asked := c.reviews[k]
	if !asked {
		return // the host was not asked for it: what somebody asks for there is in the log before what comes of it
	}
	c.touch(k)
	at := &r.outcome
	if m.Subject != m.Change {
		at = &r.answer
	}
	if *at != nil && (*at).Sequence >= m.Sequence {
		return // it is written again
	}
	*at = m
	if now := m.Reason.GetNow(); r.outcome == nil && m.State == "unchanged" && now != "" {
		// What became of the change came before all that is remembered of the pull request.
		r.outcome = &eventsv1.ChangeOutcome{Queue: m.Queue, Subject: m.Change, Change: m.Change, Revision: m.Revision, State: now, Head: r.kept.Head}
	}
	if c.live {
		r.endedUS, r.waitUS = c.now, 0
		r.noticed = r.noticed || r.pull == nil
		c.placed[m.Queue] = 0
		c.advance(k, r)
	}
}

// result folds the result of a task.
func (c *Core) result(result any) {
	switch o := result.(type) {
	case Listing:
		delete(c.listing, o.List.Queue)
		if o.Err != nil {
			c.log(slog.LevelWarn, "the host cannot be asked for open pull requests; trying again", "queue", o.List.Queue, "error", o.Err)
			return
		}
		c.sweep(o)
	case Placed:
		delete(c.placing, o.Queue)
		if o.Err != nil {
			c.log(slog.LevelDebug, "the gateway does not show the queue", "queue", o.Queue, "error", o.Err)
			return
		}
		for change, p := range o.Places {
			number, is := numberOf(change)
			if r, known := c.reviews[key{o.Queue, number}]; is && known {
				r.place = &p
				c.touch(key{o.Queue, number})
			}
		}
	case Looked:
		r := c.reviews[o.Key]
		c.touch(o.Key)
		r.busy, r.lookUS, r.waitUS = false, c.now, 0
		switch {
		case o.Err == ErrGone:
			r.failures, r.pull = 0, &Pull{Number: o.Key.number}
			c.advance(o.Key, r)
		case o.Err != nil:
			r.noticed = true
			c.failed(o.Key, r, "a pull request cannot be looked at; trying again", o.Err)
			if later := (*Later)(nil); errors.As(o.Err, &later) {
				r.nextUS = r.waitUS
			}
		default:
			r.failures, r.pull = 0, &o.Pull
			if !o.Pull.Merged {
				r.mergedUS = 0
			} else if r.mergedUS == 0 {
				r.mergedUS = c.now
			}
			if !o.Pull.Landing {
				r.landingUS = 0
			} else if r.landingUS == 0 {
				r.landingUS = c.now
			}
			c.advance(o.Key, r)
		}
	case Reported:
		c.reported(o)
	}
}

func (c *Core) failed(k key, r *review, text string, err error) {
	if later := (*Later)(nil); errors.As(err, &later) {
		r.waitUS = later.Until.UnixMicro()
		c.log(slog.LevelDebug, "the host's limits are reached; trying later", "queue", k.queue, "number", k.number, "until", later.Until, "error", err)
		return
	}
	r.failures++
	r.nextUS = c.now + min(lastPause, firstPause<<min(r.failures-1, 10)).Microseconds()
	level := slog.LevelWarn
	if r.failures == 1 {
		level = slog.LevelInfo
	}
	c.log(level, text, "queue", k.queue, "number", k.number, "failures", r.failures, "error", access.Clean(err.Error(), 500))
}

// reported folds the result of a report.
func (c *Core) reported(o Reported) {
	k := o.Report.key
	r := c.reviews[k]
	c.touch(k)
	r.busy = false
	if o.Done.Status != nil {
		r.pull.Status, r.statusUS = *o.Done.Status, c.now
	}
	if o.Done.Merged != "" {
		r.noticed = true // the host says whether it is
		if r.merges++; r.merges > 1 {
			r.nextUS = c.now + min(lastPause, firstPause<<min(r.merges-2, 10)).Microseconds()
		}
	}
	if o.Done.Unlabel {
		r.pull.Labelled = false
	}
	if o.Err != nil {
		c.failed(k, r, "the host does not take a report; trying again", o.Err)
	} else {
		r.failures = 0
	}
	if o.Done.Text != "" {
		next := proto.CloneOf(r.kept)
		next.Comment, next.CommentHash = o.Comment, hashOf(o.Done.Text)
		c.keep(k, r, next)
		return
	}
	c.advance(k, r)
}

// advance decides what follows from a pull request as it was last seen, and from the outcomes.
func (c *Core) advance(k key, r *review) {
	s, configured := c.settings[k.queue]
	if r.busy || r.pull == nil || !configured {
		return
	}
	strangers, now := c.strangers[k.queue], time.UnixMicro(c.now)
	if strangers == nil {
		strangers = rate.NewLimiter(rate.Every(strangersEvery), strangersAtOnce)
		c.strangers[k.queue] = strangers
	}
	r.quiet = strangers.TokensAt(now) < 1
	t := r.take(s, c.rules, *r.pull, c.now)
	if t.stranger {
		strangers.AllowN(now, 1)
	}
	for _, f := range t.facts {
		if _, is := f.message.(*eventsv1.ChangeCancelled); is {
			r.cancelUS = c.now
		}
		c.todo = append(c.todo, Tell{k.queue, f.topic, f.subject, f.identity, f.message})
	}
	// What was handled without consequence is read again by the next owner.
	handled := t.kept.Handled
	if t.kept.Handled = r.kept.Handled; proto.Equal(t.kept, r.kept) && (len(t.facts) == 0 || handled == r.kept.Handled) {
		r.kept.Handled = handled
		t.kept.Handled = handled
		if r.isOver(s, c.now) {
			t.kept.Over = true
		}
		r.see(t.kept, s, c.now)
		if !proto.Equal(t.kept, r.kept) {
			c.keep(k, r, t.kept)
		}
		return
	}
	t.kept.Handled = handled
	r.see(t.kept, s, c.now)
	c.keep(k, r, t.kept)
}

// keep has the new state of a pull request written.
func (c *Core) keep(k key, r *review, next *eventsv1.HostedChange) {
	r.busy = true
	c.touch(k)
	next.StampUs = c.now
	c.todo = append(c.todo, runner.Append{Queue: k.queue, Subject: next.Change, Message: next, Identity: []string{fmt.Sprint(k.number, c.next, len(c.todo))}})
}

// Decide implements runner.Core.
func (c *Core) Decide() []runner.Effect {
	if len(c.todo) > 0 {
		return c.todo[:1:1]
	}
	var effects []runner.Effect
	if c.look {
		effects = append(effects, Collect{})
	}
	return append(effects, c.tasks()...)
}

// tasks returns the questions to the hosts and the gateway that are due.
func (c *Core) tasks() (tasks []runner.Effect) {
	begun := map[*agenda]int{}
	for _, queue := range slices.Sorted(maps.Keys(c.settings)) {
		if at, was := c.listed[queue]; !c.listing[queue] && (!was || c.now-at >= c.poll.Microseconds()) {
			tasks = append(tasks, List{queue, c.since(queue)})
			begun[c.agendaOf(queue)]++
		}
		if c.asking[queue] > 0 && !c.placing[queue] && c.now-c.placed[queue] >= placesEvery.Microseconds() {
			tasks = append(tasks, Places{queue})
			begun[c.agendaOf(queue)]++
		}
	}
	for _, host := range slices.Sorted(maps.Keys(c.agendas)) {
		a := c.agendas[host]
		room := maxFlying - a.flying - begun[a]
		for _, at := range a.ready {
			if room <= 0 {
				break
			}
			k, r := at.key, c.reviews[at.key]
			if r.mustLook() {
				tasks = append(tasks, Look{k, r.kept.Handled, r.kept.Head})
			} else if report := r.report(c.settings[k.queue], c.now); !report.empty() {
				report.key = k
				tasks = append(tasks, report)
			} else {
				continue
			}
			room--
		}
	}
	return tasks
}

// queueOf returns the queue of the result of a task.
func queueOf(result any) string {
	switch r := result.(type) {
	case Listing:
		return r.List.Queue
	case Looked:
		return r.Key.queue
	case Placed:
		return r.Queue
	case Reported:
		return r.Report.key.queue
	}
	return ""
}

// Fold implements runner.Core.
func (c *Core) Fold(done runner.Effect) {
	defer c.settle()
	switch e := done.(type) {
	case Tell, runner.Log, runner.Append:
		c.todo = c.todo[1:]
	case Collect:
		c.look = false
	case List:
		c.listing[e.Queue], c.listed[e.Queue] = true, c.now
		c.agendaOf(e.Queue).flying++
	case Places:
		c.placing[e.Queue], c.placed[e.Queue] = true, c.now
		c.agendaOf(e.Queue).flying++
	case Look:
		r := c.review(e.Key)
		r.busy, r.noticed = true, false
		c.agendaOf(e.Key.queue).flying++
	case Report:
		c.review(e.key).busy = true
		c.agendaOf(e.key.queue).flying++
	}
}

func (c *Core) log(level slog.Level, text string, args ...any) {
	c.todo = append(c.todo, runner.Log{Level: level, Text: text, Args: args})
}

// Snapshot implements runner.Core.
func (c *Core) Snapshot() proto.Message {
	m := &snapshotv1.Hosts{Terms: c.terms.Snapshot(), Next: c.next, Outcomes: c.outcomes, Floors: c.floors}
	for _, k := range slices.SortedFunc(maps.Keys(c.reviews), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.number, b.number))
	}) {
		r := c.reviews[k]
		if r.kept.StampUs == 0 && !r.noticed {
			continue // nobody has asked for it
		}
		m.Changes = append(m.Changes, &snapshotv1.HostsChange{Kept: r.kept, Outcome: r.outcome, Answer: r.answer, Noticed: r.noticed})
	}
	return m
}

func restore(c *Core, state []byte) (*Core, error) {
	m := &snapshotv1.Hosts{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	c.terms, c.next, c.outcomes = journal.RestoreTerms(events.TopicHosts, m.Terms), m.Next, m.Outcomes
	maps.Copy(c.floors, m.Floors)
	for _, h := range m.Changes {
		if h.Kept == nil {
			continue
		}
		c.reviews[key{h.Kept.Queue, h.Kept.Number}] = &review{kept: h.Kept, outcome: h.Outcome, answer: h.Answer, noticed: h.Noticed}
	}
	return c, nil
}
