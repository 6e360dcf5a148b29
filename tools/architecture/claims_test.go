package architecture_test

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

const claimsDocument = "docs/paper/claims.md"

const noTestYet = "no test yet"

var (
	claimRow  = regexp.MustCompile(`(?m)^\| (M[0-9]+[a-z]?) \|(.*)$`)
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*$`)
	declNamed = regexp.MustCompile(`^([a-z]+(?:/[a-z]+)*)\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?$`)
)

// claimRows: docs/paper/claims.md has one row for each claim, which names what implements it and the test
// that proves it. Both must exist.
func claimRows(p *project) (complaints []string) {
	text, there := p.documents[claimsDocument]
	if !there {
		return []string{claimsDocument + " is missing: it says which test proves which claim of the model"}
	}
	tests := testNames(p)
	rows := map[string]int{}
	for _, m := range claimRow.FindAllStringSubmatch(text, -1) {
		claim, row := m[1], m[2]
		rows[claim]++
		proven := false
		for _, q := range quoted.FindAllStringSubmatch(row, -1) {
			switch {
			case testName.MatchString(q[1]):
				proven = true
				if !slices.Contains(tests, q[1]) {
					complaints = append(complaints, fmt.Sprintf("%s: %s names %s, which is no test", claimsDocument, claim, q[1]))
				}
			case declNamed.MatchString(q[1]) && !declared(p, q[1]):
				complaints = append(complaints, fmt.Sprintf("%s: %s names %s, which nothing declares", claimsDocument, claim, q[1]))
			}
		}
		open := strings.Contains(row, noTestYet)
		if proven == open {
			complaints = append(complaints, fmt.Sprintf("%s: %s must either name a test or say %q", claimsDocument, claim, noTestYet))
		}
		for _, name := range tests {
			if open && namedAfter(name, claim) {
				complaints = append(complaints, fmt.Sprintf("%s: %s says %q, but there is %s", claimsDocument, claim, noTestYet, name))
			}
		}
	}
	for _, claim := range statedClaims(p) {
		if rows[claim] != 1 {
			complaints = append(complaints, fmt.Sprintf("%s has %d rows for %s, not one", claimsDocument, rows[claim], claim))
		}
	}
	return complaints
}

// namedAfter: TestM19aEachKind… is named after M19a, not after M19 or M1.
func namedAfter(test, claim string) bool {
	rest, is := strings.CutPrefix(test, "Test"+claim)
	return is && rest != "" && (rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] == '_')
}

func testNames(p *project) (names []string) {
	for _, f := range p.files {
		if !f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && testName.MatchString(fn.Name.Name) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}

// declared reports whether a package declares "folder.Name" or "folder.Type.Method".
func declared(p *project, reference string) bool {
	m := declNamed.FindStringSubmatch(reference)
	for _, f := range p.in(m[1]) {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if m[3] == "" && d.Recv == nil && d.Name.Name == m[2] || m[3] != "" && d.Name.Name == m[3] && receiver(d) == m[2] {
					return true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, is := s.(*ast.TypeSpec); is && m[3] == "" && t.Name.Name == m[2] {
						return true
					}
				}
			}
		}
	}
	return false
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	if s, is := t.(*ast.StarExpr); is {
		t = s.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name
	}
	return ""
}
