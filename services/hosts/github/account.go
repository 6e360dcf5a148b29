package github

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-github/v93/github"
	"golang.org/x/time/rate"

	"landfall.build/services/hosts"
)

// Bounds of what is asked for.
const (
	pageSize = 100
	maxPages = 200
	// renewal is how long before its end a token of an installation is replaced.
	renewal = 5 * time.Minute
	// keyFor is how long an App's proof of who it is holds; GitHub allows ten minutes.
	keyFor = 9 * time.Minute
)

// Server is a GitHub and who answers there: an App, or the account of a token.
type Server struct {
	// URL is its address, https://github.com or that of a GitHub Enterprise Server.
	URL string
	// App is the App's client id or id; "" if an account answers.
	App string
	// Secret reads the App's private key, or the account's token.
	Secret func(ctx context.Context) ([]byte, error)

	mu       sync.Mutex
	accounts map[string]*account
	secret   *hosts.Secret
}

// account is who answers in the repositories of an owner. GitHub's limits are those of an account.
type account struct {
	server *Server
	// client asks as the account, app as the App itself; app is nil without one.
	client, app *github.Client
	budget      budget
	// pace keeps requests below 900 points a minute: reading is one, writing five.
	pace hosts.Pace

	mu sync.Mutex
	// token is the installation's.
	token        string
	ends         time.Time
	installation *github.Installation
	login        string
	appID        int64
}

// account returns who answers in a repository: each owner has an installation of the App, and all have one account.
func (s *Server) account(owner, name string) (*account, error) {
	key := ""
	if s.App != "" {
		key = strings.ToLower(owner)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.accounts[key]; a != nil {
		return a, nil
	}
	if s.secret == nil {
		s.secret = &hosts.Secret{Read: s.Secret}
	}
	a := &account{server: s, pace: hosts.Pace{Host: "GitHub", Limiter: rate.NewLimiter(10, 300)}}
	var err error
	if a.client, err = s.newClient(func(ctx context.Context) (string, error) { return a.currentToken(ctx, owner, name) }); err != nil {
		return nil, err
	}
	if s.App != "" {
		if a.app, err = s.newClient(s.proof); err != nil {
			return nil, err
		}
	}
	if s.accounts == nil {
		s.accounts = map[string]*account{}
	}
	s.accounts[key] = a
	return a, nil
}

// newClient returns a client that shows a token with each request.
func (s *Server) newClient(token func(context.Context) (string, error)) (*github.Client, error) {
	options := []github.ClientOptionsFunc{
		github.WithUserAgent("landfall"),
		github.WithHTTPClient(hosts.NewClient(func(ctx context.Context) (string, error) {
			text, err := token(ctx)
			return "Bearer " + text, err
		})),
	}
	if !s.isPublic() {
		options = append(options, github.WithEnterpriseURLs(s.URL, s.URL))
	}
	return github.NewClient(options...)
}

// isPublic reports whether the server is github.com.
func (s *Server) isPublic() bool {
	return strings.EqualFold(strings.TrimSuffix(s.URL, "/"), "https://github.com")
}

// graph is the address of the GraphQL API, which on a server of one's own is not below that of the REST API.
func (s *Server) graph() string {
	if s.isPublic() {
		return "graphql"
	}
	return strings.TrimSuffix(s.URL, "/") + "/api/graphql"
}

// proof returns what proves to GitHub who the App is.
func (s *Server) proof(ctx context.Context) (string, error) {
	secret, err := s.secret.Current(ctx)
	if err != nil {
		return "", err
	}
	key, err := parseKey(secret)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(jwt.Claims{
		// Clocks may differ.
		Issuer: s.App, IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), Expiry: jwt.NewNumericDate(now.Add(keyFor - time.Minute)),
	}).Serialize()
}

// parseKey reads a private key of an App, as GitHub gives it out.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errKey
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	other, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, is := other.(*rsa.PrivateKey); err == nil && is {
		return key, nil
	}
	return nil, errKey
}

var errKey = errors.New("the token of an App is its private key, a PEM file, and this is none")

// currentToken returns the token of the account, or of the App's installation in a repository.
func (a *account) currentToken(ctx context.Context, owner, name string) (string, error) {
	if a.app == nil {
		secret, err := a.server.secret.Current(ctx)
		return strings.TrimSpace(string(secret)), err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token != "" && time.Until(a.ends) > renewal {
		return a.token, nil
	}
	installation, _, err := a.app.Apps.GetRepositoryInstallation(ctx, owner, name)
	if err != nil {
		return "", ofApp(owner, name, err)
	}
	token, _, err := a.app.Apps.CreateInstallationToken(ctx, installation.GetID(), nil)
	if err != nil {
		return "", ofApp(owner, name, err)
	}
	a.installation, a.token, a.ends = installation, token.GetToken(), token.GetExpiresAt().Time
	return a.token, nil
}

// ofApp returns the error of a question for the App's token. Its status must not be taken for that of what the token was for.
func ofApp(owner, name string, err error) error {
	err = failure(err)
	if later := (*hosts.Later)(nil); errors.As(err, &later) {
		return later
	}
	return fmt.Errorf("the App has no installation at %s/%s that gives it a token: %v", owner, name, err)
}

// who returns the login of the account, and the App's id or 0.
func (a *account) who(ctx context.Context) (login string, app int64, err error) {
	a.mu.Lock()
	login, app = a.login, a.appID
	a.mu.Unlock()
	if login != "" {
		return login, app, nil
	}
	if a.app != nil {
		self, err := ask(ctx, a, func() (*github.App, *github.Response, error) { return a.app.Apps.Get(ctx, "") })
		if err != nil {
			return "", 0, err
		}
		login, app = self.GetSlug()+"[bot]", self.GetID()
	} else {
		self, err := ask(ctx, a, func() (*github.User, *github.Response, error) { return a.client.Users.Get(ctx, "") })
		if err != nil {
			return "", 0, err
		}
		login = self.GetLogin()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login, a.appID = login, app
	return login, app, nil
}

// ask asks for something.
func ask[T any](ctx context.Context, a *account, question func() (T, *github.Response, error)) (T, error) {
	return call(ctx, a, 1, question)
}

// write changes something. Its weight says what may wait for others.
func write[T any](ctx context.Context, a *account, w weight, change func() (T, *github.Response, error)) (none T, err error) {
	if until := a.budget.take(w, time.Now()); !until.IsZero() {
		return none, &hosts.Later{Until: until, Why: "GitHub takes no more comments and statuses at present"}
	}
	return call(ctx, a, 5, change)
}

func call[T any](ctx context.Context, a *account, points int, f func() (T, *github.Response, error)) (result T, err error) {
	err = a.pace.Ask(ctx, points, func() (err error) {
		result, _, err = f()
		return failure(err)
	})
	return result, err
}

// secondaryPause is the least time that GitHub wants to be left alone after it refused for a limit without saying for how long.
const secondaryPause = time.Minute

// failure returns the error of an answer in our words.
func failure(err error) error {
	var limited *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var answer *github.ErrorResponse
	var moved *github.RedirectionError
	var later *hosts.Later
	switch {
	case errors.As(err, &later):
		return later
	case errors.As(err, &limited):
		return &hosts.Later{Until: limited.Rate.Reset.Time, Why: "GitHub's limit of requests is reached"}
	case errors.As(err, &secondary):
		after := secondaryPause
		if secondary.RetryAfter != nil {
			after = *secondary.RetryAfter
		}
		return &hosts.Later{Until: time.Now().Add(after), Why: "GitHub limits requests: " + hosts.Clip(secondary.Message, 200)}
	case errors.As(err, &moved):
		return answered(moved.StatusCode, "the repository has another name now")
	case errors.As(err, &answer):
		if answer.Response.StatusCode == http.StatusTooManyRequests {
			return &hosts.Later{Until: time.Now().Add(secondaryPause), Why: "GitHub limits requests"}
		}
		return answered(answer.Response.StatusCode, hosts.Clip(answer.Message+detail(answer), 300))
	}
	return err
}

func answered(status int, message string) error {
	return &hosts.Failure{Host: "GitHub", Status: status, Message: message}
}

// detail returns what an error of validation adds to its message.
func detail(answer *github.ErrorResponse) string {
	var b strings.Builder
	for _, e := range answer.Errors {
		fmt.Fprintf(&b, "; %s %s %s %s", e.Resource, e.Field, e.Code, e.Message)
	}
	return b.String()
}
