package gitlab_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	pathpattern "path"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/tools/hosttest"
)

// answer writes a body, with a status.
func answer(out http.ResponseWriter, status int, body any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	_, _ = out.Write(encode(body))
}

func refuse(out http.ResponseWriter, status int, message string) {
	answer(out, status, map[string]string{"message": message})
}

// page writes one page of a list.
func page[T any](out http.ResponseWriter, in *http.Request, all []T) {
	number, _ := strconv.Atoi(cmp.Or(in.FormValue("page"), "1"))
	size, _ := strconv.Atoi(cmp.Or(in.FormValue("per_page"), "20"))
	size = min(size, 100)
	from := min((number-1)*size, len(all))
	to := min(from+size, len(all))
	next := ""
	if to < len(all) {
		next = fmt.Sprint(number + 1)
	}
	out.Header().Set("X-Next-Page", next)
	answer(out, http.StatusOK, append([]T{}, all[from:to]...))
}

// limited counts a request, says what is left, and reports whether it is beyond the limit.
func (f *fake) limited(out http.ResponseWriter) bool {
	f.requests = slices.DeleteFunc(f.requests, func(at time.Time) bool { return time.Since(at) > time.Minute })
	over := len(f.requests) >= f.perMinute
	if over {
		f.refused++
		out.Header().Set("Retry-After", "60")
	} else {
		f.requests = append(f.requests, time.Now())
	}
	for name, value := range map[string]int64{"Limit": int64(f.perMinute), "Observed": int64(len(f.requests)), "Remaining": int64(f.perMinute - len(f.requests)), "Reset": f.requests[0].Add(time.Minute).Unix()} {
		out.Header().Set("RateLimit-"+name, fmt.Sprint(value))
	}
	return over
}

type handler func(http.ResponseWriter, *http.Request, *account)
type mergeHandler func(http.ResponseWriter, *http.Request, *account, *gitlab.MergeRequest)

func (f *fake) routes() http.Handler {
	mux := http.NewServeMux()
	// on adds a route of the REST API, for those with an access level to the project.
	on := func(route string, level gitlab.AccessLevelValue, do handler) {
		method, at, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" /api/v4"+strings.Replace(at, "PROJECT", "/projects/{project}", 1), func(out http.ResponseWriter, in *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.asked[route]++
			var by *account
			for _, u := range f.users {
				if in.Header.Get("Authorization") == "Bearer "+u.token {
					by = u
				}
			}
			switch {
			case by == nil:
				refuse(out, http.StatusUnauthorized, "401 Unauthorized")
			case f.limited(out):
				out.WriteHeader(http.StatusTooManyRequests)
				_, _ = out.Write([]byte("Retry later\n")) // it is no JSON
			case in.PathValue("project") != "" && !strings.EqualFold(in.PathValue("project"), path):
				refuse(out, http.StatusNotFound, "404 Project Not Found")
			case in.Method != http.MethodGet && !slices.Contains(by.scopes, "api"):
				answer(out, http.StatusForbidden, map[string]string{"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token."})
			case by.level < level:
				refuse(out, http.StatusForbidden, "403 Forbidden")
			default:
				do(out, in, by)
			}
		})
	}
	// onMerge adds one of a merge request.
	onMerge := func(route string, level gitlab.AccessLevelValue, do mergeHandler) {
		on(strings.Replace(route, "MERGE", "PROJECT/merge_requests/{iid}", 1), level, func(out http.ResponseWriter, in *http.Request, by *account) {
			iid, _ := strconv.ParseInt(in.PathValue("iid"), 10, 64)
			if m := f.merges[iid]; m != nil {
				do(out, in, by, m)
				return
			}
			refuse(out, http.StatusNotFound, "404 Not found")
		})
	}
	mux.HandleFunc("/"+path+".git/", f.serveGit)
	mux.HandleFunc("/", func(out http.ResponseWriter, in *http.Request) {
		f.t.Errorf("the fake has no %s %s", in.Method, in.URL)
		refuse(out, http.StatusNotFound, "404 Not Found")
	})
	f.routesOfProject(on)
	f.routesOfMerges(on, onMerge)
	f.routesOfCommits(on)
	return mux
}

func (f *fake) routesOfProject(on func(string, gitlab.AccessLevelValue, handler)) {
	on("GET /user", 0, func(out http.ResponseWriter, _ *http.Request, by *account) { answer(out, 200, by.BasicUser) })
	on("GET /personal_access_tokens/self", 0, func(out http.ResponseWriter, _ *http.Request, by *account) {
		answer(out, 200, gitlab.PersonalAccessToken{ID: 1, Active: true, Scopes: by.scopes, UserID: by.ID, ExpiresAt: new(gitlab.ISOTime(by.ends))})
	})
	on("GET PROJECT", 0, func(out http.ResponseWriter, _ *http.Request, _ *account) { answer(out, 200, f.project) })
	on("GET PROJECT/members/all/{user}", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		for _, u := range f.users {
			if fmt.Sprint(u.ID) == in.PathValue("user") && u.level > 0 {
				answer(out, 200, gitlab.ProjectMember{ID: u.ID, Username: u.Username, State: u.State, AccessLevel: u.level})
				return
			}
		}
		refuse(out, http.StatusNotFound, "404 Not found")
	})
	on("GET PROJECT/labels/{name}", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		if !slices.Contains(f.labels, in.PathValue("name")) {
			refuse(out, http.StatusNotFound, "404 Label Not Found")
			return
		}
		answer(out, 200, gitlab.Label{Name: in.PathValue("name")})
	})
	on("GET PROJECT/hooks", gitlab.MaintainerPermissions, func(out http.ResponseWriter, in *http.Request, _ *account) {
		all := []*gitlab.ProjectHook{}
		if f.hook != nil {
			all = append(all, f.hook)
		}
		page(out, in, all)
	})
	on("POST PROJECT/hooks/{id}/test/{trigger}", gitlab.MaintainerPermissions, func(out http.ResponseWriter, in *http.Request, _ *account) {
		if in.PathValue("trigger") != "push_events" {
			refuse(out, http.StatusUnprocessableEntity, "422 Unprocessable Entity")
			return
		}
		f.deliver("Push Hook", map[string]any{"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "project": f.described()})
		answer(out, http.StatusCreated, map[string]string{"message": "201 Created"})
	})
	on("GET PROJECT/repository/branches/{branch}", 0, func(out http.ResponseWriter, in *http.Request, by *account) {
		if f.git.Branches()[in.PathValue("branch")] == "" {
			refuse(out, http.StatusNotFound, "404 Branch Not Found")
			return
		}
		b := gitlab.Branch{Name: in.PathValue("branch"), CanPush: by.level >= gitlab.DeveloperPermissions}
		for _, p := range f.protected {
			if matches, _ := pathpattern.Match(p.Name, b.Name); !matches {
				continue
			}
			b.Protected, b.CanPush = true, false
			for _, level := range p.PushAccessLevels {
				switch {
				case level.DeployKeyID != 0 || level.GroupID != 0:
				case level.UserID != 0:
					b.CanPush = b.CanPush || level.UserID == by.ID
				default:
					b.CanPush = b.CanPush || level.AccessLevel > 0 && by.level >= level.AccessLevel
				}
			}
		}
		answer(out, 200, b)
	})
	on("GET PROJECT/protected_branches", gitlab.DeveloperPermissions, func(out http.ResponseWriter, in *http.Request, _ *account) { page(out, in, f.protected) })
}

func (f *fake) routesOfMerges(on func(string, gitlab.AccessLevelValue, handler), onMerge func(string, gitlab.AccessLevelValue, mergeHandler)) {
	on("GET PROJECT/merge_requests", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		all := []*gitlab.MergeRequest{}
		since, _ := time.Parse(time.RFC3339Nano, in.FormValue("updated_after"))
		for _, m := range f.all() {
			state, source, target := in.FormValue("state"), in.FormValue("source_branch"), in.FormValue("target_branch")
			if (state == "all" || m.State == state) && !m.UpdatedAt.Before(since) && (source == "" || source == m.SourceBranch) && (target == "" || target == m.TargetBranch) {
				all = append(all, m)
			}
		}
		if in.FormValue("order_by") == "updated_at" && in.FormValue("sort") == "desc" {
			slices.SortStableFunc(all, func(a, b *gitlab.MergeRequest) int { return b.UpdatedAt.Compare(*a.UpdatedAt) })
		}
		page(out, in, all)
	})
	onMerge("GET MERGE", 0, func(out http.ResponseWriter, _ *http.Request, _ *account, m *gitlab.MergeRequest) {
		answer(out, 200, m)
	})
	onMerge("PUT MERGE", gitlab.DeveloperPermissions, func(out http.ResponseWriter, in *http.Request, by *account, m *gitlab.MergeRequest) {
		var body struct {
			Add    string `json:"add_labels"`
			Remove string `json:"remove_labels"`
			State  string `json:"state_event"`
		}
		if json.NewDecoder(in.Body).Decode(&body) != nil {
			refuse(out, http.StatusBadRequest, "400 Bad request")
			return
		}
		for _, label := range split(body.Add) {
			f.setLabel(by, m, label, true)
		}
		for _, label := range split(body.Remove) {
			f.setLabel(by, m, label, false)
		}
		if body.State == "close" && m.State == "opened" {
			f.setState(by, m, "closed")
		}
		answer(out, 200, m)
	})
	onMerge("GET MERGE/approvals", 0, func(out http.ResponseWriter, _ *http.Request, _ *account, m *gitlab.MergeRequest) {
		got := int64(0)
		for _, user := range f.approved[m.IID] {
			if f.users[user].level >= gitlab.DeveloperPermissions {
				got++
			}
		}
		answer(out, 200, gitlab.MergeRequestApprovals{IID: m.IID, ApprovalsRequired: f.required, ApprovalsLeft: max(f.required-got, 0)})
	})
	onMerge("GET MERGE/resource_label_events", 0, func(out http.ResponseWriter, in *http.Request, _ *account, m *gitlab.MergeRequest) {
		page(out, in, f.labelEvents[m.IID])
	})
	onMerge("GET MERGE/resource_state_events", 0, func(out http.ResponseWriter, in *http.Request, _ *account, m *gitlab.MergeRequest) {
		page(out, in, f.stateEvents[m.IID])
	})
	onMerge("GET MERGE/notes", 0, func(out http.ResponseWriter, in *http.Request, _ *account, m *gitlab.MergeRequest) {
		all := slices.Clone(f.notes[m.IID])
		if in.FormValue("sort") != "asc" {
			slices.Reverse(all)
		}
		page(out, in, all)
	})
	body := func(in *http.Request) string {
		var b struct{ Body string }
		_ = json.NewDecoder(in.Body).Decode(&b)
		return b.Body
	}
	onMerge("POST MERGE/notes", 0, func(out http.ResponseWriter, in *http.Request, by *account, m *gitlab.MergeRequest) {
		if text := body(in); text != "" {
			answer(out, http.StatusCreated, f.addNote(by, m, text))
			return
		}
		refuse(out, http.StatusBadRequest, "400 Bad request - Note {:note=>[\"can't be blank\"]}")
	})
	onMerge("PUT MERGE/notes/{id}", 0, func(out http.ResponseWriter, in *http.Request, by *account, m *gitlab.MergeRequest) {
		for _, n := range f.notes[m.IID] {
			switch {
			case fmt.Sprint(n.ID) != in.PathValue("id"):
			case n.Author.ID != by.ID:
				refuse(out, http.StatusForbidden, "403 Forbidden")
				return
			case f.breaks == "comments":
				answer(out, 200, f.addNote(by, m, body(in)))
				return
			default:
				n.Body, n.UpdatedAt = body(in), now()
				f.touch(m)
				f.sendNote("update", m, n)
				answer(out, 200, n)
				return
			}
		}
		refuse(out, http.StatusNotFound, "404 Note Not Found")
	})
}

func (f *fake) routesOfCommits(on func(string, gitlab.AccessLevelValue, handler)) {
	on("GET PROJECT/repository/commits/{commit}", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		answer(out, 200, gitlab.Commit{ID: in.PathValue("commit"), ParentIDs: strings.Fields(f.git.Run("rev-parse", in.PathValue("commit")+"^@")), Message: f.git.Run("log", "-1", "--format=%B", in.PathValue("commit"))})
	})
	on("GET PROJECT/repository/commits/{commit}/statuses", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		all := []gitlab.CommitStatus{}
		for _, s := range f.statuses {
			if name := in.FormValue("name"); s.SHA == in.PathValue("commit") && !s.retried && (name == "" || s.Name == name) {
				all = append(all, s.CommitStatus)
			}
		}
		page(out, in, all)
	})
	on("POST PROJECT/statuses/{commit}", gitlab.DeveloperPermissions, func(out http.ResponseWriter, in *http.Request, by *account) {
		var o gitlab.SetCommitStatusOptions
		commit := in.PathValue("commit")
		if json.NewDecoder(in.Body).Decode(&o) != nil || o.State == "" {
			refuse(out, http.StatusBadRequest, "State is required")
			return
		}
		if f.breaks == "statuses" && o.State != gitlab.Pending && o.State != gitlab.Running {
			answer(out, http.StatusCreated, gitlab.CommitStatus{ID: f.id()})
			return
		}
		s, no := f.setStatus(by, commit, o)
		if no != nil {
			refuse(out, no.status, no.message)
			return
		}
		if s.Name == "Landfall (main)" {
			state := map[string]string{"pending": "pending", "running": "pending", "success": "success", "failed": "failure", "canceled": "error"}[s.Status]
			f.said[commit] = append(f.said[commit], hosttest.Status{State: state, Text: s.Description})
		}
		answer(out, http.StatusCreated, s.CommitStatus)
	})
	on("GET PROJECT/repository/merge_base", 0, func(out http.ResponseWriter, in *http.Request, _ *account) {
		refs := in.URL.Query()["refs[]"]
		if len(refs) != 2 {
			refuse(out, http.StatusBadRequest, "refs is invalid")
			return
		}
		answer(out, 200, gitlab.Commit{ID: f.git.Run("merge-base", refs[0], refs[1])})
	})
}
