package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

func TestARefAndACommitAndAStackAreAdmittedPinnedToExactCommits(t *testing.T) {
	repo := newRepository(t)
	one := repo.branch("feature/one")
	repo.git("checkout", "--quiet", "-B", "stack-a", "main")
	lower := repo.commit("stack-a", "a.txt", "a\n", "Lower\n\nWith a body.")
	repo.git("checkout", "--quiet", "-b", "stack-b")
	upper := repo.commit("stack-b", "b.txt", "b\n", "Upper")
	repo.git("push", "--quiet", "origin", "stack-a", "stack-b")
	r := startGateway(t, newLog(3), repo, "g1")

	status, reply := r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "feature/one"}))
	if status != 201 || reply["change"] != "feature/one" || reply["revision"] != 1.0 {
		t.Fatalf("land a ref: %d %v", status, reply)
	}
	_, change := r.call("GET", "/v1/queues/main/changes/feature%2Fone", nil)
	entries := change["entries"].([]any)
	if entries[0].(object)["commit"] != one || change["author"] != "ada" || change["title"] != "Add feature/one" {
		t.Errorf("the change is %v", change)
	}
	status, reply = r.call("POST", "/v1/queues/main/changes", object{"change": "stack", "entries": []object{{"commit": lower}, {"ref": "stack-b"}}, "requires": []string{"feature/one"}})
	if status != 201 {
		t.Fatalf("land a stack: %d %v", status, reply)
	}
	_, change = r.call("GET", "/v1/queues/main/changes/stack", nil)
	if entries := change["entries"].([]any); len(entries) != 2 || entries[1].(object)["commit"] != upper {
		t.Errorf("the stack is %v", change["entries"])
	}
	if why := change["why"].(string); !strings.Contains(why, "requires feature/one") {
		t.Errorf("why: %q", why)
	}
	status, reply = r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "feature/one"}))
	if status != 200 || reply["outcome"] != "unchanged" || reply["revision"] != 1.0 {
		t.Errorf("land the same again: %d %v", status, reply)
	}
	repo.branch("feature/one")
	repo.git("commit", "--quiet", "--amend", "-m", "Add it otherwise")
	two := repo.git("rev-parse", "HEAD")
	repo.git("push", "--quiet", "--force", "origin", "feature/one")
	status, reply = r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "feature/one"}))
	if status != 201 || reply["revision"] != 2.0 {
		t.Errorf("a new head %s is a new revision: %d %v", two, status, reply)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	repo := newRepository(t)
	repo.branch("good")
	repo.git("checkout", "--quiet", "-B", "empty", "main")
	repo.git("commit", "--quiet", "--allow-empty", "-m", "Nothing")
	repo.git("push", "--quiet", "origin", "empty")
	aside := repo.branch("aside")
	main := repo.git("rev-parse", "main")
	r := startGateway(t, newLog(1), repo, "g1")
	for _, c := range []struct {
		name   string
		body   object
		status int
		code   string
	}{
		{"an unknown branch", landBody(object{"ref": "nowhere"}), 422, "no_such_ref"},
		{"an unknown commit", landBody(object{"commit": strings.Repeat("ab", 20)}), 422, "no_such_commit"},
		{"a commit that its ref does not have", landBody(object{"ref": "good", "commit": strings.Repeat("ab", 20)}), 409, "ref_moved"},
		{"a commit that another ref has", landBody(object{"ref": "good", "commit": aside}), 409, "ref_moved"},
		{"the mainline itself", landBody(object{"commit": main}), 422, "already_in"},
		{"a change without a difference", landBody(object{"ref": "empty"}), 422, "empty"},
		{"a stack that is none", landBody(object{"ref": "good"}, object{"ref": "aside"}), 422, "not_a_stack"},
		{"an unknown requirement", object{"entries": []object{{"ref": "good"}}, "requires": []string{"ghost"}}, 422, "unknown_requirement"},
		{"itself as requirement", object{"entries": []object{{"ref": "good"}}, "requires": []string{"good"}}, 422, "cyclic_requirement"},
		{"half a commit id", landBody(object{"commit": "abc123"}), 400, "bad_request"},
		{"an option as ref", landBody(object{"ref": "--upload-pack=x"}), 400, "bad_request"},
		{"nothing", object{"entries": []object{}}, 400, "bad_request"},
	} {
		status, reply := r.call("POST", "/v1/queues/main/changes", c.body)
		detail, _ := reply["error"].(object)
		if status != c.status || detail["code"] != c.code {
			t.Errorf("%s: %d %v, want %d %s", c.name, status, reply, c.status, c.code)
		} else if detail["message"] == "" || detail["advice"] == "" {
			t.Errorf("%s: no message or advice in %v", c.name, detail)
		}
	}
	status, reply := r.call("POST", "/v1/queues/nope/changes", landBody(object{"ref": "good"}))
	if status != 404 || reply["error"].(object)["code"] != "unknown_queue" {
		t.Errorf("unknown queue: %d %v", status, reply)
	}
	for _, branch := range []string{"p1", "p2"} {
		repo.branch(branch)
		if status, reply := r.call("POST", "/v1/queues/other/changes", landBody(object{"ref": branch})); status != 201 {
			t.Errorf("%d %v", status, reply)
		}
	}
	if status, reply := r.call("POST", "/v1/queues/other/changes", landBody(object{"ref": "good"})); status != 429 {
		t.Errorf("a full queue: %d %v", status, reply)
	}
}

func TestAnyClientsLandEventIsTakenFromAnyPartition(t *testing.T) {
	repo := newRepository(t)
	id := repo.branch("by-kafka")
	log := newLog(4)
	r := startGateway(t, log, repo, "g1")
	request := &eventsv1.LandRequest{Queue: testQueue, Entries: []*eventsv1.Entry{{Ref: "by-kafka"}}}
	text, _ := protojson.Marshal(request)
	binary, _ := proto.Marshal(&eventsv1.LandRequest{Change: "by-proto", Entries: []*eventsv1.Entry{{Commit: id}}})
	records := []journal.Record{
		{Topic: events.TopicLandRequests, Partition: 3, Value: text},
		{Topic: events.TopicLandRequests, Partition: 0, Key: []byte(testQueue), Value: binary, Headers: []events.Header{{Key: "content-type", Value: []byte("application/protobuf")}}},
		{Topic: events.TopicLandRequests, Partition: 1, Value: []byte(`{"queue":`)},
		{Topic: events.TopicLandRequests, Partition: 1, Value: []byte(`{"queue":"unheard-of","entries":[{"ref":"x"}]}`)},
		{Topic: events.TopicLandRequests, Partition: 1, Value: text},
	}
	if err := log.Write(context.Background(), records...); err != nil {
		t.Fatal(err)
	}
	r.eventually("both are admitted", func() bool {
		return r.summary("by-kafka").Revision == 1 && r.summary("by-proto").Revision == 1
	})
	r.eventually("the repeat is answered, and what is no request is among the dead letters", func() bool {
		letters := all(t, log, events.TopicDeadLetters)
		refused := count(all(t, log, events.TopicChanges), func(e journal.Entry) bool { _, is := e.Message.(*eventsv1.RequestRefused); return is })
		return len(letters) == 2 && refused == 1
	})
	r.stop()
	before := len(all(t, log, events.TopicChanges))
	again := startGateway(t, log, repo, "g2")
	repo.branch("after")
	again.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "after"}))
	if got := len(all(t, log, events.TopicChanges)); got != before+1 {
		t.Errorf("a new gateway wrote %d records besides the new admission's", got-before-1)
	}
	if got := len(all(t, log, events.TopicDeadLetters)); got != 2 {
		t.Errorf("a new gateway reported again: %d dead letters", got)
	}
}

// TestIDsThatAreTooLongOrMoveTheCursorAreInNoAnswer to a request by Kafka, which nobody checks before it is in the log.
func TestIDsThatAreTooLongOrMoveTheCursorAreInNoAnswer(t *testing.T) {
	repo := newRepository(t)
	log := newLog(1)
	r := startGateway(t, log, repo, "g1")
	hostile := []string{strings.Repeat("x", 5000), "a\x1b[2Jb"}
	var records []journal.Record
	for _, id := range hostile {
		for _, request := range []*eventsv1.LandRequest{
			{Queue: testQueue, RequestId: id, Entries: []*eventsv1.Entry{{Ref: "x"}}},
			{Queue: testQueue, Change: id, Entries: []*eventsv1.Entry{{Ref: "x"}}},
		} {
			text, _ := protojson.Marshal(request)
			records = append(records, journal.Record{Topic: events.TopicLandRequests, Value: text})
		}
	}
	if err := log.Write(context.Background(), records...); err != nil {
		t.Fatal(err)
	}
	var refused []*eventsv1.RequestRefused
	r.eventually("all are refused", func() bool {
		refused = nil
		for _, e := range all(t, log, events.TopicChanges) {
			if f, is := e.Message.(*eventsv1.RequestRefused); is {
				refused = append(refused, f)
			}
		}
		return len(refused) == len(records)
	})
	for _, f := range refused {
		if text := f.RequestId + f.Change + f.Message; len(text) > 1000 || strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("the log has %q", text)
		}
	}
}

// TestWhatCannotBeDecodedIsReportedOnceOnEveryTopicThatAGatewayReads.
func TestWhatCannotBeDecodedIsReportedOnceOnEveryTopicThatAGatewayReads(t *testing.T) {
	repo, log := newRepository(t), newLog(2)
	reported := 0
	for _, topic := range events.Topics() {
		// Models and speculations are read when somebody asks; the enumerator and the profiler report what is wrong there.
		if slices.Contains(topic.Readers, events.ServiceGateway) && !slices.Contains([]string{events.TopicDeadLetters, events.TopicLandRequests, events.TopicModels, events.TopicSpeculations}, topic.Name) {
			reported++
		}
		if err := log.Write(t.Context(), journal.Record{Topic: topic.Name, Partition: 1, Key: []byte(testQueue), Value: []byte("?"), Headers: []events.Header{
			{Key: "ce_type", Value: []byte("landfall.events.v1.Decision")}, {Key: "ce_source", Value: []byte("/landfall/selector/1")},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	// The land request is one too.
	for range 2 {
		r := startGateway(t, log, repo, "g1")
		r.eventually("all are among the dead letters", func() bool { return len(all(t, log, events.TopicDeadLetters)) == 1+reported+1 })
		r.stop()
	}
	for _, e := range all(t, log, events.TopicDeadLetters) {
		d, is := e.Message.(*eventsv1.DeadLetter)
		if is && (d.Service != events.ServiceGateway || d.Reason == "" || d.Queue != testQueue && d.Topic != events.TopicLandRequests || string(d.Value) != "?") {
			t.Errorf("%v", d)
		}
	}
}

// TestBytesThatAreNoUTF8AreADeadLetterOnce, wherever in a land request they stand.
func TestBytesThatAreNoUTF8AreADeadLetterOnce(t *testing.T) {
	repo, log := newRepository(t), newLog(1)
	bad := []byte("\xff\xfe\xc3")
	good := func(change string) []byte {
		return []byte(`{"queue":"main","change":"` + change + `","entries":[{"ref":"main"}]}`)
	}
	records := []journal.Record{
		{Value: bad},
		{Value: good("x" + string(bad))},
		{Value: []byte(`{"queue":"` + string(bad) + `","entries":[{"ref":"main"}]}`)},
		{Value: []byte(`{"` + string(bad) + `":1}`)},
		{Value: []byte(`{"entries":[{"ref":"main"}]}`), Key: bad},
		{Value: bad, Key: bad, Headers: []events.Header{
			{Key: string(bad), Value: bad}, {Key: "content-type", Value: bad}, {Key: "ce_subject", Value: bad}, {Key: "ce_id", Value: bad}}},
		{Value: good("typed"), Headers: []events.Header{{Key: "ce_type", Value: bad}, {Key: "ce_specversion", Value: []byte("1.0")}}},
		{Value: bad, Headers: []events.Header{{Key: "ce_type", Value: bad}, {Key: "content-type", Value: []byte("application/protobuf")}}},
	}
	for i := range records {
		records[i].Topic = events.TopicLandRequests
	}
	if err := log.Write(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	var first []string
	for range 2 {
		r := startGateway(t, log, repo, "g1")
		repo.branch("behind")
		r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": "behind"})) // it is read behind all of them
		var letters []string
		for _, e := range all(t, log, events.TopicDeadLetters) {
			if d, is := e.Message.(*eventsv1.DeadLetter); is {
				letters = append(letters, fmt.Sprint(d.Offset))
			}
		}
		if first == nil {
			first = letters
		}
		if !slices.Equal(letters, first) || len(letters) < len(records)-1 {
			t.Errorf("the records at %v are among the dead letters, and were at the first start: %v", letters, first)
		}
		r.stop()
	}
}

func TestOfTwoGatewaysOneRecordCountsAndEveryRequestIsAnswered(t *testing.T) {
	repo := newRepository(t)
	const changes, versions = 6, 4
	commits := make([][]string, changes)
	for i := range commits {
		for v := range versions {
			repo.git("checkout", "--quiet", "-B", fmt.Sprintf("b%d-%d", i, v), "main")
			commits[i] = append(commits[i], repo.commit("", fmt.Sprintf("f%d", i), fmt.Sprint(v), fmt.Sprintf("b%d version %d", i, v)))
		}
	}
	repo.git("push", "--quiet", "origin", "--all")
	log := newLog(2)
	first := startGateway(t, log, repo, "g1")
	second := startGateway(t, log, repo, "g2")
	type result struct {
		status int
		reply  object
	}
	results := make(chan result, changes*versions)
	for i := range changes {
		for v := range versions {
			target := []*running{first, second}[(i+v)%2]
			go func() {
				status, reply := target.call("POST", "/v1/queues/main/changes?wait=20s", object{"change": fmt.Sprintf("c%d", i), "entries": []object{{"commit": commits[i][v]}}})
				results <- result{status, reply}
			}()
		}
	}
	revisions := map[string]int{}
	for range changes * versions {
		got := <-results
		if got.status != 201 {
			t.Fatalf("a request was answered %d %v", got.status, got.reply)
		}
		revisions[fmt.Sprint(got.reply["change"], "@", got.reply["revision"])]++
	}
	for i := range changes {
		for v := range versions {
			if name := fmt.Sprint("c", i, "@", v+1); revisions[name] != 1 {
				t.Errorf("%s was given to %d requests", name, revisions[name])
			}
		}
		a, b := first.summary(fmt.Sprint("c", i)), second.summary(fmt.Sprint("c", i))
		if a.Revision != versions || b.Revision != versions {
			t.Errorf("c%d is at revision %d for one gateway and %d for the other", i, a.Revision, b.Revision)
		}
	}
}

func TestWhatPeopleAskForTakesEffectOrSaysWhyNot(t *testing.T) {
	repo := newRepository(t)
	log := newLog(1)
	r := startGateway(t, log, repo, "g1")
	for _, name := range []string{"a", "b", "c"} {
		repo.branch(name)
		r.call("POST", "/v1/queues/main/changes", landBody(object{"ref": name}))
	}
	expect := func(method, path string, body object, status int, text string) {
		t.Helper()
		got, reply := r.call(method, path, body)
		if got != status || !strings.Contains(fmt.Sprint(reply), text) {
			t.Errorf("%s %s %v: %d %v, want %d and %q", method, path, body, got, reply, status, text)
		}
	}
	changes := "/v1/queues/main/changes/"
	expect("POST", changes+"c/priority", object{"front": true, "why": "hotfix"}, 200, "position:1")
	expect("POST", changes+"c/priority", object{"before": "nobody"}, 404, "nobody")
	expect("POST", changes+"c/priority", object{"before": "a", "front": true}, 400, "either")
	expect("POST", changes+"a/hold", object{"why": "release night"}, 200, "held by ada: release night")
	expect("POST", changes+"a/hold", object{"who": "bob"}, 200, "held by bob: release night")
	expect("POST", changes+"a/release", object{"hold": "other"}, 409, "no hold of that name")
	expect("POST", changes+"a/release", object{}, 200, "Released")
	expect("POST", changes+"a/hold", object{"hold": "legal"}, 200, "held by ada (hold legal); release")
	expect("POST", changes+"a/release", object{"hold": "legal"}, 200, "Released")
	expect("POST", "/v1/queues/main/pause", object{"who": "sre", "why": "incident 7"}, 200, "Paused")
	expect("GET", changes+"b/explain", nil, 200, "paused by sre: incident 7")
	expect("POST", "/v1/queues/main/pause", object{"who": "bob"}, 200, "Paused")
	expect("GET", changes+"b/explain", nil, 200, "paused by bob: incident 7")
	expect("POST", "/v1/queues/main/pause", object{"who": "bob", "why": "and a fire"}, 200, "Paused")
	expect("GET", changes+"b/explain", nil, 200, "paused by bob: and a fire")
	expect("POST", "/v1/queues/main/resume", object{}, 200, "Resumed")
	expect("DELETE", changes+"b?why=enough", nil, 200, "Cancelled by ada: enough")
	expect("POST", changes+"c/priority", object{"before": "b"}, 409, "The change to move before, b, is not pending")
	expect("POST", changes+"b/cancel", object{}, 409, "b has left the queue. Cancelled by ada: enough.")
	expect("POST", changes+"ghost/cancel", object{}, 404, "unknown_change")
	pinnedB := repo.git("rev-parse", "b")
	repo.git("push", "--quiet", "--delete", "origin", "b") // the commits stay where they were fetched from
	expect("POST", changes+"b/retry", object{}, 201, "revision:2")
	expect("GET", changes+"b", nil, 200, fmt.Sprintf("entries:[map[commit:%s ref:b]]", pinnedB))
	expect("POST", changes+"b/retry", object{}, 409, "nothing to retry")

	term := claim(t, log, events.TopicChanges, events.ServiceLander)
	appendUnder(t, log, events.TopicChanges, events.ServiceLander, term, &eventsv1.LandIntended{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Decision: "d", Base: "m", Commits: []string{"t"}})
	expect("POST", changes+"c/cancel", object{}, 409, "Too late")
	repo.git("checkout", "--quiet", "c")
	repo.commit("c", "c2.txt", "more\n", "More")
	repo.git("push", "--quiet", "origin", "c")
	expect("POST", "/v1/queues/main/changes", landBody(object{"ref": "c"}), 409, "too_late")
	appendUnder(t, log, events.TopicChanges, events.ServiceLander, term-1, &eventsv1.LandVoid{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Decision: "d", Commit: "t"})
	expect("POST", changes+"c/cancel", object{}, 409, "Too late") // the record above is under no term in force
	appendUnder(t, log, events.TopicChanges, events.ServiceLander, term, &eventsv1.LandVoid{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Decision: "d", Commit: "t", Reason: "lost"})
	expect("POST", changes+"c/cancel", object{}, 200, "Cancelled")
}

func all(t testing.TB, log journal.Log, topic string) []journal.Entry {
	t.Helper()
	var out []journal.Entry
	for p := range log.Partitions() {
		cursor, err := log.Follow(context.Background(), topic, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, ok, err := cursor.TryNext()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			out = append(out, e)
		}
		cursor.Close()
	}
	return out
}

func count(entries []journal.Entry, is func(journal.Entry) bool) int {
	n := 0
	for _, e := range entries {
		if is(e) {
			n++
		}
	}
	return n
}
