package manifest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Manifests are read by a parser of their own for the part of YAML that they
// need: block and flow collections, plain and quoted texts on one line, and
// comments. Whatever it accepts, YAML means too (a test holds it against a full
// parser); the rest is refused by name: anchors and aliases, tags, block texts,
// texts over several lines, complex keys, several documents. A full parser fed
// by strangers was tried: a megabyte can keep one busy for hours, or nest deep
// enough to end the process. This one takes time linear in the file and
// recurses at most maxNesting deep.

type nodeKind uint8

const (
	nullNode nodeKind = iota
	textNode
	listNode
	mapNode
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a text", "a list", "a mapping"}[k]
}

// node is a value of a document.
type node struct {
	kind  nodeKind
	line  int
	text  string  // of a text, as written: 1.10 and yes are texts like others
	items []*node // of a list, and the values of a mapping
	keys  []*node // of a mapping: texts
}

// syntaxError is a mistake found before the meaning is looked at.
type syntaxError struct {
	line    int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// sourceLine is a line that holds more than a comment.
type sourceLine struct {
	text   string
	number int
	start  int // column, from 0, of the first character not yet read
}

// documentParser reads lines; mistakes unwind to parseDocument by panic, which
// never leaves it.
type documentParser struct {
	lines []sourceLine
	at    int // the line being read
	depth int
}

func (p *documentParser) fail(line int, format string, args ...any) {
	panic(&syntaxError{line, fmt.Sprintf(format, args...)})
}

// parseDocument returns a file's one value, of kind nullNode if it is empty.
func parseDocument(source string) (root *node, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			bad, ok := reason.(*syntaxError)
			if !ok {
				panic(reason)
			}
			root, err = nil, bad
		}
	}()
	p := &documentParser{}
	p.split(source)
	if len(p.lines) == 0 {
		return &node{kind: nullNode}, nil
	}
	root = p.block(0)
	if p.at < len(p.lines) {
		p.fail(p.lines[p.at].number, "does not belong to what is above it; check the indentation")
	}
	return root, nil
}

// split cuts the source into lines and leaves out those without content.
func (p *documentParser) split(source string) {
	if !utf8.ValidString(source) {
		p.fail(0, "is not valid UTF-8; save it as UTF-8")
	}
	source = strings.TrimPrefix(source, "\ufeff")
	number := 0
	for text := range strings.SplitSeq(source, "\n") {
		number++
		text = strings.TrimSuffix(text, "\r")
		if i := strings.IndexFunc(text, isForbidden); i >= 0 {
			p.fail(number, "holds the character %q; write it as an escape in double quotes", []rune(text[i:])[0])
		}
		start := len(text) - len(strings.TrimLeft(text, " "))
		rest := strings.TrimLeft(text, " \t")
		switch {
		case rest == "" || rest[0] == '#':
			continue
		case text[start] == '\t':
			p.fail(number, "is indented with a tab; use spaces")
		case start == 0 && (isMarker(text, "---") || isMarker(text, "...")):
			if len(p.lines) > 0 || text[0] == '.' || strings.TrimRight(text, " \t") != "---" {
				p.fail(number, "a manifest is one document; remove the line %s", clip(text))
			}
			continue
		case text[0] == '%':
			p.fail(number, "YAML directives are not supported; remove the line")
		}
		p.lines = append(p.lines, sourceLine{text, number, start})
	}
}

// isForbidden: control characters, and what some readers take for line ends.
func isForbidden(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == 0xfffe || r == 0xffff
}

func isMarker(text, marker string) bool {
	rest, ok := strings.CutPrefix(text, marker)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// enter counts the nesting; the caller calls leave when it is done.
func (p *documentParser) enter(line int) {
	if p.depth++; p.depth > maxNesting {
		p.fail(line, "is nested more than %d deep; no field needs that", maxNesting)
	}
}

func (p *documentParser) leave() { p.depth-- }

// block reads the value that begins at the line being read, indented by at
// least the given number of columns.
func (p *documentParser) block(indent int) *node {
	line := &p.lines[p.at]
	p.enter(line.number)
	defer p.leave()
	if line.start < indent {
		p.fail(line.number, "is not indented enough for what is above it")
	}
	if isItem(line.text[line.start:]) {
		return p.blockList(line.start)
	}
	if p.findKey(*line) >= 0 {
		return p.blockMap(line.start)
	}
	value := p.inline()
	return value
}

// isItem reports whether a text begins with the dash of a list.
func isItem(text string) bool {
	return text[0] == '-' && (len(text) == 1 || text[1] == ' ' || text[1] == '\t')
}

// blockList reads the items whose dashes stand in the given column.
func (p *documentParser) blockList(column int) *node {
	list := &node{kind: listNode, line: p.lines[p.at].number}
	for p.at < len(p.lines) {
		line := &p.lines[p.at]
		if line.start != column || !isItem(line.text[column:]) {
			break
		}
		list.items = append(list.items, p.afterSign(column, column+1, false))
	}
	p.checkDedent(column)
	return list
}

// blockMap reads the keys that stand in the given column.
func (p *documentParser) blockMap(column int) *node {
	mapping := &node{kind: mapNode, line: p.lines[p.at].number}
	for p.at < len(p.lines) {
		line := &p.lines[p.at]
		if line.start != column || isItem(line.text[column:]) {
			break
		}
		colon := p.findKey(*line)
		if colon < 0 {
			p.fail(line.number, "%s is not of the form key: value", clip(line.text[column:]))
		}
		mapping.keys = append(mapping.keys, p.key(*line, colon))
		mapping.items = append(mapping.items, p.afterSign(column, colon+1, true))
	}
	p.checkDedent(column)
	return mapping
}

// checkDedent refuses what stands deeper than the collection that just ended.
func (p *documentParser) checkDedent(column int) {
	if p.at < len(p.lines) && p.lines[p.at].start > column {
		p.fail(p.lines[p.at].number, "is indented more than what it belongs to, or continues a text; put each text on one line, in quotes if need be")
	}
}

// afterSign reads the value after the dash or colon that ends before the given
// position; it belongs to a collection in the given column.
func (p *documentParser) afterSign(column, position int, inMap bool) *node {
	line := &p.lines[p.at]
	rest := strings.TrimLeft(line.text[position:], " \t")
	if rest != "" && !(rest[0] == '#' && len(rest) < len(line.text)-position) {
		line.start = len(line.text) - len(rest)
		if inMap {
			return p.inline()
		}
		if strings.Contains(line.text[position:line.start], "\t") && (isItem(rest) || p.findKey(*line) >= 0) {
			p.fail(line.number, "has a tab before a nested value; use spaces")
		}
		return p.block(column + 1)
	}
	number := line.number
	p.at++
	if p.at < len(p.lines) {
		next := p.lines[p.at]
		if next.start > column || inMap && next.start == column && isItem(next.text[next.start:]) {
			return p.block(column)
		}
	}
	return &node{kind: nullNode, line: number}
}

// inline reads a value that begins within a line and ends it, or a later line
// when it is in brackets.
func (p *documentParser) inline() *node {
	line := p.lines[p.at]
	if isItem(line.text[line.start:]) {
		p.fail(line.number, "a list cannot begin after key: on the same line; begin it on the next line")
	}
	f := &flowParser{documentParser: p, position: line.start}
	value := f.value(false)
	f.endLine()
	return value
}

// clip shortens a foreign text for a message.
func clip(text string) string {
	const limit = 60
	if len(text) <= limit {
		return fmt.Sprintf("%q", text)
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", text[:cut])
}
