package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"landfall.build/engine/targets"
)

// Bounds of requests to a host and of its answers.
const (
	askTimeout = 20 * time.Second
	maxAnswer  = 16 << 20
	// secretFor is how long a secret is used that was read.
	secretFor = time.Minute
)

// LandedLabel is put on what landed in other commits than those of the pull request, where the host cannot be told that it is merged.
const LandedLabel = "landed"

// Failure is the answer of a host to a request that failed.
type Failure struct {
	// Host is the kind of host, for people.
	Host    string
	Status  int
	Message string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s answers %d: %s", f.Host, f.Status, f.Message)
}

// IsStatus reports whether an error is a host's answer with a status.
func IsStatus(err error, status int) bool {
	var f *Failure
	return errors.As(err, &f) && f.Status == status
}

// Clip returns the beginning of a text of others, at most so many bytes, as one line.
func Clip(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// Secret is a token or a key of the configuration, which may be changed where it is kept.
type Secret struct {
	// Read reads it.
	Read func(ctx context.Context) ([]byte, error)

	mu   sync.Mutex
	text []byte
	read time.Time
}

// Current returns it, as it was at most a minute ago.
func (s *Secret) Current(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != nil && time.Since(s.read) < secretFor {
		return s.text, nil
	}
	text, err := s.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("the host's token cannot be read: %w", err)
	}
	s.text, s.read = text, time.Now()
	return text, nil
}

// Header returns it behind a scheme, as a value of the header Authorization.
func (s *Secret) Header(ctx context.Context, scheme string) (string, error) {
	text, err := s.Current(ctx)
	return scheme + " " + strings.TrimSpace(string(text)), err
}

// NewClient returns a client that sends a value of Authorization with each request. It bounds answers, and follows no redirect, which would
// take the token elsewhere.
func NewClient(authorization func(context.Context) (string, error)) *http.Client {
	return &http.Client{
		Timeout: askTimeout, Transport: transport{authorization},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type transport struct {
	authorization func(context.Context) (string, error)
}

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	value, err := t.authorization(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", value)
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// Pace keeps questions below a rate, and asks nothing before the time that a host has said.
type Pace struct {
	// Host is the kind of host, for people.
	Host    string
	Limiter *rate.Limiter

	mu    sync.Mutex
	quiet time.Time
}

// Rest has nothing asked before a time.
func (p *Pace) Rest(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.quiet) {
		p.quiet = until
	}
}

// Ask asks once the rate has room for so many points. An error that is Later holds for all that is asked.
func (p *Pace) Ask(ctx context.Context, points int, question func() error) error {
	p.mu.Lock()
	quiet := p.quiet
	p.mu.Unlock()
	if time.Now().Before(quiet) {
		return &Later{Until: quiet, Why: p.Host + " wants not to be asked at present"}
	}
	if err := p.Limiter.WaitN(ctx, points); err != nil {
		return err
	}
	err := question()
	var later *Later
	switch {
	case errors.As(err, &later):
		p.Rest(later.Until)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%s's answer ends early: %w", p.Host, err)
	}
	return err
}

// SetPermissions sets the permission of each event, with one question for each user.
func SetPermissions(events []Event, of func(User) (Permission, error)) error {
	known := map[int64]Permission{}
	for i, e := range events {
		if _, is := known[e.By.ID]; !is {
			permission, err := of(e.By)
			if err != nil {
				return err
			}
			known[e.By.ID] = permission
		}
		events[i].Permission = known[e.By.ID]
	}
	return nil
}

// What keeps a pull request from being ready.

// MissingReadiness says that it is a draft.
const MissingReadiness = "it is a draft"

// MissingApprovals says that some of the approvals are lacking that are asked for.
func MissingApprovals(lacking, asked int64) string {
	return fmt.Sprintf("%d of %d approvals", lacking, asked)
}

// MissingCheck says that a check has not passed; its state is "" if it has not run.
func MissingCheck(name, state string) string {
	if state == "" {
		return fmt.Sprintf("the check %s, which has not run", Clip(name, 100))
	}
	return fmt.Sprintf("the check %s, which is %s", Clip(name, 100), Clip(state, 20))
}

// IsOwnStatus reports whether a status or a check is a queue's.
func IsOwnStatus(name string) bool { return strings.HasPrefix(name, "Landfall (") }

// Check is a check of a commit.
type Check struct {
	Name, State string
	Passed      bool
}

// MissingChecks says which checks keep one from being met that is required by its name, or by a pattern with *. Nothing is asked of queues'
// own statuses, which others may require.
func MissingChecks(pattern string, checks []Check) (missing []string) {
	if IsOwnStatus(pattern) {
		return nil
	}
	names, found := targets.NewNamePatterns([]string{pattern}), false
	for _, c := range checks {
		if IsOwnStatus(c.Name) || !names.Has(c.Name) {
			continue
		}
		if found = true; !c.Passed {
			missing = append(missing, MissingCheck(c.Name, c.State))
		}
	}
	if !found {
		missing = append(missing, MissingCheck(pattern, ""))
	}
	return missing
}

// LeadsTo reports whether the address of a webhook ends in path.
func LeadsTo(address, path string) bool {
	return strings.HasSuffix(strings.TrimSuffix(address, "/"), path)
}
