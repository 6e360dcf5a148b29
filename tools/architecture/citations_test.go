package architecture_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// specification states the claims of the model. A claim is a heading: "### M19a Eject".
const specification = "engine/README.md"

var (
	claimHeading = regexp.MustCompile(`(?m)^### (M[0-9]+[a-z]?) `)
	citedClaim   = regexp.MustCompile(`\bM[0-9]+[a-z]?\b`)
	citedRecord  = regexp.MustCompile(`\b[Dd]ecisions?\s+(?:record\s+)?\[?([0-9]{1,4})\b|docs/decisions/([0-9]{4})-`)
	citedSection = regexp.MustCompile(`(?:([\w./-]+)(?:'s)?,?\s+\(?)?(?:\b[Ss]ections?\s+|§\s*)([0-9]+)`)
	firstDesign  = regexp.MustCompile(`\bMODEL\b`)
	// elsewhere are documents of others, whose sections nothing here can look up.
	elsewhere = regexp.MustCompile(`YAML|RFC|\b[Pp]aper|Keeping Master Green|CI at Scale|BLRD`)
)

func TestEveryCitationResolves(t *testing.T) {
	for _, complaint := range citations(readProject(t)) {
		t.Error(complaint)
	}
}

// TestACitationThatLeadsNowhereIsFound shows that citations finds what it forbids, and nothing else.
func TestACitationThatLeadsNowhereIsFound(t *testing.T) {
	project := readProject(t)
	for _, c := range []struct{ path, content, want string }{
		{"docs/guides/x.md", "\nas M99 says\n", "x.md:2: M99 is no claim"},
		{"engine/lineup/x.go", "package lineup\n\n// x keeps M5b.\nvar x int\n", "x.go:3: M5b is no claim"},
		{"engine/lineup/x.go", "package lineup\n\n/*\nx keeps M77.\n*/\nvar x int\n", "x.go:4: M77 is no claim"},
		{"engine/lineup/x.go", "package lineup\n\nvar x = \"M99\" // M1, decision 26\n", ""},
		{"docs/guides/x.md", "Decision 999 has the figures.\n", "x.md:1: there is no docs/decisions/0999-"},
		{"docs/guides/x.md", "See decision [0026](../decisions/0026.md) and decision 1.\n", ""},
		{"docs/guides/x.md", "the rule (ARCHITECTURE section 3)\n", "x.md:1: ARCHITECTURE.md has no heading 3"},
		{"docs/guides/x.md", "docs/nowhere.md § 2\n", "x.md:1: section 2 of which document?"},
		{"engine/lineup/x.go", "package lineup\n\n// x is p of the model's\n// section 3.\nvar x int\n", "x.go:3: section 3 of which document?"},
		{"docs/guides/x.md", "as section 8 of the 2019 paper has it\n", ""},
		{"docs/guides/x.md", "# X\n\n## 2. Why\n\nx.md section 2\n", ""},
		{"engine/lineup/x.go", "package lineup\n\n// x is M1 (MODEL, M1).\nvar x int\n", "x.go:3: MODEL is the first design"},
		{specification, "# The model\n", "README.md states no claim"},
	} {
		found := citations(project.with(t, c.path, c.content))
		contains := func(s string) bool { return strings.Contains(s, c.want) }
		if c.want != "" && !slices.ContainsFunc(found, contains) {
			t.Errorf("%s with %q: %q is missing in %q", c.path, c.content, c.want, found)
		}
		inFile := func(s string) bool { return strings.HasPrefix(s, c.path+":") }
		if c.want == "" && slices.ContainsFunc(found, inFile) {
			t.Errorf("%s with %q: %q", c.path, c.content, found)
		}
	}
}

// statedClaims lists the claims that the specification states, in its order.
func statedClaims(p *project) (claims []string) {
	for _, m := range claimHeading.FindAllStringSubmatch(p.documents[specification], -1) {
		claims = append(claims, m[1])
	}
	return claims
}

// citations: each claim is stated once, and what comments and documents cite exists. That claims.md has one row for
// each claim is claimRows' part.
func citations(p *project) (complaints []string) {
	claims, comments := statedClaims(p), 0
	if len(claims) == 0 {
		return []string{specification + " states no claim: the numbers that code and documents cite lead nowhere"}
	}
	for i, claim := range claims {
		if slices.Contains(claims[:i], claim) {
			complaints = append(complaints, fmt.Sprintf("%s states %s twice", specification, claim))
		}
	}
	for name, text := range p.documents {
		complaints = append(complaints, p.unresolved(claims, name, 1, text)...)
	}
	for _, f := range p.files {
		for _, group := range f.syntax.Comments {
			comments++
			complaints = append(complaints, p.unresolved(claims, f.path, f.set.Position(group.Pos()).Line, textOf(group))...)
		}
	}
	if comments == 0 {
		complaints = append(complaints, "no comment was read: project.add must parse with parser.ParseComments")
	}
	slices.Sort(complaints)
	return complaints
}

// textOf returns a comment group line by line, without the comment marks.
func textOf(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		lines = append(lines, strings.TrimPrefix(c.Text, "//"))
	}
	return strings.Join(lines, "\n")
}

// unresolved lists the citations in a text that lead nowhere. The text begins at the given line of the named file.
func (p *project) unresolved(claims []string, name string, first int, text string) (complaints []string) {
	complain := func(at int, format string, args ...any) {
		line := first + strings.Count(text[:at], "\n")
		complaints = append(complaints, fmt.Sprintf("%s:%d: ", name, line)+fmt.Sprintf(format, args...))
	}
	for _, m := range citedClaim.FindAllStringIndex(text, -1) {
		if cited := text[m[0]:m[1]]; !slices.Contains(claims, cited) {
			complain(m[0], "%s is no claim of %s", cited, specification)
		}
	}
	for _, m := range citedRecord.FindAllStringSubmatchIndex(text, -1) {
		record := fmt.Sprintf("docs/decisions/%04s-", text[max(m[2], m[4]):max(m[3], m[5])])
		exists := func(document string) bool { return strings.HasPrefix(document, record) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(p.documents)), exists) {
			complain(m[0], "there is no %s…", record)
		}
	}
	for _, m := range firstDesign.FindAllStringIndex(text, -1) {
		complain(m[0], "MODEL is the first design, which is not in the repository: cite the claim")
	}
	for _, m := range citedSection.FindAllStringSubmatchIndex(text, -1) {
		section, document := text[m[4]:m[5]], ""
		if m[2] >= 0 {
			document = strings.TrimSuffix(text[m[2]:m[3]], ".md") + ".md"
		}
		cited, there := p.documents[document]
		if !there {
			cited, there = p.documents[path.Join(path.Dir(name), document)]
		}
		switch numbered := regexp.MustCompile(`(?m)^#+ ` + section + `\b`); {
		case there && !numbered.MatchString(cited):
			complain(m[0], "%s has no heading %s", document, section)
		case !there && !elsewhere.MatchString(text[max(0, m[0]-200):min(len(text), m[1]+40)]):
			complain(m[0], "section %s of which document? Name one that exists, or cite the claim", section)
		}
	}
	return complaints
}
