package builder

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
)

func TestWhoIsRefusedByThisMachineReadsThatAStepDoesNotReachIt(t *testing.T) {
	isolated := provision.Step{Isolated: true, Network: sandbox.Outbound}
	for output, address := range map[string]string{
		"x_test.go:9: dial tcp 127.0.0.1:5432: connect: connection refused\n":                                   "127.0.0.1:5432",
		"dial tcp [::1]:6379: connect: connection refused":                                                      "[::1]:6379",
		`psql: error: connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused`:    "localhost",
		"    at x\nError: connect ECONNREFUSED ::1:3000\n    at y":                                              "::1:3000",
		"HTTPConnectionPool(host='localhost', port=80): Max retries exceeded [Errno 111] Connection refused":    "localhost",
		"curl: (7) Failed to connect to localhost port 80 after 0 ms: Couldn't connect to server":               "localhost",
		"Could not connect to Redis at 127.0.0.1:6379: Connection refused":                                      "127.0.0.1:6379",
		"dial tcp 10.0.0.7:80: connect: connection refused\ndial tcp 127.0.0.2:80: connect: connection refused": "127.0.0.2:80",
		"dial tcp 10.0.0.7:80: connect: connection refused":                                                     "",
		"listening at 127.0.0.1:80\ndial tcp 10.0.0.7:80: connect: connection refused":                          "",
		"dial tcp 10.127.0.0.1:80: connect: connection refused":                                                 "",
		"localhost.example.com: Connection refused":                                                             "",
		"PASS: 127.0.0.1 answers": "",
		strings.Repeat("x", 2*maxRefusal) + " 127.0.0.1:1 " + strings.Repeat("x", maxRefusal) + " connection refused by a proxy": "",
	} {
		place := &workplace{step: isolated}
		got := place.unreachable([]byte(output))
		if (address == "") != (got == "") || !strings.Contains(got, " at "+address) && address != "" {
			t.Errorf("%q: %q, want the address %q", output, got, address)
		}
		place.step.Network = sandbox.Host
		if got := place.unreachable([]byte(output)); got != "" {
			t.Errorf("%q where steps reach this machine: %q", output, got)
		}
		place.step = isolated
		place.step.Queue.Steps.Isolation = configuration.IsolationOff
		if got := place.unreachable([]byte(output)); got != "" {
			t.Errorf("%q without a sandbox: %q", output, got)
		}
	}
}

func TestTheHintAboutThisMachineComesBeforeTheOtherLines(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	one := s.config.Queues[queueName]
	one.Steps.Network = string(sandbox.None)
	s.config.Queues[queueName] = one
	base := s.commit("", scripts(map[string]string{"db": `echo "Error: dial tcp 127.0.0.1:5432: connect: connection refused"; exit 1`}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//db:t")...))
	f := s.finished("//db:t")
	hinted := slices.IndexFunc(f.Decisive, func(line string) bool { return strings.Contains(line, "steps.network") })
	if sandboxed := execution.Available(t.Context(), sandbox.None) == nil; sandboxed && hinted != 0 || !sandboxed && hinted >= 0 || len(f.Decisive) == 0 {
		t.Errorf("decisive lines %q", f.Decisive)
	}
}
