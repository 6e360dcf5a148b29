package hosts

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func TestRequiredChecksAreMissingUntilTheyAreGreen(t *testing.T) {
	checks := []Check{{"ci/test", "success", true}, {"ci/lint", "pending", false}, {"Landfall (main)", "failure", false}}
	for pattern, want := range map[string]int{"ci/test": 0, "ci/lint": 1, "ci/*": 1, "build": 1, "Landfall (main)": 0, "Landfall*": 1} {
		if got := MissingChecks(pattern, checks); len(got) != want {
			t.Errorf("%s lacks %q", pattern, got)
		}
	}
}

// TestTheTokenGoesNowhereElse: no redirect is followed.
func TestTheTokenGoesNowhereElse(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		asked++
		if got := in.Header.Get("Authorization"); got != "Bearer t" {
			t.Errorf("the token is %q", got)
		}
		http.Redirect(out, in, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()
	secret := &Secret{Read: func(context.Context) ([]byte, error) { return []byte("t\n"), nil }}
	answer, err := NewClient(func(ctx context.Context) (string, error) { return secret.Header(ctx, "Bearer") }).Get(server.URL)
	if err != nil || answer.StatusCode != http.StatusFound || asked != 1 {
		t.Errorf("it is asked %d times: %v, %v", asked, answer, err)
	}
	answer.Body.Close()
}

// TestAnAnswerHasABound: nothing is read beyond it.
func TestAnAnswerHasABound(t *testing.T) {
	for _, size := range []int64{maxAnswer, maxAnswer + 1} {
		server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(make([]byte, size)) }))
		defer server.Close()
		answer, err := NewClient(func(context.Context) (string, error) { return "Bearer t", nil }).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		var over *http.MaxBytesError
		if read != maxAnswer || errors.As(err, &over) != (size > maxAnswer) {
			t.Errorf("of %d bytes it reads %d: %v", size, read, err)
		}
	}
}

// TestAHostThatWantsToRestIsNotAsked, whatever it is to be asked for.
func TestAHostThatWantsToRestIsNotAsked(t *testing.T) {
	p, asked := &Pace{Host: "GitLab", Limiter: rate.NewLimiter(rate.Inf, 1)}, 0
	until := time.Now().Add(time.Hour)
	for range 3 {
		err := p.Ask(t.Context(), 1, func() error { asked++; return &Later{Until: until, Why: "enough"} })
		if later := (*Later)(nil); !errors.As(err, &later) || !later.Until.Equal(until) {
			t.Errorf("it says %v", err)
		}
	}
	p.Rest(time.Now()) // does not shorten it
	if err := p.Ask(t.Context(), 1, func() error { asked++; return nil }); err == nil || !strings.Contains(err.Error(), "GitLab wants") {
		t.Errorf("it says %v", err)
	}
	if asked != 1 {
		t.Errorf("it is asked %d times", asked)
	}
}
