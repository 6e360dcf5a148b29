package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"landfall.build/events"
)

// serviceNames are all services of the table of topics.
func serviceNames() []string {
	names := map[string]bool{}
	for _, topic := range events.Topics() {
		for _, s := range slices.Concat(topic.Writers, topic.Readers) {
			if s != "clients" {
				names[s] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ownTopics: what a service's code mentions is what the table gives it.
func ownTopics(p *project) (complaints []string) {
	constants := topicConstants(p)
	mine := map[string]map[string]bool{}
	for _, t := range events.Topics() {
		for _, s := range slices.Concat(t.Writers, t.Readers) {
			if mine[s] == nil {
				mine[s] = map[string]bool{}
			}
			mine[s][t.Name] = true
		}
	}
	for _, service := range serviceNames() {
		for _, f := range p.below("services/" + service) {
			f.eachUse(func(imported, name string, pos token.Pos) {
				topic, is := constants[name]
				if imported == modulePrefix+"events" && is && !mine[service][topic] {
					complaints = append(complaints, fmt.Sprintf("%s: the %s uses %s, which events.Topics does not give it: who reads a topic is answered in one place", f.at(pos), service, topic))
				}
			})
		}
	}
	return complaints
}

// topicConstants are the names of events/topics.go by their Go name.
func topicConstants(p *project) map[string]string {
	constants := map[string]string{}
	for _, f := range p.in("events") {
		for _, d := range f.syntax.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i < len(v.Values) && strings.HasPrefix(name.Name, "Topic") {
						if lit, is := v.Values[i].(*ast.BasicLit); is {
							constants[name.Name] = strings.Trim(lit.Value, `"`)
						}
					}
				}
			}
		}
	}
	return constants
}

var readmeParts = map[string]*regexp.Regexp{
	`row "consumes"`:              regexp.MustCompile(`(?m)^\| consumes \|`),
	`row "produces"`:              regexp.MustCompile(`(?m)^\| produces \|`),
	`row "state"`:                 regexp.MustCompile(`(?m)^\| state \|`),
	"section on running it alone": regexp.MustCompile(`(?m)^## .*[Aa]lone`),
}

func serviceReadmes(p *project) (complaints []string) {
	for _, service := range serviceNames() {
		name := "services/" + service + "/README.md"
		text, there := p.documents[name]
		if !there {
			complaints = append(complaints, name+" is missing: every service says there what it consumes, produces and keeps, what always holds, and how to run it alone")
			continue
		}
		for what, pattern := range readmeParts {
			if !pattern.MatchString(text) {
				complaints = append(complaints, fmt.Sprintf("%s has no %s: all services answer the same questions in the same place", name, what))
			}
		}
	}
	return complaints
}

var (
	rowOf  = regexp.MustCompile(`(?m)^\| (consumes|produces) \|(.*)\|\s*$`)
	quoted = regexp.MustCompile("`([^`\n]+)`")
	linkTo = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
)

// topicsIn are the topics that a row of a README names, with or without their prefix.
func topicsIn(text, row string) []string {
	var out []string
	for _, m := range rowOf.FindAllStringSubmatch(text, -1) {
		if m[1] != row {
			continue
		}
		for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
			for _, t := range events.Topics() {
				if q[1] == t.Name || "landfall."+q[1] == t.Name {
					out = append(out, t.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func readmeTopics(p *project) (complaints []string) {
	compare := func(service, name, row string, table []string) {
		slices.Sort(table)
		said := topicsIn(p.documents[name], row)
		for _, topic := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(said, table)))) {
			inReadme, inTable := slices.Contains(said, topic), slices.Contains(table, topic)
			if inReadme == inTable {
				continue
			}
			complaints = append(complaints, fmt.Sprintf("%s, row %s, and events.Topics disagree about %s (README %v, table %v): one of them misleads whoever looks for its readers and writers",
				name, row, topic, inReadme, inTable))
		}
	}
	for _, service := range serviceNames() {
		name := "services/" + service + "/README.md"
		if _, there := p.documents[name]; !there {
			continue // serviceReadmes says so
		}
		var reads, writes []string
		for _, t := range events.Topics() {
			if slices.Contains(t.Readers, service) && !slices.Contains(t.Writers, service) {
				reads = append(reads, t.Name)
			}
			if slices.Contains(t.Readers, service) && slices.Contains(t.Writers, service) && slices.Contains(topicsIn(p.documents[name], "consumes"), t.Name) {
				reads = append(reads, t.Name) // its own records: a README may say so or not
			}
			if slices.Contains(t.Writers, service) {
				writes = append(writes, t.Name)
			}
		}
		compare(service, name, "consumes", reads)
		compare(service, name, "produces", writes)
	}
	return complaints
}

// ours are the documents that this project writes; what tools bring along is not held to the rules.
func ours(name string) bool {
	return !strings.Contains(name, "/") || strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "deploy/") ||
		slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(name, m+"/") })
}

// livingLinks: a link, or a path of the project in backquotes, leads somewhere.
func livingLinks(p *project) (complaints []string) {
	for _, name := range slices.Sorted(maps.Keys(p.documents)) {
		if !ours(name) {
			continue
		}
		for i, line := range strings.Split(p.documents[name], "\n") {
			for _, m := range linkTo.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				if target := path.Join(path.Dir(name), m[1]); !p.paths[target] {
					complaints = append(complaints, fmt.Sprintf("%s:%d: the link to %s leads nowhere", name, i+1, m[1]))
				}
			}
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				if isProjectPath(m[1]) && !p.paths[strings.TrimSuffix(m[1], "/")] {
					complaints = append(complaints, fmt.Sprintf("%s:%d: %s does not exist", name, i+1, m[1]))
				}
			}
			for _, m := range namesIn.FindAllStringSubmatch(line, -1) {
				for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
					if p.paths[m[1]] && !p.declares(m[1], q[1]) {
						complaints = append(complaints, fmt.Sprintf("%s:%d: %s does not declare %s", name, i+1, m[1], q[1]))
					}
				}
			}
		}
	}
	return complaints
}

// namesIn matches a Go file and what a document names in it: `engine/guard/guard.go`: `Examine`, `MayLand`.
var namesIn = regexp.MustCompile("`([a-z]+/[A-Za-z0-9_./-]+\\.go)`: (`[^`]+`(?:(?:, | and )`[^`]+`)*)")

// declares reports whether a file declares a function, a type, a constant, a variable, or a method as Type.Method.
func (p *project) declares(file, name string) bool {
	of, method, isMethod := strings.Cut(name, ".")
	for _, f := range p.files {
		if f.path != file {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if isMethod && receiver(d) == of && d.Name.Name == method || !isMethod && d.Recv == nil && d.Name.Name == name {
					return true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Name.Name == name {
							return true
						}
					case *ast.ValueSpec:
						if slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name }) {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

var plainPath = regexp.MustCompile(`^(deploy|docs|engine|events|learning|platform|schemas|services|tools)/[A-Za-z0-9_./-]+$`)

// isProjectPath: a path without wildcards, placeholders or the name of something inside a package.
func isProjectPath(text string) bool {
	if !plainPath.MatchString(text) {
		return false
	}
	return slices.Contains([]string{"", ".go", ".md", ".proto", ".yaml", ".json", ".svg", ".sh", ".txt"}, path.Ext(text))
}
