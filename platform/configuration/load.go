package configuration

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// MaxFileSize bounds the file, in bytes.
const MaxFileSize = 1 << 20

// Load reads the file at this path. The error is Problems if the file was read but
// is not valid; otherwise it says why it could not be read. All paths in the result
// are absolute.
func Load(name string, d Defaults) (*Configuration, error) {
	folder, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("configuration: find the folder of %s: %w", name, err)
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("configuration: %w; write one there or name another with --config", err)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, MaxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: read %s: %w", name, err)
	}
	return parse(data, name, folder, d)
}

// Parse is Load for a file that is in memory already. The name is used in messages;
// relative paths in the file resolve against its folder.
func Parse(data []byte, name string, d Defaults) (*Configuration, error) {
	return parse(data, name, filepath.Dir(name), d)
}

func parse(data []byte, name, folder string, d Defaults) (*Configuration, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	f := newFindings(name)
	body, ok := parseDocument(data, f)
	if !ok {
		return nil, f.problems()
	}
	c := New(d)
	decode := decoder{findings: f, defaults: d}
	decode.value(body, reflect.ValueOf(c).Elem(), root)
	complete(c, f)
	checkBounds(reflect.ValueOf(c).Elem(), "", root, f)
	checkRules(c, f)
	resolvePaths(c, folder)
	checkPlaces(c, f)
	if err := f.problems(); err != nil {
		return nil, err
	}
	return c, nil
}
