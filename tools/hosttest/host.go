// Package hosttest is the conformance suite of the hosts service: what people may expect at a code host, whichever it is. A package that
// tests a kind of host gives a Server, and calls Run.
package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Server is a code host.
type Server struct {
	// Binary is the command that is tested.
	Binary string
	// New makes a repository.
	New func(t *testing.T) Host
	// Strategy is that of queues where a test needs none of its own; "" for squash.
	Strategy string
	// Closes is set if the host cannot be told that a pull request is merged that landed in other commits than its own: where its branch is
	// kept, it is closed, with a comment.
	Closes bool
	// Pipeline is set if the host asks for the pipeline of a commit, and not for checks by name.
	Pipeline bool
	// Tries is set if the doctor can always have the host send a webhook.
	Tries bool
	// Patience is how long something is waited for; 90 s if 0.
	Patience time.Duration
}

// Host is a new repository at a code host, as people act there. A method ends the test if the host does not do it. The host has an account
// for each user that was added, and another that may do everything.
type Host interface {
	// Kind, Address and Repository are those of the configuration.
	Kind() string
	Address() string
	Repository() string
	// Settings are others of the configuration, as in "app: x"; there may be none.
	Settings() string
	// Remote is the address for git of a user, "" for nobody; Token is the user's.
	Remote(user string) string
	Token(user string) string
	// AddUser makes an account, and gives it a permission to the repository: admin, write, or "" for none but reading.
	AddUser(user, permission string)
	// Ready is called once the repository has its branch: it adds the label.
	Ready(label string)
	AddWebhook(url, secret string)
	// Protect has the branch ask for approvals and checks. The account bot pushes past it.
	Protect(approvals int, checks ...string)

	// Open makes a pull request of a branch, and reports whether that can be.
	Open(user, branch string) (number int, is bool)
	SetDraft(user string, number int, draft bool)
	Label(user string, number int)
	Unlabel(user string, number int)
	Comment(user string, number int, text string)
	Close(user string, number int)
	Approve(user string, number int)
	// Dismiss withdraws all approvals.
	Dismiss(number int)
	// Check sets a status of a commit that is none of ours to success.
	Check(user, commit, name string)

	Pull(number int) Pull
	// Statuses returns all that the queue has set at a commit, the newest first.
	Statuses(commit string) []Status
	// Comments returns those of the bot.
	Comments(number int) []string
}

// Switcher is a host that has a switch of its own by which people ask, beside the label.
type Switcher interface {
	Switch(user string, number int, on bool)
}

// Pull is a pull request as the host shows it.
type Pull struct {
	Open, Merged, Labelled bool
	// Head is its newest commit, as far as the host knows; Commit the one by which it was merged.
	Head, Commit string
}

// Status is what the queue says at a commit.
type Status struct{ State, Text string }

// Build builds the command that is tested into a folder, and returns its path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "landfall")
	c := exec.Command("go", "build", "-o", binary, "landfall.build/tools/cmd/landfall")
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	return binary, c.Run()
}

// Run runs the suite.
func Run(t *testing.T, s Server) {
	for _, c := range []struct {
		claim string
		test  func(*testing.T, Server)
	}{
		{"a pull request is landed by its label", testAPullRequestIsLandedByItsLabel},
		{"the host's own switch asks as the label does", testTheHostsOwnSwitchAsks},
		{"ten pull requests land at once", testTenPullRequestsLandAtOnce},
		{"what landed in other commits is closed where branches are kept", testWhatLandedInOtherCommitsIsClosed},
		{"a kill at each write loses nothing", testAKillAtEachWriteLosesNothing},
		{"a kill at any time loses nothing", testAKillAtAnyTimeLosesNothing},
		{"a webhook is enough", testAWebhookIsEnough},
		{"a lost webhook is found", testALostWebhookIsFound},
		{"webhooks come lost, repeated, late and in another order", testWebhooksComeAsTheyLike},
		{"forged and oversized webhooks are refused", testForgedAndOversizedWebhooksAreRefused},
		{"the doctor says what is missing", testTheDoctorSaysWhatIsMissing},
		{"only who may write lands", testOnlyWhoMayWriteLands},
		{"a pull request that is not ready waits", testAPullRequestThatIsNotReadyWaits},
		{"an approval that is withdrawn holds", testAnApprovalThatIsWithdrawnHolds},
		{"a push, closing and the label take a change out", testAPushClosingAndTheLabelTakeAChangeOut},
		{"what was asked for lands though more is pushed", testWhatWasAskedForLandsThoughMoreIsPushed},
	} {
		t.Run(c.claim, func(t *testing.T) { c.test(t, s) })
	}
}
