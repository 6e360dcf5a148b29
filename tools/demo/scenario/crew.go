package scenario

import (
	"context"
	"sync"
)

// crew is several people at once. The first error of one ends the others' waiting.
type crew struct {
	ctx    context.Context
	mu     sync.Mutex
	wg     sync.WaitGroup
	cancel context.CancelFunc
	err    error
}

func (c *crew) must(f func(context.Context) error) {
	c.mu.Lock()
	if c.cancel == nil {
		c.ctx, c.cancel = context.WithCancel(c.ctx)
	}
	ctx := c.ctx
	c.mu.Unlock()
	c.wg.Go(func() {
		if err := f(ctx); err != nil {
			c.mu.Lock()
			if c.err == nil {
				c.err = err
			}
			c.mu.Unlock()
			c.cancel()
		}
	})
}

// wait is for everybody so far.
func (c *crew) wait() error {
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
