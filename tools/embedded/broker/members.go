package broker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// members sees to it that dead members of consumer groups leave. A member whose connection is gone when the broker answers that it has
// joined gets no session that could time out: the group would give it partitions for ever.
type members struct {
	log   *slog.Logger
	leave func(ctx context.Context, group, member string) error

	mu   sync.Mutex
	seen map[[2]string]membership // by group and member
}

// membership is what a member last said.
type membership struct {
	at time.Time
	// silent is how long it may say nothing.
	silent time.Duration
}

// mostMembers bounds the members that are watched.
const mostMembers = 10_000

// watch has the members of a cluster's groups watched.
func (m *members) watch(c *kfake.Cluster) {
	m.seen = map[[2]string]membership{}
	for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Heartbeat, kmsg.LeaveGroup} {
		c.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
			m.note(request, time.Now())
			return nil, nil, false
		})
	}
}

func (m *members) note(request kmsg.Request, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := func(group, member string) {
		if is, known := m.seen[[2]string{group, member}]; known {
			is.at = now
			m.seen[[2]string{group, member}] = is
		}
	}
	switch r := request.(type) {
	case *kmsg.JoinGroupRequest:
		if r.MemberID != "" && len(m.seen) < mostMembers {
			// While others are waited for a member that joins is silent.
			silent := 2*time.Duration(r.SessionTimeoutMillis)*time.Millisecond + time.Duration(r.RebalanceTimeoutMillis)*time.Millisecond
			m.seen[[2]string{r.Group, r.MemberID}] = membership{now, silent}
		}
	case *kmsg.SyncGroupRequest:
		said(r.Group, r.MemberID)
	case *kmsg.HeartbeatRequest:
		said(r.Group, r.MemberID)
	case *kmsg.LeaveGroupRequest:
		for _, one := range r.Members {
			delete(m.seen, [2]string{r.Group, one.MemberID})
		}
	}
}

// silent returns the members that have been silent for too long.
func (m *members) silent(now time.Time) (gone [][2]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for who, is := range m.seen {
		if now.Sub(is.at) > is.silent {
			gone = append(gone, who)
		}
	}
	return gone
}

func (m *members) forget(who [2]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, who)
}

// run removes silent members until ctx ends. Most are gone by then, since their session has timed out.
func (m *members) run(ctx context.Context, every time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		for _, who := range m.silent(time.Now()) {
			switch err := m.leave(ctx, who[0], who[1]); {
			case err == nil:
				m.forget(who)
			case ctx.Err() == nil:
				m.log.Warn("a silent member of a consumer group stays in it; trying again", "group", who[0], "member", who[1], "error", err)
			}
		}
	}
}

// leaveBy returns how a member is taken out of its group by a client of its own, which is connected meanwhile only.
func leaveBy(options []kgo.Opt) func(ctx context.Context, group, member string) error {
	return func(ctx context.Context, group, member string) error {
		client, err := kgo.NewClient(options...)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		request := kmsg.NewPtrLeaveGroupRequest()
		request.Group = group
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID = member
		request.Members = append(request.Members, one)
		answer, err := request.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, one := range answer.Members {
			if err := kerr.ErrorForCode(one.ErrorCode); err != nil && !errors.Is(err, kerr.UnknownMemberID) {
				return err
			}
		}
		if err := kerr.ErrorForCode(answer.ErrorCode); !errors.Is(err, kerr.UnknownMemberID) {
			return err
		}
		return nil
	}
}
