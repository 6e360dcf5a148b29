package fleet

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePorts returns the first of n ports in a row of the loopback on which nobody listens. They are below those that systems hand out
// themselves, so a process that is killed finds its port free when it comes back, and none that asks for any port gets it.
func FreePorts(n int) (first int, err error) {
	for range 100 {
		first = 20_000 + rand.IntN(10_000)
		if allFree(first, n) {
			return first, nil
		}
	}
	return 0, errors.New("no free ports in a row were found on 127.0.0.1")
}

// FreeAddress returns 127.0.0.1 with one of FreePorts.
func FreeAddress() (string, error) {
	port, err := FreePorts(1)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
