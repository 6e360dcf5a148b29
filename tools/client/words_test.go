package client

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

func TestAnUnknownRefHasACodeAndAnAdvice(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := pinRefs(t.Context(), dir, []string{"none"})
	failure, is := errors.AsType[*Failure](err)
	if !is || failure.Code != "no_such_ref" || failure.Message != `This clone has no "none".` || failure.Advice == "" {
		t.Errorf("%#v", err)
	}
}

func TestOwnersWithoutFlakesAreNamedInASentence(t *testing.T) {
	for _, c := range []struct {
		owners []string
		want   string
	}{
		{[]string{"me"}, "queue q: no target that belongs to you has contradicted itself\n"},
		{[]string{"@ada", "me"}, "queue q: no target that belongs to @ada or you has contradicted itself\n"},
		{nil, "queue q: no target has contradicted itself\n"},
	} {
		var out strings.Builder
		if err := writeFlakes(&out, api.FlakeList{Queue: "q"}, c.owners); err != nil || out.String() != c.want {
			t.Errorf("of %q: %q, %v", c.owners, out.String(), err)
		}
	}
}

func TestAQuarantineEndsWithTheDayThatWasWritten(t *testing.T) {
	end, err := quarantineEnd(time.Now(), "", "2026-11-30")
	if got := endOf(end); err != nil || got != "through 2026-11-30" {
		t.Errorf("%q, %v", got, err)
	}
	within := end.Add(90 * time.Minute)
	if got := endOf(within); got != minute(within) || view.LastDay(within) != "" {
		t.Errorf("within a day: %q", got)
	}
}
