// Package access decides who may do what. It holds callers, verbs, roles and rules; Rules.Decide is the one place that answers
// whether a caller may do something to a queue. It is pure: no I/O and no clock.
package access

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what somebody may do to a queue. Each role may do all that the one before it may.
type Role int

// Roles.
const (
	// NoRole may do nothing.
	NoRole Role = iota
	// Viewer reads the queue, its changes and, by default, the logs of their steps.
	Viewer
	// Contributor lands changes, and cancels and retries its own.
	Contributor
	// Lander lands, cancels and retries any change.
	Lander
	// Operator steers the queue: pauses, moves, holds, quarantines.
	Operator
	// Admin makes and revokes tokens.
	Admin
)

var roleNames = []string{"none", "viewer", "contributor", "lander", "operator", "admin"}

// String returns the role's name in the configuration.
func (r Role) String() string { return roleNames[r] }

// Roles returns all roles but NoRole, the least one first.
func Roles() []Role { return []Role{Viewer, Contributor, Lander, Operator, Admin} }

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, bool) {
	at := slices.Index(roleNames, name)
	if at < 1 {
		return NoRole, false
	}
	return Role(at), true
}

// Verb is something that a caller does to a queue.
type Verb string

// Verbs.
const (
	// Read reads the queue and its changes; ReadLogs the output of their steps.
	Read     Verb = "read"
	ReadLogs Verb = "logs"
	// Land asks for a change, or for another revision of it.
	Land   Verb = "land"
	Cancel Verb = "cancel"
	Retry  Verb = "retry"
	// Verify has what fails on the mainline verified again.
	Verify Verb = "verify"
	// Move changes a change's place in the queue, Hold keeps it from landing or releases it.
	Move Verb = "move"
	Hold Verb = "hold"
	// Pause pauses the queue or resumes it.
	Pause      Verb = "pause"
	Quarantine Verb = "quarantine"
	// Urgent gives a change a benefit above 1.
	Urgent Verb = "urgent"
	// Simulate has the gateway simulate another setting.
	Simulate Verb = "simulate"
	// Models puts a model into use; Deliveries has webhooks or dead letters sent again.
	Models     Verb = "models"
	Deliveries Verb = "deliveries"
	// ManageTokens makes, lists and revokes tokens.
	ManageTokens Verb = "tokens"
)

// need is the role that a verb takes: role for any change, own for the caller's own. With NoRole as own both take role.
type need struct {
	verb      Verb
	role, own Role
	// doing names it in a sentence.
	doing string
}

var needs = []need{
	{Read, Viewer, NoRole, "reading the queue"},
	{ReadLogs, Viewer, NoRole, "reading the logs of steps"},
	{Land, Lander, Contributor, "landing a change"},
	{Cancel, Lander, Contributor, "cancelling a change"},
	{Retry, Lander, Contributor, "retrying a change"},
	{Verify, Lander, NoRole, "verifying the mainline again"},
	{Urgent, Operator, NoRole, "giving a change a benefit above 1"},
	{Move, Operator, NoRole, "moving a change"},
	{Hold, Operator, NoRole, "holding or releasing a change"},
	{Pause, Operator, NoRole, "pausing or resuming the queue"},
	{Quarantine, Operator, NoRole, "quarantining a target"},
	{Simulate, Operator, NoRole, "simulating other settings"},
	{Models, Operator, NoRole, "choosing models"},
	{Deliveries, Operator, NoRole, "sending deliveries again"},
	{ManageTokens, Admin, NoRole, "managing tokens"},
}

// Verbs returns all verbs.
func Verbs() []Verb {
	var out []Verb
	for _, n := range needs {
		out = append(out, n.verb)
	}
	return out
}

// ParseVerb returns the verb of a name.
func ParseVerb(name string) (Verb, bool) {
	if slices.Contains(Verbs(), Verb(name)) {
		return Verb(name), true
	}
	return "", false
}

func needOf(v Verb) (need, bool) {
	at := slices.IndexFunc(needs, func(n need) bool { return n.verb == v })
	if at < 0 {
		return need{}, false
	}
	return needs[at], true
}

// Owner is whose a change is. The zero value is nobody's.
type Owner struct {
	// New is a change that the queue does not know: whoever lands it owns it.
	New bool
	// Issuer and Subject asked for the change; "" if that is not known.
	Issuer, Subject string
	// Author is the change's author. Only a lander can name another author than itself.
	Author string
}

// Code says why something is refused.
type Code string

// Codes of a refusal.
const (
	// Unauthenticated: it is not known who asks.
	Unauthenticated Code = "unauthenticated"
	// Forbidden: who asks may not do it.
	Forbidden Code = "forbidden"
)

// Decision is whether something is allowed.
type Decision struct {
	Allowed bool
	// Role is the caller's in the queue.
	Role Role
	// Code, Reason and Advice say why not, and what to do.
	Code           Code
	Reason, Advice string
}

// AllQueues stands for every queue in rules and tokens. NoQueue stands for none in Rules.Decide: a refusal about several queues names none
// of them.
const (
	AllQueues = "*"
	NoQueue   = ""
)

// Decide reports whether a caller may do something to a queue. of is the owner of the change
// that the verb concerns, the zero value if it concerns none.
func (r *Rules) Decide(c Caller, v Verb, queue string, of Owner) Decision {
	n, known := needOf(v)
	if !known {
		return Decision{Code: Forbidden, Reason: fmt.Sprintf("Nobody may do %q.", string(v)), Advice: "This is a defect of the gateway; report it."}
	}
	if c.Anonymous() {
		return Decision{Code: Unauthenticated, Reason: "It is not known who asks.", Advice: signInAdvice}
	}
	if v == ReadLogs {
		n.role = r.logs
	}
	d := Decision{Role: r.RoleIn(c, queue)}
	switch {
	case !c.scope(v):
		d.Code, d.Reason = Forbidden, fmt.Sprintf("The token %s is not for %s.", c.Token, n.doing)
		d.Advice = "It is for " + verbList(c.grant.Verbs) + "; an admin makes another one with landfall token create."
	case d.Role >= n.role, n.own != NoRole && d.Role >= n.own && c.owns(of):
		d.Allowed = true
	case r.Open() && c.grant == nil:
		d.Code, d.Reason = Forbidden, fmt.Sprintf("With access.mode: open nobody is known, and %s needs somebody who is.", n.doing)
		d.Advice = "Use landfall token create --direct where the log can be written, or set access.mode: required."
	case n.own != NoRole && d.Role >= n.own:
		d.Code, d.Reason = Forbidden, fmt.Sprintf("The change is not yours: as %s you may do that to your own changes, and %s of others needs the role %s.", d.Role, n.doing, n.role)
		d.Advice = "Ask its author, or somebody with that role."
	default:
		least := n.role
		if n.own != NoRole {
			least = n.own
		}
		d.Code, d.Reason = Forbidden, fmt.Sprintf("In the queue %s %s needs the role %s; you have %s.", bounded(queue), n.doing, least, d.Role)
		if queue == NoQueue {
			d.Reason = fmt.Sprintf("You have the role %s in no queue, and %s needs it.", least, n.doing)
		}
		d.Advice = "landfall whoami shows your roles; access.rules in the configuration give them."
	}
	return d
}

const signInAdvice = "Sign in (landfall login), or give a token (LANDFALL_TOKEN)."

// bounded returns text of untrusted origin as part of a sentence.
func bounded(text string) string { return fmt.Sprintf("%.80q", text) }

func verbList(verbs []Verb) string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// RoleIn returns the role that a caller has in a queue.
func (r *Rules) RoleIn(c Caller, queue string) Role {
	switch {
	case r.Open() && c.grant == nil && !c.Anonymous():
		return Operator
	case c.grant != nil:
		if !c.grant.covers(queue) {
			return NoRole
		}
		return c.grant.Role
	}
	role := NoRole
	for i := range r.rules {
		if rule := &r.rules[i]; rule.role > role && rule.covers(queue) && rule.admits(c) {
			role = rule.role
		}
	}
	return role
}
