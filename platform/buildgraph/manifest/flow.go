package manifest

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// flowParser reads values within lines: texts, and collections in brackets.
type flowParser struct {
	*documentParser
	position int // in the line being read
}

func (f *flowParser) line() *sourceLine { return &f.lines[f.at] }

func (f *flowParser) rest() string { return f.line().text[f.position:] }

// failHere names the line being read, or the last one.
func (f *flowParser) failHere(format string, args ...any) {
	f.fail(f.lines[min(f.at, len(f.lines)-1)].number, format, args...)
}

// skip passes over spaces and comments and tells whether the line goes on.
func (f *flowParser) skip() bool {
	rest := f.rest()
	trimmed := strings.TrimLeft(rest, " \t")
	f.position += len(rest) - len(trimmed)
	return trimmed != "" && !f.isComment()
}

// isComment: a comment begins a line or follows a space.
func (f *flowParser) isComment() bool {
	text := f.line().text
	return text[f.position] == '#' && (f.position == 0 || text[f.position-1] == ' ' || text[f.position-1] == '\t')
}

// next is skip over the ends of lines, which mean nothing within brackets.
func (f *flowParser) next() byte {
	for !f.skip() {
		if f.at+1 == len(f.lines) {
			f.failHere("a [ or { is not closed")
		}
		f.at++
		f.position = f.line().start
	}
	return f.line().text[f.position]
}

// endLine makes sure that a value is the last of its line, and leaves the line.
func (f *flowParser) endLine() {
	if f.skip() {
		f.failHere("%s after a value; put a text with special characters in quotes", clip(f.rest()))
	}
	f.at++
}

// value reads a value that begins here.
func (f *flowParser) value(inBrackets bool) *node {
	text := f.line().text
	number := f.line().number
	switch c := text[f.position]; c {
	case '[':
		return f.list()
	case '{':
		return f.mapping()
	case '"', '\'':
		return &node{kind: textNode, line: number, text: f.quoted()}
	case '&', '*':
		f.failHere("YAML anchors and aliases are not supported; write the value out, or in quotes if %c is meant", c)
	case '!':
		f.failHere("YAML tags are not supported; remove it, or quote the text")
	case '|', '>':
		f.failHere("YAML block texts (| and >) are not supported; quote the text, or keep a script in a file of its own")
	case '%', '@', '`', ',', ']', '}', '#':
		f.failHere("a text cannot begin with %c; put it in quotes", c)
	}
	plain := f.plain(inBrackets)
	switch plain {
	case "~", "null", "Null", "NULL":
		return &node{kind: nullNode, line: number}
	}
	return &node{kind: textNode, line: number, text: plain}
}

// plain reads a text without quotes, up to the end of the line, a comment, or,
// within brackets, what separates values.
func (f *flowParser) plain(inBrackets bool) string {
	text := f.rest()
	ends := func(i int) bool { // nothing that belongs to the text follows
		return i >= len(text) || text[i] == ' ' || text[i] == '\t' || inBrackets && strings.IndexByte(",[]{}", text[i]) >= 0
	}
	if strings.IndexByte("-?:", text[0]) >= 0 && ends(1) {
		f.failHere("a text cannot begin with %c and a space; put it in quotes", text[0])
	}
	if inBrackets && text[0] == '?' {
		// Parsers of YAML 1.1 take [?x] for a mapping.
		f.failHere("a text in brackets cannot begin with ?; put it in quotes")
	}
	end := len(text)
scan:
	for i := range len(text) {
		switch c := text[i]; {
		case c == ':' && ends(i+1):
			if !inBrackets {
				f.failHere("a text with a colon and a space in it, or at its end, must be in quotes")
			}
			end = i
			break scan
		case c == '#' && i > 0 && (text[i-1] == ' ' || text[i-1] == '\t'),
			inBrackets && strings.IndexByte(",[]{}", c) >= 0:
			end = i
			break scan
		}
	}
	plain := strings.TrimRight(text[:end], " \t")
	if strings.Contains(plain, "\t") {
		f.failHere("a text with a tab in it must be in double quotes, with \\t for the tab")
	}
	f.position += len(plain)
	return plain
}

// list reads [a, b].
func (f *flowParser) list() *node {
	list := &node{kind: listNode, line: f.line().number}
	f.enter(list.line)
	defer f.leave()
	f.position++
	for f.next() != ']' {
		list.items = append(list.items, f.value(true))
		if c := f.next(); c == ':' {
			f.failHere("a list in brackets holds key: value; write {key: value} or put the text in quotes")
		}
		f.separator(']')
	}
	f.position++
	return list
}

// mapping reads {a: b, c: d}.
func (f *flowParser) mapping() *node {
	mapping := &node{kind: mapNode, line: f.line().number}
	f.enter(mapping.line)
	defer f.leave()
	f.position++
	for f.next() != '}' {
		plain := strings.IndexByte("\"'", f.next()) < 0
		key := f.value(true)
		if key.kind != textNode || plain && strings.Contains(key.text, ":") {
			f.failHere("a key in braces must be a text, in quotes if it holds a colon")
		}
		// The colon stands on the key's line; a key without value has none.
		if !f.skip() || f.line().text[f.position] != ':' {
			f.failHere("key %s in braces has no value; write key: value", clip(key.text))
		}
		f.position++
		mapping.keys = append(mapping.keys, key)
		if c := f.next(); c == ',' || c == '}' {
			mapping.items = append(mapping.items, &node{kind: nullNode, line: key.line})
		} else {
			mapping.items = append(mapping.items, f.value(true))
		}
		f.separator('}')
	}
	f.position++
	return mapping
}

// separator passes over a comma, which may be missing before the end.
func (f *flowParser) separator(end byte) {
	switch c := f.next(); c {
	case ',':
		f.position++
	case end:
	default:
		f.failHere("a comma or %c is missing before %s", end, clip(f.rest()))
	}
}

// quoted reads a text in quotes, which ends on its line.
func (f *flowParser) quoted() string {
	text, length, problem := unquote(f.rest())
	if problem != "" {
		f.failHere("%s", problem)
	}
	f.position += length
	return text
}

// unquote reads the quoted text that a line begins with, and gives its length
// as written.
func unquote(line string) (text string, length int, problem string) {
	quote := line[0]
	var b strings.Builder
	for i := 1; i < len(line); {
		switch c := line[i]; {
		case c == quote && quote == '\'' && i+1 < len(line) && line[i+1] == quote:
			b.WriteByte(quote)
			i += 2
		case c == quote:
			return b.String(), i + 1, ""
		case c == '\\' && quote == '"':
			r, size := escape(line[i+1:])
			if size == 0 {
				return "", 0, "unknown escape " + clip(line[i:min(i+2, len(line))]) + " in double quotes; use single quotes for a backslash that is meant"
			}
			b.WriteRune(r)
			i += 1 + size
		default:
			b.WriteByte(c)
			i++
		}
	}
	return "", 0, "a quoted text does not end on its line"
}

// escapes are those of YAML with one letter.
var escapes = map[byte]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r', 'e': 0x1b,
	' ': ' ', '"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escape reads what follows a backslash; size 0 if that is no escape.
func escape(text string) (r rune, size int) {
	if text == "" {
		return 0, 0
	}
	if r, ok := escapes[text[0]]; ok {
		return r, 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[0]]
	if digits == 0 || len(text) <= digits {
		return 0, 0
	}
	code, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil || code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
		return 0, 0
	}
	return rune(code), 1 + digits
}

// findKey returns the position of the colon when a line holds key: value where
// its unread part begins, else -1.
func (p *documentParser) findKey(line sourceLine) int {
	text := line.text
	i := line.start
	if c := text[i]; c == '"' || c == '\'' {
		_, length, problem := unquote(text[i:])
		if problem != "" {
			return -1
		}
		i += length
		i += len(text[i:]) - len(strings.TrimLeft(text[i:], " \t"))
		if i < len(text) && text[i] == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t') {
			return i
		}
		return -1
	} else if strings.IndexByte("[]{},#&*!|>%@`", c) >= 0 {
		return -1
	}
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t'):
			return i
		case c == '#' && i > line.start && (text[i-1] == ' ' || text[i-1] == '\t'):
			return -1
		}
	}
	return -1
}

// key reads the key before the colon that findKey found.
func (p *documentParser) key(line sourceLine, colon int) *node {
	text := strings.TrimRight(line.text[line.start:colon], " \t")
	switch {
	case text == "":
		p.fail(line.number, "a key is missing before the colon")
	case text[0] == '"' || text[0] == '\'':
		text, _, _ = unquote(text)
	case text == "?" || strings.HasPrefix(text, "? ") || strings.HasPrefix(text, "?\t"):
		p.fail(line.number, "YAML complex keys (?) are not supported; write key: value")
	case text == "<<":
		p.fail(line.number, "YAML merge keys (<<) are not supported; write the fields out")
	}
	return &node{kind: textNode, line: line.number, text: text}
}
