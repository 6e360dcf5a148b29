package broker_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/tools/embedded/broker"
)

// framed returns a request as it is sent.
func framed(r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)
}

// strange returns the beginning of a request of any key, which says how long it is.
func strange(size uint32, key int16) []byte {
	frame := binary.BigEndian.AppendUint32(nil, size)
	frame = binary.BigEndian.AppendUint16(frame, uint16(key))
	return append(frame, make([]byte, 16)...)
}

// TestAStrangerBringsTheBrokerNothing but what a client says to be let in: any program of the machine can connect.
func TestAStrangerBringsTheBrokerNothing(t *testing.T) {
	b := start(t, broker.Options{Dir: t.TempDir()})
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.MemberID, join.SessionTimeoutMillis = "landfall", "somebody", 1
	for what, sent := range map[string][]byte{
		"a request that Kafka does not have": strange(18, 9999),
		"a request without an end":           strange(0xffffffff, 18),
		"a request without a beginning":      strange(1, 18),
		"a long request":                     strange(1<<20, 36),
		"a request of those who are let in":  framed(join),
	} {
		t.Run(what, func(t *testing.T) {
			c, err := net.Dial("tcp", b.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(sent); err != nil {
				t.Fatal(err)
			}
			// Well before a client is closed for taking its time.
			if err := c.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, c); n > 0 || err != nil && !isReset(err) {
				t.Errorf("%d bytes are answered, and the connection is still there: %v", n, err)
			}
		})
	}
	if err := listed(t, append(b.Client(), kgo.SeedBrokers(b.Addr()))...); err != nil {
		t.Errorf("with the secret: %v", err)
	}
}

func isReset(err error) bool {
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}
