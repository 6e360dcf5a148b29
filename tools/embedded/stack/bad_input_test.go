package stack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
	"landfall.build/tools/embedded/stack"
)

// These tests are of docs/guides/bad-input.md: what its author reads, and that the others are untouched.

// defect is a change that its own manifest or steps spoil.
type defect struct {
	name, manifest string
	// state is how it ends; why stands in the sentence or in the message about the step.
	state, why string
}

func defects() []defect {
	target := func(name, rest string) string {
		return fmt.Sprintf("  - name: %s\n    kind: test\n    sources: [\"*.txt\"]\n%s", name, rest)
	}
	step := func(run, rest string) string {
		return target("x", fmt.Sprintf("    steps:\n      - name: step\n        run: %s\n%s", run, rest))
	}
	return []defect{
		{"unparsable", "targets: [\n", "rejected", "unparsable/landfall.yaml"},
		{"unknown-field", target("x", "    stepz: []\n"), "rejected", "stepz"},
		{"cyclic", target("x", "    deps: [\":y\"]\n") + target("y", "    deps: [\":x\"]\n"), "rejected", "cycl"},
		{"no-such-program", step(`[no-such-program]`, ""), "ejected", "no-such-program"},
		{"hangs", step(`[sh, -c, "sleep 300"]`, "        timeout: 1s\n"), "ejected", "1s"},
		{"forks-away", step(`[sh, -c, "setsid sh -c 'trap \"\" TERM; sleep 300' >/dev/null 2>&1 & exit 0"]`, ""), "landed", ""},
		{"prints-much", step(`[sh, -c, "head -c 80000000 /dev/zero; exit 1"]`, ""), "rejected", "exit"},
	}
}

// TestBadChangesAreToldWhatIsWrongAndHoldUpNobody: each of them in one queue with changes that are fine.
func TestBadChangesAreToldWhatIsWrongAndHoldUpNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	_, c := newPeerStack(t, r)
	for _, d := range defects() {
		text := d.manifest
		if !strings.HasPrefix(text, "targets:") {
			text = "targets:\n" + text
		}
		r.git("checkout", "-q", "-B", d.name, "main")
		r.write(d.name+"/a.txt", "a\n")
		r.write(d.name+"/landfall.yaml", text)
		r.commit(d.name)
		r.git("push", "-q", "origin", d.name)
		r.git("checkout", "-q", "main")
		land(t, c, d.name, d.name)
	}
	for i := range 2 {
		name := fmt.Sprint("fine-", i)
		r.branch(name, fmt.Sprintf("f%d/fine.txt", i), "x\n")
		land(t, c, name, name)
	}
	for i := range 2 {
		expect(t, c, fmt.Sprint("fine-", i), "landed")
	}
	for _, d := range defects() {
		v := settled(t, c, d.name)
		if v.State != d.state || !strings.Contains(v.Why, d.why) {
			t.Errorf("%s is %s: %s; want %s, and %q", d.name, v.State, v.Why, d.state, d.why)
		}
	}
	// What is on the mainline by now is none of the rejected.
	for _, title := range r.mainline() {
		for _, d := range defects() {
			if title == d.name && d.state != "landed" {
				t.Errorf("%s is on the mainline", title)
			}
		}
	}
}

// twoQueues returns a stack on two repositories, with a queue each.
func twoQueues(t *testing.T, r, other *repository) *configuration.Configuration {
	t.Helper()
	c := configured(t, r, t.TempDir())
	second, q := c.Repositories["sample"], c.Queues[queue]
	second.URL = other.bare
	c.Repositories["second"] = second
	q.Name, q.Repository = "second", "second"
	c.Queues["second"] = q
	return c
}

// TestARepositoryThatCannotBeReachedHoldsUpOnlyItsOwnQueue, and only until it can be reached.
func TestARepositoryThatCannotBeReachedHoldsUpOnlyItsOwnQueue(t *testing.T) {
	together(t)
	gone, other := newRepository(t), newRepository(t)
	gone.branch("before", "f0/b.txt", "b\n")
	s, c := start(t, twoQueues(t, other, gone))
	t.Cleanup(func() { s.Close() })
	in := func(change string) view.Change {
		t.Helper()
		var v view.Change
		await(t, change+" has left the queue second", func() bool {
			var err error
			v, err = c.Change(t.Context(), "second", change)
			return err == nil && view.Final(v.State)
		})
		return v
	}
	landIn(t, s, "second", "before")
	if v := in("before"); v.State != "landed" {
		t.Fatalf("before is %s: %s", v.State, v.Why)
	}
	gone.branch("after", "f0/c.txt", "c\n")
	away := gone.bare + ".away"
	if err := os.Rename(gone.bare, away); err != nil {
		t.Fatal(err)
	}
	if code, text := refusedBy(t, s, "second", "after"); code != "repository_unreachable" || !strings.Contains(text, "second") {
		t.Errorf("%s: %s", code, text)
	}
	other.branch("elsewhere", "f1/b.txt", "b\n")
	land(t, c, "elsewhere", "elsewhere")
	expect(t, c, "elsewhere", "landed")
	if err := os.Rename(away, gone.bare); err != nil {
		t.Fatal(err)
	}
	await(t, "the repository is back", func() bool { code, _ := refusedBy(t, s, "second", "after"); return code == "" })
	if v := in("after"); v.State != "landed" {
		t.Errorf("after is %s: %s", v.State, v.Why)
	}
}

// TestWhatIsPendingLandsOnceADeletedMainlineIsBack, and on one that was rewritten.
func TestWhatIsPendingLandsOnceADeletedMainlineIsBack(t *testing.T) {
	together(t)
	r, tests := newRepository(t), newGate(t)
	r.step("f0", tests.await())
	r.branch("pending", "f0/b.txt", "b\n")
	r.branch("late", "f1/b.txt", "b\n")
	s, c := start(t, configured(t, r, t.TempDir()))
	t.Cleanup(func() { s.Close() })
	land(t, c, "pending", "pending")
	until(t, c, "pending", func(v view.Change) bool { return v.State == view.StateTesting })
	head := r.run(r.bare, "git", "rev-parse", "main")
	r.run(r.bare, "git", "update-ref", "-d", "refs/heads/main")
	tests.open(t)
	until(t, c, "pending", func(v view.Change) bool { return v.State == view.StatePassed })
	until(t, c, "pending", func(v view.Change) bool { return strings.Contains(v.Why, "no branch main") })
	r.run(r.bare, "git", "update-ref", "refs/heads/main", head)
	landed := expect(t, c, "pending", "landed")
	if landed.Timeline[len(landed.Timeline)-1].Kind != view.StateLanded || !slices.ContainsFunc(landed.Timeline, func(e view.Event) bool { return e.Kind == view.ReasonUnreachable }) {
		t.Errorf("its timeline: %+v", landed.Timeline)
	}
	// Rewritten: what landed is taken back by force.
	r.run(r.bare, "git", "update-ref", "refs/heads/main", head)
	dropped := until(t, c, "pending", func(v view.Change) bool { return v.State != view.StateLanded })
	if dropped.State != view.StateDropped || dropped.Dropped.Head != head || !strings.Contains(dropped.Why, "land it again") {
		t.Errorf("it is %s: %s", dropped.State, dropped.Why)
	}
	land(t, c, "late", "late")
	expect(t, c, "late", "landed")
	land(t, c, "pending", "pending")
	until(t, c, "pending", func(v view.Change) bool { return v.State == view.StateLanded && v.Revision == 2 })
	if got := r.mainline(); fmt.Sprint(got) != "[first the step of f0 late pending]" {
		t.Errorf("the mainline is %v", got)
	}
}

// TestAChangeWhoseCommitsAreGoneIsEjectedAndHoldsUpNobody: its branch is deleted after it was admitted, the remote has
// collected its garbage, and the mirrors are those of another machine.
func TestAChangeWhoseCommitsAreGoneIsEjectedAndHoldsUpNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.branch("deleted", "f0/b.txt", "b\n")
	r.branch("other", "f0/c.txt", "c\n")
	config := configured(t, r, t.TempDir())
	front, err := stack.Start(t.Context(), stack.Options{Configuration: config, Logger: warnings(t), Version: "test", Services: []string{events.ServiceGateway}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the gateway is ready", func() bool { _, err := clientOf(t, front).Changes(t.Context(), queue, 1); return err == nil })
	landIn(t, front, queue, "deleted")
	front.Close()
	r.run(r.bare, "git", "update-ref", "-d", "refs/heads/deleted")
	r.run(r.bare, "git", "gc", "--quiet", "--prune=now")
	if err := os.RemoveAll(filepath.Join(config.Data, "mirrors")); err != nil {
		t.Fatal(err)
	}
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	await(t, "the gateway is ready", func() bool { _, err := c.Changes(t.Context(), queue, 1); return err == nil })
	land(t, c, "other", "other")
	expect(t, c, "other", "landed")
	if v := expect(t, c, "deleted", "ejected"); !strings.Contains(v.Why, "does not give out") {
		t.Errorf("it reads %q", v.Why)
	}
}

// TestASecondStackOnADataDirectoryIsRefusedByName, and so is a directory of a newer version.
func TestASecondStackOnADataDirectoryIsRefusedByName(t *testing.T) {
	needsDataDirectory(t)
	r := newRepository(t)
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	defer s.Close()
	if err := tryStart(t, config); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("a second one: %v", err)
	}
	r.branch("change", "f0/b.txt", "b\n")
	land(t, c, "change", "change")
	expect(t, c, "change", "landed")
	newer := *config
	newer.Data = t.TempDir()
	dir := filepath.Join(newer.Data, "broker")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "format"), []byte("2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := tryStart(t, &newer); err == nil || !strings.Contains(err.Error(), "use the landfall that wrote it") {
		t.Errorf("of a newer version: %v", err)
	}
}

// TestTheGatewayThatRunsHasTheBoundsOfAnOpenPort: it is api.NewServer that serves, told by the bound that is reached
// without waiting. What arrives too slowly is cut off by the same server.
func TestTheGatewayThatRunsHasTheBoundsOfAnOpenPort(t *testing.T) {
	r := newRepository(t)
	config := configured(t, r, t.TempDir())
	config.Gateway.Hosts = []string{"landfall.example.com"}
	s, _ := start(t, config)
	defer s.Close()
	for host, want := range map[string]int{"landfall.example.com": http.StatusOK, "evil.example.com": http.StatusForbidden} {
		request, err := http.NewRequest(http.MethodGet, s.URL()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("for %s: %d, want %d", host, response.StatusCode, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(config.Data, "refusals", "refusals.jsonl")); err != nil || strings.Count(string(text), "host name that is not this gateway's") != 1 {
		t.Errorf("the log of refusals has %s (%v)", text, err)
	}
	for bytes, want := range map[int]int{20 << 10: http.StatusOK, 40 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		request, err := http.NewRequest(http.MethodGet, s.URL()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("x", bytes))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d bytes of headers: %d, want %d", bytes, response.StatusCode, want)
		}
	}
}

// needsDataDirectory skips a test of the embedded broker's data where the log is Kafka's: no stack starts on it, so
// there is no log to be verified either.
func needsDataDirectory(t *testing.T) {
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("the log is Kafka's, and no data directory's")
	}
}

// TestADataDirectoryThatCannotBeWrittenIsNamed.
func TestADataDirectoryThatCannotBeWrittenIsNamed(t *testing.T) {
	needsDataDirectory(t)
	r := newRepository(t)
	config := *configured(t, r, t.TempDir())
	// A file where a folder is needed refuses root too, whom permissions do not stop.
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	config.Data = filepath.Join(blocked, "data")
	config.Broker.Brokers = nil
	if err := tryStart(t, &config); err == nil || !strings.Contains(err.Error(), blocked) {
		t.Errorf("%v", err)
	}
}

func tryStart(t *testing.T, c *configuration.Configuration) error {
	t.Helper()
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: warnings(t), Version: "test"})
	if err == nil {
		s.Close()
	}
	return err
}

// landIn lands a branch under its own name in a queue.
func landIn(t *testing.T, s *stack.Stack, queue, branch string) {
	t.Helper()
	if code, text := refusedBy(t, s, queue, branch); code != "" {
		t.Fatalf("%s: %s", code, text)
	}
}

// refusedBy asks for a landing, and gives the code and the sentence of its refusal; "" if it is none.
func refusedBy(t *testing.T, s *stack.Stack, queue, branch string) (code, text string) {
	t.Helper()
	_, err := clienttest.Land(t.Context(), clientOf(t, s), queue, api.LandBody{Change: branch, Entries: []api.LandEntry{{Ref: branch}}})
	var failure *client.Failure
	if err != nil && !errors.As(err, &failure) {
		t.Fatal(err)
	}
	if failure == nil {
		return "", ""
	}
	return failure.Code, failure.Message
}
