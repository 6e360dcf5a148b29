package execution

import (
	"net"
	"strings"
	"testing"

	"landfall.build/platform/sandbox"
)

// listening is an address on this machine's loopback that accepts connections.
func listening(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

// networked is a step in a sandbox with a network.
func networked(t *testing.T, network sandbox.Network, commands ...Command) Request {
	t.Helper()
	request := boxed(t, commands...)
	request.Sandbox.Network = network
	if problem := Available(t.Context(), network); problem != nil {
		t.Skipf("this system has no network %s for sandboxes: %v", network, problem)
	}
	return request
}

func TestAStepReachesTheServicesBesideItOnEachNetwork(t *testing.T) {
	for _, network := range sandbox.Networks {
		t.Run(string(network), func(t *testing.T) {
			with := shell("./helper helper-get DB")
			with.Services = []Service{serve("db", "0s")}
			result := Run(t.Context(), networked(t, network, with))
			mustEnd(t, result, Passed, "")
			if got := string(result.Tail); got != "DB\n" {
				t.Errorf("output %q", got)
			}
		})
	}
}

func TestOnlyTheMachinesNetworkHasItsLoopback(t *testing.T) {
	address := listening(t)
	for _, network := range sandbox.Networks {
		t.Run(string(network), func(t *testing.T) {
			result := Run(t.Context(), networked(t, network, shell("./helper helper-connect "+address)))
			mustEnd(t, result, Passed, "")
			if got, want := strings.HasPrefix(string(result.Tail), "connected"), network == sandbox.Host; got != want {
				t.Errorf("connected is %t, output %q", got, result.Tail)
			}
		})
	}
}
