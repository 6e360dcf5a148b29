package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
)

// Rules say which roles the callers have that an issuer vouches for. They are those of a configuration, and do not change.
type Rules struct {
	mode  string
	logs  Role
	rules []rule
}

// rule gives a role in some queues to whom a set of claims fits.
type rule struct {
	role   Role
	issuer string
	queues []string
	any    [][]claim
}

// claim is one that a caller must have.
type claim struct {
	name, value string
	values      *targets.NamePatterns
}

// NewRules returns the rules of a valid configuration.
func NewRules(c configuration.Access) *Rules {
	r := &Rules{mode: c.Mode}
	r.logs, _ = ParseRole(c.Logs)
	for _, given := range c.Rules {
		out := rule{issuer: c.Issuers[given.Issuer].URL, queues: given.Queues}
		out.role, _ = ParseRole(given.Role)
		for _, set := range given.Any {
			var all []claim
			for _, name := range slices.Sorted(maps.Keys(set.All)) {
				all = append(all, claim{name, set.All[name], targets.NewNamePatterns([]string{set.All[name]})})
			}
			out.any = append(out.any, all)
		}
		r.rules = append(r.rules, out)
	}
	return r
}

// Open reports whether the name in a request is believed.
func (r *Rules) Open() bool { return r.mode == configuration.AccessOpen }

func (r *rule) covers(queue string) bool { return coversQueue(r.queues, queue) }

// coversQueue reports whether queues have one, or every one: none means all.
func coversQueue(queues []string, queue string) bool {
	return len(queues) == 0 || slices.Contains(queues, AllQueues) || slices.Contains(queues, queue)
}

func (r *rule) admits(c Caller) bool {
	if c.Issuer != r.issuer {
		return false
	}
	return slices.ContainsFunc(r.any, func(all []claim) bool {
		return len(all) > 0 && !slices.ContainsFunc(all, func(k claim) bool { return !k.fits(c) })
	})
}

// fits reports whether the caller has the claim: one of its values, if it is a list.
func (k claim) fits(c Caller) bool { return slices.ContainsFunc(claimValues(c, k.name), k.values.Has) }

const maxClaimValues = 10_000

// claimValues returns the values of a claim as text, by a name as Identity.Claim takes it.
func claimValues(c Caller, name string) []string {
	switch name {
	case "sub":
		return []string{c.Subject}
	case "email":
		// The claim itself may be unverified.
		if c.Email == "" {
			return nil
		}
		return []string{c.Email}
	}
	value := identity.Identity{Claims: c.claims}.Claim(name)
	list, is := value.([]any)
	if !is {
		list = []any{value}
	}
	var out []string
	for _, v := range list[:min(len(list), maxClaimValues)] {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case bool:
			out = append(out, strconv.FormatBool(v))
		case json.Number:
			out = append(out, v.String())
		case float64:
			out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return out
}

// Line is what one rule says of a caller and a queue, for people.
type Line struct {
	// Rule is its index in the configuration.
	Rule    int
	Role    Role
	Applies bool
	Why     string
}

// Explain returns what each rule says of a caller and a queue.
func (r *Rules) Explain(c Caller, queue string) []Line {
	var out []Line
	for i := range r.rules {
		rule := &r.rules[i]
		line := Line{Rule: i, Role: rule.role}
		switch {
		case !rule.covers(queue):
			line.Why = "it is for other queues" // which ones is not for each admin to know
		case c.Issuer != rule.issuer:
			line.Why = "it is for the issuer " + rule.issuer
		case rule.admits(c):
			line.Applies, line.Why = true, "all claims of one of its sets fit"
		default:
			line.Why = rule.lacking(c)
		}
		out = append(out, line)
	}
	return out
}

// lacking says what the caller lacks for each set of claims.
func (r *rule) lacking(c Caller) string {
	var sets []string
	for _, all := range r.any {
		var missing []string
		for _, k := range all {
			if !k.fits(c) {
				missing = append(missing, fmt.Sprintf("%s is not %s", k.name, k.value))
			}
		}
		sets = append(sets, strings.Join(missing, " and "))
	}
	return strings.Join(sets, "; ")
}
