package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/steplog"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

var update = flag.Bool("update", false, "rewrite the golden output")

// TestQueueAndStatusWaitAsLongAsTheyAreTold for a gateway that takes a request and does not answer.
func TestQueueAndStatusWaitAsLongAsTheyAreTold(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, args := range [][]string{{"queue"}, {"status"}, {"status", "a"}, {"queue", "--queue", "main"}} {
		for _, c := range Commands() {
			if c.Name() != args[0] {
				continue
			}
			c.SetArgs(append(args[1:], "--server", "http://"+silent.Addr().String(), "--timeout", "50ms"))
			c.SetOut(io.Discard)
			c.SetErr(io.Discard)
			c.SilenceErrors = true
			err := c.ExecuteContext(t.Context())
			if code, _ := ExitCode(err); code != ExitFailed || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "within 50ms") {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}

// TestAGatewayWithTLSIsNamedAsOne to whom asks it in the clear.
func TestAGatewayWithTLSIsNamedAsOne(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	secure.StartTLS()
	defer secure.Close()
	c, err := New("http://"+secure.Listener.Addr().String(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queues(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.HasSuffix(err.Error(), "it speaks https: name it https://"+secure.Listener.Addr().String()) {
		t.Error(err)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("LANDFALL_TEST_BROWSER") != "" {
		// The program of BROWSER: it goes to the address, and where it is sent.
		answer, err := http.Get(os.Args[len(os.Args)-1])
		if err == nil {
			answer.Body.Close()
		}
		return
	}
	folder, err := os.MkdirTemp("", "landfall-client-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	os.Setenv("XDG_CONFIG_HOME", folder) // whoever runs the tests may have signed in
	time.Local = time.UTC
	clock = func() time.Time { return apitest.Start.Add(time.Minute) }
	os.Unsetenv("LANDFALL_SERVER")
	os.Unsetenv("LANDFALL_QUEUE")
	os.Setenv("LANDFALL_USER", "ada")
	// Whoever runs the tests, this is what git says of the author.
	for name, value := range map[string]string{"COUNT": "2", "KEY_0": "user.name", "VALUE_0": "ada", "KEY_1": "user.email", "VALUE_1": ""} {
		os.Setenv("GIT_CONFIG_"+name, value)
	}
	m.Run()
}

type fixture struct {
	t *testing.T
	*apitest.Backend
	server *httptest.Server
	// store is the folder of logs.
	store string
	// broken makes the next so many streams end at once.
	broken atomic.Int64
	text   strings.Builder
}

func serve(t *testing.T, queues ...string) *fixture {
	t.Helper()
	if len(queues) == 0 {
		queues = []string{"main"}
	}
	f := &fixture{t: t, Backend: apitest.New(queues...), store: t.TempDir()}
	handler, err := api.NewHandler(api.Options{Backend: f.Backend, LogStore: f.store, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") && f.broken.Add(-1) >= 0 {
			ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
			defer cancel()
			r = r.WithContext(ctx)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.server.CloseClientConnections(); f.server.Close() })
	return f
}

// run runs a command as the landfall program would.
func run(args ...string) (stdout, stderr string, code int) {
	root := &cobra.Command{Use: "landfall", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	var out, progress bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&progress)
	root.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err := root.ExecuteContext(ctx)
	code, silent := ExitCode(err)
	if !silent {
		fmt.Fprintln(&progress, "landfall:", err)
	}
	return out.String(), progress.String(), code
}

func (f *fixture) run(args ...string) (stdout, stderr string, code int) {
	return run(append(args, "--server", f.server.URL)...)
}

// moment: what the API stamps itself is the time of day.
var moment = regexp.MustCompile(`(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(\.\d+)?Z?|\d{4}-\d\d-\d\d \d\d:\d\d|quarantined until \d{4}-\d\d-\d\d`)

// show runs a command and writes down what it printed.
func (f *fixture) show(args ...string) {
	out, progress, code := f.run(args...)
	for i, arg := range args {
		if strings.ContainsAny(arg, " \n") {
			args[i] = fmt.Sprintf("%q", arg)
		}
	}
	out, progress = moment.ReplaceAllString(out, "TIME"), moment.ReplaceAllString(progress, "TIME")
	fmt.Fprintf(&f.text, "$ landfall %s\n%s", strings.Join(args, " "), out)
	if progress != "" {
		fmt.Fprintf(&f.text, "stderr: %s", progress)
	}
	fmt.Fprintf(&f.text, "exit %d\n\n", code)
}

func (f *fixture) compare(name string) {
	f.t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(path, []byte(f.text.String()), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	if got := f.text.String(); got != string(want) {
		f.t.Errorf("the output differs from %s (rewrite it with -update and read the difference):\n%s", path, got)
	}
}

func TestTheCommandsPrintWhatPeopleNeed(t *testing.T) {
	t.Chdir(t.TempDir()) // outside of a clone the gateway looks refs up
	f := serve(t)
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("main"), Initial: true})
	f.Graph("main", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Workers: 4}, Mainline: &eventsv1.Mainline{Analyzed: true}})
	f.show("land", "feature/one", "--title", "The first one", "--label", "kind=demo")
	f.show("land", "feature/two", "--id", "two", "--requires", "feature/one", "--json")
	f.show("land", "feature/one")
	f.show("land", "x", "--title", "two\nlines")
	f.show("land", "nowhere")
	f.show("land", "nowhere", "--json")
	f.show("land", "x", "--requires", "ghost")
	f.show("queue")
	f.show("hold", "two", "--why", "docs first")
	f.show("priority", "two", "--front")
	f.show("priority", "two")
	f.show("priority", "feature/one", "--front")
	f.show("status", "two")
	f.show("release", "two")
	f.show("release", "two")
	f.show("quarantine")
	f.show("quarantine", "//e2e:*", "--for", "7d", "--why", "a race in the server")
	f.show("quarantine", "//e2e:*", "--for", "7d", "--why", "a race in the server", "--force")
	f.show("quarantine", "//x", "--why", "no time")
	f.show("quarantine", "//x", "--until", "tomorrow")
	f.show("quarantine", "//x", "--until", "2026-01-05")
	f.show("quarantine", "//...", "--for", "1h", "--why", "all of it")
	f.show("quarantine", "//x", "--end")
	f.show("quarantine")
	f.show("flakes")
	f.show("pause", "--why", "incident 7")
	f.show("status")
	f.show("explain", "feature/one")
	f.show("resume", "--json")
	unproven := []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//x", Part: 1}}}}
	f.Graph("main", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: apitest.Ref("feature/one"), Analyzed: true, Classes: unproven}, {Change: apitest.Ref("two"), Analyzed: true, Classes: unproven}}})
	f.Schedule("main", "build-1", "feature/one", nil, "//x")
	f.PrepareOwned("main", "build-1", "feature/one", []string{"@shop/x"}, "//x")
	f.Estimate("main", "feature/one", "", 9, 11, 13, 16, 26)
	f.Estimate("main", "two", "nothing is known yet of how long its targets take")
	f.show("queue")
	f.show("status", "feature/one")
	f.show("status", "two")
	f.Finish("main", "build-1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "--- FAIL: TestX\n\x1b[31mboom\x1b[0m\n", "x/1.log")
	f.Reject("main", "feature/one", "build-1", "//x", 1)
	f.show("explain", "feature/one")
	f.show("logs", "feature/one")
	f.show("logs", "feature/one", "--json")
	f.show("logs", "two")
	f.Schedule("main", "build-2", "two", nil, "//e2e:a", "//y")
	f.PrepareOwned("main", "build-2", "two", []string{"@shop/web", "@Ada"}, "//e2e:a", "//y")
	f.Finish("main", "build-2", "//e2e:a", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "", "")
	f.Finish("main", "build-2", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "", "")
	f.Finish("main", "build-2", "//y", 2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "", "")
	f.show("flakes")
	f.show("flakes", "--owner", "me")
	f.show("flakes", "--owner", "@shop/x", "--owner", "eve")
	f.show("status", "two")
	f.show("explain", "two")
	f.show("watch", "feature/one", "--json")
	f.show("land", "feature/one")
	f.show("land", "feature/one", "--json")
	f.show("cancel", "feature/one")
	f.show("retry", "feature/one")
	f.show("cancel", "feature/one", "--revision", "1")
	f.show("retry", "feature/one")
	f.show("cancel", "feature/one", "--why", "enough")
	f.show("cancel", "ghost")
	f.show("cancel", "ghost", "--json")
	f.show("queue", "--state", "pending,cancelled", "--json")
	f.show("cancel")
	f.show("pause", "main")
	f.show("land")
	f.show("queue", "--colour")
	t.Chdir(origin)
	f.compare("commands.txt")
}

var origin, _ = os.Getwd()

func TestJSONIsExactlyOneValueOnStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.run("land", "b")
	f.Schedule("main", "b1", "a", nil, "//x")
	f.Prepare("main", "b1", "a", "//x")
	f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "fine\n", "")
	for _, args := range [][]string{
		{"land", "c"}, {"land", "nowhere"}, {"queue"}, {"status"}, {"status", "a"}, {"status", "ghost"}, {"explain", "a"}, {"logs", "a"},
		{"logs", "b"}, {"hold", "a"}, {"release", "a"}, {"priority", "b", "--front"}, {"pause"}, {"quarantine"}, {"quarantine", "//x", "--end"}, {"flakes"}, {"resume"}, {"cancel", "b"}, {"retry", "b"},
		{"cancel", "a"}, {"watch", "a"}, {"watch", "ghost"}, {"logs", "a", "--follow"}, {"queue", "--queue", "nope"},
	} {
		out, _, _ := f.run(append(args, "--json")...)
		d := json.NewDecoder(strings.NewReader(out))
		var value any
		if err := d.Decode(&value); err != nil {
			t.Errorf("%v: %v in %q", args, err, out)
		} else if d.More() {
			t.Errorf("%v: more than one value in %q", args, out)
		}
	}
}

func TestWatchExitsByHowTheChangesEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		name string
		end  func(*fixture)
		code int
	}{
		{"landed", func(f *fixture) { f.LandIt("main", "a", "b1", nil, "//x") }, ExitLanded},
		{"rejected", func(f *fixture) { f.Reject("main", "a", "b1", "//x", 1) }, ExitRejected},
		{"ejected", func(f *fixture) {
			f.Fold("main", events.TopicChanges, &eventsv1.ChangeEjected{Change: apitest.Ref("a"), Reason: &eventsv1.Reason{Message: "it ran out of time"}})
		}, ExitLeft},
		{"cancelled", func(f *fixture) {
			f.Fold("main", events.TopicChanges, &eventsv1.ChangeCancelled{Change: "a", Who: "bob"})
		}, ExitLeft},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := serve(t)
			f.broken.Store(2) // two connections break; the watch goes on
			f.run("land", "a")
			type result struct {
				out  string
				code int
			}
			ended := make(chan result, 1)
			go func() {
				out, _, code := f.run("land", "b", "--id", "a", "--wait")
				ended <- result{out, code}
			}()
			for deadline := time.Now().Add(2 * time.Minute); f.revision("a") < 2; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the new revision never came")
				}
			}
			f.run("cancel", "a")
			if got := <-ended; got.code != ExitLeft || !strings.Contains(got.out, "Cancelled by ada") {
				t.Errorf("land --wait: exit %d\n%s", got.code, got.out)
			}
			f2 := serve(t)
			f2.broken.Store(1)
			f2.run("land", "a")
			go func() {
				time.Sleep(400 * time.Millisecond) // in the middle of the connection that breaks, or after
				c.end(f2)
			}()
			out, _, code := f2.run("watch", "a")
			if code != c.code || !strings.Contains(strings.ToLower(out), c.name) {
				t.Errorf("watch: exit %d\n%s", code, out)
			}
			if lines := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  a `).FindAllString(out, -1); len(lines) < 2 {
				t.Errorf("watch prints a line for each event, not\n%s", out)
			}
			if _, _, again := f2.run("watch", "a"); again != c.code {
				t.Errorf("watching what has ended: exit %d", again)
			}
		})
	}
}

// TestWatchingWhatAForcePushDroppedFails, alone and beside what goes on.
func TestWatchingWhatAForcePushDroppedFails(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.run("land", "b")
	f.LandIt("main", "a", "b1", nil, "//x")
	ended := make(chan int, 1)
	go func() {
		_, _, code := f.run("watch", "a", "b")
		ended <- code
	}()
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineMoved{To: apitest.Commit("x"), Forced: true, Dropped: []*eventsv1.ChangeRef{apitest.Ref("a")}})
	f.LandIt("main", "b", "b2", nil, "//y")
	if code := <-ended; code != ExitLeft {
		t.Errorf("watch of both: exit %d", code)
	}
	if out, _, code := f.run("watch", "a", "--json"); code != ExitLeft || !strings.Contains(out, `"state": "dropped"`) {
		t.Errorf("watch: exit %d\n%s", code, out)
	}
	if out, _, _ := f.run("status", "a"); !strings.Contains(out, "dropped by a force-push") {
		t.Errorf("status:\n%s", out)
	}
	f.Fold("main", events.TopicChanges, &eventsv1.MainlineUnreachable{Trouble: eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNREADABLE, Message: "no route to host"})
	if out, _, _ := f.run("queue"); !strings.Contains(out, "NOTHING LANDS: ") || !strings.Contains(out, "no route to host") {
		t.Errorf("queue:\n%s", out)
	}
}

func (f *fixture) revision(change string) (revision uint64) {
	f.Read("main", func(q *view.Queue) { s, _ := q.Summary(change); revision = s.Revision })
	return revision
}

func TestAGatewayThatIsNotThereIsNamedWithWhatToDo(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	_, progress, code := run("queue", "--server", closed.URL)
	if code != ExitFailed || !strings.Contains(progress, "landfall up") {
		t.Errorf("exit %d: %s", code, progress)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, progress, code := run("watch", "x", "--queue", "main", "--server", other.URL); code != ExitFailed || !strings.Contains(progress, "404") {
		t.Errorf("another server: exit %d: %s", code, progress)
	}
	if _, progress, code := run("queue", "--server", "ftp://x"); code != ExitFailed || !strings.Contains(progress, "http://127.0.0.1:7878") {
		t.Errorf("no address: exit %d: %s", code, progress)
	}
}

// TestAStreamThatCannotBeReadEndsTheCommand: it would be as unreadable after every new connection.
func TestAStreamThatCannotBeReadEndsTheCommand(t *testing.T) {
	for name, event := range map[string]string{
		"no JSON":   "event: change\ndata: {\n\n",
		"too large": "event: change\ndata: \"" + strings.Repeat("x", maxEventBytes) + "\"\n\n",
	} {
		connections := atomic.Int64{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			connections.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, event)
		}))
		c, err := New(server.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		err = c.Events(ctx, "main", nil, func(Seen) bool { return false })
		cancel()
		server.Close()
		if n := connections.Load(); errors.Is(err, context.DeadlineExceeded) || n != 1 {
			t.Errorf("%s: %v after %d connections", name, err, n)
		}
	}
}

func TestTheQueueIsChosenOnlyWhereThereIsOne(t *testing.T) {
	f := serve(t, "main", "tools")
	if _, progress, code := f.run("queue"); code != ExitFailed || !strings.Contains(progress, "main, tools") {
		t.Errorf("exit %d: %s", code, progress)
	}
	if out, _, code := f.run("queue", "--queue", "tools"); code != 0 || !strings.HasPrefix(out, "queue tools") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestRefsArePinnedInTheLocalClone(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--initial-branch=topic/x")
	git("commit", "--quiet", "--allow-empty", "-m", "one")
	one := git("rev-parse", "HEAD")
	git("commit", "--quiet", "--allow-empty", "-m", "two")
	two := git("rev-parse", "HEAD")
	git("update-ref", "refs/remotes/origin/there", one)
	git("tag", "v1")
	entries, err := pinRefs(context.Background(), dir, []string{"topic/x", "HEAD", "HEAD~1", "origin/there", "v1", one, one[:10], strings.Repeat("ab", 20)})
	if err != nil {
		t.Fatal(err)
	}
	want := []api.LandEntry{
		{Ref: "refs/heads/topic/x", Commit: two}, {Ref: "refs/heads/topic/x", Commit: two}, {Commit: one}, {Ref: "refs/heads/there", Commit: one},
		{Ref: "refs/tags/v1", Commit: two}, {Commit: one}, {Commit: one}, {Commit: strings.Repeat("ab", 20)},
	}
	for i := range want {
		if entries[i] != want[i] {
			t.Errorf("entry %d is %v, want %v", i, entries[i], want[i])
		}
	}
	if _, err := pinRefs(context.Background(), dir, []string{"--upload-pack=x"}); err == nil {
		t.Error("an option was taken for a ref")
	}
	if _, err := pinRefs(context.Background(), t.TempDir(), []string{"x"}); err == nil {
		t.Error("--repo names no clone, and nothing was said")
	}
	f := serve(t)
	if out, progress, code := f.run("land", "HEAD", "--repo", dir); code != 0 || !strings.HasPrefix(out, "topic/x: Admitted as revision 1") {
		t.Errorf("exit %d: %s %s", code, out, progress)
	}
}

func TestAScreenIsRedrawnInPlaceAndCutToItsSize(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, size: func() (int, int) { return 20, 4 }}
	s.draw([]string{"one", "a row that is far too long for it"})
	s.draw([]string{"one", "two", "three", "four", "five"})
	want := "\r\x1b[Kone\n\r\x1b[Ka row that is far …\n\x1b[J" + "\x1b[2A\r\x1b[Kone\n\r\x1b[Ktwo\n\r\x1b[K… and 3 more\n\x1b[J"
	if out.String() != want {
		t.Errorf("drawn %q, want %q", out.String(), want)
	}
}

func TestLogsFollowedPrintEachStepOnceAsItFinishes(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.Schedule("main", "b1", "a", nil, "//x", "//y")
	f.Prepare("main", "b1", "a", "//x", "//y")
	f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "output of x\n", "")
	go func() {
		time.Sleep(100 * time.Millisecond)
		f.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "output of y\n", "")
		f.Reject("main", "a", "b1", "//y", 1)
	}()
	out, progress, code := f.run("logs", "a", "--follow")
	if out != "output of x\noutput of y\n" || code != 0 {
		t.Errorf("exit %d, printed %q, and beside it %q", code, out, progress)
	}
}

// TestTheLogOfARunningStepIsFollowed with a target, through a gateway that breaks off.
func TestTheLogOfARunningStepIsFollowed(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.Schedule("main", "b1", "a", nil, "//x", "//y")
	f.Prepare("main", "b1", "a", "//x", "//y")
	f.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "output of y\n", "")
	lease := &eventsv1.StepLeased{Target: "//x", Hash: apitest.VersionOf("b1", "//x"), Attempt: 1, Lease: "one", Build: "b1", UntilUs: clock().Add(time.Hour).UnixMicro()}
	f.Fold("main", events.TopicBuilds, lease)
	name := filepath.Join(f.store, steplog.Name(steplog.Run{Queue: "main", Target: "//x", Hash: lease.Hash, Attempt: 1, Lease: "one"}))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	file.WriteString("\x1b[32mfirst\x1b[0m\n")
	var broken atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/logs") || broken.Add(1) > 1 {
			f.server.Config.Handler.ServeHTTP(w, r)
			return
		}
		cut, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
		defer cancel()
		f.server.Config.Handler.ServeHTTP(w, r.WithContext(cut))
		file.WriteString("second\nthe end of x\n")
		f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the end of x\n", strings.TrimPrefix(name, f.store+"/"))
		f.Reject("main", "a", "b1", "//x", 1)
	}))
	defer proxy.Close()
	out, progress, code := run("logs", "a", "--follow", "--target", "//x", "--queue", "main", "--server", proxy.URL)
	if out != "first\nsecond\nthe end of x\n" || code != 0 || progress != "==> //x, attempt 1: running\n==> //x, attempt 1: failed\n" {
		t.Errorf("exit %d, printed %q, and beside it %q", code, out, progress)
	}
	if broken.Load() != 2 {
		t.Errorf("the log was asked for %d times", broken.Load())
	}
}

// TestTheLogOfARunningStepSaysThatItWasAborted also where an earlier run of it counts, and the change waits.
func TestTheLogOfARunningStepSaysThatItWasAborted(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.Schedule("main", "b1", "a", nil, "//x")
	f.Prepare("main", "b1", "a", "//x")
	f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "it failed\n", "")
	lease := &eventsv1.StepLeased{Target: "//x", Hash: apitest.VersionOf("b1", "//x"), Attempt: 2, Lease: "two", Build: "b1", UntilUs: clock().Add(time.Hour).UnixMicro()}
	f.Fold("main", events.TopicBuilds, lease)
	name := filepath.Join(f.store, steplog.Name(steplog.Run{Queue: "main", Target: "//x", Hash: lease.Hash, Attempt: 2, Lease: "two"}))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("tick 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	asked := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/logs") {
			if asked++; asked == 1 {
				cut, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
				defer cancel()
				f.server.Config.Handler.ServeHTTP(w, r.WithContext(cut))
				f.Finish("main", "b1", "//x", 2, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, "tick 1\n", strings.TrimPrefix(name, f.store+"/"))
				f.Reject("main", "a", "b1", "//x", 1)
				return
			}
		}
		f.server.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	_, progress, code := run("logs", "a", "--follow", "--target", "//x", "--queue", "main", "--server", proxy.URL)
	if code != 0 || !strings.Contains(progress, "==> //x, attempt 2: running\n") || !strings.Contains(progress, "==> //x, attempt 2: aborted\n") {
		t.Errorf("exit %d, and beside the output %q", code, progress)
	}
}

func TestLogsFollowedGoOnPastAGatewayThatCannotAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.Schedule("main", "b1", "a", nil, "//x")
	f.Prepare("main", "b1", "a", "//x")
	// The first request is refused, then some are answered, others fail or lose their connection.
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		switch {
		case strings.HasSuffix(r.URL.Path, "/queues"), n > 9:
		case n%3 == 1:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"error": {"code": "internal", "message": "Not now."}}`)
			return
		case n > 2 && n%3 == 2:
			panic(http.ErrAbortHandler)
		}
		if n == 9 {
			f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "output of x\n", "")
			f.Reject("main", "a", "b1", "//x", 1)
		}
		f.server.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	out, progress, code := run("logs", "a", "--follow", "--queue", "main", "--server", proxy.URL)
	if out != "output of x\n" || code != 0 || !strings.Contains(progress, "Not now.") || !strings.Contains(progress, "asking again") {
		t.Errorf("exit %d, printed %q, and beside it %q", code, out, progress)
	}
	proxy.Close()
	if _, progress, code := run("logs", "a", "--follow", "--queue", "main", "--server", proxy.URL); code == 0 || strings.Contains(progress, "asking again") {
		t.Errorf("a gateway that never answered: exit %d, %q", code, progress)
	}
}

func TestLogsAreOfThePresentRevisionUnlessAnotherIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	f.Schedule("main", "b1", "a", nil, "//x", "//y")
	f.Prepare("main", "b1", "a", "//x", "//y")
	f.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "first revision\n", "")
	f.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "y\n", "")
	f.Reject("main", "a", "b1", "//x", 1)
	f.run("retry", "a")
	second := &eventsv1.ChangeRef{Change: "a", Revision: 2}
	p := &eventsv1.BuildPrepared{Build: "b2", Change: second, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	p.Versions = []*eventsv1.TargetVersion{{Target: "//x", Hash: apitest.VersionOf("b1", "//x")}, {Target: "//z", Hash: apitest.VersionOf("b2", "//z")}}
	f.Fold("main", events.TopicBuilds, p)
	// The same version fails again: its first attempt was of the revision before.
	f.Finish("main", "b2", "//z", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "second revision\n", "")
	for _, c := range []struct {
		args string
		want string
		code int
	}{
		{"logs a", "second revision\n", 0},
		{"logs a --revision 2", "second revision\n", 0},
		{"logs a --revision 1", "first revision\n", 0},
		{"logs a --revision 1 --target //y", "y\n", 0},
		{"logs a --step test", "second revision\n", 0},
		{"logs a --step compile", "", 3},
		{"logs a --revision 3", "", 3},
		{"logs a --follow --revision 1", "", 3},
	} {
		if out, progress, code := f.run(strings.Fields(c.args)...); out != c.want || code != c.code {
			t.Errorf("%s: exit %d, %q, %q", c.args, code, out, progress)
		}
	}
}

func FuzzAnEventStreamIsReadOrRefused(f *testing.F) {
	f.Add("event: queue\nid: 7\ndata: {\"queue\":\"main\"}\n\n: alive\n\nevent: change\ndata: {\"change\":\"a\",\n" + `data: "state":"landed"}` + "\n\n")
	f.Add("event: change\ndata: null\n\n")
	f.Add("data\n\r\n::\nid\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		seen := 0
		c, err := New("http://127.0.0.1:1", "ada")
		if err != nil {
			t.Fatal(err)
		}
		reader := &follower{client: c, seen: func(s Seen) bool {
			if seen++; (s.Queue == nil) == (s.Change == nil) {
				t.Errorf("an event of nothing, or of two things: %+v", s)
			}
			return false
		}}
		if err := reader.read(strings.NewReader(stream)); err == nil {
			t.Error("a stream that ends is no error, and nobody stopped it")
		}
		if most := strings.Count(stream, "data"); seen > most {
			t.Errorf("%d events of %d lines with data", seen, most)
		}
	})
}

// TestAWatchOfTheWholeQueueInJSONIsALineForEachUpdateUntilItIsInterrupted.
func TestAWatchOfTheWholeQueueInJSONIsALineForEachUpdateUntilItIsInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.run("land", "a")
	root := &cobra.Command{Use: "landfall", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	out, in := io.Pipe()
	root.SetOut(in)
	root.SetErr(t.Output())
	root.SetArgs([]string{"watch", "--json", "--server", f.server.URL})
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		in.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(out)
	landed := false
	for lines.Scan() {
		var u view.Update
		if err := json.Unmarshal(lines.Bytes(), &u); err != nil || u.Change != "a" {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		switch {
		case !landed:
			f.LandIt("main", "a", "b1", nil, "//x")
			landed = true
		case u.State == view.StateLanded:
			interrupt()
		}
	}
	if err := <-ended; err != nil || !landed {
		t.Errorf("%v", err)
	}
}

// TestWhatMakesNoSenseIsSaidBeforeAnybodyIsAsked: in words, and not in those of a library.
func TestWhatMakesNoSenseIsSaidBeforeAnybodyIsAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	for want, args := range map[string][]string{
		"--benefit is NaN":    {"land", "a", "--benefit", "nan"},
		"--benefit is +Inf":   {"land", "a", "--benefit", "inf"},
		"--front or --before": {"priority", "a"},
		"at least one REF":    {"land"},
		"is not UTF-8":        {"land", "inv\xff"},
	} {
		if _, stderr, code := f.run(args...); code != ExitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q; want %q", args, code, stderr, want)
		}
	}
}

// TestTheAuthorIsWhoGitSays, unless a flag names another. The request id is the caller's.
func TestTheAuthorIsWhoGitSays(t *testing.T) {
	f := serve(t)
	t.Setenv("GIT_CONFIG_VALUE_0", "Ada Lovelace")
	t.Setenv("GIT_CONFIG_VALUE_1", "ada@example.org")
	for args, want := range map[string]string{"": "Ada Lovelace <ada@example.org>", "--author=Grace": "Grace"} {
		line := []string{"land", strings.Repeat("a", 40), "--id", "of" + args, "--json", "--request-id", "approved" + args}
		if args != "" {
			line = append(line, args)
		}
		out, progress, code := f.run(line...)
		var reply api.LandReply
		if err := json.Unmarshal([]byte(out), &reply); err != nil || code != 0 || reply.RequestID != "approved"+args {
			t.Fatalf("exit %d, %s: %s %v", code, out, progress, err)
		}
		f.Read("main", func(q *view.Queue) {
			if s, _ := q.Summary("of" + args); s.Author != want {
				t.Errorf("%q: the author is %q, not %q", args, s.Author, want)
			}
		})
	}
}
