package gitrepo

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The layout of an index file (gitformat-index, versions 2 and 3).
const (
	indexHeader   = 12
	indexMode     = 24 // in an entry: git's mode of the file, amid its stat
	indexStat     = 40 // the size of the stat, with which an entry begins; the object's id follows
	indexFlags    = 60
	indexName     = 62
	indexExtended = 0x4000 // a flag: two more bytes of flags come before the name
	indexLongName = 0xfff  // the length of a longer name, in the flags
	indexSum      = sha1.Size
)

// fileStat is what an index holds of a file: the times of its last change and of its last writing, device, inode, mode, user,
// group and size. The mode is zero.
type fileStat [indexStat]byte

// statOf looks at a file, and follows no link.
func statOf(path string) (fileStat, unix.Stat_t, error) {
	var s fileStat
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return s, st, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	for i, n := range [...]uint32{
		uint32(st.Ctim.Sec), uint32(st.Ctim.Nsec), uint32(st.Mtim.Sec), uint32(st.Mtim.Nsec),
		uint32(st.Dev), uint32(st.Ino), 0, st.Uid, st.Gid, uint32(st.Size),
	} {
		binary.BigEndian.PutUint32(s[4*i:], n)
	}
	return s, st, nil
}

// statIn returns the stat of an index's entry.
func statIn(entry []byte) fileStat {
	s := fileStat(entry)
	clear(s[indexMode : indexMode+4])
	return s
}

// putStat replaces the stat of an entry but for its mode.
func putStat(entry []byte, s fileStat) {
	copy(entry, s[:indexMode])
	copy(entry[indexMode+4:], s[indexMode+4:])
}

// readStats returns the stats of an index's entries, by path. An index that cannot be read is removed, and has none, as one that is
// not there.
func readStats(path string) (map[string]fileStat, error) {
	index, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	stats := make(map[string]fileStat)
	if eachEntry(index, func(path string, entry []byte) error {
		stats[path] = statIn(entry)
		return nil
	}) == nil {
		return stats, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, nil
}

// writeIndex replaces an index by one of some files, sorted by path. Those that it has had with the same content keep their stats; the
// others have none, so that git writes them.
func writeIndex(path string, entries []Entry) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	type head [indexFlags]byte // stat and id of the object
	had := make(map[string]head, len(entries))
	_ = eachEntry(old, func(path string, entry []byte) error { // of one that cannot be read nothing is kept
		had[path] = head(entry)
		return nil
	})
	index := append(make([]byte, 0, indexHeader+100*len(entries)), "DIRC"...)
	index = binary.BigEndian.AppendUint32(index, 2)
	index = binary.BigEndian.AppendUint32(index, uint32(len(entries)))
	for _, e := range entries {
		var entry head
		binary.BigEndian.PutUint32(entry[indexMode:], indexModeOf(e.Kind))
		if _, err := hex.Decode(entry[indexStat:], []byte(e.Object)); err != nil {
			return fmt.Errorf("%w: %s of %q", ErrBadObject, e.Object, e.Path)
		}
		if old := had[e.Path]; bytes.Equal(old[indexStat:], entry[indexStat:]) && bytes.Equal(old[indexMode:indexMode+4], entry[indexMode:indexMode+4]) {
			entry = old
		}
		index = append(index, entry[:]...)
		index = binary.BigEndian.AppendUint16(index, uint16(min(len(e.Path), indexLongName)))
		index = append(index, e.Path...)
		index = append(index, make([]byte, 8-(indexName+len(e.Path))%8)...)
	}
	sum := sha1.Sum(index)
	return os.WriteFile(path, append(index, sum[:]...), 0o666)
}

// indexModeOf returns the mode with which git writes an entry.
func indexModeOf(kind Kind) uint32 {
	switch kind {
	case Executable:
		return 0o100755
	case Symlink:
		return 0o120000
	case Submodule:
		return 0o160000
	}
	return 0o100644
}

// setTimes gives all files and folders of a worktree one time, now, and writes into its index that they have it.
//
// Otherwise a file that is the same in two trees could be older than a file that was made in between, and make and its like, whose
// caches outlive the worktree, would take what was made of another tree for what this one makes. With the time of the checkout for all
// files, nothing made before is newer than its sources.
func setTimes(dir, path string) error {
	index, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now := time.Now()
	times := []unix.Timespec{unix.NsecToTimespec(now.UnixNano()), unix.NsecToTimespec(now.UnixNano())}
	set := func(path string) error {
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "set the times of", Path: path, Err: err}
		}
		return nil
	}
	last := now.UnixNano() // the latest change
	folders := map[string]bool{}
	err = eachEntry(index, func(name string, entry []byte) error {
		for folder := parent(name); !folders[folder]; folder = parent(folder) {
			folders[folder] = true
		}
		file := filepath.Join(dir, name)
		if err := set(file); err != nil {
			return err
		}
		stat, st, err := statOf(file)
		if err != nil {
			return err
		}
		putStat(entry, stat)
		last = max(last, st.Ctim.Nano())
		return nil
	})
	if err != nil {
		return err
	}
	for folder := range folders {
		if err := set(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	sum := sha1.Sum(index[:len(index)-indexSum])
	copy(index[len(index)-indexSum:], sum[:])
	if err := os.WriteFile(path, index, 0o666); err != nil {
		return err
	}
	return passTime(path, last)
}

func parent(path string) string {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)]
}

// passTime waits until the clock of the file system, whose ticks last some milliseconds, is past last, the latest change of the
// index's files: sweep then finds by its time whatever is changed from now on. It gives the index a later time than they have, since
// git would read again all files whose times, in seconds, are not before the index's.
func passTime(path string, last int64) error {
	later := time.Unix(0, last).Add(2 * time.Second)
	const patience = 3 * time.Second // some file systems count in seconds
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if err := os.Chtimes(path, later, later); err != nil {
			return err
		}
		_, st, err := statOf(path)
		if err != nil || st.Ctim.Nano() > last {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("the clock of the file system of %s stands still or was set back", path)
		}
	}
}

// eachEntry calls f with each entry of an index: its path, and its bytes from its stat on.
func eachEntry(index []byte, f func(path string, entry []byte) error) error {
	if len(index) < indexHeader+indexSum || string(index[:4]) != "DIRC" {
		return errors.New("the index is not one of git's")
	}
	if version := binary.BigEndian.Uint32(index[4:]); version != 2 && version != 3 {
		return fmt.Errorf("the index has version %d", version)
	}
	rest := index[indexHeader : len(index)-indexSum]
	for range binary.BigEndian.Uint32(index[8:]) {
		name := indexName
		if len(rest) < name {
			return errors.New("the index is cut off")
		}
		if binary.BigEndian.Uint16(rest[indexFlags:])&indexExtended != 0 {
			name += 2
		}
		end := bytes.IndexByte(rest[min(name, len(rest)):], 0)
		if end < 0 {
			return errors.New("the index is cut off")
		}
		// Between one and eight zeros make the length a multiple of eight.
		size := (name + end + 8) &^ 7
		if size > len(rest) {
			return errors.New("the index is cut off")
		}
		if err := f(string(rest[name:name+end]), rest); err != nil {
			return err
		}
		rest = rest[size:]
	}
	return nil
}
