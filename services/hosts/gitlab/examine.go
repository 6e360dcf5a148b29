package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/engine/targets"
	"landfall.build/services/hosts"
)

// scope is what the token must be good for.
const scope = "api"

// expiryNotice is how long before its end a token is spoken of.
const expiryNotice = 14 * 24 * time.Hour

// examination gathers what an examination finds.
type examination struct {
	*Repository
	out hosts.Examined
}

// Examine implements hosts.Host.
func (r *Repository) Examine(ctx context.Context, path string) hosts.Examined {
	x := &examination{Repository: r}
	self, err := r.who(ctx)
	switch {
	case hosts.IsStatus(err, http.StatusUnauthorized), hosts.IsStatus(err, http.StatusForbidden), hosts.IsStatus(err, http.StatusNotFound):
		x.out.Add("host_token_refused", fmt.Sprintf("%s does not take the token: %v", r.url, err), "Make one with the scope api: Settings, Access tokens of the project, or of the account that is to answer.")
		return x.out
	case err != nil:
		x.out.Add("host_unreachable", fmt.Sprintf("%s cannot be asked: %v", r.url, err), "Correct the address in hosts.servers, or look at the network.")
		return x.out
	}
	x.examineToken(ctx)
	p, err := r.project(ctx)
	if err != nil {
		x.out.Add("host_repository_missing", fmt.Sprintf("%s cannot see %s: %v", self.Login, r.Project, err), "Correct the path in hosts.servers (group/name, with all groups above), and give the account the role Maintainer there (Manage, Members).")
		return x.out
	}
	may, err := r.permission(ctx, self)
	switch {
	case err != nil:
		x.out.Add("check_failed", fmt.Sprintf("the role of %s in %s cannot be read: %v", self.Login, r.Project, err), "")
	case may < hosts.WritePermission:
		x.out.Add("host_permission_missing", fmt.Sprintf("%s may not set statuses in %s", self.Login, r.Project), "Give it the role Maintainer (Manage, Members); with Developer all goes but this look at the branch and the webhook.")
	}
	x.examineSettings(p)
	x.examineBranch(ctx, self, may)
	if _, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Label, *gitlab.Response, error) {
		return r.client.Labels.GetLabel(r.Project, r.Label, option)
	}); hosts.IsStatus(err, http.StatusNotFound) {
		x.out.Add("host_label_missing", fmt.Sprintf("%s has no label %s", r.Project, r.Label), "Make it under Manage, Labels.")
	} else if err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the labels of %s cannot be read: %v", r.Project, err), "")
	}
	if may == hosts.AdminPermission {
		x.examineHooks(ctx, path)
	}
	return x.out
}

// examineToken looks at what the token is good for, and how long. A token of OAuth says neither.
func (x *examination) examineToken(ctx context.Context) {
	t, err := ask(ctx, x.Server, func(option gitlab.RequestOptionFunc) (*gitlab.PersonalAccessToken, *gitlab.Response, error) {
		return x.client.PersonalAccessTokens.GetSinglePersonalAccessToken(option)
	})
	if err != nil {
		return
	}
	if !slices.Contains(t.Scopes, scope) {
		x.out.Add("host_permission_missing", fmt.Sprintf("the token has the scopes %s, and not %s", hosts.Clip(strings.Join(t.Scopes, ", "), 200), scope), "Make one with the scope api.")
	}
	if t.ExpiresAt != nil && time.Until(time.Time(*t.ExpiresAt)) < expiryNotice {
		x.out.Add("host_token_ends", fmt.Sprintf("the token ends on %s", time.Time(*t.ExpiresAt).Format(time.DateOnly)), "Make another one, and put it in the place of this one: it is read again within a minute.")
	}
}

// examineSettings looks at how the project merges.
func (x *examination) examineSettings(p *gitlab.Project) {
	if p.Archived || p.MergeRequestsAccessLevel == gitlab.DisabledAccessControl {
		x.out.Add("host_pulls_off", x.Project+" takes no merge requests", "Unarchive it, or switch merge requests on under Settings, General, Visibility.")
	}
	if p.MergeTrainsEnabled {
		x.out.Add("host_queue_other", x.Project+" has merge trains", "Switch them off under Settings, Merge requests: two queues for one branch undo each other's order.")
	}
	switch {
	case !x.Merges && !x.Moves:
		x.out.Add("host_merges_unmarked", fmt.Sprintf("what the queue %s lands is closed in %s with a note and the label %s, and not shown as merged: the commits that land are not those of the merge request", x.Queue, x.Project, hosts.LandedLabel),
			"Set branches: move at the host, or the queue's strategy to merge, if GitLab is to show what landed as merged.")
	case x.Merges && p.MergeMethod == gitlab.FastForwardMerge:
		x.out.Add("host_method_other", fmt.Sprintf("%s asks for a history without merge commits, and the queue %s makes them", x.Project, x.Queue),
			"Set the merge method to Merge commit under Settings, Merge requests, or the queue's strategy to rebase or squash.")
	}
}

// examineBranch looks at whether the queue may push to the branch, and nobody else.
func (x *examination) examineBranch(ctx context.Context, self hosts.User, may hosts.Permission) {
	b, err := ask(ctx, x.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Branch, *gitlab.Response, error) {
		return x.client.Branches.GetBranch(x.Project, x.Branch, option)
	})
	switch {
	case hosts.IsStatus(err, http.StatusNotFound):
		x.out.Add("branch_missing", fmt.Sprintf("%s has no branch %s", x.Project, x.Branch), "Push it, or correct the queue's branch.")
		return
	case err != nil:
		x.out.Add("check_failed", fmt.Sprintf("the branch %s cannot be read: %v", x.Branch, err), "")
		return
	case !b.Protected:
		x.out.Add("host_branch_open", fmt.Sprintf("%s is not protected: whoever may write can push past the queue", x.Branch),
			"Protect it under Settings, Repository, Protected branches: nobody may merge, and nobody push but the key or the account that the queue pushes with.")
		return
	}
	var pushes bool
	var others []string
	err = pages(ctx, x.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.ProtectedBranch, *gitlab.Response, error) {
		return x.client.ProtectedBranches.ListProtectedBranches(x.Project, &gitlab.ListProtectedBranchesOptions{ListOptions: page}, option)
	}, func(list []*gitlab.ProtectedBranch) bool {
		for _, p := range list {
			if p.Name != x.Branch && !targets.NewNamePatterns([]string{p.Name}).Has(x.Branch) {
				continue
			}
			for _, level := range p.PushAccessLevels {
				pushes = pushes || level.DeployKeyID != 0
				others = append(others, whoElse(level, self, "push")...)
			}
			for _, level := range p.MergeAccessLevels {
				others = append(others, whoElse(level, self, "merge")...)
			}
		}
		return true
	})
	if err != nil {
		if may == hosts.AdminPermission {
			x.out.Add("check_failed", fmt.Sprintf("the protected branches of %s cannot be read: %v", x.Project, err), "")
		}
		return
	}
	if !b.CanPush && !pushes {
		x.out.Add("push_refused", fmt.Sprintf("neither %s nor a deploy key may push to %s", self.Login, x.Branch), "Add the deploy key or the account that the queue pushes with to Allowed to push and merge, under Settings, Repository, Protected branches.")
	}
	if slices.Sort(others); len(others) > 0 {
		x.out.Add("host_branch_open", fmt.Sprintf("%s can be changed past the queue: %s", x.Branch, hosts.Clip(strings.Join(slices.Compact(others), ", "), 200)),
			"Under Settings, Repository, Protected branches let nobody merge, and nobody push but the key or the account that the queue pushes with.")
	}
}

// whoElse says who may do something by an access level of a protected branch, besides the account and deploy keys.
func whoElse(level *gitlab.BranchAccessDescription, self hosts.User, verb string) []string {
	if level.DeployKeyID != 0 || level.UserID == self.ID || level.UserID == 0 && level.GroupID == 0 && level.AccessLevel == gitlab.NoPermissions {
		return nil
	}
	return []string{hosts.Clip(level.AccessLevelDescription, 60) + " may " + verb}
}

// examineHooks looks for the webhook, whose address ends in path.
func (x *examination) examineHooks(ctx context.Context, path string) {
	var found *gitlab.ProjectHook
	if err := pages(ctx, x.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.ProjectHook, *gitlab.Response, error) {
		return x.client.Projects.ListProjectHooks(x.Project, &gitlab.ListProjectHooksOptions{ListOptions: page}, option)
	}, func(list []*gitlab.ProjectHook) bool {
		for _, h := range list {
			if hosts.LeadsTo(h.URL, path) && (found == nil || isOn(h)) {
				found = h
			}
		}
		return true
	}); err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the webhooks of %s cannot be read: %v", x.Project, err), "")
		return
	}
	switch {
	case found == nil:
		x.out.Add("host_webhook_missing", fmt.Sprintf("%s has no webhook to %s", x.Project, path), "Add it under Settings, Webhooks. One that is of a group is not seen here.")
		return
	case !isOn(found):
		x.out.Add("host_webhook_missing", fmt.Sprintf("GitLab has switched the webhook to %s off: too many were not taken", path), "Look at Recent events of the webhook (Settings, Webhooks), mend what is wrong, and send a test there, which switches it on.")
	}
	var lacking []string
	for name, on := range map[string]bool{"Comments": found.NoteEvents, "Merge request events": found.MergeRequestsEvents, "Job events": found.JobEvents, "Pipeline events": found.PipelineEvents} {
		if !on {
			lacking = append(lacking, name)
		}
	}
	if slices.Sort(lacking); len(lacking) > 0 {
		x.out.Add("host_webhook_incomplete", "the webhook does not tell of "+strings.Join(lacking, ", "), "Choose these triggers in it.")
	}
	if found.CustomWebhookTemplate != "" {
		x.out.Add("host_webhook_incomplete", "the webhook has a body of its own", "Take its custom webhook template away.")
	}
	x.out.Webhook = found.URL
	x.out.Try = func(ctx context.Context) error {
		// Of a push GitLab always has an example.
		_, err := ask(ctx, x.Server, func(option gitlab.RequestOptionFunc) (struct{}, *gitlab.Response, error) {
			response, err := x.client.Projects.TriggerTestProjectHook(x.Project, found.ID, gitlab.ProjectHookEventPush, option)
			return struct{}{}, response, err
		})
		return err
	}
}

// isOn reports whether GitLab sends a webhook: it switches one off, for some time or until it is tested, that fails again and again.
func isOn(h *gitlab.ProjectHook) bool { return h.AlertStatus == "" || h.AlertStatus == "executable" }
