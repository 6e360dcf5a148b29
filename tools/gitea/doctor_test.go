package gitea_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"landfall.build/services/hosts"
	"landfall.build/services/hosts/gitea"
)

// TestEachFaultAtGiteaIsFound sets a repository up step by step, and takes away what the account needs.
func TestEachFaultAtGiteaIsFound(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_GITEA") == "" {
		t.Skip("LANDFALL_TEST_GITEA names no Gitea: make hosts-test")
	}
	r := newRepository(t).(*repository)
	r.AddUser("bot", "admin")
	r.AddUser("ada", "write")
	examine := func(change func(*gitea.Options)) hosts.Examined {
		o := gitea.Options{URL: r.gitea, Repository: r.name, Branch: "main", Queue: "main", Label: "landfall",
			Token: func(context.Context) ([]byte, error) { return []byte(r.tokens["bot"]), nil }}
		if change != nil {
			change(&o)
		}
		return gitea.New(o).Examine(t.Context(), "/v1/hosts/forge")
	}
	expect := func(when string, found hosts.Examined, want ...string) {
		t.Helper()
		var got []string
		for _, p := range found.Problems {
			got = append(got, p.Code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s it finds %v, want %v: %+v", when, got, want, found.Problems)
		}
	}
	expect("with another token", examine(func(o *gitea.Options) {
		o.Token = func(context.Context) ([]byte, error) { return []byte("0123456789012345678901234567890123456789"), nil }
	}), "host_token_refused")
	expect("where nobody listens", examine(func(o *gitea.Options) { o.URL = "http://127.0.0.1:1" }), "host_unreachable")
	expect("with another repository", examine(func(o *gitea.Options) { o.Repository = "root1/none" }), "host_repository_missing")
	r.must("root", "PATCH", r.repo(""), map[string]any{"has_pull_requests": true, "allow_manual_merge": false}, nil)
	expect("of what is empty", examine(nil), "host_merges_unmarked", "branch_missing", "host_label_missing", "host_webhook_missing")
	r.must("root", "PATCH", r.repo(""), map[string]any{"has_pull_requests": true, "allow_manual_merge": true}, nil)
	r.must("bot", "POST", r.repo("/contents/a.txt"), map[string]string{"content": "YQ==", "branch": "main", "message": "first"}, nil)
	r.Ready("landfall")
	came := make(chan struct{}, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came <- struct{}{} }))
	defer receiver.Close()
	r.must("root", "POST", r.repo("/hooks"), map[string]any{"type": "gitea", "active": true, "events": []string{"push"},
		"config": map[string]string{"url": receiver.URL + "/v1/hosts/forge", "content_type": "json", "secret": "s"}}, nil)
	expect("with a webhook that tells of pushes", examine(nil), "host_branch_open", "host_webhook_incomplete")
	r.must("root", "POST", r.repo("/branch_protections"), map[string]any{"rule_name": "main", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"bot", "ada"}}, nil)
	expect("where somebody else may push", examine(nil), "host_branch_open", "host_webhook_incomplete")
	r.must("root", "PATCH", r.repo("/branch_protections/main"), map[string]any{"enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"ada"}}, nil)
	expect("where the account may not push", examine(nil), "push_refused", "host_branch_open", "host_webhook_incomplete")
	r.must("root", "PATCH", r.repo("/branch_protections/main"), map[string]any{"enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"bot"}}, nil)
	expect("of an account that may only write", examine(func(o *gitea.Options) {
		o.Token = func(context.Context) ([]byte, error) { return []byte(r.tokens["ada"]), nil }
	}), "host_permission_missing", "push_refused")
	found := examine(nil)
	expect("with all but the events", found, "host_webhook_incomplete")
	if found.Try == nil || found.Webhook != receiver.URL+"/v1/hosts/forge" {
		t.Fatalf("the webhook is %q, and can be tried: %v", found.Webhook, found.Try != nil)
	}
	if err := found.Try(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-came:
	case <-time.After(30 * time.Second):
		t.Error("no webhook came")
	}
}
