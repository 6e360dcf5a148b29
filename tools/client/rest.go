// Package client is a developer's and an operator's side of Landfall: a typed client of the gateway's API
// and the commands of the command line that use it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"landfall.build/platform/health"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

const (
	// DefaultServer is where `landfall up` listens.
	DefaultServer  = "http://127.0.0.1:7878"
	maxAnswerBytes = 64 << 20
	userAgent      = "landfall"
	requestTimeout = 40 * time.Second
	// readyPatience is how long a gateway is waited for that has not read enough of the log.
	readyPatience = 15 * time.Second
)

// ErrUnreachable is wrapped by every error of a gateway that did not answer.
var ErrUnreachable = errors.New("the gateway does not answer")

// Failure is an answer of status 400 and above.
type Failure struct {
	Status int
	api.FailureDetail
}

func (f *Failure) Error() string {
	text := strings.TrimSpace(f.Message)
	if f.Advice != "" {
		text += " " + f.Advice
	}
	return Plain(text)
}

// Client calls one gateway.
type Client struct {
	server string
	user   string
	http   *http.Client
	// token returns what proves who asks, "" for nothing; nil as well.
	token func(ctx context.Context) (string, error)
	// exposed is set if others can read the token on its way.
	exposed bool
	// at is the moment as of which queues and changes are shown; the zero time is now.
	at time.Time
	// progress is where the client prints that an answer is slow; nil prints nothing.
	progress io.Writer
	told     sync.Once
}

// New returns a client of the gateway at an address such as http://127.0.0.1:7878, for a user.
func New(server, user string) (*Client, error) {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	parsed, err := url.Parse(server)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("the server %q is not an address; give one such as %s", server, DefaultServer)
	}
	return &Client{server: strings.TrimRight(server, "/"), user: user, http: &http.Client{CheckRedirect: stayWithToken}}, nil
}

// stayWithToken keeps a request with a token from being sent elsewhere, or in the clear.
func stayWithToken(r *http.Request, via []*http.Request) error {
	if from := via[0]; from.Header.Get("Authorization") != "" && (r.URL.Host != from.URL.Host || r.URL.Scheme != from.URL.Scheme) || len(via) >= 10 {
		return errors.New("it leads elsewhere")
	}
	return nil
}

func queuePath(queue string, parts ...string) string {
	path := "/v1/queues/" + url.PathEscape(queue)
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// open makes a request; an answer of status 400 and above is a *Failure. A gateway that has not read
// enough of the log yet, for the present or for the past, is asked again for a while: nothing was done there.
func (c *Client) open(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	for started := time.Now(); ; {
		response, err := c.openOnce(ctx, method, path, body, header)
		var failure *Failure
		if !errors.As(err, &failure) || failure.Code != api.CodeNotReady && failure.Code != api.CodePastUnread || time.Since(started) > readyPatience {
			return response, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *Client) openOnce(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, reader)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set(api.UserHeader, c.user)
	request.Header.Set("User-Agent", userAgent)
	if c.token != nil {
		token, err := c.token(ctx)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode < 400 {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	var failure api.Failure
	if strings.HasPrefix(string(text), "Client sent an HTTP request to an HTTPS server.") { // as Go's servers say
		return nil, fmt.Errorf("%w at %s: it speaks https: name it https://%s", ErrUnreachable, c.server, strings.TrimPrefix(c.server, "http://"))
	}
	if json.Unmarshal(text, &failure) != nil || failure.Error.Message == "" {
		return nil, fmt.Errorf("%w as a gateway: %s at %s", ErrUnreachable, response.Status, c.server)
	}
	return nil, &Failure{Status: response.StatusCode, FailureDetail: failure.Error}
}

func (c *Client) unreachable(err error) error {
	var refused *net.OpError
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.As(err, &refused) {
		return fmt.Errorf("%w at %s (%w); start it with `landfall up`, or name another with --server or LANDFALL_SERVER", ErrUnreachable, c.server, err)
	}
	return fmt.Errorf("%w at %s: %w", ErrUnreachable, c.server, err)
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var response *http.Response
	var err error
	c.slowly(func() { response, err = c.open(ctx, method, path, body, nil) })
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswerBytes)).Decode(into); err != nil {
		return fmt.Errorf("%w in JSON at %s: %w", ErrUnreachable, c.server, err)
	}
	return nil
}

// then returns a path with a query that names the moment which the client shows.
func (c *Client) then(path string, query url.Values) string {
	if !c.at.IsZero() {
		query.Set("at", c.at.UTC().Format(time.RFC3339Nano))
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// Queues lists all queues, as they are.
func (c *Client) Queues(ctx context.Context) ([]view.Overview, error) {
	return c.listQueues(ctx, "/v1/queues")
}

// QueuesThen lists all queues, as they were at the moment that the client shows.
func (c *Client) QueuesThen(ctx context.Context) ([]view.Overview, error) {
	return c.listQueues(ctx, c.then("/v1/queues", url.Values{}))
}

func (c *Client) listQueues(ctx context.Context, path string) ([]view.Overview, error) {
	var list api.QueueList
	err := c.call(ctx, http.MethodGet, path, nil, &list)
	return list.Queues, err
}

// Services returns which services are at work; of the past, who had claimed which partition.
func (c *Client) Services(ctx context.Context) (health.Report, error) {
	var out health.Report
	err := c.call(ctx, http.MethodGet, c.then("/v1/services", url.Values{}), nil, &out)
	return out, err
}

// Changes lists a queue's changes in any of the states; all if none is named.
func (c *Client) Changes(ctx context.Context, queue string, limit int, states ...string) (api.ChangeList, error) {
	var list api.ChangeList
	err := c.call(ctx, http.MethodGet, c.then(queuePath(queue, "changes"), url.Values{"state": states, "limit": {strconv.Itoa(limit)}}), nil, &list)
	return list, err
}

// Change returns everything about a change.
func (c *Client) Change(ctx context.Context, queue, change string) (view.Change, error) {
	var out view.Change
	err := c.call(ctx, http.MethodGet, c.then(queuePath(queue, "changes", change), url.Values{}), nil, &out)
	return out, err
}

// Explain returns why a change is where it is; if full is set, with every number.
func (c *Client) Explain(ctx context.Context, queue, change string, full bool) (view.Explanation, error) {
	query := url.Values{}
	if full {
		query.Set("full", "true")
	}
	var out view.Explanation
	err := c.call(ctx, http.MethodGet, c.then(queuePath(queue, "changes", change, "explain"), query), nil, &out)
	return out, err
}

// Land asks for a change to be landed and waits a little for the answer.
func (c *Client) Land(ctx context.Context, queue string, body api.LandBody) (api.LandReply, error) {
	var out api.LandReply
	err := c.call(ctx, http.MethodPost, queuePath(queue, "changes"), body, &out)
	return out, err
}

// Retry asks for a change's commits to be landed again.
func (c *Client) Retry(ctx context.Context, queue, change string) (api.LandReply, error) {
	var out api.LandReply
	err := c.call(ctx, http.MethodPost, queuePath(queue, "changes", change, "retry"), api.SteerBody{}, &out)
	return out, err
}

// Steer does one of cancel, priority, hold, release to a change, or, with change "", pause or resume to
// the queue.
func (c *Client) Steer(ctx context.Context, queue, change, verb string, body api.SteerBody) (api.SteerReply, error) {
	path := queuePath(queue, verb)
	if change != "" {
		path = queuePath(queue, "changes", change, verb)
	}
	var out api.SteerReply
	err := c.call(ctx, http.MethodPost, path, body, &out)
	return out, err
}

// Log is the output of one run of a step.
type Log struct {
	Target   string `json:"target"`
	Hash     string `json:"hash"`
	Attempt  int    `json:"attempt"`
	Outcome  string `json:"outcome"`
	Complete bool   `json:"complete"`
	// Deleted is when and why the complete output was deleted: "deleted on 2026-03-01 12:00 UTC: older than 720h (retention.logs.age)".
	Deleted string `json:"deleted,omitempty"`
	// With names the other changes of the build that it ran in; empty for a run that proves the landing, or is at fault.
	With   string `json:"with,omitempty"`
	Output string `json:"output"`
}

// Run is which run of a step of a change is meant. What is empty or 0 is left to the gateway.
type Run struct {
	Revision           uint64
	Target, Hash, Step string
	Attempt            int
}

// logPath returns the path of the output of a run of a step of a change, or of the mainline itself if the change is "".
func logPath(queue, change string, run Run, query url.Values) string {
	for name, value := range map[string]string{"target": run.Target, "hash": run.Hash, "step": run.Step} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]uint64{"attempt": uint64(max(run.Attempt, 0)), "revision": run.Revision} {
		if value > 0 {
			query.Set(name, strconv.FormatUint(value, 10))
		}
	}
	path := queuePath(queue, "logs")
	if change != "" {
		path = queuePath(queue, "changes", change, "logs")
	}
	return path + "?" + query.Encode()
}

// FollowLog returns the output of a run of a step of a change; of one that runs, as it is printed, until it has finished.
func (c *Client) FollowLog(ctx context.Context, queue, change string, run Run) (io.ReadCloser, error) {
	response, err := c.open(ctx, http.MethodGet, logPath(queue, change, run, url.Values{"follow": {"true"}}), nil, nil)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// Logs gives the output of a run of a step of a change, or of the mainline itself if the change is "". Of an output that is too long for
// one answer it is the end, which says how the step ended.
func (c *Client) Logs(ctx context.Context, queue, change string, run Run) (Log, error) {
	response, err := c.open(ctx, http.MethodGet, logPath(queue, change, run, url.Values{"limit": {strconv.Itoa(maxAnswerBytes)}}), nil, nil)
	if err != nil {
		return Log{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return Log{}, c.unreachable(err)
	}
	out := Log{
		Target: response.Header.Get(api.HeaderTarget), Hash: response.Header.Get(api.HeaderHash),
		Outcome: response.Header.Get(api.HeaderOutcome), Complete: response.Header.Get(api.HeaderComplete) == "true", Deleted: response.Header.Get(api.HeaderDeleted), With: response.Header.Get(api.HeaderWith),
		Output: strings.ToValidUTF8(string(text), "\uFFFD"),
	}
	out.Attempt, _ = strconv.Atoi(response.Header.Get(api.HeaderAttempt))
	return out, nil
}
