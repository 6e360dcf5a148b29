package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"

	hostsgithub "landfall.build/services/hosts/github"
	"landfall.build/tools/hosttest"
)

// Names and numbers of the fake.
const (
	owner, name = "acme", "shop"
	clientID    = "Iv1.fake"
	appID       = 7
	appLogin    = "landfall[bot]"
	// ciApp is the App of checks that are none of ours.
	ciApp          = 77
	installationID = 70
	// bot pushes past the branch's rules, as a deploy key does, and answers where there is no App.
	bot = "bot"
)

// account is a user of the fake.
type account struct {
	*github.User
	token, permission string
}

// fake is a GitHub Enterprise Server with one repository. What it does is what GitHub's documentation says, as far as the hosts service
// and its tests come; breaks names a rule that it does not keep.
type fake struct {
	t *testing.T
	*httptest.Server
	git *hosttest.Git
	// app is set if an App answers, key is its private one.
	app    bool
	key    *rsa.PrivateKey
	breaks string

	mu sync.Mutex
	// last is the newest id; events and comments have their own, which do not rise together.
	last        int64
	users       map[string]*account
	permissions map[string]string
	// tokens has the ends of those of the installation.
	tokens    map[string]time.Time
	pulls     map[int]*github.PullRequest
	timelines map[int][]*github.Timeline
	comments  map[int][]*github.IssueComment
	reviews   map[int][]*github.PullRequestReview
	labels    []string
	runs      []*github.CheckRun
	statuses  map[string][]*github.RepoStatus
	// said has what the queue set at each commit.
	said  map[string][]hosttest.Status
	rules []map[string]any
	// protected is a branch that is, "" for none.
	protected  string
	bypass     []*github.BypassActor
	hook       *github.Hook
	secret     string
	deliveries []*github.HookDelivery
	bodies     map[int64][]byte
	sending    sync.WaitGroup
	// lag is how long after a push to its branch the head of a pull request is recorded.
	lag time.Duration
	// writes are the times of contents that were written, refused counts what was beyond the limits.
	writes  []time.Time
	perMin  int
	perHour int
	refused int
	// asked counts requests by method and kind.
	asked map[string]int
}

var theKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func newFake(t *testing.T, app bool) *fake {
	f := &fake{
		t: t, app: app, key: theKey(), users: map[string]*account{}, tokens: map[string]time.Time{}, pulls: map[int]*github.PullRequest{},
		timelines: map[int][]*github.Timeline{}, comments: map[int][]*github.IssueComment{}, reviews: map[int][]*github.PullRequestReview{},
		statuses: map[string][]*github.RepoStatus{}, said: map[string][]hosttest.Status{}, bodies: map[int64][]byte{}, asked: map[string]int{}, perMin: 80, perHour: 500, permissions: map[string]string{},
		breaks: hosttest.Breaks(),
	}
	for name, level := range hostsgithub.Permissions {
		f.permissions[name] = level
	}
	// As a ruleset that restricts updates, and GitHub's own refs.
	f.git = hosttest.NewGit(t, owner+"/"+name, "#!/bin/sh\nwhile read -r old new ref; do\n"+
		"case $ref in refs/pull/*) echo 'deny updating a hidden ref' >&2; exit 1;; esac\n"+
		"if [ $ref = refs/heads/main ] && [ -e restricted ] && [ \"$REMOTE_USER\" != "+bot+" ]; then echo 'GH013: Repository rule violations found for refs/heads/main.' >&2; exit 1; fi\ndone\n")
	f.Server = httptest.NewServer(f.routes())
	t.Cleanup(func() {
		f.Server.Close()
		f.sending.Wait()
		t.Logf("the fake was asked %v", f.asked)
		if f.refused > 0 {
			t.Errorf("the service went beyond GitHub's limits %d times", f.refused)
		}
	})
	return f
}

// serveGit serves the repository, and does at a push what GitHub does.
func (f *fake) serveGit(out http.ResponseWriter, in *http.Request) {
	if strings.HasSuffix(in.URL.Path, "git-receive-pack") {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	f.git.Serve(out, in, func(by string, before, after map[string]string) { f.pushed(f.users[by], before, after) })
}

// pushed applies a push to pull requests. One is merged if the head that was recorded before the push is in its base after it. Only then
// the heads are recorded: one that is in its base has nothing to merge any more, and is closed.
func (f *fake) pushed(by *account, before, after map[string]string) {
	for _, number := range f.numbers() {
		p := f.pulls[number]
		base, head := p.Base.GetRef(), p.Head.GetRef()
		if p.GetState() != "open" {
			continue
		}
		if after[base] != before[base] && f.git.Contains(after[base], p.Head.GetSHA()) && f.breaks != "merged" {
			f.close(by, p, after[base])
			continue
		}
		switch {
		case after[head] == before[head]:
		case f.lag > 0 && after[head] != "":
			f.sending.Go(func() {
				time.Sleep(f.lag)
				f.mu.Lock()
				defer f.mu.Unlock()
				if p.GetState() == "open" {
					f.follow(by, p, f.git.Branches()[base], after[head])
				}
			})
		default:
			f.follow(by, p, after[base], after[head])
		}
	}
}

// follow records the head of a pull request, "" for none. One that is in its base is closed.
func (f *fake) follow(by *account, p *github.PullRequest, base, head string) {
	f.record(p, head)
	if head == "" || f.git.Contains(base, head) {
		f.close(by, p, "")
		return
	}
	f.touch(p)
	f.send("pull_request", f.event("synchronize", p, by))
}

// record sets the head of a pull request, and its ref.
func (f *fake) record(p *github.PullRequest, head string) {
	if head == "" {
		return
	}
	p.Head.SHA = &head
	f.git.Run("update-ref", fmt.Sprintf("refs/pull/%d/head", p.GetNumber()), head)
}

// close closes a pull request, as merged by a commit unless that is "".
func (f *fake) close(by *account, p *github.PullRequest, merged string) {
	p.State, p.ClosedAt = new("closed"), now()
	if merged != "" {
		p.Merged, p.MergeCommitSHA, p.MergedAt, p.MergedBy = new(true), &merged, now(), by.User
		f.enter(p, &github.Timeline{Event: new("merged"), Actor: by.User, CommitID: &merged})
	}
	f.enter(p, &github.Timeline{Event: new("closed"), Actor: by.User})
	f.send("pull_request", f.event("closed", p, by))
}

// now is the time as GitHub gives it.
func now() *github.Timestamp {
	return &github.Timestamp{Time: time.Now().UTC().Truncate(time.Second)}
}

func (f *fake) id() *int64 {
	f.last++
	return new(f.last)
}

func (f *fake) touch(p *github.PullRequest) { p.UpdatedAt = now() }

// enter adds an event to the timeline.
func (f *fake) enter(p *github.PullRequest, e *github.Timeline) {
	f.touch(p)
	if e.ID == nil {
		e.ID = new(int64(1<<40) + *f.id()) // ids of events are beyond those of comments
	}
	e.CreatedAt = now()
	f.timelines[p.GetNumber()] = append(f.timelines[p.GetNumber()], e)
}

func (f *fake) numbers() []int {
	numbers := make([]int, 0, len(f.pulls))
	for number := range f.pulls {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

func (f *fake) repository() *github.Repository {
	return &github.Repository{ID: new(int64(1)), Name: new(name), FullName: new(owner + "/" + name), Owner: &github.User{Login: new(owner)}, DefaultBranch: new("main")}
}

func (f *fake) event(action string, p *github.PullRequest, by *account) any {
	e := &github.PullRequestEvent{Action: &action, Number: p.Number, PullRequest: p, Repo: f.repository()}
	if by != nil {
		e.Sender = by.User
	}
	return e
}

// addLabel puts a label on a pull request.
func (f *fake) addLabel(by *account, p *github.PullRequest, label string) {
	if slices.ContainsFunc(p.Labels, func(l *github.Label) bool { return l.Name == label }) {
		return
	}
	p.Labels = append(p.Labels, &github.Label{Name: label})
	f.enter(p, &github.Timeline{Event: new("labeled"), Actor: by.User, Label: &github.Label{Name: label}})
	f.send("pull_request", f.event("labeled", p, by))
}

// removeLabel takes a label off, and reports whether it was on.
func (f *fake) removeLabel(by *account, p *github.PullRequest, label string) bool {
	before := len(p.Labels)
	p.Labels = slices.DeleteFunc(p.Labels, func(l *github.Label) bool { return l.Name == label })
	if len(p.Labels) == before {
		return false
	}
	f.enter(p, &github.Timeline{Event: new("unlabeled"), Actor: by.User, Label: &github.Label{Name: label}})
	f.send("pull_request", f.event("unlabeled", p, by))
	return true
}

func (f *fake) addComment(by *account, p *github.PullRequest, text string) *github.IssueComment {
	c := &github.IssueComment{ID: f.id(), User: by.User, Body: &text, CreatedAt: now(), UpdatedAt: now()}
	f.comments[p.GetNumber()] = append(f.comments[p.GetNumber()], c)
	f.enter(p, &github.Timeline{Event: new("commented"), ID: c.ID, Actor: by.User, User: by.User, Body: c.Body})
	f.sendComment("created", p, c)
	return c
}

func (f *fake) sendComment(action string, p *github.PullRequest, c *github.IssueComment) {
	f.send("issue_comment", &github.IssueCommentEvent{Action: &action, Comment: c, Repo: f.repository(), Sender: c.User,
		Issue: &github.Issue{Number: p.Number, PullRequestLinks: &github.PullRequestLinks{URL: new("x")}}})
}

// pem returns the App's private key as GitHub gives it out.
func (f *fake) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(f.key)}))
}

// encode returns JSON.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
