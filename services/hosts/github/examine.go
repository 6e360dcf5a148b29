package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// Events are those that the webhook must tell of.
var Events = []string{"check_run", "issue_comment", "pull_request", "pull_request_review", "status"}

// Permissions are those that the App needs in a repository.
var Permissions = map[string]string{
	"administration": "read", "checks": "write", "contents": "read", "issues": "write", "metadata": "read", "pull_requests": "write", "statuses": "read",
}

// examination gathers what an examination finds.
type examination struct {
	*Repository
	out hosts.Examined
}

// Examine implements hosts.Host.
func (r *Repository) Examine(ctx context.Context, path string) hosts.Examined {
	x := &examination{Repository: r}
	full := r.Owner + "/" + r.Name
	login, _, err := r.who(ctx)
	switch {
	case hosts.IsStatus(err, http.StatusUnauthorized), hosts.IsStatus(err, http.StatusForbidden), hosts.IsStatus(err, http.StatusNotFound):
		x.out.Add("host_token_refused", fmt.Sprintf("%s does not take the token: %v", r.server.URL, err), r.keyAdvice())
		return x.out
	case errors.Is(err, errKey):
		x.out.Add("host_token_refused", err.Error(), r.keyAdvice())
		return x.out
	case err != nil:
		x.out.Add("host_unreachable", fmt.Sprintf("%s cannot be asked: %v", r.server.URL, err), "Correct the address in hosts.servers, or look at the network.")
		return x.out
	}
	repository, err := ask(ctx, r.account, func() (*github.Repository, *github.Response, error) {
		return r.client.Repositories.Get(ctx, r.Owner, r.Name)
	})
	if err != nil {
		advice := "Correct the name in hosts.servers, and give the account Write under Settings, Collaborators."
		if r.app != nil {
			advice = "Correct the name in hosts.servers, and install the App in the repository (the App's page, Install App)."
		}
		x.out.Add("host_repository_missing", fmt.Sprintf("%s cannot see %s: %v", login, full, err), advice)
		return x.out
	}
	if repository.GetArchived() {
		x.out.Add("host_pulls_off", full+" is archived", "Unarchive it.")
	}
	if !r.Merges && !r.Moves {
		x.out.Add("host_merges_unmarked", fmt.Sprintf("what the queue %s lands is closed in %s with a comment and the label %s, and not shown as merged: the commits that land are not those of the pull request", r.Queue, full, hosts.LandedLabel),
			"Set branches: move at the host, or the queue's strategy to merge, if GitHub is to show what landed as merged.")
	}
	x.examinePermissions(login, repository)
	if d, err := r.readDemands(ctx); hosts.IsStatus(err, http.StatusNotFound) {
		x.out.Add("branch_missing", fmt.Sprintf("%s has no branch %s", full, r.Branch), "Push it, or correct the queue's branch.")
	} else if err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the rules of the branch %s cannot be read: %v", r.Branch, err), "")
	} else {
		x.examineBranch(ctx, d)
	}
	if _, err := ask(ctx, r.account, func() (*github.Label, *github.Response, error) {
		return r.client.Issues.GetLabel(ctx, r.Owner, r.Name, r.Label)
	}); hosts.IsStatus(err, http.StatusNotFound) {
		x.out.Add("host_label_missing", fmt.Sprintf("%s has no label %s", full, r.Label), "Make it under Issues, Labels.")
	} else if err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the labels of %s cannot be read: %v", full, err), "")
	}
	if r.app != nil {
		x.examineApp(ctx, path)
	} else if repository.GetPermissions().GetAdmin() {
		x.examineHooks(ctx, path)
	}
	return x.out
}

func (r *Repository) keyAdvice() string {
	if r.app != nil {
		return "Give app the App's client id, and token a private key that its page made (General, Private keys)."
	}
	return "Make one with the scope repo (Settings, Developer settings, Personal access tokens)."
}

// examinePermissions looks at what who answers may do.
func (x *examination) examinePermissions(login string, repository *github.Repository) {
	const code = "host_permission_missing"
	if x.app == nil {
		if !repository.GetPermissions().GetPush() {
			x.out.Add(code, fmt.Sprintf("%s may not write to %s/%s", login, x.Owner, x.Name), "Give it Write under Settings, Collaborators.")
		}
		return
	}
	x.account.mu.Lock()
	granted := granted(x.installation.GetPermissions())
	x.account.mu.Unlock()
	var lacking []string
	for name, level := range Permissions {
		if got := granted[name]; got == "" || level == "write" && got == "read" {
			lacking = append(lacking, name+": "+level)
		}
	}
	if slices.Sort(lacking); len(lacking) > 0 {
		x.out.Add(code, fmt.Sprintf("the App lacks permissions in %s/%s: %s", x.Owner, x.Name, strings.Join(lacking, ", ")),
			"Give it these on its page (Permissions & events), and accept them where it is installed.")
	}
}

// granted returns the permissions of an installation by name.
func granted(p *github.InstallationPermissions) map[string]string {
	return map[string]string{
		"administration": p.GetAdministration(), "checks": p.GetChecks(), "contents": p.GetContents(), "issues": p.GetIssues(),
		"metadata": p.GetMetadata(), "pull_requests": p.GetPullRequests(), "statuses": p.GetStatuses(),
	}
}

// examineBranch looks at whether the queue may push to the branch, and nobody else.
func (x *examination) examineBranch(ctx context.Context, d demands) {
	if len(d.rules.GetMergeQueue()) > 0 {
		x.out.Add("host_queue_other", fmt.Sprintf("the branch %s requires GitHub's own merge queue", x.Branch), "Take that rule off the branch: two queues for one branch undo each other's order.")
	}
	if len(d.checks) > 0 {
		if _, err := x.checks(ctx, x.Branch, true); err != nil {
			x.out.Add("host_permission_missing", fmt.Sprintf("the checks that the branch requires cannot be read: %v", err), "Give the App, or the token, reading of checks and commit statuses.")
		}
	}
	restricted := false
	for _, rule := range d.rules.GetUpdate() {
		restricted = true
		x.examineBypass(ctx, rule.RulesetID)
	}
	protection, err := ask(ctx, x.account, func() (*github.Protection, *github.Response, error) {
		return x.client.Repositories.GetBranchProtection(ctx, x.Owner, x.Name, x.Branch)
	})
	if limits := protection.GetRestrictions(); err == nil && limits != nil {
		restricted = true
		var who []string
		for _, u := range limits.Users {
			who = append(who, u.GetLogin())
		}
		for _, t := range limits.Teams {
			who = append(who, "the team "+t.GetSlug())
		}
		if len(who) > 1 || len(limits.Teams) > 0 {
			x.open(strings.Join(who, ", "))
		}
	}
	if !restricted {
		x.out.Add("host_branch_open", fmt.Sprintf("whoever may write can push to %s and merge into it past the queue", x.Branch),
			"Add a ruleset for it with Restrict updates, and let nobody bypass it but the key that the queue pushes with.")
	}
}

// examineBypass looks at who may push past a ruleset that restricts updates. GitHub tells it only to those who may change the ruleset.
func (x *examination) examineBypass(ctx context.Context, id int64) {
	ruleset, err := ask(ctx, x.account, func() (*github.RepositoryRuleset, *github.Response, error) {
		return x.client.Repositories.GetRuleset(ctx, x.Owner, x.Name, id, true)
	})
	if err != nil || ruleset.BypassActors == nil {
		return
	}
	var others []string
	pushes := false
	for _, actor := range ruleset.BypassActors {
		switch {
		case actor.GetBypassMode() != nil && *actor.GetBypassMode() == github.BypassModePullRequest:
			others = append(others, fmt.Sprintf("%s (by pull requests)", *actor.GetActorType()))
		case actor.GetActorType() == nil:
		case *actor.GetActorType() == github.BypassActorTypeDeployKey, *actor.GetActorType() == github.BypassActorTypeIntegration, *actor.GetActorType() == "User":
			pushes = true
		default:
			others = append(others, string(*actor.GetActorType()))
		}
	}
	if !pushes {
		x.out.Add("push_refused", fmt.Sprintf("the ruleset %s lets neither a deploy key nor an account of its own push to %s", hosts.Clip(ruleset.Name, 100), x.Branch),
			"Add the key that the queue pushes with to the ruleset's bypass list (Deploy keys).")
	}
	if len(others) > 0 {
		x.open(strings.Join(others, ", "))
	}
}

func (x *examination) open(who string) {
	x.out.Add("host_branch_open", fmt.Sprintf("%s can push to %s past the queue", hosts.Clip(who, 200), x.Branch), "Take them off the list of those who may.")
}

// examineApp looks at the App's webhook.
func (x *examination) examineApp(ctx context.Context, path string) {
	hook, err := ask(ctx, x.account, func() (*github.HookConfig, *github.Response, error) { return x.app.Apps.GetHookConfig(ctx) })
	if err != nil && !hosts.IsStatus(err, http.StatusNotFound) {
		x.out.Add("check_failed", fmt.Sprintf("the App's webhook cannot be read: %v", err), "")
		return
	}
	self, err := ask(ctx, x.account, func() (*github.App, *github.Response, error) { return x.app.Apps.Get(ctx, "") })
	if err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the App's events cannot be read: %v", err), "")
		return
	}
	if !hosts.LeadsTo(hook.GetURL(), path) {
		x.out.Add("host_webhook_missing", "the App has no webhook to "+path, "Set its address on the App's page (General, Webhook).")
		return
	}
	x.examineWebhook(hook, self.Events)
	deliveries, err := ask(ctx, x.account, func() ([]*github.HookDelivery, *github.Response, error) {
		return x.app.Apps.ListHookDeliveries(ctx, &github.ListCursorOptions{PerPage: 1})
	})
	if err != nil || len(deliveries) == 0 {
		return
	}
	// One that was taken is refused as known, which shows that it came.
	x.out.Try = func(ctx context.Context) error {
		_, err := ask(ctx, x.account, func() (*github.HookDelivery, *github.Response, error) {
			d, response, err := x.app.Apps.RedeliverHookDelivery(ctx, deliveries[0].GetID())
			if accepted := (*github.AcceptedError)(nil); errors.As(err, &accepted) {
				err = nil
			}
			return d, response, err
		})
		return err
	}
}

// examineHooks looks for the repository's webhook, whose address ends in path.
func (x *examination) examineHooks(ctx context.Context, path string) {
	var found *github.Hook
	if err := pages(ctx, x.account, func(page github.ListOptions) ([]*github.Hook, *github.Response, error) {
		return x.client.Repositories.ListHooks(ctx, x.Owner, x.Name, &page)
	}, func(list []*github.Hook) bool {
		for _, h := range list {
			if hosts.LeadsTo(h.GetConfig().GetURL(), path) && (found == nil || h.GetActive()) {
				found = h
			}
		}
		return true
	}); err != nil {
		x.out.Add("check_failed", fmt.Sprintf("the webhooks of %s/%s cannot be read: %v", x.Owner, x.Name, err), "")
		return
	}
	if !found.GetActive() {
		x.out.Add("host_webhook_missing", fmt.Sprintf("%s/%s has no active webhook to %s", x.Owner, x.Name, path), "Add it under Settings, Webhooks. One that is of the whole organization is not seen here.")
		return
	}
	x.examineWebhook(found.Config, found.Events)
	x.out.Try = func(ctx context.Context) error {
		_, err := ask(ctx, x.account, func() (struct{}, *github.Response, error) {
			response, err := x.client.Repositories.PingHook(ctx, x.Owner, x.Name, found.GetID())
			return struct{}{}, response, err
		})
		return err
	}
}

func (x *examination) examineWebhook(config *github.HookConfig, events []string) {
	if config.GetContentType() != "json" {
		x.out.Add("host_webhook_incomplete", "the webhook does not send application/json", "Change its content type.")
	}
	lacking := slices.DeleteFunc(slices.Clone(Events), func(event string) bool { return slices.Contains(events, event) || slices.Contains(events, "*") })
	if len(lacking) > 0 {
		x.out.Add("host_webhook_incomplete", "the webhook does not tell of "+strings.Join(lacking, ", "), "Choose these events in it.")
	}
	x.out.Webhook = config.GetURL()
}
