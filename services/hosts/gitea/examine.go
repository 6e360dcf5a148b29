package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"landfall.build/services/hosts"
)

// wanted are the events of the webhook, as Gitea lists them.
var wanted = []string{"pull_request", "pull_request_label", "pull_request_comment", "pull_request_sync", "issue_comment"}

// Examine implements hosts.Host.
func (r *Repository) Examine(ctx context.Context, path string) (out hosts.Examined) {
	add := out.Add
	login, err := r.ownLogin(ctx)
	switch {
	case hosts.IsStatus(err, http.StatusUnauthorized), hosts.IsStatus(err, http.StatusForbidden):
		add("host_token_refused", fmt.Sprintf("%s does not take the token: %v", r.URL, err), "Make one with the scopes write:repository, write:issue and read:user (Settings, Applications).")
		return out
	case err != nil:
		add("host_unreachable", fmt.Sprintf("%s cannot be asked: %v", r.URL, err), "Correct the address in hosts.servers, or start the server.")
		return out
	}
	var repository struct {
		Permissions struct{ Admin, Push bool }
		Archived    bool
		Manual      bool `json:"allow_manual_merge"`
		Pulls       bool `json:"has_pull_requests"`
	}
	if err := r.call(ctx, http.MethodGet, r.repo(""), nil, &repository); err != nil {
		add("host_repository_missing", fmt.Sprintf("%s cannot see %s: %v", login, r.Repository, err), "Correct the name in hosts.servers, and add the account under Settings, Collaborators.")
		return out
	}
	if !repository.Permissions.Admin {
		add("host_permission_missing", fmt.Sprintf("%s is no administrator of %s, so Gitea does not say what others may do there", login, r.Repository), "Give it Administrator under Settings, Collaborators.")
	}
	if repository.Archived || !repository.Pulls {
		add("host_pulls_off", fmt.Sprintf("%s takes no pull requests", r.Repository), "Switch pull requests on in its settings, or unarchive it.")
	}
	if !repository.Manual {
		add("host_merges_unmarked", fmt.Sprintf("in %s a pull request cannot be marked as merged", r.Repository), "Allow \"Mark pull request as manually merged\" under Settings, Repository, Pull Requests.")
	}
	r.examineBranch(ctx, login, add)
	labels := 0
	if err := pages(ctx, r, r.repo("/labels"), func(list []label) bool {
		if r.labelled(list) {
			labels++
		}
		return len(list) == pageSize
	}); err != nil {
		add("check_failed", fmt.Sprintf("the labels of %s cannot be read: %v", r.Repository, err), "")
	} else if labels == 0 {
		add("host_label_missing", fmt.Sprintf("%s has no label %s", r.Repository, r.Label), "Make it under Issues, Labels.")
	}
	if repository.Permissions.Admin {
		r.examineHooks(ctx, path, &out, add)
	}
	return out
}

// examineBranch looks at whether the queue may push to the branch, and nobody else.
func (r *Repository) examineBranch(ctx context.Context, login string, add func(code, message, advice string)) {
	var b struct {
		Protected bool
		CanPush   bool   `json:"user_can_push"`
		Rule      string `json:"effective_branch_protection_name"`
	}
	err := r.call(ctx, http.MethodGet, r.repo("/branches/%s", url.PathEscape(r.Branch)), nil, &b)
	switch {
	case hosts.IsStatus(err, http.StatusNotFound):
		add("branch_missing", fmt.Sprintf("%s has no branch %s", r.Repository, r.Branch), "Push it, or correct the queue's branch.")
		return
	case err != nil:
		add("check_failed", fmt.Sprintf("the branch %s cannot be read: %v", r.Branch, err), "")
		return
	case !b.CanPush:
		add("push_refused", fmt.Sprintf("%s may not push to %s", login, r.Branch), "Put it on the list of those who may push, in the branch's protection.")
	}
	if !b.Protected {
		add("host_branch_open", fmt.Sprintf("%s is not protected: whoever may write can push past the queue", r.Branch), "Protect it, and let nobody push but "+login+".")
		return
	}
	var p struct {
		Push      bool     `json:"enable_push"`
		Listed    bool     `json:"enable_push_whitelist"`
		Usernames []string `json:"push_whitelist_usernames"`
		Teams     []string `json:"push_whitelist_teams"`
	}
	if b.Rule == "" || r.call(ctx, http.MethodGet, r.repo("/branch_protections/%s", url.PathEscape(b.Rule)), nil, &p) != nil || !p.Push {
		return
	}
	if !p.Listed {
		add("host_branch_open", fmt.Sprintf("everybody who may write can push to %s past the queue", r.Branch), "Limit pushing in the branch's protection to "+login+".")
		return
	}
	others := slices.DeleteFunc(append(p.Usernames, p.Teams...), func(name string) bool { return strings.EqualFold(name, login) })
	if len(others) > 0 {
		add("host_branch_open", fmt.Sprintf("%s can push to %s past the queue", hosts.Clip(strings.Join(others, ", "), 200), r.Branch), "Take them off the list of those who may push.")
	}
}

// examineHooks looks for the webhook, whose address ends in path.
func (r *Repository) examineHooks(ctx context.Context, path string, out *hosts.Examined, add func(code, message, advice string)) {
	type hook struct {
		ID     int64
		Active bool
		Events []string
		Config struct {
			URL  string `json:"url"`
			Type string `json:"content_type"`
		}
	}
	var found *hook
	if err := pages(ctx, r, r.repo("/hooks"), func(list []hook) bool {
		for _, h := range list {
			if hosts.LeadsTo(h.Config.URL, path) && (found == nil || h.Active) {
				found = &h
			}
		}
		return len(list) == pageSize
	}); err != nil {
		add("check_failed", fmt.Sprintf("the webhooks of %s cannot be read: %v", r.Repository, err), "")
		return
	}
	switch {
	case found == nil:
		add("host_webhook_missing", fmt.Sprintf("%s has no webhook to %s", r.Repository, path), "Add it under Settings, Webhooks. One that is of the whole organization is not seen here.")
		return
	case !found.Active:
		add("host_webhook_missing", fmt.Sprintf("the webhook to %s is not active", path), "Switch it on under Settings, Webhooks.")
		return
	case found.Config.Type != "json":
		add("host_webhook_incomplete", "the webhook does not send application/json", "Change its content type.")
	}
	if lacking := slices.DeleteFunc(slices.Clone(wanted), func(event string) bool { return slices.Contains(found.Events, event) }); len(lacking) > 0 {
		add("host_webhook_incomplete", "the webhook does not tell of "+strings.Join(lacking, ", "), "Choose these events in it.")
	}
	out.Webhook = found.Config.URL
	if slices.Contains(found.Events, "push") {
		out.Try = func(ctx context.Context) error {
			return r.call(ctx, http.MethodPost, r.repo("/hooks/%d/tests", found.ID), nil, nil)
		}
	}
}
