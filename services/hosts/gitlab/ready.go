package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/services/hosts"
)

// blockers are the values of detailed_merge_status that say what else the project asks for, with what that is for people. The status is
// that of the first thing that GitLab lacks; what has a question of its own here is not among them.
var blockers = map[string]string{
	"requested_changes":            "changes that a reviewer asks for",
	"merge_request_blocked":        "a merge request that has to be merged before",
	"blocked_status":               "a merge request that has to be merged before",
	"status_checks_must_pass":      "an external status check",
	"external_status_checks":       "an external status check",
	"jira_association_missing":     "a Jira issue in its title or description",
	"security_policy_violations":   "what a security policy asks for",
	"security_policies_violations": "what a security policy asks for",
	"policies_denied":              "what a security policy asks for",
	"locked_paths":                 "files that somebody has locked",
	"locked_lfs_files":             "files that somebody has locked",
	"title_regex":                  "a title as the project asks for",
	"merge_time":                   "the time from which on it may be merged",
}

// missing returns what keeps an open merge request from being ready: that it is a draft, and what the project asks for. If it had to ask for
// the statuses of a commit, it returns them and the commit.
func (r *Repository) missing(ctx context.Context, m *gitlab.MergeRequest) (missing []string, statuses []*gitlab.CommitStatus, statusesOf string, err error) {
	if m.Draft {
		missing = append(missing, hosts.MissingReadiness)
	}
	p, err := r.project(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	approvals, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.MergeRequestApprovals, *gitlab.Response, error) {
		return r.client.MergeRequestApprovals.GetConfiguration(r.Project, m.IID, option)
	})
	switch {
	case err != nil:
		return nil, nil, "", err
	case approvals.ApprovalsLeft > 0:
		missing = append(missing, hosts.MissingApprovals(approvals.ApprovalsLeft, max(approvals.ApprovalsRequired, approvals.ApprovalsLeft)))
	}
	if p.OnlyAllowMergeIfAllDiscussionsAreResolved && !m.BlockingDiscussionsResolved {
		missing = append(missing, "unresolved threads")
	}
	if (p.OnlyAllowMergeIfPipelineSucceeds || len(r.Checks) > 0) && m.SHA != "" {
		if statuses, err = r.statuses(ctx, m.SHA, true); err != nil {
			return nil, nil, "", err
		}
		statusesOf = m.SHA
	}
	if p.OnlyAllowMergeIfPipelineSucceeds {
		merged, err := r.mergedBy(ctx, m)
		if err != nil {
			return nil, nil, "", err
		}
		if state := pipelineState(m, statuses, merged); state != "success" && (state != "skipped" || !p.AllowMergeOnSkippedPipeline) {
			missing = append(missing, missingPipeline(state))
		}
	}
	checks := newest(statuses)
	for _, pattern := range r.Checks {
		missing = append(missing, hosts.MissingChecks(pattern, checks)...)
	}
	if what := blockers[m.DetailedMergeStatus]; what != "" {
		missing = append(missing, what)
	}
	return missing, statuses, statusesOf, nil
}

func missingPipeline(state string) string {
	if state == "" {
		return "the pipeline, which has not run"
	}
	return fmt.Sprintf("the pipeline, which is %s", hosts.Clip(state, 20))
}

// newest returns the newest check of each name.
func newest(statuses []*gitlab.CommitStatus) (checks []hosts.Check) {
	last := map[string]int64{}
	for _, s := range statuses {
		last[s.Name] = max(last[s.Name], s.ID)
	}
	for _, s := range statuses {
		if last[s.Name] == s.ID {
			checks = append(checks, hosts.Check{Name: s.Name, State: s.Status, Passed: s.Status == "success"})
		}
	}
	return checks
}

// mergedBy returns the commits that a merge request's pipeline has merged, if it is of the result of merging; else nil.
func (r *Repository) mergedBy(ctx context.Context, m *gitlab.MergeRequest) ([]string, error) {
	head := m.HeadPipeline
	if head == nil || head.Ref != fmt.Sprintf("refs/merge-requests/%d/merge", m.IID) {
		return nil, nil
	}
	c, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Commit, *gitlab.Response, error) {
		return r.client.Commits.GetCommit(r.Project, head.SHA, nil, option)
	})
	switch {
	case hosts.IsStatus(err, http.StatusNotFound):
		return nil, nil // the commit is gone
	case err != nil:
		return nil, err
	}
	return c.ParentIDs, nil
}

// pipelineState returns the state of the pipeline of a merge request's head, "" if there is none; merged are the commits that the pipeline
// has merged. The statuses of queues are in pipelines too, and one that is pending keeps its pipeline from being done: they are left out, and
// the rest is added up as GitLab does.
func pipelineState(m *gitlab.MergeRequest, statuses []*gitlab.CommitStatus, merged []string) string {
	head := m.HeadPipeline
	switch {
	case head == nil || head.SHA == m.SHA:
	case slices.Contains(merged, m.SHA):
		return head.Status // it is of the result of merging
	default:
		return "" // after a push GitLab keeps the pipeline of the older head until there is another
	}
	chosen := int64(0)
	for _, s := range statuses {
		if hosts.IsOwnStatus(s.Name) {
			continue
		}
		if chosen = max(chosen, s.PipelineID); head != nil && s.PipelineID == head.ID {
			chosen = head.ID
			break
		}
	}
	states := map[string]bool{}
	for _, s := range statuses {
		switch {
		case s.PipelineID != chosen || hosts.IsOwnStatus(s.Name):
		case s.AllowFailure && (s.Status == "failed" || s.Status == "canceled" || s.Status == "manual"):
			states["success"] = true
		default:
			states[s.Status] = true
		}
	}
	for _, state := range []string{"failed", "canceled", "running", "canceling", "pending", "preparing", "waiting_for_resource", "created", "scheduled", "manual"} {
		if states[state] {
			return state
		}
	}
	for _, state := range []string{"success", "skipped"} {
		if states[state] {
			return state
		}
	}
	return ""
}

// statuses returns the newest jobs and statuses of a commit: all, or those that may be the queue's own.
func (r *Repository) statuses(ctx context.Context, commit string, all bool) (statuses []*gitlab.CommitStatus, err error) {
	var o gitlab.GetCommitStatusesOptions
	if !all {
		o.Name = new(hosts.StatusName(r.Queue))
	}
	err = pages(ctx, r.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.CommitStatus, *gitlab.Response, error) {
		o.ListOptions = page
		return r.client.Commits.GetCommitStatuses(r.Project, commit, &o, option)
	}, func(list []*gitlab.CommitStatus) bool {
		statuses = append(statuses, list...)
		return true
	})
	if hosts.IsStatus(err, http.StatusNotFound) {
		return nil, nil // the commit is gone
	}
	return statuses, err
}
