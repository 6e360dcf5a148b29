package identity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// fetchLimit is how long an issuer may take to answer.
	fetchLimit = 10 * time.Second
	// waitLimit is how long a caller waits for an issuer.
	waitLimit = 5 * time.Second
	// fetchPause is the least time between two questions: whoever sends tokens of keys that do not exist does not have the issuer
	// asked for each.
	fetchPause = 5 * time.Second
)

// remote is a value of an issuer, kept in memory. It stays while the issuer does not answer.
type remote[T any] struct {
	fetch func(context.Context) (T, error)
	pause time.Duration

	mu sync.Mutex
	// version counts the values that were fetched; 0: there is none.
	version uint64
	value   T
	// err is why the last fetch brought nothing, asked when it was.
	err    error
	asked  time.Time
	flight chan struct{}
}

func newRemote[T any](fetch func(context.Context) (T, error)) *remote[T] {
	return &remote[T]{fetch: fetch, pause: fetchPause}
}

// known returns the value in memory and its version, 0 for none.
func (r *remote[T]) known() (T, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.version
}

// get returns the value in memory, else asks for it.
func (r *remote[T]) get(ctx context.Context) (T, error) {
	if value, version := r.known(); version > 0 {
		return value, nil
	}
	return r.again(ctx)
}

// again asks for the value, unless it was asked for just now. The error is ErrUnreachable, also where an older value is known.
func (r *remote[T]) again(ctx context.Context) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	r.mu.Lock()
	if r.flight == nil && (r.asked.IsZero() || time.Since(r.asked) >= r.pause) {
		r.flight = make(chan struct{})
		go r.fly(r.flight)
	}
	flight := r.flight
	r.mu.Unlock()
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			var none T
			return none, fmt.Errorf("%w in time", ErrUnreachable)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.err == nil:
		return r.value, nil
	case errors.Is(r.err, ErrUnreachable): // of a fetch that needs another value of the issuer
		return r.value, r.err
	}
	return r.value, fmt.Errorf("%w: %w", ErrUnreachable, r.err)
}

// fly fetches for all who wait. Who asked first may have gone before the answer comes.
func (r *remote[T]) fly(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchLimit)
	defer cancel()
	value, err := r.fetch(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.value = value
		r.version++
	}
	r.err, r.asked, r.flight = err, time.Now(), nil
	close(done)
}
