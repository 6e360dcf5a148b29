package hosts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
)

// Settings of a queue's repository at a host.
type Settings struct {
	// Log is the id of the log.
	Log string
	// Host is the name of the server in the configuration, URL its address, which vouches for its users.
	Host, URL string
	Queue     string
	Label     string
	// Withdraw takes a change out of the queue when something is pushed to its pull request. Else the commit that was asked for lands.
	Withdraw bool
	// Class is the kind of host, for records.
	Class eventsv1.HostClass
	// Page returns the address of a change's page, "" if that is not known.
	Page func(queue, change string) string
}

// requestID returns the id of what an event of a pull request asks for. Only who reads the log, or outcomes, knows it beforehand: an id answers one
// request, so whoever could guess it could use it up, or have another change taken for that of the pull request.
func (s Settings) requestID(number, event int64) string {
	id := fmt.Sprintf("%s/%d/%d", s.Host, number, event)
	return id + "/" + events.DeriveID(s.Log, "asked", id)
}

// Place is where a change is in its queue, as the gateway shows it.
type Place struct {
	State    string
	Position int
	Why      string
	// ETA is when it is decided, as likely too early as too late; zero if that is not known.
	ETA time.Time
	// Failure and Lines are what failed.
	Failure string
	Lines   []string
}

// review holds the state of a pull request: a fold of landfall.hosts and of landfall.outcomes, and what the host last said.
type review struct {
	kept *eventsv1.HostedChange
	// outcome is the newest outcome of the change, answer the newest answer to a request that changed nothing.
	outcome, answer *eventsv1.ChangeOutcome
	// noticed is set if there is news that was not looked at.
	noticed bool

	// pull is the pull request as it was last seen; nil if it was not since the start.
	pull *Pull `snapshot:"-"`
	// lookUS is when it was seen.
	lookUS int64 `snapshot:"-"`
	// busy is set while a task is under way, or what came of one is not in the log.
	busy bool `snapshot:"-"`
	// quiet is set if those who may not land have had their answers for now.
	quiet bool `snapshot:"-"`
	// failures counts those in a row of the present task; it is not tried before nextUS.
	failures int   `snapshot:"-"`
	nextUS   int64 `snapshot:"-"`
	// waitUS is when the host takes reports again; it does not hold up what ends the change.
	waitUS int64 `snapshot:"-"`
	// mergedUS is when it was first seen that the pull request is merged.
	mergedUS int64 `snapshot:"-"`
	// landingUS is when it was first seen that its head is a landing commit.
	landingUS int64 `snapshot:"-"`
	// merges counts how often the host took it that the pull request is merged.
	merges int `snapshot:"-"`
	// place is as of placeUS. endedUS is when the outcome came to be known.
	place   *Place `snapshot:"-"`
	endedUS int64  `snapshot:"-"`
	// statusUS is when the status was set last, cancelUS when a cancellation was written last.
	statusUS, cancelUS int64 `snapshot:"-"`
	// at is its place on the agenda, and asks and checked how it was counted.
	at            slot `snapshot:"-"`
	asks, checked bool `snapshot:"-"`
}

// state is the state of a request to land.
type state string

// States of a review. Those of outcomes are added.
const (
	// nobody asks.
	nobody state = ""
	// waiting is for the pull request to be ready.
	waiting state = "waiting"
	// asked is a land request without an answer.
	asked state = "asked"
	// queued is a change in the queue.
	queued    state = "queued"
	held      state = "held"
	refused   state = "refused"
	landed    state = "landed"
	rejected  state = "rejected"
	ejected   state = "ejected"
	cancelled state = "cancelled"
	dropped   state = "dropped"
)

func (r *review) state() state {
	k := r.kept
	switch {
	case k.Head == "":
		return nobody
	case k.RequestId == "":
		return waiting
	}
	if a := r.answer; a != nil && a.RequestId == k.RequestId && a.State == "refused" {
		return refused
	}
	o := r.outcome
	unchanged := r.answer != nil && r.answer.RequestId == k.RequestId
	if o == nil || o.RequestId != k.RequestId && !unchanged {
		return asked
	}
	switch o.State {
	case "landed", "restored":
		return landed
	case "held", "rejected", "ejected", "cancelled", "dropped":
		return state(o.State)
	}
	return queued
}

// pending reports whether the change is in the queue.
func (s state) pending() bool { return s == queued || s == held }

// ended reports whether nothing more comes of it by itself.
func (s state) ended() bool {
	return s == refused || s == landed || s == rejected || s == ejected || s == cancelled || s == dropped
}

// cancelPause is the time to wait for the outcome of a cancellation.
const cancelPause = 10 * time.Second

// mergedPause is the time to wait for the outcome of a change whose pull request the host calls merged: our own push is seen there before
// the log says that it landed.
const mergedPause = time.Minute

// landingPause is how long a head is taken for one that the lander has moved. Anybody could write its trailers, so it is no longer than a
// landing takes.
const landingPause = 10 * time.Minute

// ChangeOf returns the id of a pull request's change in its queue.
func ChangeOf(number int64) string { return fmt.Sprintf("pr-%d", number) }

// numberOf returns the number of the pull request of a change, and reports whether it is one's.
func numberOf(change string) (number int64, is bool) {
	text, _ := strings.CutPrefix(change, "pr-")
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && number > 0 && ChangeOf(number) == change
}

// isChecked reports whether a check of its commit matters: it waits to be ready, or is in the queue while it is.
func (r *review) isChecked() bool {
	state := r.state()
	return state == waiting || state.pending()
}

// lacks reports whether it waits for something, before the queue or in it.
func (r *review) lacks() bool {
	state := r.state()
	return state == waiting || state.pending() && r.kept.Withheld
}

// mustLook reports whether the host is to be asked for it. Of a change that ended before the start, it is not known what the host shows,
// unless the log says that it was all.
func (r *review) mustLook() bool {
	return r.noticed || r.pull == nil && !r.kept.Over && r.state().ended() && !r.isShown()
}

// isShown reports whether the log says that the host shows how the change ended.
func (r *review) isShown() bool { return r.kept.Shown > 0 && r.kept.Shown == r.end() }

// end is the place in the log of what ended the change, or refused the request.
func (r *review) end() int64 { return max(r.outcome.GetSequence(), r.answer.GetSequence()) }

// see notes in a record of somebody's request how far the host was seen, so that the next owner need not look again.
func (r *review) see(k *eventsv1.HostedChange, s Settings, nowUS int64) {
	if k.StampUs == 0 || !r.pull.Open {
		return
	}
	if k.UpdatedUs = r.pull.UpdatedUS; r.lookUS-k.UpdatedUs < fresh.Microseconds() {
		k.UpdatedUs-- // something may have come in the same second, after the look
	}
	if state := r.state(); state.ended() && !r.linesAwaited(state, nowUS) && r.report(s, nowUS).empty() {
		k.Shown = r.end()
	}
}

// isOver reports whether nothing more is to be done, and the log does not know it.
func (r *review) isOver(s Settings, nowUS int64) bool {
	state := r.state()
	return r.kept.StampUs > 0 && !r.kept.Over && !r.pull.Open && (state == nobody || state.ended()) && !r.linesAwaited(state, nowUS) && r.report(s, nowUS).empty()
}

// fact is a record to be written to the topic of another service.
type fact struct {
	topic   string
	subject string
	// identity tells it from others; written again it is the same.
	identity []string
	message  proto.Message
}

// turn holds the record and the facts that follow from a look at a pull request.
type turn struct {
	kept  *eventsv1.HostedChange
	facts []fact
	// stranger is set if somebody has an answer who may not land.
	stranger bool
}

// take folds what the host says of a pull request into what is kept of it. It returns the facts that follow, which are to be written
// before the record: if they are written again, they count once.
func (r *review) take(s Settings, rules *access.Rules, p Pull, nowUS int64) turn {
	t := turn{kept: proto.CloneOf(r.kept)}
	k := t.kept
	if p.Landing = p.Landing && r.state().pending() && nowUS-r.landingUS < landingPause.Microseconds(); p.Landing {
		p.Head = k.Head // what was asked for is there, as it lands
	}
	if r.state() == asked {
		return t // what comes next depends on the answer
	}
	for _, e := range p.Events {
		if e.ID <= k.Handled {
			continue
		}
		if r.event(&t, s, rules, p, e, nowUS) {
			// What was asked for is to be answered before the next event is taken.
			k.Handled = e.ID
			return t
		}
	}
	k.Handled = max(k.Handled, p.Last)
	state := r.state()
	moved := k.Head != "" && k.Head != p.Head
	switch {
	case state.pending() && nowUS-r.cancelUS < cancelPause.Microseconds():
	case p.Merged && state.pending():
		if nowUS-r.mergedUS >= mergedPause.Microseconds() {
			t.facts = append(t.facts, r.cancellation(s, nil, "the pull request was merged by hand", nowUS))
		}
	case !p.Open && state.pending():
		t.facts = append(t.facts, r.cancellation(s, nil, "the pull request was closed", nowUS))
	case !p.Open && state == waiting, !p.Fits && state == waiting:
		k.Head, k.Note = "", ""
	case !p.Fits && state.pending():
		t.facts = append(t.facts, r.cancellation(s, nil, "the pull request goes to another branch now", nowUS))
	case moved && state == waiting:
		k.Note = fmt.Sprintf("Something was pushed after it was asked to land `%s`. Ask again for what is there now.", short(k.Head))
		k.Head = ""
	case moved && state.pending() && s.Withdraw:
		t.facts = append(t.facts, r.cancellation(s, nil, "something was pushed to the pull request", nowUS))
		k.Note = fmt.Sprintf("Something was pushed after it was asked to land `%s`, so that was withdrawn. Ask again for what is there now.", short(k.Head))
	case p.Landing && state.pending(): // nothing is asked of what the lander has made
	case state.pending() && !moved && !k.Withheld && len(p.Missing) > 0:
		k.Withheld = true
		t.facts = append(t.facts, r.withholding(s, nowUS, &eventsv1.ChangeHeld{Change: k.Change, Hold: readyHold, Why: "it waits for " + access.Clean(strings.Join(p.Missing, ", "), 500)}))
	case state.pending() && k.Withheld && len(p.Missing) == 0:
		k.Withheld = false
		t.facts = append(t.facts, r.withholding(s, nowUS, &eventsv1.ChangeReleased{Change: k.Change, Hold: readyHold}))
	case state == waiting && len(p.Missing) == 0:
		k.RequestId = s.requestID(k.Number, k.AskedBy)
		t.facts = append(t.facts, fact{topic: events.TopicLandRequests, subject: k.Change, identity: []string{k.RequestId}, message: &eventsv1.LandRequest{
			Queue: s.Queue, Change: k.Change, Revision: k.Revision, Entries: []*eventsv1.Entry{{Ref: p.Ref, Commit: k.Head, Review: reviewOf(p)}},
			Title: access.Clean(p.Title, maxTitle), Uri: p.URL, Host: s.Class, RequestId: k.RequestId, Actor: k.Asker,
		}})
	}
	return t
}

// maxTitle is how much of a title a request has, in bytes.
const maxTitle = 500

// reviewOf returns where a pull request is under review, nil if its branch stays where it is: one whose name cannot be printed does.
func reviewOf(p Pull) *eventsv1.Review {
	if p.Branch == "" || access.Clean(p.Branch, len(p.Branch)) != p.Branch {
		return nil
	}
	return &eventsv1.Review{Branch: p.Branch, Shown: p.Ref}
}

// event takes one event. It reports whether the rest has to wait for what comes of it.
func (r *review) event(t *turn, s Settings, rules *access.Rules, p Pull, e Event, nowUS int64) bool {
	switch e.Kind {
	case Labelled:
		return r.command(t, s, rules, p, e, Land, nowUS)
	case Unlabelled:
		if p.Landing && e.Auto {
			return false // the host takes it back, as it does at a push
		}
		if state := r.state(); state == waiting || state.pending() {
			return r.command(t, s, rules, p, e, Cancel, nowUS)
		}
	case Closed:
		if r.state().pending() && !p.Open && !p.Merged {
			// Whoever may close the pull request may end what it asks for.
			caller := access.AtHost(s.URL, fmt.Sprint(e.By.ID), e.By.Login, e.Permission.role(), s.Queue)
			t.facts = append(t.facts, r.cancellation(s, caller.Actor(e.Permission.role()), "the pull request was closed", nowUS))
			return true
		}
	case Commented:
		for _, c := range Commands(e.Text) {
			if r.command(t, s, rules, p, e, c, nowUS) {
				return true
			}
		}
	}
	return false
}

// verbs maps commands to the verbs that access decides on.
var verbs = map[Command]access.Verb{Land: access.Land, Cancel: access.Cancel, Retry: access.Retry, Front: access.Move, Hold: access.Hold, Release: access.Hold, Explain: access.Read}

// command takes a command of somebody. It reports whether the rest has to wait for what comes of it.
func (r *review) command(t *turn, s Settings, rules *access.Rules, p Pull, e Event, c Command, nowUS int64) bool {
	k := t.kept
	if e.Permission < WritePermission {
		if r.quiet {
			return false
		}
		t.stranger = true
	}
	by := access.Clean(e.By.Login, 100)
	verb, known := verbs[c]
	if !known {
		k.Note = fmt.Sprintf("%s: no such command. There are `/landfall land`, `cancel`, `retry`, `front`, `hold`, `release` and `explain`.", mention(by))
		return false
	}
	caller := access.AtHost(s.URL, fmt.Sprint(e.By.ID), by, e.Permission.role(), s.Queue)
	d := rules.Decide(caller, verb, s.Queue, access.Owner{Issuer: s.URL, Subject: fmt.Sprint(p.Author.ID)})
	if !d.Allowed {
		k.Note = fmt.Sprintf("%s: %s Ask somebody who may write to the repository.", mention(by), escape(d.Reason))
		return false
	}
	actor, state := caller.Actor(d.Role), r.state()
	say := func(format string, args ...any) { k.Note = mention(by) + ": " + fmt.Sprintf(format, args...) }
	switch c {
	case Land, Retry:
		again := c == Retry || state == cancelled || state == ejected || state == dropped
		switch {
		case !p.Open:
			say("the pull request is closed.")
		case !p.Fits:
			say("this pull request goes to another branch than the queue `%s` lands on.", s.Queue)
		case (state == landed || state.pending()) && k.Head == p.Head && e.Kind == Labelled:
		case state.pending() && k.Head == p.Head:
			say("it is in the queue.")
		case c == Land && state == rejected && k.Head == p.Head:
			say("this commit was rejected. Push something else, or ask by `/landfall retry` to have the same tried again.")
		case state == landed && k.Head == p.Head:
			say("it has landed.")
		default:
			k.Head, k.RequestId, k.Asker, k.AskedBy, k.Note, k.Revision, k.Over = p.Head, "", actor, e.ID, "", 0, false
			k.Withheld = k.Withheld && state.pending()
			if again && r.outcome != nil && r.outcome.Head == p.Head {
				k.Revision = r.outcome.Revision + 1
			}
			return true
		}
	case Cancel:
		switch {
		case state == waiting:
			k.Head = ""
			say("cancelled.")
			return true
		case state.pending():
			t.facts = append(t.facts, r.cancellation(s, actor, "", nowUS, fmt.Sprint(e.ID)))
			k.Note = ""
			return true
		default:
			say("there is nothing to cancel.")
		}
	case Front, Hold, Release:
		if !state.pending() {
			say("it is not in the queue.")
			return false
		}
		var m proto.Message = &eventsv1.ChangeHeld{Change: k.Change, Hold: holdName, Who: by, StampUs: nowUS, Actor: actor}
		switch c {
		case Front:
			m = &eventsv1.ChangeMoved{Change: k.Change, Who: by, StampUs: nowUS, Actor: actor}
		case Release:
			m = &eventsv1.ChangeReleased{Change: k.Change, Hold: holdName, Who: by, StampUs: nowUS, Actor: actor}
		}
		t.facts = append(t.facts, fact{events.TopicChanges, k.Change, []string{"steer", s.Host, fmt.Sprint(k.Number, e.ID, c)}, m})
		k.Note = ""
	case Explain:
		k.Note = mention(by) + ": " + r.explanation(p)
	}
	return false
}

// holdName is the name of the hold that is put on by a comment, that of landfall hold; readyHold of the one that is on while the pull
// request is not ready.
const (
	holdName  = "manual"
	readyHold = "host"
)

// account is who acts where nobody asked.
func account() *eventsv1.Actor {
	return &eventsv1.Actor{Issuer: access.IssuerLog, Subject: events.ServiceHosts, Name: events.ServiceHosts, Role: access.Lander.String()}
}

// withholding completes a hold, or its release.
func (r *review) withholding(s Settings, nowUS int64, m proto.Message) fact {
	switch m := m.(type) {
	case *eventsv1.ChangeHeld:
		m.Who, m.StampUs, m.Actor = events.ServiceHosts, nowUS, account()
	case *eventsv1.ChangeReleased:
		m.Who, m.StampUs, m.Actor = events.ServiceHosts, nowUS, account()
	}
	return fact{events.TopicChanges, r.kept.Change, []string{"withhold", s.Host, fmt.Sprint(r.kept.Number, r.kept.Withheld, r.kept.StampUs)}, m}
}

func (r *review) cancellation(s Settings, actor *eventsv1.Actor, why string, nowUS int64, by ...string) fact {
	k := r.kept
	if actor == nil {
		actor = account()
	}
	m := &eventsv1.ChangeCancelled{Change: k.Change, Revision: r.outcome.GetRevision(), Who: actor.Name, Why: why, StampUs: nowUS, Actor: actor}
	return fact{events.TopicChanges, k.Change, append([]string{"cancel", s.Host, fmt.Sprint(k.Number, m.Revision)}, by...), m}
}

// explanation says where the change is.
func (r *review) explanation(p Pull) string {
	switch state := r.state(); {
	case state == nobody:
		return "nobody has asked for it to land. Ask by the label or `/landfall land`."
	case state == waiting:
		return "it waits for " + escape(strings.Join(p.Missing, ", ")) + "."
	case r.place != nil:
		return escape(r.place.Why)
	default:
		return "it is " + string(state) + "."
	}
}

// short returns the beginning of a commit's id.
func short(commit string) string { return commit[:min(len(commit), 10)] }
