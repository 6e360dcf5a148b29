package broker

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// connected returns both ends of a connection: the client's, and the broker's as it sees it.
func connected(t *testing.T) (theirs net.Conn, ours *guardedConn) {
	theirs, c := net.Pipe()
	t.Cleanup(func() { theirs.Close(); c.Close() })
	l := &guardedListener{}
	ours = &guardedConn{Conn: c, of: l}
	ours.place = l.strangers.PushBack(ours)
	return theirs, ours
}

// bring sends a request, and returns the error of reading it as the broker does.
func bring(theirs net.Conn, ours *guardedConn, request kmsg.Request) error {
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, request, 1)
	go theirs.Write(frame)
	_, err := io.ReadFull(ours, make([]byte, len(frame)))
	return err
}

// answer returns the end of SCRAM, or something like it.
func answer(version int16, code int16, text string) []byte {
	r := kmsg.NewPtrSASLAuthenticateResponse()
	r.Version, r.ErrorCode, r.SASLAuthBytes = version, code, []byte(text)
	frame := make([]byte, 8, 9)
	if r.IsFlexible() {
		frame = append(frame, 0)
	}
	return r.AppendTo(frame)
}

// TestAClientIsKnownOnceItHasGivenTheSecret, and not by an answer that is like the one to that.
func TestAClientIsKnownOnceItHasGivenTheSecret(t *testing.T) {
	versions, give, metadata := kmsg.NewPtrApiVersionsRequest(), kmsg.NewPtrSASLAuthenticateRequest(), kmsg.NewPtrMetadataRequest()
	for _, one := range []struct {
		asked  kmsg.Request
		code   int16
		text   string
		lets   bool
		flexed int16
	}{
		{asked: give, text: "v=cHJvb2Y=", lets: true},
		{asked: give, text: "v=cHJvb2Y=", lets: true, flexed: 2},
		{asked: give, text: "r=nonce,s=c2FsdA==,i=4096"},
		{asked: give, code: 58, text: "v=cHJvb2Y="},
		{asked: versions, text: "v=cHJvb2Y="},
	} {
		theirs, ours := connected(t)
		go io.Copy(io.Discard, theirs)
		one.asked.SetVersion(one.flexed)
		if err := bring(theirs, ours, one.asked); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Write(answer(one.flexed, one.code, one.text)); err != nil {
			t.Fatal(err)
		}
		if err := bring(theirs, ours, metadata); (err == nil) != one.lets || err != nil && !errors.Is(err, errStranger) {
			t.Errorf("after %T was answered with %d %q: %v", one.asked, one.code, one.text, err)
		}
	}
}

// TestAStrangerAsksOneThingAtATime, so that no answer is taken for that to another request.
func TestAStrangerAsksOneThingAtATime(t *testing.T) {
	theirs, ours := connected(t)
	versions := kmsg.NewPtrApiVersionsRequest()
	if err := bring(theirs, ours, versions); err != nil {
		t.Fatal(err)
	}
	if err := bring(theirs, ours, versions); !errors.Is(err, errStranger) {
		t.Errorf("the second one: %v", err)
	}
}

// TestWhoIsKnownBringsNoRequestThatNobodyKnows, nor one without an end.
func TestWhoIsKnownBringsNoRequestThatNobodyKnows(t *testing.T) {
	c := &guardedConn{known: true}
	for _, one := range []struct {
		size uint32
		key  int16
		lets bool
	}{{1000, int16(kmsg.Produce), true}, {mostRequest, int16(kmsg.Produce), true}, {mostRequest + 1, int16(kmsg.Produce), false}, {1000, 9999, false}, {1000, -1, false}} {
		if err := c.ask(one.size, one.key, 0); (err == nil) != one.lets {
			t.Errorf("%d bytes with key %d: %v", one.size, one.key, err)
		}
	}
}
