package pinning

import (
	"errors"
	"sync"
	"time"

	"landfall.build/engine/lru"
	"landfall.build/platform/gitrepo"
)

const (
	// maxCostly is how many commits are known that git takes too much to fetch, costlyAge for how long: the machine may have been busy.
	maxCostly = 4096
	costlyAge = time.Hour
)

// costly remembers commits that git takes too much to fetch. Fetching one again would take as long.
type costly struct {
	mu    sync.Mutex
	known *lru.Cache[string, costlyCommit]
}

type costlyCommit struct {
	err   error
	until time.Time
}

// of returns why a commit is not fetched; nil if it may be.
func (c *costly) of(commit string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		return nil
	}
	if known, ok := c.known.Get(commit); ok && time.Now().Before(known.until) {
		return known.err
	}
	return nil
}

// add remembers a commit if that is what the error is about.
func (c *costly) add(commit string, err error) {
	if !errors.Is(err, gitrepo.ErrTooLarge) || c.of(commit) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = lru.New[string, costlyCommit](maxCostly)
	}
	c.known.Put(commit, costlyCommit{err, time.Now().Add(costlyAge)}, 1)
}
