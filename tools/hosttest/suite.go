package hosttest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/tools/demo/tally"
)

// testAPullRequestIsLandedByItsLabel: it is rejected with the reason, mended, landed by a comment, and closed as merged.
func testAPullRequestIsLandedByItsLabel(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	head := w.branch("one", "f1/b.txt", "a bug\n")
	number := w.open("one")
	w.Label("ada", number)
	w.awaitStatus(head, "failure", "has-no-bug")
	w.await("the comment says why", func() bool {
		all := w.Comments(number)
		return len(all) == 1 && strings.Contains(all[0], "**Rejected.**") && strings.Contains(all[0], "f1/b.txt:1:a bug")
	})
	w.await("the label is off", func() bool { return !w.Pull(number).Labelled })
	head = w.push("one", "f1/b.txt", "fine\n")
	w.await("the host knows of the push", func() bool { return w.Pull(number).Head == head })
	w.Comment("ada", number, "mended\n\n/landfall land")
	w.awaitMerged(number)
	w.awaitStatus(head, "success", "Landed as ")
	w.await("the comment says that it landed", func() bool {
		all := w.Comments(number)
		return len(all) == 1 && strings.Contains(all[0], "**Landed**") && strings.Contains(all[0], w.Pull(number).Commit)
	})
	if n := len(w.Statuses(head)); n > 6 {
		t.Errorf("the status was set %d times", n)
	}
}

func testTheHostsOwnSwitchAsks(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	host, is := w.Host.(Switcher)
	if !is {
		t.Skip("this host has none")
	}
	head := w.branch("one", "f1/b.txt", "a bug\n")
	number := w.open("one")
	host.Switch("ada", number, true)
	w.awaitStatus(head, "failure", "has-no-bug")
	head = w.push("one", "f1/b.txt", "fine\n")
	w.await("the host knows of the push", func() bool { return w.Pull(number).Head == head })
	host.Switch("ada", number, false)
	host.Switch("ada", number, true)
	w.awaitMerged(number)
}

func testTenPullRequestsLandAtOnce(t *testing.T, s Server) {
	for _, strategy := range []string{"squash", "rebase", "merge"} {
		t.Run(strategy, func(t *testing.T) {
			w := newWorld(t, s, options{strategy: strategy})
			var numbers []int
			for i := range 10 {
				name := fmt.Sprintf("c%d", i)
				w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), "fine\n")
				numbers = append(numbers, w.open(name))
			}
			for _, number := range numbers {
				w.Label("ada", number)
			}
			for _, number := range numbers {
				w.awaitMerged(number)
			}
			t.Logf("%s: %d writes to the host for 10 changes, %d requests in all", strategy, len(w.proxy.written()), w.proxy.requests())
		})
	}
}

func testWhatLandedInOtherCommitsIsClosed(t *testing.T, s Server) {
	w := newWorld(t, s, options{branches: "keep"})
	head := w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Label("ada", number)
	if !s.Closes {
		w.awaitMerged(number)
		return
	}
	w.await("it is closed, and has landed", func() bool {
		all := w.Comments(number)
		return !w.Pull(number).Open && len(all) == 1 && strings.Contains(all[0], "**Landed**")
	})
	if p := w.Pull(number); p.Merged || p.Head != head {
		t.Errorf("it is %+v", p)
	}
}

// testAKillAtEachWriteLosesNothing: the service is killed before or after each of the first ten writes to the host. Each change is landed or rejected once, with one comment.
func testAKillAtEachWriteLosesNothing(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	w.patience = 5 * time.Minute // the group gives the partitions away again six seconds after a kill
	var at sync.Mutex
	kills := 0
	hit := map[string]bool{}
	kill := func(place string) bool {
		at.Lock()
		defer at.Unlock()
		if hit[place] || kills >= 10 {
			return true
		}
		hit[place] = true
		kills++
		w.kill()
		w.start()
		return false
	}
	w.proxy.mu.Lock()
	w.proxy.before = func(n int) bool { return n%2 == 0 || kill(fmt.Sprint("before ", n)) }
	w.proxy.after = func(n int) bool { return n%2 == 1 || kill(fmt.Sprint("after ", n)) }
	w.proxy.mu.Unlock()
	heads := map[int]string{}
	good, bad := []int{}, []int{}
	for i := range 3 {
		name, text := fmt.Sprintf("c%d", i), "fine\n"
		if i == 2 {
			text = "a bug\n"
		}
		head := w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), text)
		number := w.open(name)
		heads[number] = head
		if i == 2 {
			bad = append(bad, number)
		} else {
			good = append(good, number)
		}
		w.Comment("ada", number, "/landfall land")
	}
	for _, number := range good {
		w.awaitMerged(number)
		w.awaitStatus(heads[number], "success", "Landed as ")
	}
	for _, number := range bad {
		w.awaitStatus(heads[number], "failure", "Rejected")
	}
	for number := range heads {
		w.await("there is a comment", func() bool { return len(w.Comments(number)) > 0 })
	}
	at.Lock()
	kills = 1000 // no more
	at.Unlock()
	time.Sleep(3 * time.Second)
	before := len(w.proxy.written())
	time.Sleep(5 * time.Second)
	if after := w.proxy.written(); len(after) != before {
		t.Errorf("it writes on: %v", after[before:])
	}
	for number := range heads {
		if all := w.Comments(number); len(all) != 1 {
			t.Errorf("%d has %d comments: %q", number, len(all), all)
		}
	}
	t.Logf("%d kills, %d writes: %v", len(hit), len(w.proxy.written()), w.proxy.written())
	w.checkAdmitted(len(heads))
}

// testAKillAtAnyTimeLosesNothing kills the service again and again while changes land, a moment after it has its partitions back or before.
func testAKillAtAnyTimeLosesNothing(t *testing.T, s Server) {
	w := newWorld(t, s, options{step: "sleep 8"}) // the first kill comes before the first change is decided, or soon after
	w.patience = 5 * time.Minute
	r := seedtest.Random(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	kills := 0
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(7000+r.IntN(6000)) * time.Millisecond):
				w.kill()
				w.start()
				kills++
			}
		}
	})
	var numbers []int
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), "fine\n")
		numbers = append(numbers, w.open(name))
		w.Label("ada", numbers[i])
	}
	for _, number := range numbers {
		w.awaitMerged(number)
	}
	close(stop)
	wg.Wait()
	for _, number := range numbers {
		w.await("there is one comment", func() bool { return len(w.Comments(number)) == 1 })
	}
	if kills == 0 {
		t.Error("the service was not killed")
	}
	t.Logf("%d kills", kills)
}

func testALostWebhookIsFound(t *testing.T, s Server) {
	w := newWorld(t, s, options{withoutWebhook: true})
	w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Label("ada", number)
	w.awaitMerged(number)
	w.branch("two", "f2/b.txt", "fine\n")
	number = w.open("two")
	w.kill()
	w.Comment("ada", number, "/landfall land")
	w.start()
	w.awaitMerged(number)
}

// testWebhooksComeAsTheyLike: what is asked for counts once, whatever becomes of the webhooks.
func testWebhooksComeAsTheyLike(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	w.relay.shuffle(seedtest.Random(t))
	bad := 5
	var numbers []int
	var heads []string
	for i := range 6 {
		name, text := fmt.Sprintf("c%d", i), "fine\n"
		if i == bad {
			text = "a bug\n"
		}
		heads = append(heads, w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), text))
		numbers = append(numbers, w.open(name))
		w.Label("ada", numbers[i])
	}
	for i, number := range numbers {
		if i == bad {
			w.awaitStatus(heads[i], "failure", "has-no-bug")
			continue
		}
		w.awaitMerged(number)
		w.awaitStatus(heads[i], "success", "Landed as ")
	}
	time.Sleep(5 * time.Second) // the last of them comes after four
	for _, number := range numbers {
		w.await("there is a comment", func() bool { return len(w.Comments(number)) > 0 })
		if all := w.Comments(number); len(all) != 1 {
			t.Errorf("%d has %d comments: %q", number, len(all), all)
		}
	}
	w.checkAdmitted(len(numbers))
	t.Logf("the service answers %v", w.relay.answers)
}

// testAWebhookIsEnough: what is asked for comes into the queue though nothing is looked for.
func testAWebhookIsEnough(t *testing.T, s Server) {
	w := newWorld(t, s, options{poll: "1h"})
	w.await("the list of the start is over", func() bool { return w.proxy.listed() > 0 })
	w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	began := time.Now()
	w.Comment("ada", number, "/landfall land")
	w.await("it is admitted", func() bool {
		c, err := w.client.Change(t.Context(), queue, fmt.Sprintf("pr-%d", number))
		return err == nil && c.State != ""
	})
	t.Logf("from the comment to the queue: %v", time.Since(began))
	w.awaitMerged(number)
}

func testTheDoctorSaysWhatIsMissing(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	// codes runs the doctor, and returns the codes of what it finds.
	codes := func() (codes []string) {
		t.Helper()
		c := exec.Command(w.binary, "hosts", "doctor", "--config", w.config, "--json")
		out, err := c.Output()
		var found struct {
			Healthy  bool
			Findings []struct{ Code, Message, Advice string }
		}
		if json.Unmarshal(out, &found) != nil || found.Healthy != (err == nil) {
			t.Fatalf("the doctor ends with %v and says %s", err, out)
		}
		for _, f := range found.Findings {
			if codes = append(codes, f.Code); f.Message == "" || f.Advice == "" && f.Code != "check_failed" {
				t.Errorf("%s says %q and advises %q", f.Code, f.Message, f.Advice)
			}
		}
		return codes
	}
	w.await("the service answers, and the doctor says what is missing", func() bool {
		want := []string{"host_branch_open"}
		if !s.Tries {
			want = append(want, "host_webhook_silent")
		}
		return slices.Equal(codes(), want)
	})
	w.Protect(0)
	w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Comment("ada", number, "/landfall land")
	w.awaitMerged(number)
	if got := codes(); len(got) != 0 {
		t.Errorf("where all is well it finds %v", got)
	}
	w.kill()
	if got := codes(); !slices.Equal(got, []string{"host_webhook_silent"}) {
		t.Errorf("without the service it finds %v", got)
	}
}

func testOnlyWhoMayWriteLands(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Comment("eve", number, "/landfall land")
	w.await("the comment says why not", func() bool {
		all := w.Comments(number)
		return len(all) == 1 && strings.Contains(all[0], "`eve`") && strings.Contains(all[0], "needs the role")
	})
	if _, err := w.client.Change(t.Context(), queue, fmt.Sprintf("pr-%d", number)); err == nil {
		t.Error("it is in the queue")
	}
}

func testForgedAndOversizedWebhooksAreRefused(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	post := func(path, body string) int {
		answer, err := http.Post("http://"+w.listen+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	w.await("the service listens", func() bool {
		c, err := net.Dial("tcp", w.listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/v1/hosts/forge", `{"number":1,"repository":{"full_name":"` + w.Repository() + `"}}`, http.StatusUnauthorized},
		{"/v1/hosts/other", "{}", http.StatusNotFound},
		{"/v1/hosts/forge", strings.Repeat("x", 5<<20), http.StatusRequestEntityTooLarge},
		{"/", "{}", http.StatusNotFound},
	} {
		if got := post(c.path, c.body); got != c.want {
			t.Errorf("%s: %d, want %d", c.path, got, c.want)
		}
	}
}

// testAPullRequestThatIsNotReadyWaits: a draft, an approval and a required check are missing, one after the other.
func testAPullRequestThatIsNotReadyWaits(t *testing.T, s Server) {
	w := newWorld(t, s, options{})
	check := "the check ci, which has not run"
	if s.Pipeline {
		check = "the pipeline, which has not run"
	}
	w.AddUser("bob", "write")
	w.Protect(1, "ci")
	head := w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.SetDraft("ada", number, true)
	w.Label("ada", number)
	w.awaitStatus(head, "pending", "Waits for it is a draft, 1 of 1 approvals, "+check)
	w.SetDraft("ada", number, false)
	w.Approve("bob", number)
	w.awaitStatus(head, "pending", "Waits for "+check)
	w.Check("ada", head, "ci")
	w.awaitMerged(number)
}

// testAnApprovalThatIsWithdrawnHolds: the change lands once it is approved again.
func testAnApprovalThatIsWithdrawnHolds(t *testing.T, s Server) {
	w := newWorld(t, s, options{step: slow})
	w.AddUser("bob", "write")
	w.Protect(1)
	head := w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Approve("bob", number)
	w.Label("ada", number)
	w.awaitStatus(head, "pending", "n the queue")
	w.Dismiss(number)
	w.awaitStatus(head, "pending", "Held: waits for 1 of 1 approvals")
	w.Approve("bob", number)
	w.awaitMerged(number)
}

// slow is a step that takes long enough for somebody to come between.
const slow = "sleep 25"

func testAPushClosingAndTheLabelTakeAChangeOut(t *testing.T, s Server) {
	w := newWorld(t, s, options{step: "sleep 90"})
	heads, numbers := []string{}, []int{}
	for i := range 3 {
		name := fmt.Sprintf("c%d", i)
		heads = append(heads, w.branch(name, fmt.Sprintf("f%d/%s.txt", i, name), "fine\n"))
		numbers = append(numbers, w.open(name))
		w.Label("ada", numbers[i])
	}
	for _, head := range heads {
		w.awaitStatus(head, "pending", "n the queue")
	}
	w.git("checkout", "-q", "c0")
	w.push("c0", "f0/more.txt", "fine\n")
	w.Close("ada", numbers[1])
	w.Unlabel("ada", numbers[2])
	w.awaitStatus(heads[0], "error", "Cancelled by ")
	w.awaitStatus(heads[1], "error", "Cancelled by ada")
	w.awaitStatus(heads[2], "error", "Cancelled by ada")
	w.await("the comment says that it was withdrawn", func() bool {
		all := w.Comments(numbers[0])
		return len(all) == 1 && strings.Contains(all[0], "was withdrawn")
	})
}

// testWhatWasAskedForLandsThoughMoreIsPushed: with on_push: keep.
func testWhatWasAskedForLandsThoughMoreIsPushed(t *testing.T, s Server) {
	w := newWorld(t, s, options{step: slow, onPush: "keep"})
	head := w.branch("one", "f1/b.txt", "fine\n")
	number := w.open("one")
	w.Label("ada", number)
	w.awaitStatus(head, "pending", "n the queue")
	w.push("one", "f1/more.txt", "fine\n")
	w.awaitStatus(head, "success", "Landed as ")
	w.git("fetch", "-q", "origin", "main")
	if files := w.git("ls-tree", "-r", "--name-only", "FETCH_HEAD", "f1"); !strings.Contains(files, "f1/b.txt") || strings.Contains(files, "f1/more.txt") {
		t.Errorf("the mainline has %s", files)
	}
}

// checkAdmitted checks that as many changes were admitted as there were requests, each once and in the name of ada.
func (w *world) checkAdmitted(want int) {
	w.t.Helper()
	admitted := map[string]int{}
	for p := range w.stack.Log().Partitions() {
		if err := tally.Records(w.t.Context(), w.stack.Log(), events.TopicChanges, p, func(e journal.Entry, counts bool) {
			switch m := e.Message.(type) {
			case *eventsv1.ChangeAdmitted:
				admitted[m.Admission.Change]++
				if a := m.Admission.Actor; a.GetName() != "ada" || a.GetIssuer() != w.proxy.URL || a.GetRole() != "lander" {
					w.t.Errorf("%s was asked for by %v", m.Admission.Change, a)
				}
			case *eventsv1.ChangeRevised:
				admitted[m.Admission.Change]++
			}
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	if len(admitted) != want {
		w.t.Errorf("admitted are %v", admitted)
	}
	for change, n := range admitted {
		if n != 1 {
			w.t.Errorf("%s was admitted %d times", change, n)
		}
	}
}
