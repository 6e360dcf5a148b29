package bazelgraph

import (
	"strconv"
	"strings"
)

// A Starlark file is read word by word and not parsed: loads have to be literal texts, so the texts of a
// file hold all of them, whatever the language's newest version looks like otherwise. What is found too much
// costs precision, never safety.

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenText tokenKind = iota + 1 // a string literal, by its value
	tokenWord                      // a name, a keyword or a number
	tokenSign                      // any other character
)

type token struct {
	kind tokenKind
	text string
}

// tokens splits a Starlark file. It takes any input: what is no Starlark gives some tokens or other.
func tokens(source string) []token {
	var list []token
	for i := 0; i < len(source); {
		c := source[i]
		switch {
		case c == '#':
			end := strings.IndexByte(source[i:], '\n')
			if end < 0 {
				return list
			}
			i += end
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\\' || c == ';':
			i++
		case c == '"' || c == '\'':
			text, length := literal(source[i:], false)
			list = append(list, token{tokenText, text})
			i += length
		case isWord(c):
			end := i
			for end < len(source) && isWord(source[end]) {
				end++
			}
			word := source[i:end]
			i = end
			if end < len(source) && (source[end] == '"' || source[end] == '\'') && len(word) <= 2 && strings.Trim(word, "rbRB") == "" {
				text, length := literal(source[end:], strings.ContainsAny(word, "rR"))
				list = append(list, token{tokenText, text})
				i += length
				continue
			}
			list = append(list, token{tokenWord, word})
		default:
			list = append(list, token{tokenSign, source[i : i+1]})
			i++
		}
	}
	return list
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// literal reads a string literal from its quote on, and says how many bytes it took. One that is not closed
// ends with its line, or with the file if it is a long one.
func literal(source string, raw bool) (text string, length int) {
	quote := source[:1]
	if strings.HasPrefix(source, strings.Repeat(quote, 3)) {
		quote = source[:3]
	}
	var value strings.Builder
	for i := len(quote); i < len(source); {
		switch {
		case strings.HasPrefix(source[i:], quote):
			return value.String(), i + len(quote)
		case source[i] == '\n' && len(quote) == 1:
			return value.String(), i
		case source[i] == '\\' && i+1 < len(source) && raw:
			value.WriteString(source[i : i+2])
			i += 2
		case source[i] == '\\' && i+1 < len(source):
			text, length := escape(source[i:])
			value.WriteString(text)
			i += length
		default:
			value.WriteByte(source[i])
			i++
		}
	}
	return value.String(), len(source)
}

// escape reads an escape sequence, as Starlark has them.
func escape(source string) (text string, length int) {
	c := source[1]
	if at := strings.IndexByte("abfnrtv\\'\"", c); at >= 0 {
		return "\a\b\f\n\r\t\v\\'\""[at : at+1], 2
	}
	if c == '\n' {
		return "", 2
	}
	from, most, base := 2, map[byte]int{'x': 2, 'u': 4, 'U': 8}[c], 16
	if '0' <= c && c <= '7' {
		from, most, base = 1, 3, 8
	}
	end := from
	for end < len(source) && end < from+most && strings.IndexByte("0123456789abcdefABCDEF", source[end]) >= 0 && (base == 16 || source[end] < '8') {
		end++
	}
	value, err := strconv.ParseUint(source[from:end], base, 32)
	if err != nil {
		return source[:2], 2
	}
	return string(rune(value)), end
}

// packageCalls returns the calls of package() in a BUILD file in a normal form: they decide about every rule of
// the package and Bazel does not print all that they do. plain is false if one rests on more than its own text.
func packageCalls(list []token) (normal string, plain bool) {
	var b strings.Builder
	plain = true
	next := func(i int, sign string) bool { return i+1 < len(list) && list[i+1] == (token{tokenSign, sign}) }
	for i := 0; i < len(list); i++ {
		if list[i] != (token{tokenWord, "package"}) {
			continue
		}
		if !next(i, "(") {
			plain = plain && next(i, "=") // A keyword of something else; or the function by another name.
			continue
		}
		depth := 0
		for i++; i < len(list); i++ {
			t := list[i]
			switch {
			case t.kind == tokenSign && strings.ContainsAny(t.text, "([{"):
				depth++
			case t.kind == tokenSign && strings.ContainsAny(t.text, ")]}"):
				depth--
			case t.kind == tokenWord:
				plain = plain && (next(i, "=") || t.text == "True" || t.text == "False" || t.text == "None" || '0' <= t.text[0] && t.text[0] <= '9')
			}
			b.WriteByte(byte('0' + t.kind))
			b.WriteString(t.text)
			b.WriteByte(0)
			if depth == 0 {
				break
			}
		}
		if depth != 0 {
			plain = false
		}
	}
	return b.String(), plain
}
