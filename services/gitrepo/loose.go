package gitrepo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
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

	var packed bytes.Buffer
	deflate := zlib.NewWriter(&packed)
	deflate.Write([]byte(header))
	deflate.Write(body)
	if err := deflate.Close(); err != nil {
		return "", err
	}
	if err := writeObjectFile(filepath.Join(r.dir, "objects", id[:2]), id[2:], packed.Bytes()); err != nil {
		return "", fmt.Errorf("write %s %s: %w", kind, id, err)
	}
	return id, nil
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
