package execution

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/url"
	"slices"
)

// Secret is a value that the step is given and that must not be seen in what it
// prints. Its value is masked in the output wherever it stands as it is, line by
// line, or in base64, and in JSON and URLs. A step that prints it in another way
// is not kept from that.
type Secret struct {
	// Name is what stands in the output instead, and the name of its file.
	Name  string
	Value []byte
	// File asks for a file, [SecretPath], that only the owner may read.
	File bool
}

// SecretLimit and SecretMinimum bound a secret's value, in bytes. A shorter one
// would stand in much that has nothing to do with it.
const (
	SecretLimit   = 64 << 10
	SecretMinimum = 8
)

// needle is a text that is masked.
type needle struct {
	text []byte
	mask []byte
}

// needlesOf returns all that is masked of the secrets, the longest first.
func needlesOf(secrets []Secret) []needle {
	var needles []needle
	had := map[string]bool{}
	for _, s := range secrets {
		mask := []byte("[secret " + s.Name + "]")
		for _, text := range formsOf(bytes.TrimRight(s.Value, "\r\n")) {
			if len(text) >= SecretMinimum && !had[string(text)] {
				had[string(text)] = true
				needles = append(needles, needle{text, mask})
			}
		}
	}
	slices.SortStableFunc(needles, func(a, b needle) int { return cmp.Compare(len(b.text), len(a.text)) })
	return needles
}

// Mask returns a text of a step's with its secrets masked, as its output is.
func Mask(text []byte, secrets []Secret) []byte {
	needles := needlesOf(secrets)
	if len(needles) == 0 {
		return text
	}
	var masked bytes.Buffer
	m := newMasker(needles, func(part []byte) { masked.Write(part) })
	m.write(text)
	m.flush()
	return masked.Bytes()
}

// formsOf returns the texts in which a value is recognised.
func formsOf(value []byte) [][]byte {
	forms := [][]byte{value}
	for line := range bytes.Lines(value) {
		forms = append(forms, bytes.TrimSpace(line))
	}
	if quoted, err := json.Marshal(string(value)); err == nil {
		forms = append(forms, quoted[1:len(quoted)-1])
	}
	var escaped bytes.Buffer
	if xml.EscapeText(&escaped, value) == nil {
		forms = append(forms, escaped.Bytes())
	}
	forms = append(forms, []byte(url.QueryEscape(string(value))), []byte(url.PathEscape(string(value))))
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := []byte(encoding.EncodeToString(value))
		forms = append(forms, whole)
		// As base64 and openssl break lines.
		for _, width := range []int{76, 64} {
			for line := range slices.Chunk(whole, width) {
				forms = append(forms, line)
			}
		}
		// Within a longer text the value begins at any of three places of a group,
		// and only the characters that are its own are known.
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), value...))
			first, end := (before*8+5)/6, (before+len(value))*8/6
			forms = append(forms, []byte(text[first:end]))
		}
	}
	return forms
}

// masker passes on what is written, with every needle replaced. What may be the
// beginning of one is held back until more is written, so a needle may come in
// any number of chunks. Of needles that begin at the same place the longest wins.
type masker struct {
	needles []needle
	begins  [256]bool
	held    []byte
	to      func([]byte)
}

func newMasker(needles []needle, to func([]byte)) *masker {
	m := &masker{needles: needles, to: to}
	for _, n := range needles {
		m.begins[n.text[0]] = true
	}
	return m
}

func (m *masker) write(chunk []byte) { m.pass(append(m.held, chunk...), false) }

// flush passes on what is held: nothing comes behind it.
func (m *masker) flush() { m.pass(m.held, true) }

func (m *masker) pass(text []byte, last bool) {
	from, at := 0, 0
	for at < len(text) {
		if !m.begins[text[at]] {
			at++
			continue
		}
		found, more := m.match(text[at:])
		if more && !last {
			break
		}
		if found == nil {
			at++
			continue
		}
		m.to(text[from:at])
		m.to(found.mask)
		at += len(found.text)
		from = at
	}
	m.to(text[from:at])
	m.held = bytes.Clone(text[at:])
}

// match returns the longest needle that a text begins with, and whether the text
// may be the beginning of a longer one.
func (m *masker) match(text []byte) (found *needle, more bool) {
	for i := range m.needles {
		n := &m.needles[i]
		if len(n.text) > len(text) {
			more = more || bytes.HasPrefix(n.text, text)
		} else if bytes.HasPrefix(text, n.text) {
			return n, more
		}
	}
	return nil, more
}
