// Package shadow has a queue decide what lands elsewhere. It follows a mainline that others land on, hands each of its commits to the
// queue as a change, and lets the queue land it on a repository of its own, the shadow. The mainline itself is only read.
//
// What the queue rejects is on the mainline all the same, so it comes onto the shadow past the queue, as a direct push does. The shadow
// then has the mainline's files again, and the queue goes on from there.
//
// All state is in the shadow: its mainline is refs/heads/BRANCH, refs/shadow/taken/BRANCH is the newest commit that was handed over, and
// each change that is not settled has its commit at refs/shadow/open/CHANGE.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/api"
)

const (
	openRefs  = "refs/shadow/open/"
	takenRefs = "refs/shadow/taken/"
	// maxCommits bounds the commits that are taken between two looks at the mainline. Of more, only the files of the last are taken.
	maxCommits = 5000
	// saidMoved is how often in a row a ref may have moved before that is said.
	saidMoved = 50
	// maxOpen bounds the changes that a queue has at a time.
	maxOpen = 500
)

// Options of Prepare.
type Options struct {
	Configuration *configuration.Configuration
	Logger        *slog.Logger
	// Last is with how many commits of the mainline, before the newest, a new shadow begins.
	Last int
}

// Check returns why shadows cannot be kept here, or why queues that land cannot: they have logs of their own.
func Check(c *configuration.Configuration) error {
	shadows := 0
	for _, name := range c.QueueNames() {
		_, err := os.Stat(folderOf(c, name))
		there := err == nil
		if c.Queues[name].Shadow != configuration.On {
			if there {
				return fmt.Errorf("the data folder %s has the log of a shadow of queue %s: to land, use another one (--data)", c.Data, name)
			}
			continue
		}
		shadows++
		if _, err := os.Stat(filepath.Join(c.Data, "broker")); err == nil && !there {
			return fmt.Errorf("the data folder %s has a log in which queue %s is no shadow: use another one (--data)", c.Data, name)
		}
	}
	if shadows > 0 && len(c.Broker.Brokers) > 0 {
		return errors.New("a shadow keeps a log of its own: use a configuration without broker.brokers")
	}
	return nil
}

// folderOf is where the shadow of a queue is.
func folderOf(c *configuration.Configuration, queue string) string {
	return filepath.Join(c.Data, "shadows", queue+".git")
}

// Prepare opens the shadows of the queues that are to have one, and has the configuration name them in place of the repositories that
// they follow. Of a new one the mainline is read. Code hosts and webhooks are told nothing of a shadow.
func Prepare(ctx context.Context, o Options) (_ []*Follower, err error) {
	var followers []*Follower
	defer func() {
		if err != nil {
			Close(followers)
		}
	}()
	c := o.Configuration
	if o.Last < 0 || o.Last > maxCommits {
		return nil, fmt.Errorf("a shadow begins with 0 to %d commits, not %d", maxCommits, o.Last)
	}
	repositories := maps.Clone(c.Repositories)
	queues := maps.Clone(c.Queues)
	for _, name := range c.QueueNames() {
		q := c.Queues[name]
		if q.Shadow != configuration.On {
			continue
		}
		followed := c.RepositoryOf(q)
		shadow := configuration.NewRepository("shadow-of-" + name)
		if _, taken := repositories[shadow.Name]; taken {
			return nil, fmt.Errorf("queue %s is a shadow, which needs the name %s: give that repository another one", name, shadow.Name)
		}
		f, err := open(ctx, o, followed, q)
		if err != nil {
			return nil, fmt.Errorf("queue %s cannot follow its repository: %w", name, err)
		}
		followers = append(followers, f)
		shadow.URL, shadow.Poll = f.repo.Dir(), min(shadow.Poll, time.Second)
		repositories[shadow.Name] = shadow
		q.Repository = shadow.Name
		queues[name] = q
	}
	c.Repositories, c.Queues = repositories, queues
	for _, f := range followers {
		tellNobody(c, f.queue)
	}
	return followers, nil
}

// tellNobody takes a queue away from code hosts and webhooks.
func tellNobody(c *configuration.Configuration, queue string) {
	servers := map[string]configuration.Host{}
	for name, h := range c.Hosts.Servers {
		h.Queues = maps.Clone(h.Queues)
		if delete(h.Queues, queue); len(h.Queues) > 0 {
			servers[name] = h
		}
	}
	c.Hosts.Servers = servers
	webhooks := map[string]configuration.Webhook{}
	for name, w := range c.Webhooks {
		if len(w.Queues) == 0 {
			w.Queues = c.QueueNames()
		}
		if w.Queues = slices.DeleteFunc(slices.Clone(w.Queues), func(q string) bool { return q == queue }); len(w.Queues) > 0 {
			webhooks[name] = w
		}
	}
	c.Webhooks = webhooks
}

// open opens the shadow of a queue, and makes it if it is not there.
func open(ctx context.Context, o Options, followed configuration.Repository, q configuration.Queue) (*Follower, error) {
	repo, err := gitrepo.Open(ctx, gitrepo.Options{
		Remote: followed.URL, Dir: folderOf(o.Configuration, q.Name), Log: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	f := &Follower{
		queue: q.Name, branch: q.Branch, atMost: min(q.Limits.Pending, maxOpen), poll: followed.Poll,
		repo: repo, logger: o.Logger.With("queue", q.Name),
	}
	if err := f.begin(ctx, o.Last); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin reads the state of the shadow. A new one begins before the last commits of the mainline.
func (f *Follower) begin(ctx context.Context, last int) error {
	refs, err := f.repo.Refs(ctx, "refs/shadow")
	if err != nil {
		return err
	}
	f.open = map[string]string{}
	for ref, id := range refs {
		if change, is := strings.CutPrefix(ref, openRefs); is {
			f.open[change] = id
		}
	}
	if f.taken = refs[f.takenRef()]; f.taken != "" {
		return nil
	}
	head, err := f.look(ctx)
	if err != nil {
		return err
	}
	commits, err := f.repo.FirstParents(ctx, "", head, last+1)
	if err != nil {
		return err
	}
	f.taken = commits[0]
	err = f.repo.SetRefs(ctx, gitrepo.RefUpdate{Ref: f.mainline(), New: f.taken}, gitrepo.RefUpdate{Ref: f.takenRef(), New: f.taken})
	if errors.Is(err, gitrepo.ErrMoved) {
		return fmt.Errorf("%s holds the shadow of another branch; use another data directory: %w", f.repo.Dir(), err)
	}
	return err
}

// look returns the head of the mainline that is followed, which is then in the shadow.
func (f *Follower) look(ctx context.Context) (string, error) {
	if err := f.repo.Fetch(ctx, gitrepo.Wanted{Branches: []string{f.branch}}); err != nil {
		return "", err
	}
	return f.repo.Resolve(ctx, f.mainline())
}

func (f *Follower) mainline() string { return "refs/heads/" + f.branch }
func (f *Follower) takenRef() string { return takenRefs + f.branch }

// Close closes the shadows. Nobody may follow any more.
func Close(followers []*Follower) {
	for _, f := range followers {
		f.close()
	}
}

// Follow has all follow for a gateway's queues, until the context ends or the function that it returns is called, which waits for them.
func Follow(ctx context.Context, followers []*Follower, backend api.Backend) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for _, f := range followers {
		f.backend, f.asked = backend, map[string]bool{}
		wg.Go(func() { f.run(ctx) })
	}
	return func() { cancel(); wg.Wait() }
}
