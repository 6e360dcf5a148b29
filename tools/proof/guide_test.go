package proof

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTheGuideNamesEveryRuleAndTrouble, as they are, and nothing that is not there.
func TestTheGuideNamesEveryRuleAndTrouble(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, r := range Rules() {
		var breaks []string
		for _, c := range r.Breaks {
			breaks = append(breaks, strings.ToLower(c.String()))
		}
		if len(breaks) == 0 {
			breaks = []string{"a figure"}
		}
		rules["`"+string(r.Rule)+"`"] = strings.Join([]string{r.Says, r.Without, strings.Join(breaks, ", ")}, " | ")
	}
	compareTables(t, table(t, string(text), "| `LEAVE=` |"), rules)

	troubles, told := map[string]string{}, map[string]string{}
	for _, trouble := range troubleNames {
		troubles[trouble.name] = ""
	}
	for names := range table(t, string(text), "| trouble |") {
		for name := range strings.SplitSeq(names, ", ") {
			told[name] = ""
		}
	}
	compareTables(t, told, troubles)

	known, seen := map[string]string{}, map[string]string{}
	for _, c := range KnownFaults() {
		known[c.String()] = ""
	}
	for _, as := range table(t, string(text), "| fault |") {
		if name, rest, is := strings.Cut(strings.TrimPrefix(as, "`"), "`"); is && rest != "" {
			seen[name] = ""
		}
	}
	compareTables(t, seen, known)
}

// table gives the rows of the table whose head begins so: what the first column has, and the others.
func table(t *testing.T, text, head string) map[string]string {
	t.Helper()
	_, text, found := strings.Cut(text, "\n"+head)
	if !found {
		t.Fatalf("the guide has no table %q", head)
	}
	rows := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if i < 2 {
			continue // the rest of the head, and the line under it
		}
		if !strings.HasPrefix(line, "| ") {
			break
		}
		name, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if _, twice := rows[name]; twice {
			t.Errorf("the guide has %s twice", name)
		}
		rows[name] = rest
	}
	return rows
}

func compareTables(t *testing.T, guide, code map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if says, has := guide[name]; !has || says != code[name] {
			t.Errorf("of %s the guide says %q, and it is %q", name, says, code[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(guide)) {
		if _, is := code[name]; !is {
			t.Errorf("the guide has %s, which there is not", name)
		}
	}
}
