package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/time/rate"

	"landfall.build/services/hosts"
)

// serve returns a project at a server that answers by a function.
func serve(t *testing.T, answer http.HandlerFunc) *Repository {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s, err := NewServer(server.URL, func(context.Context) ([]byte, error) { return []byte("t\n"), nil })
	if err != nil {
		t.Fatal(err)
	}
	s.pace.Limiter.SetLimit(rate.Inf)
	return s.New(Options{Project: "acme/team/shop", Branch: "main", Queue: "main", Label: "landfall"})
}

const at = "/api/v4/projects/acme/team/shop"

func encode(out http.ResponseWriter, v any) { _ = json.NewEncoder(out).Encode(v) }

func TestTenThousandOpenMergeRequestsAreListedInAHundredRequests(t *testing.T) {
	const open = 9_999
	start, requests := time.Unix(1_000_000, 0), 0
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		requests++
		if got := in.Header.Get("Authorization"); got != "Bearer t" || in.URL.Path != at+"/merge_requests" {
			t.Errorf("it asks for %s with %q", in.URL, got)
		}
		page, _ := strconv.Atoi(in.FormValue("page"))
		list := []gitlab.BasicMergeRequest{}
		for i := (page - 1) * pageSize; i < min(page*pageSize, open); i++ {
			list = append(list, gitlab.BasicMergeRequest{IID: int64(open - i), State: "opened", TargetBranch: "main", UpdatedAt: new(start.Add(time.Duration(open-i) * time.Second))})
		}
		if page*pageSize < open {
			out.Header().Set("X-Next-Page", fmt.Sprint(page+1))
		}
		encode(out, list)
	})
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

// TestEventsHaveRisingIDs: labels, notes and states have ids of their own sequences. A page of notes may be empty and not the last.
func TestEventsHaveRisingIDs(t *testing.T) {
	ms := func(n int64) *time.Time { return new(time.UnixMilli(n).UTC()) }
	ada, bot := gitlab.BasicUser{ID: 3, Username: "ada"}, gitlab.BasicUser{ID: 9, Username: "bot"}
	label := func(action, name string, id, at int64) gitlab.LabelEvent {
		return gitlab.LabelEvent{ID: id, Action: action, User: ada, Label: gitlab.LabelEventLabel{Name: name}, CreatedAt: ms(at)}
	}
	note := func(by gitlab.BasicUser, text string, id, at int64, system bool) gitlab.Note {
		return gitlab.Note{ID: id, Body: text, System: system, Author: gitlab.NoteAuthor{ID: by.ID, Username: by.Username}, CreatedAt: ms(at)}
	}
	notes := [][]gitlab.Note{
		{note(ada, "/landfall release", 8, 101, false), note(ada, "/landfall land", 7, 101, true)}, {},
		{note(bot, "/landfall land", 6, 100, false), note(ada, "/landfall hold", 5, 100, false), note(ada, "fine", 4, 99, false)},
	}
	pagesOfNotes := 0
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		switch in.URL.Path {
		case "/api/v4/user":
			encode(out, bot)
		case at + "/merge_requests/7/resource_label_events":
			encode(out, []gitlab.LabelEvent{label("add", "landfall", 900, 100), label("add", "other", 901, 100), label("remove", "landfall", 902, 101), label("add", "landfall", 3, 50)})
		case at + "/merge_requests/7/notes":
			pagesOfNotes++
			page, _ := strconv.Atoi(in.FormValue("page"))
			if page < len(notes) {
				out.Header().Set("X-Next-Page", fmt.Sprint(page+1))
			}
			encode(out, notes[page-1])
		case at + "/merge_requests/7/resource_state_events":
			encode(out, []gitlab.StateEvent{{ID: 1, User: &ada, CreatedAt: ms(103), State: "closed"}, {ID: 2, User: &ada, CreatedAt: ms(103), State: "reopened"}})
		case at + "/members/all/3":
			encode(out, gitlab.ProjectMember{ID: 3, State: "active", AccessLevel: gitlab.DeveloperPermissions})
		default:
			t.Errorf("it asks for %s", in.URL.Path)
		}
	})
	read := func(after int64, closed bool) (ids []int64, kinds []hosts.EventKind) {
		p := hosts.Pull{Number: 7, Last: after}
		if err := r.readTimeline(t.Context(), &p, after, closed); err != nil {
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
	ids, kinds := read(0, true)
	want := []int64{50<<20 | 3, 100<<20 | 900, 100<<20 | 1<<18 | 5, 101<<20 | 902, 101<<20 | 1<<18 | 8, 103<<20 | 2<<18 | 1, 103<<20 | 2<<18 | 1}
	if !slices.Equal(ids, want) {
		t.Errorf("ids are %v, want %v", ids, want)
	}
	if want := []hosts.EventKind{hosts.Labelled, hosts.Labelled, hosts.Commented, hosts.Unlabelled, hosts.Commented, hosts.Closed}; !slices.Equal(kinds, want) {
		t.Errorf("kinds are %v, want %v", kinds, want)
	}
	pagesOfNotes = 0
	if ids, _ := read(want[4], false); !slices.Equal(ids, want[4:5]) {
		t.Errorf("after the last note there are %v", ids)
	}
	if pagesOfNotes != 3 {
		t.Errorf("%d pages of notes are read up to one that is older", pagesOfNotes)
	}
	if far := eventID(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), hosts.Closed, 1<<40|5); far < 0 || far&maxEventID != 5 {
		t.Errorf("of the year 2200 it is %d", far)
	}
}

func TestRolesFollowAccessLevels(t *testing.T) {
	visibility := gitlab.PrivateVisibility
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		var id int64
		if _, err := fmt.Sscanf(in.URL.Path, at+"/members/all/%d", &id); err != nil {
			encode(out, gitlab.Project{Visibility: visibility})
			return
		}
		m := gitlab.ProjectMember{ID: id, State: "active", AccessLevel: gitlab.AccessLevelValue(id)}
		switch id {
		case 1000:
			out.WriteHeader(http.StatusNotFound)
			return
		case 1001:
			m.State, m.AccessLevel = "blocked", gitlab.OwnerPermissions
		}
		encode(out, m)
	})
	for id, want := range map[int64]hosts.Permission{
		0: hosts.NoPermission, 5: hosts.NoPermission, 10: hosts.ReadPermission, 15: hosts.ReadPermission, 20: hosts.ReadPermission, 30: hosts.WritePermission,
		40: hosts.AdminPermission, 50: hosts.AdminPermission, 1000: hosts.NoPermission, 1001: hosts.NoPermission,
	} {
		if got, err := r.permission(t.Context(), hosts.User{ID: id}); err != nil || got != want {
			t.Errorf("with %d it is %v, want %v: %v", id, got, want, err)
		}
	}
	visibility, r.settings = gitlab.PublicVisibility, nil
	if got, err := r.permission(t.Context(), hosts.User{ID: 1000}); err != nil || got != hosts.ReadPermission {
		t.Errorf("of somebody at a public project it is %v: %v", got, err)
	}
}

// TestThePipelineIsJudgedWithoutTheQueue, whose status is in it and pending.
func TestThePipelineIsJudgedWithoutTheQueue(t *testing.T) {
	s := func(pipeline int64, name, status string) *gitlab.CommitStatus {
		return &gitlab.CommitStatus{PipelineID: pipeline, Name: name, Status: status}
	}
	own := s(2, "Landfall (main)", "pending")
	allowed := s(2, "lint", "failed")
	allowed.AllowFailure = true
	parents := map[string][]string{"m": {"main", "h"}, "n": {"main", "old"}}
	for name, c := range map[string]struct {
		head     *gitlab.Pipeline
		statuses []*gitlab.CommitStatus
		want     string
	}{
		"none":                            {nil, nil, ""},
		"the queue's alone":               {&gitlab.Pipeline{ID: 2, SHA: "h", Status: "pending"}, []*gitlab.CommitStatus{own}, ""},
		"passed":                          {&gitlab.Pipeline{ID: 2, SHA: "h", Status: "pending"}, []*gitlab.CommitStatus{own, s(2, "test", "success")}, "success"},
		"may fail":                        {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{allowed}, "success"},
		"runs":                            {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{own, s(2, "test", "success"), s(2, "e2e", "created")}, "created"},
		"failed, and runs":                {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{s(2, "test", "failed"), s(2, "e2e", "running")}, "failed"},
		"waits for somebody":              {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{s(2, "test", "success"), s(2, "deploy", "manual")}, "manual"},
		"partly skipped":                  {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{s(2, "test", "success"), s(2, "e2e", "skipped")}, "success"},
		"skipped":                         {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{s(2, "test", "skipped")}, "skipped"},
		"an older one of the branch":      {&gitlab.Pipeline{ID: 3, SHA: "h"}, []*gitlab.CommitStatus{s(1, "test", "failed"), s(3, "test", "success")}, "success"},
		"the queue's is the head's":       {&gitlab.Pipeline{ID: 2, SHA: "h"}, []*gitlab.CommitStatus{own, s(1, "test", "failed")}, "failed"},
		"a later one beside the head's":   {&gitlab.Pipeline{ID: 3, SHA: "h"}, []*gitlab.CommitStatus{s(3, "test", "success"), s(4, "nightly", "failed")}, "success"},
		"of the result of merging":        {&gitlab.Pipeline{ID: 5, SHA: "m", Status: "running"}, []*gitlab.CommitStatus{s(2, "test", "success")}, "running"},
		"of merging an older head":        {&gitlab.Pipeline{ID: 5, SHA: "n", Status: "success"}, []*gitlab.CommitStatus{s(2, "test", "success")}, ""},
		"of an older head":                {&gitlab.Pipeline{ID: 1, SHA: "old", Status: "success"}, []*gitlab.CommitStatus{own}, ""},
		"the only one of the commit runs": {nil, []*gitlab.CommitStatus{s(2, "test", "running")}, "running"},
	} {
		m := &gitlab.MergeRequest{BasicMergeRequest: gitlab.BasicMergeRequest{SHA: "h"}, HeadPipeline: c.head}
		var merged []string
		if c.head != nil {
			merged = parents[c.head.SHA]
		}
		if got := pipelineState(m, c.statuses, merged); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	checks := newest([]*gitlab.CommitStatus{{ID: 1, Name: "ci", Status: "success"}, {ID: 2, Name: "ci", Status: "running"}, {ID: 3, Name: "lint", Status: "success"}})
	if want := []hosts.Check{{Name: "ci", State: "running"}, {Name: "lint", State: "success", Passed: true}}; !slices.Equal(checks, want) {
		t.Errorf("the newest are %+v", checks)
	}
}

// TestGitLabIsLeftAloneUntilItTakesMore, as long as it says and no longer than an hour.
func TestGitLabIsLeftAloneUntilItTakesMore(t *testing.T) {
	for name, c := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"Retry-After":      {map[string]string{"Retry-After": "30", "RateLimit-Reset": fmt.Sprint(time.Now().Unix() + 300)}, 30 * time.Second},
		"RateLimit-Reset":  {map[string]string{"RateLimit-Reset": fmt.Sprint(time.Now().Unix() + 300)}, 300 * time.Second},
		"nothing":          {nil, limitPause},
		"no sense":         {map[string]string{"Retry-After": "soon", "RateLimit-Reset": "-1"}, limitPause},
		"a day":            {map[string]string{"Retry-After": "86400"}, maxPause},
		"a time gone by":   {map[string]string{"RateLimit-Reset": "1"}, limitPause},
		"at once, it says": {map[string]string{"Retry-After": "0"}, limitPause},
	} {
		asked := 0
		r := serve(t, func(out http.ResponseWriter, _ *http.Request) {
			asked++
			for name, value := range c.header {
				out.Header().Set(name, value)
			}
			out.WriteHeader(http.StatusTooManyRequests)
		})
		for range 3 {
			_, err := r.List(t.Context(), 0)
			var later *hosts.Later
			if !errors.As(err, &later) || (time.Until(later.Until)-c.want).Abs() > 20*time.Second {
				t.Errorf("%s: %v, %+v", name, err, later)
			}
		}
		if asked != 1 {
			t.Errorf("%s: it is asked %d times", name, asked)
		}
	}
}

// TestWhereLittleIsLeftWhatEndsIsSaid, and what can wait is not; where nothing is left, nothing.
func TestWhereLittleIsLeftWhatEndsIsSaid(t *testing.T) {
	remaining := "1000"
	r := serve(t, func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("RateLimit-Limit", "2000")
		out.Header().Set("RateLimit-Remaining", remaining)
		out.Header().Set("RateLimit-Reset", fmt.Sprint(time.Now().Unix()+60))
		switch in.URL.Path {
		case "/api/v4/user":
			encode(out, gitlab.BasicUser{ID: 9})
		case at + "/repository/commits/c/statuses":
			encode(out, []gitlab.CommitStatus{})
		default:
			encode(out, gitlab.CommitStatus{ID: 1, PipelineID: 2})
		}
	})
	set := func(state, text string) error {
		return r.SetStatus(t.Context(), "c", hosts.Status{State: state, Text: text})
	}
	later := func(err error) bool {
		var l *hosts.Later
		return errors.As(err, &l)
	}
	if err := set(hosts.StatusPending, "Asked to land"); err != nil {
		t.Fatal(err)
	}
	remaining = "199"
	if err := set(hosts.StatusPending, "1st in the queue"); err != nil {
		t.Fatal(err) // the answer says that little is left
	}
	if err := set(hosts.StatusPending, "2nd in the queue"); !later(err) {
		t.Errorf("a place is said: %v", err)
	}
	remaining = "0"
	if err := set(hosts.StatusSuccess, "Landed"); err != nil {
		t.Errorf("what landed: %v", err)
	}
	if err := set(hosts.StatusFailure, "Rejected"); !later(err) {
		t.Errorf("where nothing is left it is asked: %v", err)
	}
}
