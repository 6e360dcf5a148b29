package gitrepo

import (
	"errors"
	"maps"
	"testing"
)

// TestRefsAreSetTogetherOrNotAtAll: from where they are, or not there.
func TestRefsAreSetTogetherOrNotAtAll(t *testing.T) {
	f := newFixture(t)
	first, second := f.commit("one"), f.commit("two")
	f.publish("main")
	r := f.repo
	if err := r.Fetch(t.Context(), Wanted{Branches: []string{"main"}}); err != nil {
		t.Fatal(err)
	}
	at := func(want map[string]string) {
		t.Helper()
		if got, err := r.Refs(t.Context(), "refs/own"); err != nil || !maps.Equal(got, want) {
			t.Fatalf("refs are %v, %v; want %v", got, err, want)
		}
	}
	set := func(updates ...RefUpdate) error { return r.SetRefs(t.Context(), updates...) }
	if err := set(RefUpdate{Ref: "refs/own/a", New: first}, RefUpdate{Ref: "refs/own/b/c", New: second}); err != nil {
		t.Fatal(err)
	}
	at(map[string]string{"refs/own/a": first, "refs/own/b/c": second})
	for _, updates := range [][]RefUpdate{
		{{Ref: "refs/own/d", New: first}, {Ref: "refs/own/a", Old: second, New: first}},
		{{Ref: "refs/own/d", New: first}, {Ref: "refs/own/a", New: second}},
		{{Ref: "refs/own/b/c", Old: first}},
		{{Ref: "refs/own/d", Old: first, New: second}},
	} {
		if err := set(updates...); !errors.Is(err, ErrMoved) {
			t.Errorf("%+v: %v", updates, err)
		}
	}
	for _, u := range []RefUpdate{{Ref: "own", New: first}, {Ref: "refs/own/e\ndelete refs/own/a", New: first}, {Ref: "refs/own/e", New: "main"}, {Ref: "refs/own/e", Old: first[:8], New: first}} {
		if err := set(u); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	at(map[string]string{"refs/own/a": first, "refs/own/b/c": second})
	if err := set(RefUpdate{Ref: "refs/own/a", Old: first, New: second}, RefUpdate{Ref: "refs/own/b/c", Old: second}); err != nil {
		t.Fatal(err)
	}
	at(map[string]string{"refs/own/a": second})
	if got, err := r.Refs(t.Context(), "refs/own/a"); err != nil || !maps.Equal(got, map[string]string{"refs/own/a": second}) {
		t.Errorf("the ref of that name is %v, %v", got, err)
	}
}
