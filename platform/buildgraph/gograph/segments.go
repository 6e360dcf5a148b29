package gograph

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	segmentSuffix   = ".gofacts"
	temporarySuffix = ".gofacts-writing"
	// maxSegments is how many files there are before they are joined into one.
	maxSegments = 16
	// abandonedAfter is how old a file is that nobody can still be writing.
	abandonedAfter = time.Hour
)

// segments are the files of facts in one folder. Each is written under another
// name, renamed, and never changed, and ends with a digest: a crash, a full disk
// or another process leaves whole files or files that are seen to be damaged.
type segments struct {
	dir    string
	bytes  int64
	logger *slog.Logger
	mu     sync.Mutex
}

func openSegments(dir string, bytes int64, logger *slog.Logger, visit func(factKey, *facts)) (*segments, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("the folder for the facts of Go files: %w", err)
	}
	s := &segments{dir: dir, bytes: bytes, logger: logger}
	files, err := s.list()
	if err != nil {
		return nil, err
	}
	s.forgetOldest(files)
	if files, err = s.list(); err != nil {
		return nil, err
	}
	var keys []factKey
	var values []*facts
	for _, file := range files {
		content, err := os.ReadFile(file.path)
		if err == nil {
			err = readSegment(content, func(key factKey, value *facts) {
				visit(key, value)
				keys, values = append(keys, key), append(values, value)
			})
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			logger.Warn("facts of Go files are damaged and are computed again", "file", file.path, "error", err)
			s.remove(file.path)
		}
	}
	if len(files) > maxSegments && s.write(segmentOf(distinct(keys, values))) {
		for _, file := range files {
			s.remove(file.path)
		}
	}
	return s, nil
}

// distinct drops repetitions, which processes that work at the same time make.
func distinct(keys []factKey, values []*facts) ([]factKey, []*facts) {
	seen := make(map[factKey]bool, len(keys))
	n := 0
	for i, key := range keys {
		if !seen[key] {
			seen[key] = true
			keys[n], values[n] = key, values[i]
			n++
		}
	}
	return keys[:n], values[:n]
}

// segmentFile is a file in the folder.
type segmentFile struct {
	path    string
	size    int64
	written time.Time
}

// list returns the segments, oldest first, and removes what crashed writers left.
func (s *segments) list() ([]segmentFile, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("the folder for the facts of Go files: %w", err)
	}
	var files []segmentFile
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		file := segmentFile{filepath.Join(s.dir, entry.Name()), info.Size(), info.ModTime()}
		switch {
		case strings.HasSuffix(entry.Name(), segmentSuffix):
			files = append(files, file)
		case strings.HasSuffix(entry.Name(), temporarySuffix) && time.Since(file.written) > abandonedAfter:
			s.remove(file.path)
		}
	}
	slices.SortFunc(files, func(x, y segmentFile) int {
		return cmp.Or(x.written.Compare(y.written), cmp.Compare(x.path, y.path))
	})
	return files, nil
}

// forgetOldest keeps the folder within its bound.
func (s *segments) forgetOldest(files []segmentFile) {
	total := int64(0)
	for _, file := range slices.Backward(files) {
		if total += file.size; total > s.bytes {
			s.remove(file.path)
		}
	}
}

// write adds a segment and says whether it is there.
func (s *segments) write(content []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.writeFile(content)
	if err != nil {
		s.logger.Warn("facts of Go files cannot be kept on disk", "dir", s.dir, "error", err)
		return false
	}
	if files, err := s.list(); err == nil {
		s.forgetOldest(files)
	}
	return true
}

func (s *segments) writeFile(content []byte) (err error) {
	file, err := os.CreateTemp(s.dir, "*"+temporarySuffix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), strings.TrimSuffix(file.Name(), temporarySuffix)+segmentSuffix)
}

func (s *segments) remove(file string) {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.logger.Warn("an old file of facts cannot be removed", "file", file, "error", err)
	}
}
