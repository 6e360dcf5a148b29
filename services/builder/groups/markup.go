package groups

import (
	"bufio"
	"errors"
	"io"
)

const (
	// mostTag is how long a tag of a report may be, in bytes, and mostNested how deep its elements may be nested: an attribute of four bytes
	// and an element of three take many times as much memory. mostOpen is how long the tags of all open elements may be together: the
	// decoder keeps their namespaces.
	mostTag    = 1 << 20
	mostNested = 10_000
	mostOpen   = 2 * mostTag
)

var errTag = errors.New("a tag is too long")

// markup reads XML, and ends with errTag in a tag that is longer than mostTag.
type markup struct {
	in *bufio.Reader
	// within is what it is in: 0 is text, '<' a tag, '!' and '?' what is no tag, quotes the value of an attribute.
	within byte
	// length is of the tag so far, and last are the last bytes of what is no tag; end is how that ends.
	length int
	last   [3]byte
	end    string
}

func newMarkup(r io.Reader) *markup { return &markup{in: bufio.NewReader(r)} }

// Read implements io.Reader, of which an XML decoder makes no use: it reads byte by byte.
func (m *markup) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := m.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// ReadByte implements io.ByteReader.
func (m *markup) ReadByte() (byte, error) {
	c, err := m.in.ReadByte()
	if err != nil {
		return 0, err
	}
	m.length++
	switch m.within {
	case 0:
		if c == '<' {
			m.within, m.length = '<', 0
		}
	case '"', '\'':
		if c == m.within {
			m.within = '<'
		}
	case '<':
		switch {
		case c == '>':
			m.within = 0
		case c == '"' || c == '\'':
			m.within = c
		case m.length == 1 && (c == '!' || c == '?'):
			m.within, m.last, m.end = c, [3]byte{}, map[byte]string{'!': ">", '?': "?>"}[c]
		}
	default:
		m.last = [3]byte{m.last[1], m.last[2], c}
		switch {
		case m.within == '!' && m.length == 3 && string(m.last[1:]) == "--":
			m.end, m.last = "-->", [3]byte{}
		case m.within == '!' && m.length == 2 && c == '[':
			m.end = "]]>"
		case string(m.last[3-len(m.end):]) == m.end:
			m.within = 0
		}
	}
	if m.length > mostTag && (m.within == '<' || m.within == '"' || m.within == '\'') {
		return 0, errTag
	}
	return c, nil
}
