package gitrepotest

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1"
	"encoding"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packed is an object of a pack.
type packed struct {
	id     [sha1.Size]byte
	crc    uint32
	offset int
}

// Costly makes a branch of the bare repository in a folder, of one commit with so many files, and two others. Each of them has so many
// zeros and a number, is a delta of some bytes in a pack, and costs git its whole length to unpack. So does the file small, of one byte. The
// file base has the zeros.
func Costly(t testing.TB, bare, branch string, files, length int) (commit string) {
	t.Helper()
	length = length&^0xffffff + 0xffffff // whole copies, of 16 MiB but a byte
	length -= length % 0xffffff
	base := sha1.New()
	fmt.Fprintf(base, "blob %d\x00", length)
	var pack bytes.Buffer
	pack.WriteString("PACK\x00\x00\x00\x02")
	binary.Write(&pack, binary.BigEndian, uint32(files+4))
	var objects []packed
	add := func(id []byte, kind byte, before []byte, size int, content io.Reader) {
		start := pack.Len()
		first := kind<<4 | byte(size&15)
		size >>= 4
		for ; size > 0; size >>= 7 {
			pack.WriteByte(first | 0x80)
			first = byte(size & 0x7f)
		}
		pack.WriteByte(first)
		pack.Write(before)
		w, _ := zlib.NewWriterLevel(&pack, zlib.BestSpeed)
		if _, err := io.Copy(w, content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, packed{[sha1.Size]byte(id), crc32.ChecksumIEEE(pack.Bytes()[start:]), start})
	}
	add(hashOf(base, io.LimitReader(zeros{}, int64(length))), 3, nil, length, io.LimitReader(zeros{}, int64(length)))

	prefix := sha1.New() // of the files, but for their numbers
	fmt.Fprintf(prefix, "blob %d\x00", length+8)
	if _, err := io.CopyN(prefix, zeros{}, int64(length)); err != nil {
		t.Fatal(err)
	}
	state, err := prefix.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var tree bytes.Buffer
	fmt.Fprintf(&tree, "100644 base\x00%s", objects[0].id[:])
	for i := range files {
		number := fmt.Sprintf("%08d", i)
		file := sha1.New()
		if err := file.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		id := hashOf(file, strings.NewReader(number))
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(length)), uint64(length+8))
		for at := 0; at < length; at += 0xffffff {
			delta = binary.LittleEndian.AppendUint32(append(delta, 0xff), uint32(at))
			delta = append(delta, 0xff, 0xff, 0xff)
		}
		delta = append(append(delta, 8), number...)
		add(id, 6, backBy(pack.Len()-objects[0].offset), len(delta), bytes.NewReader(delta))
		fmt.Fprintf(&tree, "100644 f%s\x00%s", number, id)
	}
	small := append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(length)), 1), 1, 'x')
	file := sha1.New()
	fmt.Fprint(file, "blob 1\x00")
	id := hashOf(file, strings.NewReader("x"))
	add(id, 6, backBy(pack.Len()-objects[0].offset), len(small), bytes.NewReader(small))
	fmt.Fprintf(&tree, "100644 small\x00%s", id)
	named := func(kind string, number byte, content []byte) []byte {
		h := sha1.New()
		fmt.Fprintf(h, "%s %d\x00", kind, len(content))
		id := hashOf(h, bytes.NewReader(content))
		add(id, number, nil, len(content), bytes.NewReader(content))
		return id
	}
	root := named("tree", 2, tree.Bytes())
	id = named("commit", 1, fmt.Appendf(nil, "tree %x\nauthor A <a@example.com> 1700000000 +0000\ncommitter A <a@example.com> 1700000000 +0000\n\n%s\n", root, branch))
	checksum := sha1.Sum(pack.Bytes())
	pack.Write(checksum[:])

	path := filepath.Join(bare, "objects", "pack", fmt.Sprintf("pack-%x", checksum))
	for name, content := range map[string][]byte{path + ".pack": pack.Bytes(), path + ".idx": indexOf(objects, checksum)} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commit = fmt.Sprintf("%x", id)
	for _, args := range [][]string{{"update-ref", "refs/heads/" + branch, commit}, {"config", "pack.window", "0"}} { // it is cheap to serve
		if out, err := exec.Command("git", append([]string{"-C", bare}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return commit
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func hashOf(h interface {
	io.Writer
	Sum([]byte) []byte
}, content io.Reader) []byte {
	io.Copy(h, content)
	return h.Sum(nil)
}

// backBy writes how far before a delta its base is, as packs do.
func backBy(distance int) []byte {
	text := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		text = append(text, 0x80|byte(distance&0x7f))
	}
	slices.Reverse(text)
	return text
}

// indexOf returns the index of a pack, of version 2.
func indexOf(objects []packed, pack [sha1.Size]byte) []byte {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b packed) int { return cmp.Compare(string(a.id[:]), string(b.id[:])) })
	index := []byte("\xfftOc\x00\x00\x00\x02")
	for first := range 256 {
		n := 0
		for n < len(objects) && int(objects[n].id[0]) <= first {
			n++
		}
		index = binary.BigEndian.AppendUint32(index, uint32(n))
	}
	for _, o := range objects {
		index = append(index, o.id[:]...)
	}
	for _, o := range objects {
		index = binary.BigEndian.AppendUint32(index, o.crc)
	}
	for _, o := range objects {
		index = binary.BigEndian.AppendUint32(index, uint32(o.offset))
	}
	index = append(index, pack[:]...)
	sum := sha1.Sum(index)
	return append(index, sum[:]...)
}
