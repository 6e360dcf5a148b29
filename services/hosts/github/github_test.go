package github

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// serve returns a repository at a server that answers by a function.
func serve(t *testing.T, answer http.HandlerFunc) *Repository {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s := &Server{URL: server.URL, Secret: func(context.Context) ([]byte, error) { return []byte("t\n"), nil }}
	r, err := s.New(Options{Owner: "acme", Name: "shop", Branch: "main", Queue: "main", Label: "landfall"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encode(out http.ResponseWriter, v any) { _ = json.NewEncoder(out).Encode(v) }

func TestTenThousandOpenPullRequestsAreListedInAHundredRequests(t *testing.T) {
	const open = 9_999
	start, requests := time.Unix(1_000_000, 0), 0
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		requests++
		if got := in.Header.Get("Authorization"); got != "Bearer t" {
			t.Errorf("the token is %q", got)
		}
		page, _ := strconv.Atoi(in.FormValue("page"))
		list := []*github.PullRequest{}
		for i := (page - 1) * pageSize; i < min(page*pageSize, open); i++ {
			list = append(list, &github.PullRequest{Number: new(open - i), State: new("open"), UpdatedAt: &github.Timestamp{Time: start.Add(time.Duration(open-i) * time.Second)},
				Base: &github.PullRequestBranch{Ref: new("main")}})
		}
		encode(out, list)
	})
	r.pace.Limiter.SetLimit(1000)
	all, err := r.List(t.Context(), 0)
	if err != nil || len(all) != open || requests != 100 {
		t.Errorf("%d are listed in %d requests: %v", len(all), requests, err)
	}
	requests = 0
	changed, err := r.List(t.Context(), start.Add((open-2)*time.Second).UnixMicro())
	if err != nil || len(changed) != 3 || requests != 1 || !changed[0].Open || !changed[0].Fits {
		t.Errorf("%d changed, in %d requests: %v", len(changed), requests, err)
	}
}

// TestEventsOfATimelineHaveRisingIDs: labels and comments have ids of their own sequences at GitHub, and commits any time.
func TestEventsOfATimelineHaveRisingIDs(t *testing.T) {
	at := func(second int64) *github.Timestamp { return &github.Timestamp{Time: time.Unix(second, 0).UTC()} }
	ada, bot := &github.User{ID: new(int64(3)), Login: new("ada")}, &github.User{ID: new(int64(9)), Login: new("bot")}
	label := func(event, name string, id, second int64) *github.Timeline {
		return &github.Timeline{Event: &event, ID: &id, Actor: ada, Label: &github.Label{Name: name}, CreatedAt: at(second)}
	}
	comment := func(by *github.User, text string, id, second int64) *github.Timeline {
		return &github.Timeline{Event: new("commented"), ID: &id, User: by, Actor: by, Body: &text, CreatedAt: at(second)}
	}
	timeline := []*github.Timeline{
		{Event: new("committed"), SHA: new("a"), Committer: &github.CommitAuthor{Date: at(9_999)}},
		label("labeled", "landfall", 900, 100),
		label("labeled", "other", 901, 100),
		comment(ada, "/landfall hold", 5, 100),
		comment(bot, "**Landed**", 6, 100),
		comment(ada, "fine", 7, 100),
		comment(ada, "/landfall release", 8, 100),
		label("unlabeled", "landfall", 902, 101),
		{Event: new("closed"), Actor: ada, CreatedAt: at(102)},
		{Event: new("auto_squash_enabled"), Actor: ada, CreatedAt: at(103)},
		{Event: new("auto_merge_disabled"), Actor: ada, CreatedAt: at(104)},
		{Event: new("auto_merge_disabled"), Actor: bot, CreatedAt: at(105)},
	}
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		switch in.URL.Path {
		case "/api/v3/user":
			encode(out, bot)
		case "/api/v3/repos/acme/shop/issues/7/timeline":
			encode(out, timeline)
		case "/api/v3/repos/acme/shop/collaborators/ada/permission":
			encode(out, github.RepositoryPermissionLevel{Permission: new("write")})
		default:
			t.Errorf("it asks for %s", in.URL.Path)
		}
	})
	fits := true
	read := func(after int64) (ids []int64, kinds []hosts.EventKind) {
		p := hosts.Pull{Number: 7, Last: after, Fits: fits}
		if err := r.readTimeline(t.Context(), &p, after); err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Events {
			ids, kinds = append(ids, e.ID), append(kinds, e.Kind)
			if e.Permission != hosts.WritePermission || e.By.ID != 3 {
				t.Errorf("%+v", e)
			}
		}
		return append(ids, p.Last), kinds
	}
	ids, kinds := read(0)
	if want := []int64{100 << 20, 100<<20 | 1, 100<<20 | 3, 101 << 20, 102 << 20, 103 << 20, 104 << 20, 104 << 20}; !slices.Equal(ids, want) {
		t.Errorf("ids are %v, want %v", ids, want)
	}
	if want := []hosts.EventKind{hosts.Labelled, hosts.Commented, hosts.Commented, hosts.Unlabelled, hosts.Closed, hosts.Labelled, hosts.Unlabelled}; !slices.Equal(kinds, want) {
		t.Errorf("kinds are %v, want %v", kinds, want)
	}
	if ids, _ := read(101 << 20); !slices.Equal(ids, []int64{102 << 20, 103 << 20, 104 << 20, 104 << 20}) {
		t.Errorf("after the label went off there are %v", ids)
	}
	fits = false
	if _, kinds := read(101 << 20); !slices.Equal(kinds, []hosts.EventKind{hosts.Closed}) {
		t.Errorf("of a pull request to another branch there are %v", kinds)
	}
	fits = true
	// An edit makes no new event, and does not move the others.
	timeline[5].Body = new("/landfall land")
	if ids, _ := read(100<<20 | 1); !slices.Equal(ids[:2], []int64{100<<20 | 2, 100<<20 | 3}) {
		t.Errorf("after an edit there are %v", ids)
	}
}

// TestALimitedAccountAsksNoMore: after GitHub has said to wait, no request is made until then.
func TestALimitedAccountAsksNoMore(t *testing.T) {
	for name, header := range map[string]func(http.Header){
		"Retry-After": func(h http.Header) { h.Set("Retry-After", "1800") },
		"the hour's": func(h http.Header) {
			h.Set("X-RateLimit-Limit", "5000")
			h.Set("X-RateLimit-Remaining", "0")
			h.Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(30*time.Minute).Unix()))
		},
	} {
		requests := 0
		r := serve(t, func(out http.ResponseWriter, in *http.Request) {
			requests++
			header(out.Header())
			out.WriteHeader(http.StatusForbidden)
			encode(out, map[string]string{"message": "limited", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"})
		})
		for range 3 {
			_, err := r.List(t.Context(), 0)
			var later *hosts.Later
			if !errors.As(err, &later) || time.Until(later.Until) < 29*time.Minute || time.Until(later.Until) > 31*time.Minute {
				t.Errorf("%s: %v", name, err)
			}
		}
		if requests != 1 {
			t.Errorf("%s: %d requests", name, requests)
		}
	}
}

// TestARepositoryThatCannotBeSeenHasNotLostItsPullRequests: GitHub says 404 of both.
func TestARepositoryThatCannotBeSeenHasNotLostItsPullRequests(t *testing.T) {
	visible := false
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		if visible && in.URL.Path == "/api/v3/repos/acme/shop" {
			encode(out, github.Repository{})
			return
		}
		out.WriteHeader(http.StatusNotFound)
		encode(out, map[string]string{"message": "Not Found"})
	})
	if _, err := r.Look(t.Context(), 7, 0, ""); err == nil || errors.Is(err, hosts.ErrGone) {
		t.Errorf("where it is not seen: %v", err)
	}
	visible = true
	if _, err := r.Look(t.Context(), 7, 0, ""); !errors.Is(err, hosts.ErrGone) {
		t.Errorf("where it is: %v", err)
	}
}

// TestAnAppWithoutInstallationHasNotLostItsPullRequests: that its token is refused is not the answer to what it asked.
func TestAnAppWithoutInstallationHasNotLostItsPullRequests(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	s := &Server{URL: server.URL, App: "Iv1", Secret: func(context.Context) ([]byte, error) {
		return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), nil
	}}
	r, err := s.New(Options{Owner: "acme", Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Look(t.Context(), 7, 0, ""); err == nil || errors.Is(err, hosts.ErrGone) || hosts.IsStatus(err, http.StatusNotFound) {
		t.Errorf("%v", err)
	}
}

func TestWhatABranchAsksForIsMissingUntilItIsThere(t *testing.T) {
	checks := []check{{name: "test", app: 5, passed: true}, {name: "lint", state: "in_progress"}, {name: "both", app: 5, passed: true}, {name: "both", state: "failure"}}
	for want, c := range map[string]required{
		"":                                     {"test", 0},
		"the check test, which has not run":    {"test", 6},
		"the check lint, which is in_progress": {"lint", 0},
		"the check both, which is failure":     {"both", 0},
		"the check build, which has not run":   {"build", 0},
	} {
		if got := c.lacks(checks); len(got) > 1 || want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%+v lacks %q, want %q", c, got, want)
		}
	}
	var d demands
	d.require("Landfall (main)", nil)
	d.require("test", new(int64(-1)))
	d.require("test", nil)
	if len(d.checks) != 1 || d.checks[0] != (required{"test", 0}) {
		t.Errorf("required are %v", d.checks)
	}
	review := func(decision string, states ...string) (v reviews) {
		v.Decision = decision
		for i, s := range states {
			node := struct {
				State  string `json:"state"`
				Author struct {
					Login string `json:"login"`
				} `json:"author"`
			}{State: s}
			node.Author.Login = fmt.Sprint("u", i)
			v.Latest.Nodes = append(v.Latest.Nodes, node)
		}
		return v
	}
	for _, c := range []struct {
		v    reviews
		d    demands
		want []string
	}{
		{review("", "APPROVED"), demands{}, nil},
		{review("APPROVED", "APPROVED"), demands{approvals: 1}, nil},
		{review("REVIEW_REQUIRED", "APPROVED"), demands{approvals: 2}, []string{"1 of 2 approvals"}},
		{review("REVIEW_REQUIRED", "APPROVED"), demands{approvals: 1}, []string{"an approval that the branch asks for, such as a code owner's"}},
		{review("REVIEW_REQUIRED"), demands{}, []string{"an approval that the branch asks for, such as a code owner's"}},
		{review("CHANGES_REQUESTED", "APPROVED", "CHANGES_REQUESTED"), demands{approvals: 1}, []string{"changes that u1 asks for"}},
		{review("", "CHANGES_REQUESTED"), demands{}, nil},
	} {
		if got := c.v.lacks(c.d); !slices.Equal(got, c.want) {
			t.Errorf("%+v of %+v: %q, want %q", c.d, c.v, got, c.want)
		}
	}
}
