package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

const (
	// who asks, for people.
	who = "shadow"
	// roundEvery is the least time between two rounds, troublePause that after one that failed.
	roundEvery   = 200 * time.Millisecond
	troublePause = 5 * time.Second
	// patience bounds how long an answer of the queue is waited for.
	patience = 30 * time.Second
)

// Follower hands what lands on a mainline to a queue.
type Follower struct {
	queue, branch string
	// atMost is how many changes wait in the queue at a time.
	atMost int
	// poll is the time between two looks at the mainline.
	poll    time.Duration
	repo    *gitrepo.Repo
	logger  *slog.Logger
	backend api.Backend

	// open has the commits of the changes that are not settled, asked those of them that the queue has answered for since the start.
	open  map[string]string
	asked map[string]bool
	// taken is the newest commit that was handed over, seen the mainline's head as of looked.
	taken, seen string
	looked      time.Time
}

// Queue returns the name of the queue, Followed the address of the repository that is followed.
func (f *Follower) Queue() string    { return f.queue }
func (f *Follower) Followed() string { return f.repo.Remote() }

func (f *Follower) close() { f.repo.Close() }

// run follows until the context ends.
func (f *Follower) run(ctx context.Context) {
	failing, moved := false, 0
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		changed := f.backend.Changed(f.queue)
		err := f.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, gitrepo.ErrMoved) { // the queue landed something meanwhile, or a command that failed did what it was to
			if moved++; moved%saidMoved == 0 {
				f.logger.Warn("the shadow moves whenever something is to be put onto it; trying again", "error", err)
			}
			err = f.begin(ctx, 0)
		} else {
			moved = 0
		}
		if err == nil && moved > 0 || errors.Is(err, api.ErrNotReady) {
			pause = roundEvery
			continue
		}
		switch {
		case err != nil && !failing:
			f.logger.Warn("the mainline cannot be followed; trying again", "error", err)
		case err == nil && failing:
			f.logger.Info("the mainline is followed again")
		}
		if pause, failing = roundEvery, err != nil; failing {
			pause = troublePause
			continue
		}
		select {
		case <-changed:
		case <-time.After(time.Until(f.looked.Add(f.poll))):
		case <-ctx.Done():
		}
	}
}

// round brings the shadow up to the mainline, as far as the queue has decided.
func (f *Follower) round(ctx context.Context) error {
	if err := f.backend.Ready(); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	if time.Since(f.looked) >= f.poll {
		head, err := f.look(ctx)
		if err != nil {
			return err
		}
		f.seen, f.looked = head, time.Now()
	}
	commits, err := f.repo.FirstParents(ctx, f.taken, f.seen, maxCommits)
	if errors.Is(err, gitrepo.ErrNotFirstParent) || errors.Is(err, gitrepo.ErrTooLarge) || errors.Is(err, gitrepo.ErrNoSuchCommit) {
		if len(f.open) > 0 {
			return nil // what is under way is decided first
		}
		f.logger.Warn("the mainline was rewritten, or has too many new commits; the shadow takes its files as they are", "from", f.taken, "to", f.seen)
		if err := f.takeFiles(ctx, f.seen); err != nil {
			return err
		}
		return f.take(ctx, f.seen)
	}
	if err != nil {
		return err
	}
	if len(f.open) == 0 {
		// They are the same already, unless a change that did not land did not fit.
		if err := f.takeFiles(ctx, f.taken); err != nil {
			return err
		}
	}
	if known, err := f.knowsHead(ctx); err != nil || !known {
		return err // a change on a head that the queue has not seen would be taken to bring all that is new there
	}
	for _, commit := range commits {
		if len(f.open) >= f.atMost {
			return nil
		}
		change := changeOf(commit)
		done, err := f.hand(ctx, commit, change)
		if err != nil || !done {
			return err
		}
		if err := f.take(ctx, commit); err != nil {
			return err
		}
	}
	return nil
}

// take notes that the mainline up to a commit was handed over.
func (f *Follower) take(ctx context.Context, commit string) error {
	err := f.repo.SetRefs(ctx, gitrepo.RefUpdate{Ref: f.takenRef(), Old: f.taken, New: commit})
	if err == nil {
		f.taken = commit
	}
	return err
}

// changeOf names the change that a commit is handed over as.
func changeOf(commit string) string { return commit[:12] }

// settle brings what did not land onto the shadow, and forgets what is decided. A change that waits for a mainline that is red, or on which
// its targets could not be verified, is cancelled: others have landed it there, so it cannot be judged.
func (f *Follower) settle(ctx context.Context) error {
	var past []string
	for _, change := range slices.Sorted(maps.Keys(f.open)) {
		if !f.asked[change] {
			if err := f.ask(ctx, change); err != nil {
				return err
			}
		}
		switch state, why := f.stateOf(change); {
		case state == view.StateLanded || state == view.StateDropped:
			if err := f.forget(ctx, change); err != nil {
				return err
			}
		case slices.Contains([]string{view.StateRejected, view.StateEjected, view.StateCancelled, ""}, state):
			past = append(past, change)
		case why != "":
			fact := &eventsv1.ChangeCancelled{
				Change: change, Who: who, Actor: actor(), StampUs: time.Now().UnixMicro(),
				Why: why + ", so it cannot be judged",
			}
			if err := f.steer(ctx, change, fact); err != nil {
				return err
			}
		}
	}
	for _, change := range past {
		if err := f.bring(ctx, change, len(past) == len(f.open)); err != nil {
			return err
		}
	}
	return nil
}

// stateOf returns the state of a change (StateWaiting for a pending one, "" if the queue does not have it), and why the mainline keeps it
// from being judged, "" if it does not.
func (f *Follower) stateOf(change string) (state, why string) {
	f.backend.Read(f.queue, func(q *view.Queue) {
		if q.Lineup().Pending(change) == nil {
			s, _ := q.Summary(change)
			state = s.State
			return
		}
		state = view.StateWaiting
		o := q.Overview()
		if slices.Contains(o.NeedRetry, change) {
			why = "what it affects could not be verified on the mainline"
			return
		}
		if len(o.MainlineRed) == 0 {
			return
		}
		c, _ := q.Change(change)
		var red []string
		for _, r := range c.Reasons {
			for _, target := range r.Targets {
				if r.Code == view.ReasonMainlineRed && slices.Contains(o.MainlineRed, target) {
					red = append(red, target)
				}
			}
		}
		if len(red) > 0 {
			slices.Sort(red)
			why = "the mainline is red in " + strings.Join(slices.Compact(red), ", ")
		}
	})
	return state, why
}

// forget forgets a change that is settled.
func (f *Follower) forget(ctx context.Context, change string) error {
	err := f.repo.SetRefs(ctx, gitrepo.RefUpdate{Ref: openRefs + change, Old: f.open[change]})
	if err == nil {
		delete(f.open, change)
		delete(f.asked, change)
	}
	return err
}

// hand makes a change of what a commit of the mainline changes, on the shadow's mainline. done is false if that has to wait until what is
// open is decided: if nothing is, the shadow has the files of the commit before it.
func (f *Follower) hand(ctx context.Context, commit, change string) (done bool, err error) {
	if f.open[change] != "" {
		return true, nil // it was handed over before a restart
	}
	info, err := f.repo.CommitInfo(ctx, commit)
	if err != nil || len(info.Parents) == 0 {
		return true, err
	}
	tree, head, conflict, err := f.merge(ctx, info)
	if err != nil || conflict != nil {
		return false, err
	}
	if before, err := f.repo.TreeOf(ctx, info.Parents[0]); err != nil || before == info.Tree {
		return true, err // it changes nothing
	} else if complete, conflict, err := f.repo.MergeTrees(ctx, head.Tree, tree, before); err != nil || conflict != nil || complete != info.Tree {
		return false, err // with what is open it is not what it is on the mainline: it takes back some of that
	}
	id, err := f.write(ctx, info, tree, head.ID)
	if err != nil {
		return false, err
	}
	if err := f.repo.SetRefs(ctx, gitrepo.RefUpdate{Ref: openRefs + change, New: id}); err != nil {
		return false, err
	}
	f.open[change] = id
	return true, f.ask(ctx, change)
}

// bring puts a change that did not land onto the shadow, past the queue. last is set if nothing else is open: then a change that does not
// fit is forgotten, and the round takes the files of the mainline as they are.
func (f *Follower) bring(ctx context.Context, change string, last bool) error {
	info, err := f.repo.CommitInfo(ctx, f.open[change])
	if err != nil {
		return err
	}
	tree, head, conflict, err := f.merge(ctx, info)
	switch {
	case err != nil:
		return err
	case conflict != nil && !last:
		return nil
	case conflict == nil && tree != head.Tree:
		commit, err := f.write(ctx, info, tree, head.ID)
		if err != nil {
			return err
		}
		if err := f.move(ctx, head.ID, commit); err != nil {
			return err
		}
	}
	return f.forget(ctx, change)
}

// merge applies what a commit changes to the head of the shadow's mainline.
func (f *Follower) merge(ctx context.Context, commit gitrepo.Commit) (tree string, head gitrepo.Commit, conflict *gitrepo.Conflict, err error) {
	base, err := f.repo.TreeOf(ctx, commit.Parents[0])
	if err != nil {
		return "", head, nil, err
	}
	if head, err = f.head(ctx); err != nil {
		return "", head, nil, err
	}
	tree, conflict, err = f.repo.MergeTrees(ctx, base, head.Tree, commit.Tree)
	return tree, head, conflict, err
}

// takeFiles puts the files of a commit of the mainline onto the shadow, past the queue.
func (f *Follower) takeFiles(ctx context.Context, commit string) error {
	info, err := f.repo.CommitInfo(ctx, commit)
	if err != nil {
		return err
	}
	head, err := f.head(ctx)
	if err != nil || head.Tree == info.Tree {
		return err
	}
	taken, err := f.write(ctx, info, info.Tree, head.ID)
	if err != nil {
		return err
	}
	return f.move(ctx, head.ID, taken)
}

// head returns the head of the shadow's mainline.
func (f *Follower) head(ctx context.Context) (gitrepo.Commit, error) {
	refs, err := f.repo.Refs(ctx, f.mainline())
	if err != nil {
		return gitrepo.Commit{}, err
	}
	id := refs[f.mainline()]
	if id == "" {
		return gitrepo.Commit{}, fmt.Errorf("%s does not have the branch %s any more; remove that folder to begin anew", f.repo.Dir(), f.branch)
	}
	return f.repo.CommitInfo(ctx, id)
}

// knowsHead reports whether the queue has seen the head of the shadow's mainline.
func (f *Follower) knowsHead(ctx context.Context) (bool, error) {
	head, err := f.head(ctx)
	if err != nil {
		return false, err
	}
	known := false
	f.backend.Read(f.queue, func(q *view.Queue) { known = q.Lineup().Head == head.ID })
	return known, nil
}

// move moves the shadow's mainline past the queue.
func (f *Follower) move(ctx context.Context, from, to string) error {
	return f.repo.SetRefs(ctx, gitrepo.RefUpdate{Ref: f.mainline(), Old: from, New: to})
}

// write makes a commit with the author and the message of another.
func (f *Follower) write(ctx context.Context, of gitrepo.Commit, tree, parent string) (string, error) {
	spec := gitrepo.CommitSpec{
		Tree: tree, Parents: []string{parent}, Encoding: of.Encoding, Message: of.Message,
		Author:    gitrepo.Identity{Name: of.AuthorName, Email: of.AuthorEmail, Date: of.AuthorDate},
		Committer: gitrepo.Identity{Name: "Landfall", Email: "shadow@localhost", Date: of.AuthorDate},
	}
	id, err := f.repo.WriteCommit(ctx, spec)
	if errors.Is(err, gitrepo.ErrInvalid) { // a name or an encoding that is not to be written again
		spec.Author, spec.Encoding = spec.Committer, ""
		id, err = f.repo.WriteCommit(ctx, spec)
	}
	return id, err
}

// ask asks the queue for a change. It may be asked for again: the request's id is that of the commit.
func (f *Follower) ask(ctx context.Context, change string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := f.backend.Land(ctx, &eventsv1.LandRequest{
		Queue: f.queue, Change: change, RequestId: f.open[change],
		Entries: []*eventsv1.Entry{{Ref: openRefs + change, Commit: f.open[change]}}, Actor: actor(),
	})
	if err != nil {
		return fmt.Errorf("ask for %s: %w", change, err)
	}
	if r := answer.Refused; r != nil && admission.Code(r.Code).Passing() {
		return fmt.Errorf("ask for %s: %s", change, r.Message)
	}
	f.asked[change] = true
	return nil
}

func (f *Follower) steer(ctx context.Context, change string, fact proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := f.backend.Steer(ctx, f.queue, change, fact)
	return err
}

func actor() *eventsv1.Actor {
	return &eventsv1.Actor{Issuer: access.IssuerLog, Subject: who, Name: who, Role: access.Lander.String()}
}
