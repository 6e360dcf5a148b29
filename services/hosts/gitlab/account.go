package gitlab

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/time/rate"

	"landfall.build/services/hosts"
)

// Bounds of what is asked for.
const (
	pageSize = 100
	maxPages = 500
	// perSecond is how many requests there are a second, atOnce how many at once. gitlab.com takes 2,000 a minute.
	perSecond = 20
	atOnce    = 200
	// limitPause is how long GitLab is left alone after it refused for a limit without saying for how long, and maxPause the longest.
	limitPause = time.Minute
	maxPause   = time.Hour
)

// Server is a GitLab, and the account that answers there. GitLab's limits are those of an account.
type Server struct {
	client *gitlab.Client
	url    string
	pace   hosts.Pace

	mu   sync.Mutex
	self hosts.User
	// scarce is until when little is left of a limit.
	scarce time.Time
}

// NewServer returns a server at an address, as in https://gitlab.com; token reads the account's token.
func NewServer(url string, token func(context.Context) ([]byte, error)) (*Server, error) {
	secret := &hosts.Secret{Read: token}
	client, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{},
		gitlab.WithURLWarningLogger(slog.New(slog.DiscardHandler)), // before the URL that it is about
		gitlab.WithBaseURL(url), gitlab.WithUserAgent("landfall"),
		gitlab.WithHTTPClient(hosts.NewClient(func(ctx context.Context) (string, error) { return secret.Header(ctx, "Bearer") })),
		// Who is refused waits in the service, where what matters most goes first, and not here.
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(rate.NewLimiter(rate.Inf, 1)))
	if err != nil {
		return nil, err
	}
	return &Server{client: client, url: url, pace: hosts.Pace{Host: "GitLab", Limiter: rate.NewLimiter(perSecond, atOnce)}}, nil
}

// ask asks for something, or changes it.
func ask[T any](ctx context.Context, s *Server, question func(gitlab.RequestOptionFunc) (T, *gitlab.Response, error)) (result T, err error) {
	err = s.pace.Ask(ctx, 1, func() error {
		var response *gitlab.Response
		var err error
		result, response, err = question(gitlab.WithContext(ctx))
		if response == nil {
			return failure(nil, err)
		}
		s.note(response.Header)
		return failure(response.Header, err)
	})
	return result, err
}

// pages asks for a list page by page, until take returns false or there is no more. A page may be shorter than others: GitLab leaves out what
// the account may not see.
func pages[T any](ctx context.Context, s *Server, list func(gitlab.ListOptions, gitlab.RequestOptionFunc) ([]T, *gitlab.Response, error), take func([]T) bool) error {
	for page, n := int64(1), 0; page > 0 && n < maxPages; n++ {
		var next int64
		all, err := ask(ctx, s, func(option gitlab.RequestOptionFunc) ([]T, *gitlab.Response, error) {
			all, response, err := list(gitlab.ListOptions{Page: page, PerPage: pageSize}, option)
			if response != nil {
				next = response.NextPage
			}
			return all, response, err
		})
		if err != nil {
			return err
		}
		if !take(all) {
			return nil
		}
		page = next
	}
	return nil
}

// who returns the account.
func (s *Server) who(ctx context.Context) (hosts.User, error) {
	s.mu.Lock()
	self := s.self
	s.mu.Unlock()
	if self.ID != 0 {
		return self, nil
	}
	u, err := ask(ctx, s, func(option gitlab.RequestOptionFunc) (*gitlab.User, *gitlab.Response, error) {
		return s.client.Users.CurrentUser(option)
	})
	if err != nil {
		return self, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.self = hosts.User{ID: u.ID, Login: u.Username, Name: u.Name}
	return s.self, nil
}

// note takes what an answer says of the limits: where nothing is left GitLab is not asked, and where a tenth is left it is told nothing that
// can wait.
func (s *Server) note(header http.Header) {
	limit, err := strconv.ParseInt(header.Get("RateLimit-Limit"), 10, 64)
	remaining, other := strconv.ParseInt(header.Get("RateLimit-Remaining"), 10, 64)
	until := reset(header)
	if err != nil || other != nil || until.IsZero() || remaining*10 >= limit {
		return
	}
	if remaining <= 0 {
		s.pace.Rest(until)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scarce = until
}

// spare returns until when nothing is to be told that can wait; the zero time for no longer.
func (s *Server) spare() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.scarce) {
		return s.scarce
	}
	return time.Time{}
}

// reset returns when a limit begins anew; the zero time if an answer does not say.
func reset(header http.Header) time.Time {
	if seconds, err := strconv.ParseInt(header.Get("RateLimit-Reset"), 10, 64); err == nil && seconds > 0 {
		return soonest(time.Unix(seconds, 0))
	}
	return time.Time{}
}

// soonest bounds a time to come.
func soonest(at time.Time) time.Time {
	if last := time.Now().Add(maxPause); at.After(last) {
		return last
	}
	return at
}

// failure returns the error of an answer in our words.
func failure(header http.Header, err error) error {
	var answer *gitlab.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	switch {
	case answer.StatusCode == http.StatusTooManyRequests:
		until := reset(header)
		if seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 32); err == nil && seconds >= 0 {
			until = soonest(time.Now().Add(time.Duration(seconds) * time.Second))
		}
		if !until.After(time.Now()) {
			until = time.Now().Add(limitPause)
		}
		return &hosts.Later{Until: until, Why: "GitLab's limit of requests is reached"}
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return answered(answer.StatusCode, "it is elsewhere now: the server has another address (https?), or the project another path")
	}
	return answered(answer.StatusCode, hosts.Clip(answer.Message, 300))
}

func answered(status int, message string) error {
	return &hosts.Failure{Host: "GitLab", Status: status, Message: message}
}
