package admission

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

var limits = Limits{Pending: 5, Stack: 3, Requires: 2}

// world is a queue with the fold that the service keeps beside it.
type world struct {
	known  Known
	offset int64
	// held is set if git finds that the mainline holds what is asked for.
	held bool
}

func newWorld() *world {
	return &world{known: Known{Lineup: lineup.New(), Heads: map[string]Heads{}}}
}

func (w *world) apply(m proto.Message) lineup.Consequence {
	consequence := w.known.Lineup.Apply(m, w.offset)
	w.offset++
	if consequence.Entered != nil {
		w.known.Heads[consequence.Entered.ID()] = HeadsOf(consequence.Entered.Admission.Entries)
	}
	return consequence
}

func commit(n int) string { return fmt.Sprintf("%040x", n) }

func request(change string, revision uint64, heads ...int) *eventsv1.LandRequest {
	r := &eventsv1.LandRequest{Queue: "q", Change: change, Revision: revision}
	for _, h := range heads {
		r.Entries = append(r.Entries, &eventsv1.Entry{Commit: commit(h)})
	}
	return r
}

// land checks and decides as the service does, and applies what comes of it.
func (w *world) land(t *testing.T, id string, land *eventsv1.LandRequest) proto.Message {
	t.Helper()
	before := w.dump()
	m := w.decide(id, land)
	if w.dump() != before {
		t.Fatal("deciding changed the queue")
	}
	w.apply(m)
	return m
}

func (w *world) decide(id string, land *eventsv1.LandRequest) proto.Message {
	land = proto.CloneOf(land)
	r := Request{ID: id, Land: land, ReceivedUS: 1}
	if problem := Complete(land, limits); problem != nil {
		return Refused(r, problem)
	}
	pinned := Pinned{Held: w.held, Mainline: commit(0), Author: "Ada <a@b>", Title: "Title", Description: "Body"}
	for _, e := range land.Entries {
		pinned.Entries = append(pinned.Entries, &eventsv1.Entry{Ref: e.Ref, Commit: e.Commit})
		pinned.LandingCommits = append(pinned.LandingCommits, &eventsv1.LandingCommit{Head: e.Commit, Base: commit(0)})
	}
	return Decide(w.known, limits, r, pinned)
}

func (w *world) dump() string {
	var b strings.Builder
	for _, c := range w.known.Lineup.Order() {
		fmt.Fprintf(&b, "%s@%d %s;", c.ID(), c.Revision(), c.Admission.RequestId)
	}
	return b.String()
}

func outcome(m proto.Message) string {
	switch f := m.(type) {
	case *eventsv1.ChangeAdmitted:
		return fmt.Sprintf("admitted %s@%d", f.Admission.Change, f.Admission.Revision)
	case *eventsv1.ChangeRevised:
		return fmt.Sprintf("revised %s@%d", f.Admission.Change, f.Admission.Revision)
	case *eventsv1.RequestRefused:
		if f.Code == string(Unchanged) {
			return fmt.Sprintf("unchanged %s@%d", f.Change, f.Revision)
		}
		return f.Code
	}
	return "nothing"
}

func requiring(r *eventsv1.LandRequest, ids ...string) *eventsv1.LandRequest {
	r.Requires = ids
	return r
}

func TestWhatARequestBecomes(t *testing.T) {
	intend := &eventsv1.LandIntended{Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}, Commits: []string{"t"}}
	landed := &eventsv1.ChangeLanded{Change: intend.Change, Commits: intend.Commits}
	rejected := &eventsv1.ChangeRejected{Change: intend.Change}
	for _, c := range []struct {
		name   string
		before []proto.Message
		land   *eventsv1.LandRequest
		want   string
	}{
		{"a new change", nil, request("n", 0, 9), "admitted n@1"},
		{"a new change with the caller's revision", nil, request("n", 7, 9), "admitted n@7"},
		{"the same heads again", nil, request("a", 0, 1), "unchanged a@1"},
		{"the same heads and the same revision again", nil, request("a", 1, 1), "unchanged a@1"},
		{"other heads", nil, request("a", 0, 2), "revised a@2"},
		{"the next revision with the same heads", nil, request("a", 2, 1), "revised a@2"},
		{"a later revision with the heads that have landed", []proto.Message{intend, landed}, request("a", 9, 1), "unchanged a@1"},
		{"a later revision with other heads than landed", []proto.Message{intend, landed}, request("a", 9, 2), "revised a@9"},
		{"a later revision with the heads that were rejected", []proto.Message{rejected}, request("a", 9, 1), "revised a@9"},
		{"a taken revision with other heads", nil, request("a", 1, 2), "revision_taken"},
		{"a revision that was overtaken", []proto.Message{revision("a", 5, 3)}, request("a", 2, 2), "unchanged a@2"},
		{"heads of the landed revision", []proto.Message{intend, landed}, request("a", 0, 1), "unchanged a@1"},
		{"new heads under the id of a landed change", []proto.Message{intend, landed}, request("a", 0, 2), "revised a@2"},
		{"heads of the rejected revision", []proto.Message{rejected}, request("a", 0, 1), "unchanged a@1"},
		{"the rejected revision once more", []proto.Message{rejected}, request("a", 2, 1), "revised a@2"},
		{"a new revision while it is being landed", []proto.Message{intend}, request("a", 0, 2), "too_late"},
		{"the same revision while it is being landed", []proto.Message{intend}, request("a", 0, 1), "unchanged a@1"},
		{"a requirement that is pending", nil, requiring(request("n", 0, 9), "a"), "admitted n@1"},
		{"a requirement that has landed", []proto.Message{intend, landed}, requiring(request("n", 0, 9), "a"), "admitted n@1"},
		{"a requirement that was rejected", []proto.Message{rejected}, requiring(request("n", 0, 9), "a"), "unknown_requirement"},
		{"a requirement that nobody knows", nil, requiring(request("n", 0, 9), "ghost"), "unknown_requirement"},
		{"a requirement that requires it", nil, requiring(request("a", 0, 2), "b"), "cyclic_requirement"},
		{"itself as requirement", nil, requiring(request("n", 0, 9), "n"), "cyclic_requirement"},
		{"too many requirements", nil, requiring(request("n", 0, 9), "a", "b", "ghost"), "bad_request"},
		{"one change too many", []proto.Message{revision("c", 1, 5), revision("d", 1, 6), revision("e", 1, 7)}, request("n", 0, 9), "queue_full"},
		{"a new revision in a full queue", []proto.Message{revision("c", 1, 5), revision("d", 1, 6), revision("e", 1, 7)}, request("a", 0, 2), "revised a@2"},
		{"a stack", nil, request("n", 0, 7, 8, 9), "admitted n@1"},
		{"too high a stack", nil, request("n", 0, 6, 7, 8, 9), "bad_request"},
		{"no entries", nil, request("n", 0), "bad_request"},
	} {
		w := newWorld()
		w.land(t, "r1", request("a", 0, 1))
		w.land(t, "r2", requiring(request("b", 0, 4), "a"))
		for _, m := range c.before {
			if consequence := w.apply(m); !consequence.Applied {
				t.Fatalf("%s: %s", c.name, consequence.Why)
			}
		}
		m := w.decide("r3", c.land)
		if got := outcome(m); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if refused, is := m.(*eventsv1.RequestRefused); is && !strings.HasSuffix(refused.Message, ".") {
			t.Errorf("%s: %q is no sentence", c.name, refused.Message)
		}
	}
}

func revision(change string, n uint64, head int) *eventsv1.ChangeRevised {
	return &eventsv1.ChangeRevised{Admission: &eventsv1.Admission{
		Queue: "q", Change: change, Revision: n, RequestId: fmt.Sprint(change, n), Entries: []*eventsv1.Entry{{Commit: commit(head)}},
		LandingCommits: []*eventsv1.LandingCommit{{Head: commit(head)}},
	}}
}

func TestWhatIsMalformedIsRefusedBeforeGitIsAsked(t *testing.T) {
	for name, spoil := range map[string]func(*eventsv1.LandRequest){
		"control character": func(r *eventsv1.LandRequest) { r.Change = "a\x07" },
		"option":            func(r *eventsv1.LandRequest) { r.Change = "-a" },
		"right-to-left":     func(r *eventsv1.LandRequest) { r.Change = "a\u202eb" },
		"no UTF-8":          func(r *eventsv1.LandRequest) { r.Change = "a\xff" },
		"spaces around":     func(r *eventsv1.LandRequest) { r.Change = " a" },
		"dot dot":           func(r *eventsv1.LandRequest) { r.Change = ".." },
		"long id":           func(r *eventsv1.LandRequest) { r.Change = strings.Repeat("x", MaxIDBytes+1) },
		"null entry":        func(r *eventsv1.LandRequest) { r.Entries[0] = nil },
		"empty entry":       func(r *eventsv1.LandRequest) { r.Entries[0] = &eventsv1.Entry{} },
		"short commit":      func(r *eventsv1.LandRequest) { r.Entries[0].Commit = "abc" },
		"ref as option":     func(r *eventsv1.LandRequest) { r.Entries[0].Ref = "--all" },
		"ref with a space":  func(r *eventsv1.LandRequest) { r.Entries[0].Ref = "a b" },
		"long title":        func(r *eventsv1.LandRequest) { r.Title = strings.Repeat("x", 1001) },
		"long description":  func(r *eventsv1.LandRequest) { r.Description = strings.Repeat("x", 64<<10+1) },
		"author":            func(r *eventsv1.LandRequest) { r.Author = "Ada\n" },
		"label":             func(r *eventsv1.LandRequest) { r.Labels = map[string]string{"a": "\x00"} },
		"NaN":               func(r *eventsv1.LandRequest) { r.Benefit = math.NaN() },
		"negative benefit":  func(r *eventsv1.LandRequest) { r.Benefit = -1 },
		"huge revision":     func(r *eventsv1.LandRequest) { r.Revision = 1 << 60 },
		"requirement":       func(r *eventsv1.LandRequest) { r.Requires = []string{"\x1b"} },
	} {
		r := request("a", 0, 1)
		spoil(r)
		if problem := Complete(r, limits); problem == nil || problem.Code != BadRequest {
			t.Errorf("%s: %v", name, problem)
		}
	}
}

func TestTheDefaultIDIsTheFirstRefsShortNameOrTheCommit(t *testing.T) {
	for _, c := range []struct{ ref, want string }{
		{"feature/x", "feature/x"}, {"refs/heads/feature/x", "feature/x"}, {"refs/pull/7/head", "pull/7/head"},
		{"refs/tags/v1", "v1"}, {"x-2Fy", "x-2Fy"}, {"x%2Fy", "x-2Fy~"}, {"-x-", "x~"}, {"ü ber", "ü-ber~"}, {"a\"b", "a-b~"},
		{strings.Repeat("x", 250), strings.Repeat("x", 191) + "~"}, {"...", commit(1)[:12]}, {"", commit(1)[:12]},
	} {
		got := DefaultID([]*eventsv1.Entry{{Ref: c.ref, Commit: commit(1)}})
		if strings.HasSuffix(c.want, "~") { // and a digest
			got = got[:max(0, len(got)-8)]
		}
		if got != c.want {
			t.Errorf("%q gives %q, want %q", c.ref, got, c.want)
		}
	}
}

func FuzzDefaultIDIsAlwaysValid(f *testing.F) {
	f.Add("refs/heads/x", "0123456789abcdef0123456789abcdef01234567")
	f.Add(strings.Repeat("ü", 300), "")
	f.Fuzz(func(t *testing.T, ref, id string) {
		r := &eventsv1.LandRequest{Entries: []*eventsv1.Entry{{Ref: ref, Commit: id}}}
		if Complete(r, limits) == nil && !ValidID(r.Change) {
			t.Errorf("%q and %q give %q", ref, id, r.Change)
		}
	})
}

// TestWhatAForcePushDroppedMayLandAgain, and the very revision that landed is still not taken twice.
func TestWhatAForcePushDroppedMayLandAgain(t *testing.T) {
	w := newWorld()
	w.land(t, "r1", request("a", 0, 1))
	ref := &eventsv1.ChangeRef{Change: "a", Revision: 1}
	w.apply(&eventsv1.LandIntended{Change: ref, Commits: []string{commit(9)}})
	w.apply(&eventsv1.ChangeLanded{Change: ref, Commits: []string{commit(9)}})
	dropped := false
	w.known.Dropped = func(change string) bool { return dropped && change == "a" }
	if m, is := w.land(t, "r2", request("a", 0, 1)).(*eventsv1.RequestRefused); !is || m.Code != string(Unchanged) {
		t.Fatalf("while the mainline has it: %v", m)
	}
	dropped = true
	if m, is := w.land(t, "r3", request("a", 1, 1)).(*eventsv1.RequestRefused); !is || m.Code != string(Unchanged) || !strings.Contains(m.Message, "dropped") {
		t.Fatalf("at the same revision: %v", m)
	}
	if m, is := w.land(t, "r4", request("a", 0, 1)).(*eventsv1.ChangeRevised); !is || m.Admission.Revision != 2 {
		t.Fatalf("once it is dropped: %v", m)
	}
}

// TestRedeliveryAndReorderingOfDuplicatesChangeNothing: requests come more than once, late, and under new ids of their own. What
// names its revision has its effect once, and a request decided on its own effect admits nothing.
func TestRedeliveryAndReorderingOfDuplicatesChangeNothing(t *testing.T) {
	random := seedtest.Random(t)
	admitted, unchanged := 0, 0
	for range 2000 {
		w := newWorld()
		var delivered []*eventsv1.LandRequest
		for step := range 30 {
			id := string(rune('a' + random.IntN(4)))
			switch random.IntN(10) {
			case 0:
				w.apply(&eventsv1.ChangeCancelled{Change: id})
			case 1:
				w.apply(&eventsv1.ChangeRejected{Change: &eventsv1.ChangeRef{Change: id, Revision: w.known.Lineup.Known(id)}})
			case 2, 3:
				if len(delivered) == 0 {
					continue
				}
				again := delivered[random.IntN(len(delivered))]
				before := w.dump()
				m := w.decide(fmt.Sprint("again", step), again)
				if refused, is := m.(*eventsv1.RequestRefused); !is || w.dump() != before {
					t.Fatalf("step %d: delivered again, %v became %s", step, again, outcome(m))
				} else if refused.Code == string(Unchanged) {
					unchanged++
				}
			default:
				r := request(id, w.known.Lineup.Known(id)+uint64(random.IntN(2)), random.IntN(3))
				if r.Revision == 0 {
					r.Revision = 1
				}
				if other := string(rune('a' + random.IntN(4))); random.IntN(3) == 0 {
					r.Requires = []string{other}
				}
				m := w.land(t, fmt.Sprint("request", step), r)
				if _, refused := m.(*eventsv1.RequestRefused); !refused {
					admitted++
					delivered = append(delivered, r)
				}
				r.Revision = 0
				if next := w.decide(fmt.Sprint("next", step), r); !refusedOrOther(m, next) {
					t.Fatalf("step %d: right after %s the same gives %s", step, outcome(m), outcome(next))
				}
				r.Revision = w.known.Lineup.Known(id)
			}
			if slices.ContainsFunc(w.known.Lineup.Order(), func(c *lineup.Change) bool { return len(c.Admission.Requires) > limits.Requires }) {
				t.Fatal("a limit was passed")
			}
		}
	}
	if admitted == 0 || unchanged == 0 {
		t.Errorf("the histories tried nothing: %d admitted, %d unchanged", admitted, unchanged)
	}
}

// refusedOrOther: after an admission the same heads are unchanged; after a refusal anything may be.
func refusedOrOther(first, next proto.Message) bool {
	if _, refused := first.(*eventsv1.RequestRefused); refused {
		return true
	}
	refused, is := next.(*eventsv1.RequestRefused)
	return is && refused.Code == string(Unchanged)
}

// TestWhatTheMainlineHoldsIsRefusedUnlessSomethingMayTakeItBackFirst.
func TestWhatTheMainlineHoldsIsRefusedUnlessSomethingMayTakeItBackFirst(t *testing.T) {
	w := newWorld()
	w.land(t, "1", request("revert", 0, 1))
	decide := func(land *eventsv1.LandRequest) proto.Message {
		return Decide(w.known, limits, Request{ID: "2", Land: land, ReceivedUS: 1}, Pinned{
			Held: true, Mainline: commit(0), Entries: land.Entries, LandingCommits: []*eventsv1.LandingCommit{{Head: commit(2), Base: commit(0)}},
		})
	}
	refusal, is := decide(request("again", 0, 2)).(*eventsv1.RequestRefused)
	if !is || refusal.Code != string(AlreadyIn) || !strings.Contains(refusal.Message, `"again"`) {
		t.Errorf("%v", refusal)
	}
	after := request("again", 0, 2)
	after.Requires = []string{"revert"}
	if m, is := decide(after).(*eventsv1.ChangeAdmitted); !is {
		t.Errorf("behind a change that has still to land: %v", m)
	}
	// What was admitted once is still answered as before.
	w.land(t, "3", request("landed", 0, 2))
	if m, is := decide(request("landed", 0, 2)).(*eventsv1.RequestRefused); !is || m.Code != string(Unchanged) {
		t.Errorf("asked for again: %v", m)
	}
}

func TestAChangeBeginsWhereOneThatItRequiresEnds(t *testing.T) {
	squashed := []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(0)}}
	rebased := []*eventsv1.LandingCommit{{Head: commit(2), Base: commit(0)}, {Head: commit(3), Base: commit(2)}, {Head: commit(9), Base: commit(3)}}
	below := []string{commit(3), commit(2), commit(1)}
	for _, test := range []struct {
		name     string
		requires []string
		commits  []*eventsv1.LandingCommit
		below    []string
		want     []*eventsv1.LandingCommit
	}{
		{"nothing is required", nil, squashed, below, squashed},
		{"it stands on no other", []string{"one"}, squashed, nil, squashed},
		{"it stands on others", []string{"stack"}, squashed, below[2:], squashed},
		{"on a pending one", []string{"one"}, squashed, below, []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(2)}}},
		{"on the last entry of a stack", []string{"stack"}, squashed, below, []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(3)}}},
		{"on the nearest of two", []string{"one", "stack"}, squashed, below, []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(3)}}},
		{"on what the required one requires", []string{"on"}, squashed, below, []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(2)}}},
		{"on one that has landed", []string{"landed"}, squashed, below, []*eventsv1.LandingCommit{{Head: commit(9), Base: commit(1)}}},
		{"commit by commit", []string{"one"}, rebased, below, rebased[1:]},
	} {
		w := newWorld()
		w.land(t, "0", request("landed", 0, 1))
		w.apply(&eventsv1.ChangeLanded{Change: &eventsv1.ChangeRef{Change: "landed", Revision: 1}})
		w.land(t, "1", request("one", 0, 2))
		w.land(t, "2", request("stack", 0, 7, 3))
		w.land(t, "3", requiring(request("on", 0, 8), "one"))
		land := requiring(request("new", 0, 9), test.requires...)
		got, is := Decide(w.known, limits, Request{ID: "4", Land: land, ReceivedUS: 1}, Pinned{
			Mainline: commit(0), Entries: land.Entries, LandingCommits: test.commits, Below: test.below,
		}).(*eventsv1.ChangeAdmitted)
		if !is || !slices.EqualFunc(got.Admission.LandingCommits, test.want, func(a, b *eventsv1.LandingCommit) bool { return proto.Equal(a, b) }) {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	if squashed[0].Base != commit(0) {
		t.Error("what was pinned was changed")
	}
}
