package execution

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

func serve(name, delay string) Service {
	return Service{Name: name, PortVariable: strings.ToUpper(name), Argv: []string{"./helper", "helper-serve", strings.ToUpper(name), delay}}
}

func TestServicesRunBesideTheirCommandOnPortsOfTheirOwn(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		tcp, web, probed := serve("tcp", "100ms"), serve("web", "0s"), serve("probed", "0s")
		web.HTTP = "/later"
		// It also sees that the services before it are there.
		probed.Probe = []string{"sh", "-c", `echo x >>probes; ./helper helper-get TCP && ./helper helper-get WEB && test $(wc -l <probes) -ge 3`}
		with := shell("./helper helper-get TCP && ./helper helper-get WEB && ./helper helper-get PROBED && test $TCP != $WEB && test $WEB != $PROBED")
		with.Services = []Service{tcp, web, probed}
		after := shell(`echo "TCP is ${TCP:-unset}"; ps ax | grep -c "[h]elper-serve"; true`)
		request := step(t, with, after)
		request.Isolation = isolation
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		// Nothing of what services print; none is left for the next command.
		if got, want := string(result.Tail), "TCP\nWEB\nPROBED\nTCP is unset\n0\n"; got != want && isolation != ProcessTree || !strings.HasPrefix(got, "TCP\nWEB\nPROBED\nTCP is unset\n") {
			t.Errorf("output %q, want %q", got, want)
		}
	})
}

func TestAServiceThatIsNotThereKeepsItsCommandFromStarting(t *testing.T) {
	broken, slow, missing, notATree := serve("db", "0s"), serve("db", "1h"), serve("db", "0s"), serve("db", "0s")
	broken.Argv = []string{"sh", "-c", "echo cannot find the schema; exit 7"}
	slow.Timeout = 200 * time.Millisecond
	missing.Argv = []string{"no-such-program-of-the-tests"}
	notATree.Argv = []string{"./none"}
	for name, c := range map[string]struct {
		service Service
		outcome Outcome
		reason  string
		output  string
	}{
		"ends":              {broken, Failed, `did not start: service "db" ended with exit code 7 before it was ready`, "\n[output of service db]\ncannot find the schema\n"},
		"is slow":           {slow, TimedOut, `did not start: service "db" was not ready within 200ms`, "\n[output of service db]\n"},
		"worker lacks it":   {missing, CouldNotRun, `did not start: service "db": the program "no-such-program-of-the-tests" is not on the worker's PATH`, ""},
		"the tree lacks it": {notATree, Failed, `did not start: service "db": the repository has no program "none"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			with := shell("echo started")
			with.Services = []Service{c.service}
			result := Run(t.Context(), step(t, with))
			mustEnd(t, result, c.outcome, "script")
			if !strings.Contains(result.Reason, c.reason) || strings.Contains(string(result.Tail), "started") || !strings.HasPrefix(string(result.Tail), c.output) {
				t.Errorf("%q, output %q; want %q and %q", result.Reason, result.Tail, c.reason, c.output)
			}
		})
	}
}

func TestTheOutputOfServicesIsShownWithoutSecretsWhenACommandFails(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		failing := shell("./helper helper-get DB; exit 4")
		failing.Environment = []string{"PATH=/usr/bin:/bin", "SAYS=hunter2-hunter2"}
		failing.Services = []Service{serve("db", "0s"), {Name: "dies", PortVariable: "X", Argv: []string{"sh", "-c", "sleep 0.3; exit 9"}, Probe: []string{"true"}}}
		failing.Argv = []string{"sh", "-c", "./helper helper-get DB; sleep 0.6; exit 4"}
		request := step(t, failing)
		var log bytes.Buffer
		request.Isolation, request.Log = isolation, &log
		request.Secrets = []Secret{{Name: "T", Value: []byte("hunter2-hunter2")}}
		result := Run(t.Context(), request)
		mustEnd(t, result, Failed, "script")
		if want := "DB\n\n[output of service db]\nserving [secret T]\n\n[output of service dies]\n"; log.String() != want {
			t.Errorf("log %q, want %q", log.String(), want)
		}
		if want := `ended with exit code 4; service "dies" ended with exit code 9 before`; !strings.Contains(result.Reason, want) {
			t.Errorf("reason %q, want %q", result.Reason, want)
		}
	})
}

func TestAStepThatIsAbortedWhileAServiceStartsEndsIt(t *testing.T) {
	with := shell("true")
	with.Services = []Service{{Name: "db", PortVariable: "DB", Argv: []string{"sh", "-c", openLife + "sleep 1000"}}}
	request := step(t, with)
	processes := watchLife(t, request.Worktree)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan Result, 1)
	go func() { ended <- Run(ctx, request) }()
	processes.awaitStart(t)
	cancel()
	mustEnd(t, <-ended, Aborted, "script")
	processes.mustBeOver(t)
}
