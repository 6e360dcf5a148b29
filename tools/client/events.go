package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

const (
	maxEventBytes = 4 << 20
	// patience is how long a gateway that has answered before may not: it may be restarting.
	patience = 60 * time.Second
)

// errUnreadableEvent is wrapped by the error of an event that this client cannot read. A new connection would bring it again.
var errUnreadableEvent = errors.New("the gateway sent an event that this landfall cannot read; use the gateway's own version")

// Seen is one thing that the gateway sent: exactly one of the two is set.
type Seen struct {
	Queue  *view.Overview
	Change *view.Update
}

// Events follows a queue, or some of its changes, until seen returns true, the context ends, or the
// gateway does not answer for a minute. A broken connection is resumed where it broke.
func (c *Client) Events(ctx context.Context, queue string, only []string, seen func(Seen) (stop bool)) error {
	f := &follower{client: c, path: queuePath(queue, "events") + "?" + url.Values{"change": only}.Encode(), seen: seen}
	var away time.Time
	for {
		connected, err := f.follow(ctx)
		var failure *Failure
		switch {
		case f.stopped:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failure) && failure.Status < 500, errors.Is(err, errUnreadableEvent):
			return err
		case !connected && !f.ever:
			return err
		case connected || away.IsZero():
			away = time.Now()
		case time.Since(away) > patience:
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type follower struct {
	client  *Client
	path    string
	seen    func(Seen) bool
	lastID  string
	ever    bool
	stopped bool
}

// follow reads one connection to its end.
func (f *follower) follow(ctx context.Context) (connected bool, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if f.lastID != "" {
		header.Set("Last-Event-ID", f.lastID)
	}
	response, err := f.client.open(ctx, http.MethodGet, f.path, nil, header)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	f.ever = true
	return true, f.read(response.Body)
}

// read takes the events of a stream to its end, which is an error unless seen has stopped it.
func (f *follower) read(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(make([]byte, 0, 64<<10), maxEventBytes)
	var event, id string
	var data []string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data = append(data, value)
		case "":
			if lines.Text() != "" { // a comment: the server is alive
				continue
			}
			if len(data) > 0 {
				if err := f.dispatch(event, strings.Join(data, "\n")); err != nil || f.stopped {
					return err
				}
			}
			if id != "" {
				f.lastID = id
			}
			event, id, data = "", "", nil
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: it has more than %d MiB", errUnreadableEvent, maxEventBytes>>20)
	} else if err != nil {
		return f.client.unreachable(err)
	}
	return fmt.Errorf("%w any more", ErrUnreachable)
}

func (f *follower) dispatch(event, data string) error {
	var seen Seen
	var into any
	switch event {
	case api.EventQueue:
		seen.Queue = &view.Overview{}
		into = seen.Queue
	case api.EventChange:
		seen.Change = &view.Update{}
		into = seen.Change
	default:
		return nil
	}
	if err := json.Unmarshal([]byte(data), into); err != nil {
		return fmt.Errorf("%w: %w", errUnreadableEvent, err)
	}
	f.stopped = f.seen(seen)
	return nil
}
