package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
)

func TestTheThreatModelHasEveryDoor(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), Markdown()) {
		t.Errorf("docs/guides/security.md has another table of doors than:\n%s", Markdown())
	}
	for _, d := range Doors() {
		if !strings.Contains(Markdown(), "`"+d.Name+"`") {
			t.Errorf("the table has no %s", d.Name)
		}
	}
	var without []Verb
	for _, n := range needs {
		if !slices.ContainsFunc(Doors(), func(d Door) bool { return d.Verb == n.verb }) {
			without = append(without, n.verb)
		}
	}
	// It is asked for besides landing.
	if !slices.Equal(without, []Verb{Urgent}) {
		t.Errorf("no door asks for %v", without)
	}
}

// TestWhatIsPresentedIsComparedOnceInConstantTime: an unknown id takes as long as a wrong secret, and no part of a secret is compared by
// itself.
func TestWhatIsPresentedIsComparedOnceInConstantTime(t *testing.T) {
	if reflect.ValueOf(compare).Pointer() != reflect.ValueOf(subtle.ConstantTimeCompare).Pointer() {
		t.Error("secrets are compared by something else than crypto/subtle")
	}
	var tokens Tokens
	make := func(expires time.Time) (id, text string) {
		id, hash, text := NewToken()
		m, err := Created(id, hash, "bot", Grant{Role: Viewer, Queues: []string{"shop"}}, expires, time.Unix(1, 0), nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens.Apply(m)
		return id, text
	}
	_, good := make(time.Time{})
	_, expired := make(time.Unix(2, 0))
	id, revoked := make(time.Time{})
	tokens.Apply(&eventsv1.TokenRevoked{Token: id, StampUs: 1})
	_, _, unknown := NewToken()
	var lengths []int
	compare = func(a, b []byte) int {
		lengths = append(lengths, len(a), len(b))
		return subtle.ConstantTimeCompare(a, b)
	}
	defer func() { compare = subtle.ConstantTimeCompare }()
	for name, presented := range map[string]string{
		"good": good, "the last letter is another": good[:len(good)-1] + "_", "another secret": good[:len(TokenPrefix)+idBytes+1] + unknown[len(TokenPrefix)+idBytes+1:],
		"an unknown id": unknown, "expired": expired, "revoked": revoked,
	} {
		lengths = nil
		if _, err := tokens.Check(presented, time.Unix(3, 0)); (err == nil) != (name == "good") {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(lengths, []int{sha256.Size, sha256.Size}) {
			t.Errorf("%s: compared are %v bytes, want one digest with one", name, lengths)
		}
	}
}
