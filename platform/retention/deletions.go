package retention

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DeletionsFile is the name of the file in each folder of logs that has which of them were deleted.
const DeletionsFile = "deleted"

// maxDeletions bounds a DeletionsFile, in bytes: above it the older half is forgotten.
const maxDeletions = 4 << 20

// Deletion is that a file was deleted.
type Deletion struct {
	At    time.Time
	Bound Bound
}

// String is for people: "deleted on 2026-03-01 12:00 UTC: older than 720h (retention.logs.age)".
func (d Deletion) String() string {
	return fmt.Sprintf("deleted on %s: %s", d.At.UTC().Format("2006-01-02 15:04 UTC"), d.Bound)
}

// Delete deletes files of one folder, once it has written down that they are deleted. It goes on after a failure. One process
// at a time may delete in a folder.
func Delete(dir string, victims []Victim, now time.Time) (deleted []Victim, err error) {
	var lines strings.Builder
	for _, v := range victims {
		fmt.Fprintf(&lines, "%s\t%d\t%s\n", filepath.Base(v.Path), now.Unix(), v.Bound)
	}
	if err = appendDeletions(filepath.Join(dir, DeletionsFile), lines.String()); err != nil {
		// Room is what is lacking, perhaps: it is made all the same.
		err = fmt.Errorf("it could not be written down which logs are deleted: %w", err)
	}
	for _, v := range victims {
		if failure := os.Remove(v.Path); failure != nil && !missing(failure) {
			err = errors.Join(err, failure)
			continue
		}
		deleted = append(deleted, v)
	}
	return deleted, err
}

func appendDeletions(path, lines string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > maxDeletions {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, content, _ = bytes.Cut(content[len(content)/2:], []byte("\n"))
		if err := os.WriteFile(path+".new", content, 0o644); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines)
	return errors.Join(err, file.Close())
}

// FindDeletion looks a file up in what a DeletionsFile has, by its name.
func FindDeletion(deletions io.Reader, name string) (d Deletion, found bool) {
	lines := bufio.NewScanner(deletions)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if len(fields) != 3 || fields[0] != name {
			continue
		}
		if seconds, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			d, found = Deletion{At: time.Unix(seconds, 0), Bound: Bound(fields[2])}, true
		}
	}
	return d, found
}
