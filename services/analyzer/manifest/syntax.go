package manifest

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

// syntaxError is a mistake found before the meaning is looked at.
type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parseYAML gives the one document of a file, nil if it is empty. Anchors,
// aliases, tags and several documents are refused: a manifest says what it
// means, and nothing in it can multiply.
func parseYAML(source []byte) (root ast.Node, err error) {
	// The parser is a large foreign body fed by strangers: should it panic, the
	// manifest is wrong and the service goes on.
	defer func() {
		if reason := recover(); reason != nil {
			root, err = nil, &syntaxError{0, fmt.Sprintf("cannot be parsed as YAML (%v); simplify it", reason)}
		}
	}()
	if !utf8.Valid(source) {
		return nil, &syntaxError{0, "is not valid UTF-8; save it as UTF-8"}
	}
	tokens := lexer.Tokenize(string(source))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		var positioned yaml.Error
		if errors.As(err, &positioned) && positioned.GetToken() != nil {
			return nil, &syntaxError{positioned.GetToken().Position.Line, "bad YAML: " + positioned.GetMessage()}
		}
		return nil, &syntaxError{0, "bad YAML: " + err.Error()}
	}
	if len(file.Docs) == 0 {
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// checkTokens bounds the size and depth before the recursive parser runs: a
// stack overflow cannot be recovered from.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return &syntaxError{0, fmt.Sprintf("holds more than %d YAML tokens; split it over folders", maxTokens)}
	}
	nesting := nesting{}
	for _, t := range tokens {
		line := t.Position.Line
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return &syntaxError{line, "YAML anchors, aliases and merge keys are not supported; write the value out"}
		case token.TagType:
			return &syntaxError{line, "YAML tags are not supported; remove it"}
		case token.DocumentHeaderType, token.DocumentEndType, token.DirectiveType:
			return &syntaxError{line, "YAML document markers and directives are not supported; remove the line"}
		case token.MappingKeyType:
			return &syntaxError{line, "YAML complex keys (?) are not supported; write key: value"}
		}
		if nesting.add(t) > maxNesting {
			return &syntaxError{line, fmt.Sprintf("is nested more than %d deep; no field needs that", maxNesting)}
		}
	}
	return nil
}

// nesting follows how deep the tokens read so far are nested, never less than
// the parser recurses.
type nesting struct {
	flow    int
	columns []int // of open block collections, ascending
}

// add gives the depth at the token.
func (n *nesting) add(t *token.Token) int {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.flow++
	case token.SequenceEndType, token.MappingEndType:
		n.flow = max(0, n.flow-1)
	}
	if n.flow == 0 {
		column := t.Position.Column
		for len(n.columns) > 0 && n.columns[len(n.columns)-1] > column {
			n.columns = n.columns[:len(n.columns)-1]
		}
		opens := t.Type == token.SequenceEntryType || t.Next != nil && t.Next.Type == token.MappingValueType
		if opens && (len(n.columns) == 0 || n.columns[len(n.columns)-1] < column) {
			n.columns = append(n.columns, column)
		}
	}
	return n.flow + len(n.columns)
}
