package gograph

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// factKey names the facts of one content. What a Go file says and what a C file
// says are read differently.
type factKey struct {
	object   string
	foreign  bool
	forTests bool // by the file's name or its folder's
}

// segmentHeader changes whenever facts or their form do: segments with another
// one are of no use and are removed.
const segmentHeader = "landfall go facts 10\n"

var errSegment = errors.New("the segment is cut short or altered")

// segmentOf encodes facts: the header, the records, and a digest of both.
func segmentOf(keys []factKey, values []*facts) []byte {
	b := []byte(segmentHeader)
	b = binary.AppendUvarint(b, uint64(len(keys)))
	for i, key := range keys {
		f := values[i]
		var flags byte
		for bit, set := range []bool{key.foreign, f.cgo, f.unread, f.computed, key.forTests, f.program} {
			if set {
				flags |= 1 << bit
			}
		}
		b = append(b, flags)
		b = appendText(b, key.object)
		b = appendText(b, f.constraint)
		for _, list := range [][]string{f.imports, f.embeds, f.reaches, f.includes, f.outside, f.beside} {
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, s := range list {
				b = appendText(b, s)
			}
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// readSegment calls visit for each record of a segment, none of a damaged one.
func readSegment(content []byte, visit func(factKey, *facts)) error {
	end := len(content) - sha256.Size
	if end < len(segmentHeader) || !bytes.HasPrefix(content, []byte(segmentHeader)) {
		return errSegment
	}
	if sha256.Sum256(content[:end]) != [sha256.Size]byte(content[end:]) {
		return errSegment
	}
	// Import paths recur in thousands of files.
	shared := make(map[string]string)
	d := segmentDecoder{rest: content[len(segmentHeader):end], shared: shared}
	for range d.number() {
		flags := d.flags()
		key := factKey{object: string(d.text()), foreign: flags&1 != 0, forTests: flags&16 != 0}
		f := &facts{cgo: flags&2 != 0, unread: flags&4 != 0, computed: flags&8 != 0, program: flags&32 != 0, constraint: string(d.text())}
		f.imports, f.embeds, f.reaches, f.includes, f.outside, f.beside = d.texts(), d.texts(), d.texts(), d.texts(), d.texts(), d.texts()
		if d.broken {
			return errSegment
		}
		f.prepare()
		visit(key, f)
	}
	return nil
}

// segmentDecoder reads fields; after the first that is not there it is broken.
type segmentDecoder struct {
	rest   []byte
	shared map[string]string
	broken bool
}

func (d *segmentDecoder) number() int {
	n, size := binary.Uvarint(d.rest)
	// No record and no text takes less than a byte.
	if size <= 0 || n > uint64(len(d.rest)-size) {
		d.broken = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *segmentDecoder) flags() byte {
	if len(d.rest) == 0 {
		d.broken = true
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *segmentDecoder) text() []byte {
	n := d.number()
	text := d.rest[:n]
	d.rest = d.rest[n:]
	return text
}

func (d *segmentDecoder) texts() []string {
	n := d.number()
	if n == 0 || d.broken {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		raw := d.text()
		s, ok := d.shared[string(raw)]
		if !ok {
			s = string(raw)
			d.shared[s] = s
		}
		list = append(list, s)
	}
	return list
}
