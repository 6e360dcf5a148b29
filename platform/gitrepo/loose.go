package gitrepo

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
)

// writeLoose writes an object as git does, without the price of a process: a merge needs
// three commits, and queues merge often. An object that is there is written again, which
// also mends a file that a power loss left empty.
func (r *Repo) writeLoose(kind string, body []byte) (string, error) {
	header := fmt.Sprintf("%s %d\x00", kind, len(body))
	hash := sha1.New()
	hash.Write([]byte(header))
	hash.Write(body)
	id := hex.EncodeToString(hash.Sum(nil))

	if err := writeObjectFile(filepath.Join(r.dir, "objects", id[:2]), id[2:], storedZlib([]byte(header), body)); err != nil {
		return "", fmt.Errorf("write %s %s: %w", kind, id, err)
	}
	return id, nil
}

// storedZlib wraps data in the zlib format without compressing it: commits are small, and
// Go's compressor needs most of a megabyte for each stream.
func storedZlib(parts ...[]byte) []byte {
	const maxBlock = 0xffff
	data := bytes.Join(parts, nil)
	out := []byte{0x78, 0x01}
	for rest := data; ; {
		block := rest[:min(len(rest), maxBlock)]
		rest = rest[len(block):]
		last := byte(0)
		if len(rest) == 0 {
			last = 1
		}
		size := uint16(len(block))
		out = append(out, last)
		out = binary.LittleEndian.AppendUint16(out, size)
		out = binary.LittleEndian.AppendUint16(out, ^size)
		out = append(out, block...)
		if last == 1 {
			return binary.BigEndian.AppendUint32(out, adler32.Checksum(data))
		}
	}
}

// writeObjectFile makes a file whole or not at all. git removes leftovers named tmp_obj_*.
func writeObjectFile(dir, name string, data []byte) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		return err
	}
	file, err := os.CreateTemp(dir, "tmp_obj_")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(data); err != nil {
		file.Close()
		return err
	}
	if err := file.Chmod(0o444); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}
