package access

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/platform/configuration"
)

// Question asks whether somebody may do something to a queue.
type Question struct {
	// User is the subject at the issuer; Issuer is the issuer's name in the configuration, "" for the only one.
	User, Verb, Queue, Issuer string
	// Email is an address that the issuer calls verified, and Claims is what it says besides, as NAME=VALUE; several of one name are a list.
	Email  string
	Claims []string
}

// Explanation is whether somebody may do something to a queue, and what each rule says.
type Explanation struct {
	Allowed bool   `json:"allowed"`
	Own     bool   `json:"allowed_for_own_changes"`
	Role    string `json:"role"`
	Reason  string `json:"reason,omitempty"`
	// Rules are those of the configuration, in its order.
	Rules []RuleLine `json:"rules"`
}

// RuleLine is what one rule says.
type RuleLine struct {
	Rule    string `json:"rule"`
	Role    string `json:"role"`
	Applies bool   `json:"applies"`
	Why     string `json:"why"`
}

// VerbNames returns the names of all verbs.
func VerbNames() string { return verbList(Verbs()) }

// ExplainTo answers a question from a configuration and the names of its queues. Its error describes a question that is not valid.
func ExplainTo(config configuration.Access, queues []string, q Question) (Explanation, error) {
	v, known := ParseVerb(q.Verb)
	if !known {
		return Explanation{}, fmt.Errorf("%.40q is no verb; verbs are %s", q.Verb, VerbNames())
	}
	if !slices.Contains(queues, q.Queue) {
		return Explanation{}, fmt.Errorf("there is no queue %s; the queues are %s", bounded(q.Queue), strings.Join(queues, ", "))
	}
	names := config.IssuerNames()
	issuer := cmp.Or(q.Issuer, strings.Join(names, ", "))
	if config.Mode == configuration.AccessRequired && !slices.Contains(names, issuer) {
		if len(names) == 0 {
			return Explanation{}, errors.New("no issuer is configured (access.issuers), so nobody but tokens has a role; landfall token list shows what each is for")
		}
		return Explanation{}, fmt.Errorf("which issuer? it is one of %s", strings.Join(names, ", "))
	}
	given := map[string]any{}
	for _, text := range q.Claims {
		name, value, is := strings.Cut(text, "=")
		if !is || name == "" {
			return Explanation{}, fmt.Errorf("the claim %s is not NAME=VALUE", bounded(text))
		}
		list, _ := given[name].([]any)
		given[name] = append(list, value)
	}
	rules := NewRules(config)
	who := Identified(cmp.Or(config.Issuers[issuer].URL, IssuerOpen), q.User, q.User, q.Email, given)
	decision, own := rules.Decide(who, v, q.Queue, Owner{}), rules.Decide(who, v, q.Queue, Owner{New: true})
	out := Explanation{Allowed: decision.Allowed, Own: own.Allowed, Role: decision.Role.String(), Reason: decision.Reason, Rules: []RuleLine{}}
	for _, line := range rules.Explain(who, q.Queue) {
		out.Rules = append(out.Rules, RuleLine{fmt.Sprintf("access.rules[%d]", line.Rule), line.Role.String(), line.Applies, line.Why})
	}
	return out, nil
}
