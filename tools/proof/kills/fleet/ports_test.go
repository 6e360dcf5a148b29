package fleet

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePortsAreInARowAndFree(t *testing.T) {
	first, err := FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	for port := first; port < first+6; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if allFree(first, 1) {
		t.Error("a port that is listened on is free")
	}
}
