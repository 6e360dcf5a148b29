package broker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestAMemberThatSpeaksStays, and one that is silent for longer than its session and a rebalance together is named until it has left.
func TestAMemberThatSpeaksStays(t *testing.T) {
	m := &members{seen: map[[2]string]membership{}}
	start := time.Unix(1000, 0)
	join := func(member string) {
		r := kmsg.NewPtrJoinGroupRequest()
		r.Group, r.MemberID, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = "g", member, 6000, 30_000
		m.note(r, start)
	}
	for _, member := range []string{"", "beats", "syncs", "leaves", "dies"} {
		join(member)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.Members = "g", []kmsg.LeaveGroupRequestMember{{MemberID: "leaves"}}
	m.note(leave, start)
	if gone := m.silent(start.Add(42 * time.Second)); len(gone) != 0 {
		t.Errorf("%v are gone too early", gone)
	}
	beat, sync := kmsg.NewPtrHeartbeatRequest(), kmsg.NewPtrSyncGroupRequest()
	beat.Group, beat.MemberID, sync.Group, sync.MemberID = "g", "beats", "g", "syncs"
	m.note(beat, start.Add(42*time.Second))
	m.note(sync, start.Add(42*time.Second))
	beat.MemberID = "stranger"
	m.note(beat, start)
	if gone := m.silent(start.Add(43 * time.Second)); len(gone) != 1 || gone[0] != [2]string{"g", "dies"} {
		t.Errorf("%v are gone, want the one that died", gone)
	}
	if m.forget([2]string{"g", "dies"}); len(m.silent(start.Add(43*time.Second))) != 0 {
		t.Error("one that has left is gone again")
	}
}
