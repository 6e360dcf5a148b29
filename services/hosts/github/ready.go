package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// demandsFor is how long it is believed what the branch asks for.
const demandsFor = 30 * time.Second

// demands holds what a branch asks for of a pull request: its rulesets, and its protection as far as that can be read.
type demands struct {
	approvals int
	// reviewed is set if it asks for reviews, or may: then GitHub is asked for its decision. resolved is set if conversations must be resolved.
	reviewed, resolved bool
	checks             []required
	rules              *github.BranchRules
}

// required is a check that must pass; app is the App that it must be of, 0 for anybody.
type required struct {
	name string
	app  int64
}

func (d *demands) require(name string, app *int64) {
	if hosts.IsOwnStatus(name) {
		return // others may require the queue
	}
	c := required{name: name}
	if app != nil && *app > 0 {
		c.app = *app
	}
	for _, other := range d.checks {
		if other == c {
			return
		}
	}
	d.checks = append(d.checks, c)
}

func (r *Repository) demands(ctx context.Context) (demands, error) {
	r.mu.Lock()
	known, fresh := r.asked, time.Since(r.askedAt) < demandsFor
	r.mu.Unlock()
	if fresh {
		return known, nil
	}
	d, err := r.readDemands(ctx)
	if err != nil {
		return d, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.askedAt = d, time.Now()
	return d, nil
}

func (r *Repository) readDemands(ctx context.Context) (d demands, err error) {
	d.rules, err = ask(ctx, r.account, func() (*github.BranchRules, *github.Response, error) {
		return r.client.Repositories.ListRulesForBranch(ctx, r.Owner, r.Name, r.Branch, &github.ListOptions{PerPage: pageSize})
	})
	if err != nil {
		return d, err
	}
	for _, rule := range d.rules.PullRequest {
		d.reviewed = true
		d.approvals = max(d.approvals, rule.Parameters.RequiredApprovingReviewCount)
		d.resolved = d.resolved || rule.Parameters.RequiredReviewThreadResolution
	}
	for _, rule := range d.rules.RequiredStatusChecks {
		for _, c := range rule.Parameters.RequiredStatusChecks {
			d.require(c.Context, c.IntegrationID)
		}
	}
	b, err := r.branch(ctx, r.Branch)
	if err != nil || !b.GetProtected() {
		return d, err
	}
	// What it asks for of reviews is known to administrators alone. GitHub's decision is for everybody.
	d.reviewed = true
	if checks := b.GetProtection().GetRequiredStatusChecks(); checks != nil {
		switch {
		case checks.Checks != nil:
			for _, c := range *checks.Checks {
				d.require(c.Context, c.AppID)
			}
		case checks.Contexts != nil:
			for _, name := range *checks.Contexts {
				d.require(name, nil)
			}
		}
	}
	return d, nil
}

// branch asks for a branch. The library's own GetBranch makes one error of all answers, those of limits too.
func (r *Repository) branch(ctx context.Context, name string) (*github.Branch, error) {
	return ask(ctx, r.account, func() (b *github.Branch, response *github.Response, err error) {
		request, err := r.client.NewRequest(ctx, http.MethodGet, fmt.Sprintf("repos/%s/%s/branches/%s", r.Owner, r.Name, url.PathEscape(name)), nil)
		if err == nil {
			response, err = r.client.Do(request, &b)
		}
		return b, response, err
	})
}

// missing returns what keeps an open pull request from being ready: that it is a draft, and what the branch asks for. It returns the checks
// of its head too if it had to ask for all.
func (r *Repository) missing(ctx context.Context, p *github.PullRequest) (missing []string, checks []check, err error) {
	if p.GetDraft() {
		missing = append(missing, hosts.MissingReadiness)
	}
	d, err := r.demands(ctx)
	if err != nil {
		return nil, nil, err
	}
	if d.reviewed {
		reviews, err := r.reviews(ctx, p.GetNumber())
		if err != nil {
			return nil, nil, err
		}
		missing = append(missing, reviews.lacks(d)...)
	}
	if len(d.checks) > 0 {
		if checks, err = r.checks(ctx, p.GetHead().GetSHA(), true); err != nil {
			return nil, nil, err
		}
		for _, c := range d.checks {
			missing = append(missing, c.lacks(checks)...)
		}
	}
	return missing, checks, nil
}

// lacks says which checks keep a required one from being met.
func (c required) lacks(checks []check) (lacks []string) {
	found := false
	for _, got := range checks {
		if got.name != c.name || c.app != 0 && got.app != c.app {
			continue
		}
		if found = true; !got.passed {
			lacks = append(lacks, hosts.MissingCheck(c.name, got.state))
		}
	}
	if !found {
		lacks = append(lacks, hosts.MissingCheck(c.name, ""))
	}
	return lacks
}

// reviews are what GitHub makes of the reviews of a pull request. The API of REST knows neither whose approval counts nor code owners.
type reviews struct {
	Decision string `json:"reviewDecision"`
	Latest   struct {
		Nodes []struct {
			State  string `json:"state"`
			Author struct {
				Login string `json:"login"`
			} `json:"author"`
		} `json:"nodes"`
	} `json:"latestOpinionatedReviews"`
	Threads struct {
		Nodes []struct {
			Resolved bool `json:"isResolved"`
		} `json:"nodes"`
	} `json:"reviewThreads"`
}

const reviewsQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewDecision
      latestOpinionatedReviews(first: 100, writersOnly: true) { nodes { state author { login } } }
      reviewThreads(first: 100) { nodes { isResolved } }
    }
  }
}`

func (r *Repository) reviews(ctx context.Context, number int) (reviews, error) {
	var answer struct {
		Data struct {
			Repository struct {
				Pull *reviews `json:"pullRequest"`
			} `json:"repository"`
		} `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	_, err := ask(ctx, r.account, func() (struct{}, *github.Response, error) {
		request, err := r.client.NewRequest(ctx, http.MethodPost, r.server.graph(), map[string]any{
			"query": reviewsQuery, "variables": map[string]any{"owner": r.Owner, "name": r.Name, "number": number},
		})
		if err != nil {
			return struct{}{}, nil, err
		}
		response, err := r.client.Do(request, &answer)
		return struct{}{}, response, err
	})
	switch {
	case err != nil:
		return reviews{}, err
	case len(answer.Errors) > 0:
		return reviews{}, errors.New("GitHub does not say who has reviewed: " + hosts.Clip(answer.Errors[0].Message, 300))
	case answer.Data.Repository.Pull == nil:
		return reviews{}, errors.New("GitHub does not say who has reviewed")
	}
	return *answer.Data.Repository.Pull, nil
}

// lacks returns what is missing of what a branch asks for.
func (v reviews) lacks(d demands) (lacks []string) {
	got, asked := 0, ""
	for _, review := range v.Latest.Nodes {
		switch login := review.Author.Login; {
		case review.State == "APPROVED":
			got++
		case review.State == "CHANGES_REQUESTED" && (asked == "" || login < asked):
			asked = login
		}
	}
	if got < d.approvals {
		lacks = append(lacks, hosts.MissingApprovals(int64(d.approvals-got), int64(d.approvals)))
	}
	// Where no review is required, GitHub decides nothing, and nobody's wish for changes holds.
	switch {
	case v.Decision == "CHANGES_REQUESTED":
		lacks = append(lacks, "changes that "+hosts.Clip(asked, 100)+" asks for")
	case v.Decision == "REVIEW_REQUIRED" && len(lacks) == 0:
		lacks = append(lacks, "an approval that the branch asks for, such as a code owner's")
	}
	if d.resolved {
		open := 0
		for _, t := range v.Threads.Nodes {
			if !t.Resolved {
				open++
			}
		}
		if open > 0 {
			lacks = append(lacks, fmt.Sprintf("%d unresolved conversations", open))
		}
	}
	return lacks
}

// check is a check run or a status of a commit.
type check struct {
	name string
	// app is the App that a run is of, run its id; both are 0 for a status.
	app, run int64
	// passed reports whether GitHub takes it for success.
	passed bool
	state  string
	// status is what it says, if it is the queue's.
	status hosts.Status
}

// checks returns the newest check run or status of each name at a commit: all, or those that may be the queue's own.
func (r *Repository) checks(ctx context.Context, commit string, all bool) (checks []check, err error) {
	checks = []check{}
	if all || r.app != nil {
		o := github.ListCheckRunsOptions{Filter: new("latest")}
		if !all {
			o.CheckName = new(hosts.StatusName(r.Queue))
		}
		if err := pages(ctx, r.account, func(page github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
			o.ListOptions = page
			list, response, err := r.client.Checks.ListCheckRunsForRef(ctx, r.Owner, r.Name, commit, &o)
			if list == nil {
				return nil, response, err
			}
			return list.CheckRuns, response, err
		}, func(list []*github.CheckRun) bool {
			for _, run := range list {
				checks = append(checks, checkOf(run))
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	if all || r.app == nil {
		if err := pages(ctx, r.account, func(page github.ListOptions) ([]*github.RepoStatus, *github.Response, error) {
			list, response, err := r.client.Repositories.GetCombinedStatus(ctx, r.Owner, r.Name, commit, &page)
			return list.GetStatuses(), response, err
		}, func(list []*github.RepoStatus) bool {
			for _, s := range list {
				checks = append(checks, check{
					name: s.GetContext(), passed: s.GetState() == "success", state: s.GetState(),
					status: hosts.Status{State: s.GetState(), Text: s.GetDescription(), URL: s.GetTargetURL()},
				})
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	return checks, nil
}

// checkOf reads a check run. GitHub takes what was skipped, and what is neutral, for success.
func checkOf(run *github.CheckRun) check {
	c := check{name: run.GetName(), app: run.GetApp().GetID(), run: run.GetID(), state: run.GetStatus(),
		status: hosts.Status{State: hosts.StatusPending, Text: run.GetOutput().GetTitle(), URL: run.GetExternalID()}}
	if c.state != "completed" {
		return c
	}
	c.state = run.GetConclusion()
	switch c.state {
	case "success", "neutral", "skipped":
		c.passed = true
	}
	switch c.state {
	case "success":
		c.status.State = hosts.StatusSuccess
	case "failure":
		c.status.State = hosts.StatusFailure
	default:
		c.status.State = hosts.StatusError
	}
	return c
}
