package pythongraph

import (
	"bytes"
	"strings"
)

// tokenKind is what a token of Python code is.
type tokenKind uint8

const (
	nameToken tokenKind = iota + 1
	stringToken
	formatToken // a string with replacement fields, whose value is not known
	otherToken  // one byte of an operator, or a number
	lineToken   // the end of a logical line
)

// token is a piece of Python code. Text is a name, what stands between the quotes of a string, a number, or one byte.
type token struct {
	kind tokenKind
	text string
}

// lexer cuts Python code into tokens: enough to find names, strings and the ends of statements. It takes the code of all
// versions of the language.
type lexer struct {
	code   []byte
	at     int
	depth  int // of brackets
	fields int // replacement fields within each other
	tokens []token
	// broken: a string or a bracket does not end. What follows was read as well as can be.
	broken bool
}

// maxFields bounds how deep replacement fields may stand within each other.
const maxFields = 100

// lex returns the tokens of a file.
func lex(code []byte) ([]token, bool) {
	l := &lexer{code: bytes.TrimPrefix(code, []byte("\ufeff")), tokens: make([]token, 0, len(code)/6)}
	for l.at < len(l.code) {
		l.next()
	}
	return l.tokens, l.broken || l.depth != 0
}

func (l *lexer) add(kind tokenKind, text string) { l.tokens = append(l.tokens, token{kind, text}) }

// next reads one token.
func (l *lexer) next() {
	c := l.code[l.at]
	switch {
	case c == '\n' || c == '\r':
		l.at++
		if l.depth == 0 {
			l.add(lineToken, "")
		}
	case c == ' ' || c == '\t' || c == '\f':
		l.at++
	case c == '#':
		for l.at < len(l.code) && l.code[l.at] != '\n' && l.code[l.at] != '\r' {
			l.at++
		}
	case c == '\\':
		l.at++
		if l.at < len(l.code) && l.code[l.at] == '\r' {
			l.at++
		}
		if l.at < len(l.code) && l.code[l.at] == '\n' {
			l.at++
		}
	case c == '"' || c == '\'':
		l.text("")
	case isNameByte(c) && !isDigit(c):
		start := l.at
		for l.at < len(l.code) && isNameByte(l.code[l.at]) {
			l.at++
		}
		word := string(l.code[start:l.at])
		if l.at < len(l.code) && (l.code[l.at] == '"' || l.code[l.at] == '\'') && isStringPrefix(word) {
			l.text(word)
			return
		}
		l.add(nameToken, word)
	case isDigit(c):
		// 0x1f, 1e5 and 1_000 hold letters that are no names.
		start := l.at
		for l.at < len(l.code) && isNameByte(l.code[l.at]) {
			l.at++
		}
		l.add(otherToken, string(l.code[start:l.at]))
	default:
		switch c {
		case '(', '[', '{':
			l.depth++
		case ')', ']', '}':
			if l.depth--; l.depth < 0 {
				l.depth, l.broken = 0, true
			}
		}
		l.at++
		l.add(otherToken, string(l.code[l.at-1:l.at]))
	}
}

// text reads a string, which begins with its quote.
func (l *lexer) text(prefix string) {
	quote := l.code[l.at : l.at+1]
	if rest := l.code[l.at:]; len(rest) >= 3 && rest[1] == rest[0] && rest[2] == rest[0] {
		quote = rest[:3]
	}
	l.at += len(quote)
	format := strings.ContainsAny(prefix, "fFtT")
	raw := strings.ContainsAny(prefix, "rR")
	start := l.at
	for l.at < len(l.code) {
		c := l.code[l.at]
		switch {
		case bytes.HasPrefix(l.code[l.at:], quote):
			value := string(l.code[start:l.at])
			l.at += len(quote)
			if format {
				l.add(formatToken, value)
			} else {
				l.add(stringToken, value)
			}
			return
		case c == '\\' && l.at+1 < len(l.code) && !(format && raw && (l.code[l.at+1] == '{' || l.code[l.at+1] == '}')):
			l.at += 2
		case (c == '\n' || c == '\r') && len(quote) == 1:
			l.broken = true
			return
		case format && c == '{':
			if l.at++; l.at < len(l.code) && l.code[l.at] == '{' {
				l.at++
				continue
			}
			l.field(quote)
		default:
			l.at++
		}
	}
	l.broken = true
}

// field reads a replacement field of a string after its brace: an expression, then perhaps a format, which may have fields
// of its own and in which quotes are text.
func (l *lexer) field(quote []byte) {
	if l.fields == maxFields {
		l.broken = true
		return
	}
	outer := l.depth
	l.depth = 1
	l.fields++
	defer func() { l.depth = outer; l.fields-- }()
	for l.at < len(l.code) {
		switch c := l.code[l.at]; {
		case l.depth == 1 && c == '}':
			l.at++
			return
		case l.depth == 1 && c == ':':
			l.at++
			for l.at < len(l.code) {
				switch c := l.code[l.at]; {
				case c == '}':
					l.at++
					return
				case c == '{':
					l.at++
					l.field(quote)
				case bytes.HasPrefix(l.code[l.at:], quote):
					l.broken = true
					return
				default:
					l.at++
				}
			}
		case l.depth == 1 && bytes.HasPrefix(l.code[l.at:], quote) && !l.closes(quote):
			// No field: the text ends here, as in code that Python does not take.
			l.broken = true
			return
		default:
			l.next()
		}
	}
	l.broken = true
}

// closes reports whether a quote within a replacement field begins a string there, as it may since Python 3.12: then a
// second one follows on the same line, before the field's end.
func (l *lexer) closes(quote []byte) bool {
	rest := l.code[l.at+len(quote):]
	end := bytes.Index(rest, quote)
	return end >= 0 && (len(quote) > 1 || bytes.IndexByte(rest[:end], '\n') < 0)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isNameByte takes every byte above ASCII for part of a name.
func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c >= 0x80
}

// isStringPrefix reports whether letters before a quote are part of a string.
func isStringPrefix(word string) bool {
	return len(word) <= 3 && strings.Trim(word, "rRbBuUfFtT") == ""
}
