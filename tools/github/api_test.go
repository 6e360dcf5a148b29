package github_test

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-github/v93/github"

	"landfall.build/tools/hosttest"
)

// caller is who asks: a user, the App itself, or the App in a repository.
type caller struct {
	*account
	app, installed bool
}

// answer writes a body, with a status.
func answer(out http.ResponseWriter, status int, body any) {
	out.Header().Set("Content-Type", "application/json; charset=utf-8")
	out.WriteHeader(status)
	_, _ = out.Write(encode(body))
}

func refuse(out http.ResponseWriter, status int, message string) {
	answer(out, status, map[string]string{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

// page writes one page of a list.
func page[T any](out http.ResponseWriter, in *http.Request, all []T, wrap func([]T) any) {
	number, _ := strconv.Atoi(cmp.Or(in.FormValue("page"), "1"))
	size, _ := strconv.Atoi(cmp.Or(in.FormValue("per_page"), "30"))
	size = min(size, 100)
	from := min((number-1)*size, len(all))
	list := append([]T{}, all[from:min(from+size, len(all))]...)
	if wrap != nil {
		answer(out, http.StatusOK, wrap(list))
		return
	}
	answer(out, http.StatusOK, list)
}

// who finds out who asks.
func (f *fake) who(in *http.Request) (c caller, ok bool) {
	token, _ := strings.CutPrefix(in.Header.Get("Authorization"), "Bearer ")
	if ends, is := f.tokens[token]; is {
		return caller{account: &account{User: &github.User{ID: new(int64(appID)), Login: new(appLogin), Type: new("Bot")}}, installed: true}, time.Now().Before(ends)
	}
	for _, u := range f.users {
		if u.token == token {
			return caller{account: u}, true
		}
	}
	proof, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return c, false
	}
	var claims jwt.Claims
	if err := proof.Claims(&f.key.PublicKey, &claims); err != nil || claims.Issuer != clientID || claims.IssuedAt == nil || claims.Expiry == nil {
		return c, false
	}
	begins, ends := claims.IssuedAt.Time(), claims.Expiry.Time()
	return caller{app: true}, begins.Before(time.Now()) && ends.After(time.Now()) && ends.Sub(begins) <= 10*time.Minute
}

// limited notes a content that is written, and reports whether that is beyond the limits.
func (f *fake) limited() bool {
	minute, hour := 0, 0
	for _, at := range f.writes {
		if time.Since(at) < time.Minute {
			minute++
		}
		if time.Since(at) < time.Hour {
			hour++
		}
	}
	if minute >= f.perMin || hour >= f.perHour {
		f.refused++
		return true
	}
	f.writes = append(f.writes, time.Now())
	return false
}

func (f *fake) routes() http.Handler {
	mux := http.NewServeMux()
	const repo = "/api/v3/repos/{owner}/{repo}"
	// on adds a route of the REST API. An installation needs a permission for it, as in checks:write.
	on := func(route, permission string, do func(http.ResponseWriter, *http.Request, caller)) {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" "+strings.Replace(path, "REPO", repo, 1), func(out http.ResponseWriter, in *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked[route]++
			c, known := f.who(in)
			of, level, _ := strings.Cut(permission, ":")
			switch {
			case !known:
				refuse(out, http.StatusUnauthorized, "Bad credentials")
			case in.PathValue("repo") != "" && !strings.EqualFold(in.PathValue("owner")+"/"+in.PathValue("repo"), f.Repository()):
				refuse(out, http.StatusNotFound, "Not Found")
			case c.app != (permission == "app"):
				refuse(out, http.StatusUnauthorized, "A JSON web token could not be decoded")
			case c.installed && (permission == "user" || level == "read" && f.permissions[of] == "" || level == "write" && f.permissions[of] != "write"):
				refuse(out, http.StatusForbidden, "Resource not accessible by integration")
			case !c.installed && strings.HasPrefix(route, "POST REPO/check-runs"), !c.installed && strings.HasPrefix(route, "PATCH REPO/check-runs"):
				refuse(out, http.StatusForbidden, "You must authenticate via a GitHub App.")
			case !c.installed && level == "write" && c.permission != "write" && c.permission != "admin":
				refuse(out, http.StatusForbidden, "Must have push access to repository")
			case level == "write" && f.limited():
				out.Header().Set("Retry-After", "60")
				answer(out, http.StatusForbidden, map[string]string{"message": "You have exceeded a secondary rate limit and have been temporarily blocked from content creation.",
					"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"})
			default:
				do(out, in, c)
			}
		})
	}
	// onPull adds one of a pull request.
	onPull := func(route, permission string, do func(http.ResponseWriter, *http.Request, caller, *github.PullRequest)) {
		on(route, permission, func(out http.ResponseWriter, in *http.Request, c caller) {
			number, _ := strconv.Atoi(in.PathValue("number"))
			if p := f.pulls[number]; p != nil {
				do(out, in, c, p)
				return
			}
			refuse(out, http.StatusNotFound, "Not Found")
		})
	}
	mux.HandleFunc("/"+owner+"/", f.serveGit)
	mux.HandleFunc("/", func(out http.ResponseWriter, in *http.Request) {
		f.t.Errorf("the fake has no %s %s", in.Method, in.URL)
		refuse(out, http.StatusNotFound, "Not Found")
	})
	f.routesOfAccounts(on)
	f.routesOfPulls(on, onPull)
	f.routesOfCommits(on)
	return mux
}

type router func(route, permission string, do func(http.ResponseWriter, *http.Request, caller))
type pullRouter func(route, permission string, do func(http.ResponseWriter, *http.Request, caller, *github.PullRequest))

func (f *fake) routesOfAccounts(on router) {
	on("GET /api/v3/user", "user", func(out http.ResponseWriter, _ *http.Request, c caller) { answer(out, 200, c.User) })
	on("GET /api/v3/app", "app", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		app := &github.App{ID: new(int64(appID)), Slug: new("landfall"), ClientID: new(clientID)}
		if f.hook != nil {
			app.Events = f.hook.Events
		}
		answer(out, 200, app)
	})
	on("GET REPO/installation", "app", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		if f.permissions == nil {
			refuse(out, http.StatusNotFound, "Not Found")
			return
		}
		answer(out, 200, map[string]any{"id": installationID, "permissions": f.permissions})
	})
	on("POST /api/v3/app/installations/{id}/access_tokens", "app", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		token, ends := "ghs_"+rand.Text(), time.Now().Add(time.Hour)
		f.tokens[token] = ends
		answer(out, 201, github.InstallationToken{Token: &token, ExpiresAt: &github.Timestamp{Time: ends}})
	})
	on("GET /api/v3/app/hook/config", "app", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		if f.hook == nil {
			refuse(out, http.StatusNotFound, "Not Found")
			return
		}
		answer(out, 200, f.hook.Config)
	})
	on("GET /api/v3/app/hook/deliveries", "app", func(out http.ResponseWriter, in *http.Request, _ caller) {
		newest := slices.Clone(f.deliveries)
		slices.Reverse(newest)
		page(out, in, newest, nil)
	})
	on("POST /api/v3/app/hook/deliveries/{id}/attempts", "app", func(out http.ResponseWriter, in *http.Request, _ caller) {
		for _, d := range f.deliveries {
			if fmt.Sprint(d.GetID()) == in.PathValue("id") {
				f.deliver(&github.HookDelivery{ID: d.ID, GUID: d.GUID, Event: d.Event, DeliveredAt: now(), Redelivery: new(true)})
				answer(out, http.StatusAccepted, struct{}{})
				return
			}
		}
		refuse(out, http.StatusNotFound, "Not Found")
	})
	on("GET REPO", "metadata:read", func(out http.ResponseWriter, _ *http.Request, c caller) {
		r := f.repository()
		r.Archived = new(false)
		if !c.installed {
			r.Permissions = &github.RepositoryPermissions{Admin: new(c.permission == "admin"), Push: new(c.permission != "read"), Pull: new(true)}
		}
		answer(out, 200, r)
	})
	on("GET REPO/hooks", "administration:read", func(out http.ResponseWriter, in *http.Request, c caller) {
		all := []*github.Hook{}
		if f.hook != nil {
			all = append(all, f.hook)
		}
		page(out, in, all, nil)
	})
	on("POST REPO/hooks/{id}/pings", "administration:read", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		f.send("ping", &github.PingEvent{Zen: new("Design for failure."), Hook: f.hook, Repo: f.repository()})
		out.WriteHeader(http.StatusNoContent)
	})
	on("GET REPO/labels/{name}", "issues:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		if !slices.Contains(f.labels, in.PathValue("name")) {
			refuse(out, http.StatusNotFound, "Not Found")
			return
		}
		answer(out, 200, github.Label{Name: in.PathValue("name")})
	})
	on("GET REPO/collaborators/{user}/permission", "metadata:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		u := f.users[in.PathValue("user")]
		if u == nil {
			refuse(out, http.StatusNotFound, "Not Found")
			return
		}
		answer(out, 200, github.RepositoryPermissionLevel{Permission: &u.permission, RoleName: &u.permission, User: u.User})
	})
}

func (f *fake) routesOfPulls(on router, onPull pullRouter) {
	on("GET REPO/pulls", "pull_requests:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		var all []*github.PullRequest
		for _, number := range f.numbers() {
			p, head, base := f.pulls[number], in.FormValue("head"), in.FormValue("base")
			if (in.FormValue("state") == "all" || p.GetState() == "open") && (head == "" || head == owner+":"+p.Head.GetRef()) && (base == "" || base == p.Base.GetRef()) {
				all = append(all, p)
			}
		}
		if in.FormValue("sort") == "updated" && in.FormValue("direction") == "desc" {
			slices.SortStableFunc(all, func(a, b *github.PullRequest) int { return b.GetUpdatedAt().Compare(a.GetUpdatedAt().Time) })
		}
		page(out, in, all, nil)
	})
	onPull("GET REPO/pulls/{number}", "pull_requests:read", func(out http.ResponseWriter, _ *http.Request, _ caller, p *github.PullRequest) {
		answer(out, 200, p)
	})
	onPull("PATCH REPO/pulls/{number}", "pull_requests:write", func(out http.ResponseWriter, in *http.Request, c caller, p *github.PullRequest) {
		var body struct{ State string }
		if json.NewDecoder(in.Body).Decode(&body) != nil || body.State != "closed" {
			refuse(out, http.StatusUnprocessableEntity, "Validation Failed")
			return
		}
		if p.GetState() == "open" {
			f.close(c.account, p, "")
		}
		answer(out, 200, p)
	})
	onPull("GET REPO/issues/{number}/timeline", "issues:read", func(out http.ResponseWriter, in *http.Request, _ caller, p *github.PullRequest) {
		page(out, in, f.timelines[p.GetNumber()], nil)
	})
	onPull("GET REPO/issues/{number}/comments", "issues:read", func(out http.ResponseWriter, in *http.Request, _ caller, p *github.PullRequest) {
		page(out, in, f.comments[p.GetNumber()], nil)
	})
	onPull("POST REPO/issues/{number}/comments", "issues:write", func(out http.ResponseWriter, in *http.Request, c caller, p *github.PullRequest) {
		var body github.IssueCommentRequest
		if json.NewDecoder(in.Body).Decode(&body) != nil || body.Body == "" {
			refuse(out, http.StatusUnprocessableEntity, "Validation Failed")
			return
		}
		answer(out, 201, f.addComment(c.account, p, body.Body))
	})
	on("PATCH REPO/issues/comments/{id}", "issues:write", func(out http.ResponseWriter, in *http.Request, c caller) {
		var body github.IssueCommentRequest
		_ = json.NewDecoder(in.Body).Decode(&body)
		for number, all := range f.comments {
			for _, comment := range all {
				if fmt.Sprint(comment.GetID()) != in.PathValue("id") {
					continue
				}
				if f.breaks == "comments" {
					answer(out, 200, f.addComment(c.account, f.pulls[number], body.Body))
					return
				}
				comment.Body, comment.UpdatedAt = &body.Body, now()
				for _, e := range f.timelines[number] {
					if e.GetID() == comment.GetID() {
						e.Body = comment.Body
					}
				}
				f.touch(f.pulls[number])
				f.sendComment("edited", f.pulls[number], comment)
				answer(out, 200, comment)
				return
			}
		}
		refuse(out, http.StatusNotFound, "Not Found")
	})
	onPull("POST REPO/issues/{number}/labels", "issues:write", func(out http.ResponseWriter, in *http.Request, c caller, p *github.PullRequest) {
		var body struct{ Labels []string }
		var names []string
		text := json.RawMessage{}
		_ = json.NewDecoder(in.Body).Decode(&text)
		if json.Unmarshal(text, &names) != nil {
			_ = json.Unmarshal(text, &body)
			names = body.Labels
		}
		for _, label := range names {
			f.addLabel(c.account, p, label)
		}
		answer(out, 200, p.Labels)
	})
	onPull("DELETE REPO/issues/{number}/labels/{label}", "issues:write", func(out http.ResponseWriter, in *http.Request, c caller, p *github.PullRequest) {
		if !f.removeLabel(c.account, p, in.PathValue("label")) {
			refuse(out, http.StatusNotFound, "Label does not exist")
			return
		}
		answer(out, 200, append([]*github.Label{}, p.Labels...))
	})
	on("POST /api/graphql", "pull_requests:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		var body struct {
			Query     string
			Variables struct {
				Owner, Name string
				Number      int
			}
		}
		p := f.pulls[0]
		if json.NewDecoder(in.Body).Decode(&body) == nil {
			p = f.pulls[body.Variables.Number]
		}
		if p == nil || body.Variables.Owner+"/"+body.Variables.Name != f.Repository() {
			answer(out, 200, map[string]any{"data": nil, "errors": []any{map[string]string{"message": "Could not resolve to a PullRequest"}}})
			return
		}
		answer(out, 200, map[string]any{"data": map[string]any{"repository": map[string]any{"pullRequest": f.reviewed(p)}}})
	})
}

// reviewed returns what GraphQL says of the reviews of a pull request: of each who may write the last that approves or asks for changes.
func (f *fake) reviewed(p *github.PullRequest) map[string]any {
	last := map[string]string{}
	for _, v := range f.reviews[p.GetNumber()] {
		login := v.GetUser().GetLogin()
		if by := f.users[login]; by.permission != "write" && by.permission != "admin" || v.GetState() == "COMMENTED" {
			continue
		}
		last[login] = v.GetState()
	}
	nodes, approved, changes := []any{}, 0, false
	for login, state := range last {
		nodes = append(nodes, map[string]any{"state": state, "author": map[string]string{"login": login}})
		switch state {
		case "APPROVED":
			approved++
		case "CHANGES_REQUESTED":
			changes = true
		}
	}
	var decision any
	for _, rule := range f.rules {
		parameters, is := rule["parameters"].(github.PullRequestRuleParameters)
		switch {
		case !is:
		case changes:
			decision = "CHANGES_REQUESTED"
		case approved < parameters.RequiredApprovingReviewCount:
			decision = "REVIEW_REQUIRED"
		default:
			decision = "APPROVED"
		}
	}
	return map[string]any{"reviewDecision": decision, "latestOpinionatedReviews": map[string]any{"nodes": nodes}, "reviewThreads": map[string]any{"nodes": []any{}}}
}

func (f *fake) routesOfCommits(on router) {
	on("GET REPO/commits/{commit}/check-runs", "checks:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		// The latest one of each name and App.
		all := []*github.CheckRun{}
		for _, run := range slices.Backward(f.runs) {
			if run.GetHeadSHA() == in.PathValue("commit") && (in.FormValue("check_name") == "" || in.FormValue("check_name") == run.GetName()) &&
				!slices.ContainsFunc(all, func(later *github.CheckRun) bool {
					return later.GetName() == run.GetName() && later.App.GetID() == run.App.GetID()
				}) {
				all = append(all, run)
			}
		}
		page(out, in, all, func(list []*github.CheckRun) any {
			return github.ListCheckRunsResults{Total: new(len(all)), CheckRuns: list}
		})
	})
	set := func(out http.ResponseWriter, in *http.Request, run *github.CheckRun, status int) {
		var body github.UpdateCheckRunOptions
		if err := json.NewDecoder(in.Body).Decode(&body); err != nil || body.Output == nil || body.Output.GetTitle() == "" || body.Output.GetSummary() == "" || (body.GetStatus() == "completed") != (body.Conclusion != nil) {
			refuse(out, http.StatusUnprocessableEntity, "Invalid request.")
			return
		}
		state := map[string]string{"success": "success", "failure": "failure", "cancelled": "error", "": "pending"}[body.GetConclusion()]
		if run.GetStatus() == "completed" && body.Conclusion == nil {
			state = run.GetConclusion() // what is completed stays so
		} else {
			run.Status, run.Conclusion = body.Status, body.Conclusion
		}
		if f.breaks == "checks" && state != "pending" {
			answer(out, status, run)
			return
		}
		run.Name, run.Output, run.ExternalID = &body.Name, body.Output, body.ExternalID
		if run.DetailsURL = body.DetailsURL; run.DetailsURL == nil {
			run.DetailsURL = new("https://github.com/apps/landfall")
		}
		f.said[run.GetHeadSHA()] = append(f.said[run.GetHeadSHA()], hosttest.Status{State: state, Text: body.Output.GetTitle()})
		f.send("check_run", &github.CheckRunEvent{Action: new("created"), CheckRun: run, Repo: f.repository()})
		answer(out, status, run)
	}
	on("POST REPO/check-runs", "checks:write", func(out http.ResponseWriter, in *http.Request, _ caller) {
		text := json.RawMessage{}
		var body github.CreateCheckRunOptions
		if json.NewDecoder(in.Body).Decode(&text) != nil || json.Unmarshal(text, &body) != nil || body.HeadSHA == "" {
			refuse(out, http.StatusUnprocessableEntity, "Invalid request.")
			return
		}
		run := &github.CheckRun{ID: f.id(), HeadSHA: &body.HeadSHA, App: &github.App{ID: new(int64(appID))}}
		f.runs = append(f.runs, run)
		in.Body = io.NopCloser(bytes.NewReader(text))
		set(out, in, run, http.StatusCreated)
	})
	on("PATCH REPO/check-runs/{id}", "checks:write", func(out http.ResponseWriter, in *http.Request, _ caller) {
		for _, run := range f.runs {
			if fmt.Sprint(run.GetID()) == in.PathValue("id") && run.App.GetID() == appID {
				set(out, in, run, http.StatusOK)
				return
			}
		}
		refuse(out, http.StatusNotFound, "Not Found")
	})
	on("GET REPO/commits/{commit}/status", "statuses:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		var newest []*github.RepoStatus
		for _, s := range slices.Backward(f.statuses[in.PathValue("commit")]) {
			if !slices.ContainsFunc(newest, func(later *github.RepoStatus) bool { return later.GetContext() == s.GetContext() }) {
				newest = append(newest, s)
			}
		}
		page(out, in, newest, func(list []*github.RepoStatus) any {
			return github.CombinedStatus{SHA: new(in.PathValue("commit")), TotalCount: new(len(newest)), Statuses: list}
		})
	})
	on("POST REPO/statuses/{commit}", "statuses:write", func(out http.ResponseWriter, in *http.Request, c caller) {
		s := &github.RepoStatus{}
		commit := in.PathValue("commit")
		if json.NewDecoder(in.Body).Decode(s) != nil || len(s.GetDescription()) > 140 || len(f.statuses[commit]) >= 1000 {
			refuse(out, http.StatusUnprocessableEntity, "Validation Failed")
			return
		}
		s.ID, s.Creator = f.id(), c.User
		f.statuses[commit] = append(f.statuses[commit], s)
		if s.GetContext() == "Landfall (main)" {
			f.said[commit] = append(f.said[commit], hosttest.Status{State: s.GetState(), Text: s.GetDescription()})
		}
		f.send("status", &github.StatusEvent{SHA: &commit, State: s.State, Context: s.Context, Repo: f.repository()})
		answer(out, 201, s)
	})
	on("GET REPO/rules/branches/{branch}", "metadata:read", func(out http.ResponseWriter, in *http.Request, _ caller) { page(out, in, f.rules, nil) })
	on("GET REPO/rulesets/{id}", "metadata:read", func(out http.ResponseWriter, _ *http.Request, c caller) {
		r := github.RepositoryRuleset{ID: new(int64(1)), Name: "main", Enforcement: "active"}
		if c.permission == "admin" || f.permissions["administration"] == "write" {
			r.BypassActors = f.bypass
		}
		answer(out, 200, r)
	})
	on("GET REPO/branches/{branch}", "contents:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		if f.git.Branches()[in.PathValue("branch")] == "" {
			refuse(out, http.StatusNotFound, "Branch not found")
			return
		}
		answer(out, 200, github.Branch{Name: new(in.PathValue("branch")), Protected: new(in.PathValue("branch") == f.protected)})
	})
	on("GET REPO/git/commits/{commit}", "contents:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		answer(out, 200, github.Commit{SHA: new(in.PathValue("commit")), Message: new(f.git.Run("log", "-1", "--format=%B", in.PathValue("commit")))})
	})
	on("GET REPO/branches/{branch}/protection", "administration:read", func(out http.ResponseWriter, _ *http.Request, _ caller) {
		refuse(out, http.StatusNotFound, "Branch not protected")
	})
	on("GET REPO/compare/{range}", "contents:read", func(out http.ResponseWriter, in *http.Request, _ caller) {
		base, head, _ := strings.Cut(in.PathValue("range"), "...")
		count := func(revisions string) *int {
			n, _ := strconv.Atoi(f.git.Run("rev-list", "--count", revisions))
			return &n
		}
		answer(out, 200, github.CommitsComparison{AheadBy: count(base + ".." + head), BehindBy: count(head + ".." + base)})
	})
}
