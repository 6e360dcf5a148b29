package configuration

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The YAML parser is quadratic in the depth of nesting and in the width of a
// mapping, so both are bounded before it starts. The tokens are enough for a
// hundred queues with every field, or for a thousand that say what differs.
const (
	maxTokens  = 32_000
	maxNesting = 32
)

// parseDocument reads the text as one YAML document and returns its root, nil if it
// is empty. It reports false, and why, if there is nothing to decode.
func parseDocument(data []byte, f *findings) (ast.Node, bool) {
	if len(data) > MaxFileSize {
		f.add(root, fmt.Sprintf("is larger than %v", Size(MaxFileSize)), "is this the right file?")
		return nil, false
	}
	if line, valid := validText(data); !valid {
		f.addLine(line, root, "is not UTF-8 text", "save it as UTF-8")
		return nil, false
	}
	tokens := lexer.Tokenize(string(data))
	if !checkTokens(tokens, f) {
		return nil, false
	}
	// Keys that are there twice are found in decoding, all of them, not just the first.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		addSyntaxError(err, f)
		return nil, false
	}
	var body ast.Node
	for i, document := range file.Docs {
		if i > 0 && document.Body != nil {
			f.addLine(lineOf(document.Body), root, "has a second YAML document", "remove the '---' line and what is below it")
			break
		}
		if document.Body != nil {
			body = document.Body
		}
	}
	return body, true
}

func validText(data []byte) (line int, valid bool) {
	line = 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if (r == utf8.RuneError && size == 1) || r == 0 {
			return line, false
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line, true
}

// checkTokens refuses what would be expensive to parse, and the parts of YAML in
// which one text stands for another.
func checkTokens(tokens token.Tokens, f *findings) bool {
	if len(tokens) > maxTokens {
		f.add(root, fmt.Sprintf("has more than %d YAML tokens", maxTokens), "is this the right file?")
		return false
	}
	sound := true
	flow, entries, line := 0, 0, 0
	var indents []int // of the blocks that the current line is in, growing
	for _, t := range tokens {
		if t.Position.Line != line {
			line, entries = t.Position.Line, 0
			for len(indents) > 0 && indents[len(indents)-1] >= t.Position.Column {
				indents = indents[:len(indents)-1]
			}
			indents = append(indents, t.Position.Column)
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			f.addLine(line, root, fmt.Sprintf("%s: anchors, aliases and merge keys are not supported", quote(t.Value)), "write the values out")
			sound = false
		case token.TagType, token.DirectiveType:
			f.addLine(line, root, fmt.Sprintf("%s: YAML tags and directives are not supported", quote(t.Value)), "remove it")
			sound = false
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType:
			entries++
		}
		if max(flow, entries, len(indents)) > maxNesting {
			f.addLine(line, root, fmt.Sprintf("is nested more than %d deep", maxNesting), "is this the right file?")
			return false
		}
	}
	return sound
}

func addSyntaxError(err error, f *findings) {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil {
		f.addLine(syntax.Token.Position.Line, root, "is not YAML: "+syntax.Message, "look at the indentation, colons and quotes around this line")
		return
	}
	f.add(root, "is not YAML: "+err.Error(), "look at the indentation, colons and quotes")
}

func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return 0
	}
	return node.GetToken().Position.Line
}
