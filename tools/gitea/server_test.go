package gitea_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"landfall.build/tools/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func TestGiteaIsAHost(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_GITEA") == "" {
		t.Skip("LANDFALL_TEST_GITEA names no Gitea: make hosts-test")
	}
	hosttest.Run(t, hosttest.Server{Binary: hosttest.Binary(), New: newRepository})
}

// repository is one at Gitea.
type repository struct {
	t *testing.T
	// gitea is the server's address, name owner/name.
	gitea, name string
	tokens      map[string]string
}

func newRepository(t *testing.T) hosttest.Host {
	r := &repository{t: t, gitea: os.Getenv("LANDFALL_TEST_GITEA"), tokens: map[string]string{"root": os.Getenv("LANDFALL_TEST_GITEA_TOKEN")}}
	name := fmt.Sprintf("shop-%d", time.Now().UnixNano())
	r.name = "root1/" + name
	r.must("root", "POST", "/user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	r.must("root", "PATCH", r.repo(""), map[string]any{"has_pull_requests": true, "allow_manual_merge": true, "autodetect_manual_merge": false}, nil)
	return r
}

func (r *repository) repo(format string, args ...any) string {
	return "/repos/" + r.name + fmt.Sprintf(format, args...)
}

func (r *repository) call(as, method, path string, in, out any) int {
	r.t.Helper()
	var body io.Reader
	if in != nil {
		content, _ := json.Marshal(in)
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequest(method, r.gitea+"/api/v1"+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "token "+r.tokens[as])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	if answer.StatusCode > 299 {
		r.t.Logf("%s %s by %s: %d %s", method, path, as, answer.StatusCode, content)
	} else if out != nil {
		if err := json.Unmarshal(content, out); err != nil {
			r.t.Fatalf("%s: %v: %s", path, err, content)
		}
	}
	return answer.StatusCode
}

// must is call, and the status of success.
func (r *repository) must(as, method, path string, in, out any) {
	r.t.Helper()
	if status := r.call(as, method, path, in, out); status > 299 {
		r.t.Fatalf("%s %s: %d", method, path, status)
	}
}

func (r *repository) Kind() string       { return "gitea" }
func (r *repository) Address() string    { return r.gitea }
func (r *repository) Repository() string { return r.name }
func (r *repository) Settings() string   { return "" }

func (r *repository) Token(user string) string { return r.tokens[user] }

func (r *repository) Remote(user string) string {
	if user == "" {
		return r.gitea + "/" + r.name + ".git"
	}
	return strings.Replace(r.gitea, "http://", "http://"+user+":"+r.tokens[user]+"@", 1) + "/" + r.name + ".git"
}

func (r *repository) AddUser(user, permission string) {
	r.t.Helper()
	if r.call("root", "GET", "/users/"+user, nil, nil) > 299 {
		r.must("root", "POST", "/admin/users", map[string]any{"username": user, "email": user + "@example.com", "password": "secret-of-" + user, "must_change_password": false}, nil)
	}
	request, _ := http.NewRequest("POST", r.gitea+"/api/v1/users/"+user+"/tokens", strings.NewReader(fmt.Sprintf(`{"name":"t%d","scopes":["all"]}`, time.Now().UnixNano())))
	request.SetBasicAuth(user, "secret-of-"+user)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	var token struct{ SHA1 string }
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || token.SHA1 == "" {
		r.t.Fatalf("token of %s: %d %v", user, answer.StatusCode, err)
	}
	r.tokens[user] = token.SHA1
	if permission != "" {
		r.must("root", "PUT", r.repo("/collaborators/%s", user), map[string]string{"permission": permission}, nil)
	}
}

func (r *repository) Ready(label string) {
	r.must("root", "POST", r.repo("/labels"), map[string]string{"name": label, "color": "#00aabb"}, nil)
}

func (r *repository) AddWebhook(url, secret string) {
	r.must("root", "POST", r.repo("/hooks"), map[string]any{"type": "gitea", "active": true,
		"events": []string{"pull_request", "pull_request_label", "pull_request_comment", "issue_comment", "pull_request_sync", "pull_request_review", "status"},
		"config": map[string]string{"url": url, "content_type": "json", "secret": secret}}, nil)
}

func (r *repository) Protect(approvals int, checks ...string) {
	r.must("root", "POST", r.repo("/branch_protections"), map[string]any{"rule_name": "main", "enable_push": true, "enable_push_whitelist": true,
		"push_whitelist_usernames": []string{"bot"}, "required_approvals": approvals, "enable_status_check": len(checks) > 0, "status_check_contexts": checks}, nil)
}

func (r *repository) Open(user, branch string) (int, bool) {
	var p struct{ Number int }
	status := r.call(user, "POST", r.repo("/pulls"), map[string]string{"head": branch, "base": "main", "title": branch}, &p)
	return p.Number, status < 300
}

func (r *repository) SetDraft(user string, number int, draft bool) {
	title := "a change"
	if draft {
		title = "WIP: a change"
	}
	r.must(user, "PATCH", r.repo("/pulls/%d", number), map[string]string{"title": title}, nil)
}

func (r *repository) Label(user string, number int) {
	r.must(user, "POST", r.repo("/issues/%d/labels", number), map[string]any{"labels": []string{"landfall"}}, nil)
}

func (r *repository) Unlabel(user string, number int) {
	var labels []struct{ ID int }
	r.must("root", "GET", r.repo("/labels"), nil, &labels)
	r.must(user, "DELETE", r.repo("/issues/%d/labels/%d", number, labels[0].ID), nil, nil)
}

func (r *repository) Comment(user string, number int, text string) {
	r.must(user, "POST", r.repo("/issues/%d/comments", number), map[string]string{"body": text}, nil)
}

func (r *repository) Close(user string, number int) {
	r.must(user, "PATCH", r.repo("/pulls/%d", number), map[string]string{"state": "closed"}, nil)
}

func (r *repository) Approve(user string, number int) {
	r.must(user, "POST", r.repo("/pulls/%d/reviews", number), map[string]string{"event": "APPROVED", "body": "good"}, nil)
}

func (r *repository) Dismiss(number int) {
	var reviews []struct {
		ID    int
		State string
	}
	r.must("root", "GET", r.repo("/pulls/%d/reviews", number), nil, &reviews)
	for _, v := range reviews {
		if v.State == "APPROVED" {
			r.must("root", "POST", r.repo("/pulls/%d/reviews/%d/dismissals", number, v.ID), map[string]string{"message": "not yet"}, nil)
		}
	}
}

func (r *repository) Check(user, commit, name string) {
	r.must(user, "POST", r.repo("/statuses/%s", commit), map[string]string{"state": "success", "context": name}, nil)
}

func (r *repository) Pull(number int) hosttest.Pull {
	var p struct {
		State  string
		Merged bool
		Commit string `json:"merge_commit_sha"`
		Labels []struct{ Name string }
		Head   struct{ SHA string }
	}
	r.must("root", "GET", r.repo("/pulls/%d", number), nil, &p)
	return hosttest.Pull{Open: p.State == "open", Merged: p.Merged, Head: p.Head.SHA, Commit: p.Commit, Labelled: len(p.Labels) > 0}
}

func (r *repository) Statuses(commit string) (own []hosttest.Status) {
	var all []struct{ Status, Description, Context string }
	r.must("root", "GET", r.repo("/commits/%s/statuses?sort=recentupdate&limit=50", commit), nil, &all)
	for _, s := range all {
		if s.Context == "Landfall (main)" {
			own = append(own, hosttest.Status{State: s.Status, Text: s.Description})
		}
	}
	return own
}

func (r *repository) Comments(number int) (texts []string) {
	var all []struct {
		Body string
		User struct{ Login string }
	}
	r.must("root", "GET", r.repo("/issues/%d/comments", number), nil, &all)
	for _, c := range all {
		if c.User.Login == "bot" {
			texts = append(texts, c.Body)
		}
	}
	return texts
}
