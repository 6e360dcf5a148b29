package architecture_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"landfall.build/events"
	"landfall.build/platform/journal/rights"
)

// sharedWriters are the functions of platform that write a topic for whoever calls them.
var sharedWriters = map[string][]string{
	modulePrefix + "platform/deadletters.Send":     {events.TopicLandRequests, events.TopicDeadLetters},
	modulePrefix + "platform/registry.Publish":     {events.TopicModels},
	modulePrefix + "platform/runner.DeadLetter":    {events.TopicDeadLetters},
	modulePrefix + "platform/runner.PutDeadLetter": {events.TopicDeadLetters},
}

// ownLogs are the folders of tools whose logs are their own, without accounts; the rest of tools writes as the operator.
var ownLogs = []string{"tools/demo", "tools/embedded", "tools/proof"}

// writing and reading are the functions that a topic is given to; written and read the fields that have it.
var (
	writing = []string{"Append", "AppendAsync", "append", "appendAsked"}
	reading = []string{"Each", "End", "Follow", "startFolding"}
	written = []string{"Output", "Topic", "topic"}
	read    = []string{"Output", "Sources"}
)

// accountsFit: an account may write the topics that its code writes, and read those that it reads. On a cluster with ACLs the code fails
// otherwise.
func accountsFit(p *project) (complaints []string) {
	constants := topicConstants(p)
	for _, f := range p.files {
		account := accountOf(f)
		if account == "" {
			continue
		}
		need := func(at token.Pos, doing string, may func(string, events.Topic) bool, topics []string) {
			for _, row := range events.Topics() {
				if slices.Contains(topics, row.Name) && !may(account, row) {
					complaints = append(complaints, fmt.Sprintf("%s: %s %s, which the account %s may not (platform/journal/rights)", f.at(at), doing, row.Name, account))
				}
			}
		}
		f.eachUse(func(imported, name string, pos token.Pos) {
			need(pos, "writes", rights.Writes, sharedWriters[imported+"."+name])
		})
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				topics := namedTopics(f, constants, n.Args)
				if slices.Contains(writing, calledName(n)) {
					need(n.Pos(), "writes", rights.Writes, topics)
				}
				if slices.Contains(reading, calledName(n)) {
					need(n.Pos(), "reads", rights.Reads, topics)
				}
			case *ast.CompositeLit:
				if named, is := n.Type.(*ast.SelectorExpr); is && named.Sel.Name == "Entry" {
					return false // a record that was read
				}
			case *ast.KeyValueExpr:
				key, is := n.Key.(*ast.Ident)
				if !is {
					return true
				}
				topics := namedTopics(f, constants, []ast.Expr{n.Value})
				if slices.Contains(written, key.Name) {
					need(n.Pos(), "writes", rights.Writes, topics)
				}
				if slices.Contains(read, key.Name) {
					need(n.Pos(), "reads", rights.Reads, topics)
				}
			}
			return true
		})
	}
	return complaints
}

// accountOf returns the account under which the code of a file reaches the log, "" if that depends on who calls it.
func accountOf(f *goFile) string {
	below := func(folder string) bool { return f.folder == folder || strings.HasPrefix(f.folder, folder+"/") }
	if f.test || slices.ContainsFunc(ownLogs, below) {
		return ""
	}
	if below("tools") {
		return rights.Operator
	}
	for _, service := range serviceNames() {
		if below("services/" + service) {
			return service
		}
	}
	return ""
}

func calledName(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// namedTopics returns the topics that expressions name, other calls and literals within them left out.
func namedTopics(f *goFile, constants map[string]string, list []ast.Expr) (topics []string) {
	for _, e := range list {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			if x, is := e.X.(*ast.Ident); is && f.imports[x.Name] == modulePrefix+"events" && constants[e.Sel.Name] != "" {
				topics = append(topics, constants[e.Sel.Name])
			}
		case *ast.CompositeLit:
			topics = append(topics, namedTopics(f, constants, e.Elts)...)
		}
	}
	return topics
}
