package quota

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func TestM33bWhoIsCountedIsTheAddressElseTheName(t *testing.T) {
	for author, want := range map[string]string{
		"Ada <ada@example.com>": "ada@example.com", "ADA@Example.com": "ada@example.com", " Ada ": "ada", "": "", "Ada <>": "ada <>",
		"Bob <x> <bob@example.com>": "bob@example.com", "> <": "> <", strings.Repeat("é", 200): strings.Repeat("é", 100), strings.Repeat("a", 199) + "é": strings.Repeat("a", 199),
	} {
		if got := AuthorOf(author); got != want {
			t.Errorf("%q is counted as %q, want %q", author, got, want)
		}
	}
}

func TestM33bTheFirstEntryThatNamesAnAuthorCounts(t *testing.T) {
	q := New(&eventsv1.Quotas{
		Queue: 30, Author: 4,
		Authors: []*eventsv1.AuthorQuota{{Who: []string{"Ada@*", "bot"}, Steps: 1}, {Who: []string{"ada@example.com"}, Steps: 9}},
		Teams:   []*eventsv1.TeamQuota{{Name: "web", Who: []string{"*@web.example.com", "ada@example.com"}, Steps: 8}, {Name: "all", Who: []string{"*"}, Steps: 20}},
	})
	for author, want := range map[string]string{
		"ada@example.com":     "[{{QUOTA_KIND_QUEUE } 30} {{QUOTA_KIND_TEAM web} 8} {{QUOTA_KIND_AUTHOR ada@example.com} 1}]",
		"bob@web.example.com": "[{{QUOTA_KIND_QUEUE } 30} {{QUOTA_KIND_TEAM web} 8} {{QUOTA_KIND_AUTHOR bob@web.example.com} 4}]",
		"bot":                 "[{{QUOTA_KIND_QUEUE } 30} {{QUOTA_KIND_TEAM all} 20} {{QUOTA_KIND_AUTHOR bot} 1}]",
		"":                    "[{{QUOTA_KIND_QUEUE } 30} {{QUOTA_KIND_TEAM all} 20} {{QUOTA_KIND_AUTHOR } 4}]",
	} {
		if got := fmt.Sprint(q.Of(author)); got != want {
			t.Errorf("%q: %s, want %s", author, got, want)
		}
	}
}

func TestNobodyIsBoundWithoutQuotas(t *testing.T) {
	for _, settings := range []*eventsv1.Quotas{nil, {}, {Teams: []*eventsv1.TeamQuota{{Name: "web", Who: []string{"bob"}, Steps: 1}}}} {
		if got := New(settings).Of("ada"); got != nil {
			t.Errorf("%v: %v", settings, got)
		}
	}
}
