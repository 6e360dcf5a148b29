package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Commit is a commit object. Bytes are as in the object: UTF-8 unless Encoding says
// otherwise, and not even then for certain.
type Commit struct {
	ID, Tree    string
	Parents     []string
	AuthorName  string
	AuthorEmail string
	AuthorDate  string // "unix-seconds +hhmm", as git keeps it; "0 +0000" if it has none
	Encoding    string // of the message and names; "" is UTF-8
	Message     string // with all its newlines
}

// CommitInfo reads a commit of the mirror by its full id; ErrNoSuchCommit if it is not
// there.
func (r *Repo) CommitInfo(ctx context.Context, id string) (Commit, error) {
	infos, err := r.CommitInfos(ctx, []string{id})
	if err != nil {
		return Commit{}, err
	}
	return infos[0], nil
}

// maxCommitBytes bounds commits that are read at once. In a pack one with a message of 64 MiB takes a few bytes.
const maxCommitBytes = 256 << 20

// CommitInfos is CommitInfo for several at once, in their order. ErrTooLarge if they have more than 256 MiB together.
func (r *Repo) CommitInfos(ctx context.Context, ids []string) ([]Commit, error) {
	for _, id := range ids {
		if err := checkID("commit", id); err != nil {
			return nil, err
		}
	}
	infos, left := make([]Commit, 0, len(ids)), r.commitBytes
	for batch := range slices.Chunk(ids, readerBatch) {
		got, err := r.usedCommits(ctx, batch, left+1)
		if err != nil {
			return nil, err
		}
		for i, id := range batch {
			if got[i].kind != "commit" {
				return nil, fmt.Errorf("%w: %s is not a commit of the mirror", ErrNoSuchCommit, id)
			}
			one, err := parseCommit(id, got[i].body)
			if err != nil {
				return nil, err
			}
			infos = append(infos, one)
			left -= len(got[i].body)
			got[i].body = nil
		}
	}
	return infos, nil
}

// usedCommits reads commits, and writes down that those which are there are used.
func (r *Repo) usedCommits(ctx context.Context, ids []string, contents int) (got []object, err error) {
	if r.usedLately(ids...) {
		return r.readers.objects(ctx, ids, contents)
	}
	err = r.using(ctx, func() (names []string, err error) {
		got, err = r.readers.objects(ctx, ids, contents)
		for i := range got {
			if got[i].kind == "commit" {
				names = append(names, ids[i])
			}
		}
		return names, err
	})
	return got, err
}

func parseCommit(id string, body []byte) (Commit, error) {
	commit := Commit{ID: id, AuthorDate: "0 +0000"}
	for {
		line, rest, found := bytes.Cut(body, []byte("\n"))
		body = rest
		if len(line) == 0 {
			commit.Message = string(rest)
			break
		}
		if !found {
			break
		}
		key, value, _ := strings.Cut(string(line), " ")
		switch key { // a continued line, as of a signature, begins with a space: its key is ""
		case "tree":
			commit.Tree = value
		case "parent":
			commit.Parents = append(commit.Parents, value)
		case "author":
			commit.AuthorName, commit.AuthorEmail, commit.AuthorDate = splitIdentity(value)
		case "encoding":
			commit.Encoding = value
		}
	}
	if !IsID(commit.Tree) {
		return Commit{}, fmt.Errorf("%w: commit %s has no tree", ErrBadObject, id)
	}
	for _, parent := range commit.Parents {
		if !IsID(parent) {
			return Commit{}, fmt.Errorf("%w: commit %s has the parent %q", ErrBadObject, id, clip(parent))
		}
	}
	return commit, nil
}

// splitIdentity splits "Name <email> 1700000000 +0100", as forgivingly as git: the
// address ends at the first ">", the date begins after the last.
func splitIdentity(line string) (name, email, date string) {
	date = "0 +0000"
	open := strings.IndexByte(line, '<')
	last := strings.LastIndexByte(line, '>')
	if open < 0 || last < open {
		return strings.TrimSpace(line), "", date
	}
	name = strings.TrimSpace(line[:open])
	email, _, _ = strings.Cut(line[open+1:], ">")
	if when := strings.TrimSpace(line[last+1:]); isDate(when) {
		date = when
	}
	return name, strings.TrimSpace(email), date
}

// isDate accepts "unix-seconds +hhmm" and nothing else.
func isDate(date string) bool {
	seconds, zone, found := strings.Cut(date, " ")
	return found && isDigits(seconds) && len(seconds) <= 12 && (len(seconds) == 1 || seconds[0] != '0') &&
		len(zone) == 5 && (zone[0] == '+' || zone[0] == '-') && isDigits(zone[1:])
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Identity is who made a commit, and when.
type Identity struct {
	Name, Email string
	Date        string // "unix-seconds +hhmm"
}

func (i Identity) check(role string) error {
	for what, text := range map[string]string{"name": i.Name, "email": i.Email} {
		if strings.ContainsFunc(text, func(c rune) bool { return isControl(c) || c == '<' || c == '>' }) {
			return fmt.Errorf("%w: the %s's %s %q holds a control character, < or >", ErrInvalid, role, what, clip(text))
		}
	}
	if !isDate(i.Date) {
		return fmt.Errorf("%w: the %s's date %q is not of the form \"unix-seconds +hhmm\"", ErrInvalid, role, clip(i.Date))
	}
	return nil
}

// IsEncoding reports whether WriteCommit takes the name of an encoding: printable ASCII without spaces. git itself keeps
// whatever i18n.commitEncoding says.
func IsEncoding(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f })
}

// CommitSpec is all that a commit consists of.
type CommitSpec struct {
	Tree              string
	Parents           []string
	Author, Committer Identity
	Encoding          string // "" is UTF-8
	Message           string // as it stands; no NUL
}

// WriteCommit writes a commit into the mirror and returns its id: the same spec gives the
// same id, in every process and on every machine. Its tree and parents must be there.
func (r *Repo) WriteCommit(ctx context.Context, spec CommitSpec) (id string, err error) {
	err = r.using(ctx, func() ([]string, error) {
		id, err = r.writeCommit(ctx, spec)
		return []string{id}, err
	})
	return id, err
}

func (r *Repo) writeCommit(ctx context.Context, spec CommitSpec) (string, error) {
	body, err := spec.encode()
	if err != nil {
		return "", err
	}
	needed := append([]string{spec.Tree}, spec.Parents...)
	got, err := r.readers.objects(ctx, needed, 0)
	if err != nil {
		return "", err
	}
	for i, want := 0, "tree"; i < len(needed); i, want = i+1, "commit" {
		if got[i].kind != want && needed[i] != emptyTree {
			return "", fmt.Errorf("%w: %s is not a %s of the mirror", ErrInvalid, needed[i], want)
		}
	}
	return r.writeLoose("commit", body)
}

func (s CommitSpec) encode() ([]byte, error) {
	if err := checkID("tree", s.Tree); err != nil {
		return nil, err
	}
	if err := s.Author.check("author"); err != nil {
		return nil, err
	}
	if err := s.Committer.check("committer"); err != nil {
		return nil, err
	}
	if strings.ContainsRune(s.Message, 0) {
		return nil, fmt.Errorf("%w: the commit's message holds a NUL byte", ErrInvalid)
	}
	if !IsEncoding(s.Encoding) {
		return nil, fmt.Errorf("%w: the commit's encoding %q", ErrInvalid, clip(s.Encoding))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", s.Tree)
	for _, parent := range s.Parents {
		if err := checkID("parent", parent); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s <%s> %s\n", s.Author.Name, s.Author.Email, s.Author.Date)
	fmt.Fprintf(&b, "committer %s <%s> %s\n", s.Committer.Name, s.Committer.Email, s.Committer.Date)
	if s.Encoding != "" {
		fmt.Fprintf(&b, "encoding %s\n", s.Encoding)
	}
	b.WriteByte('\n')
	b.WriteString(s.Message)
	return b.Bytes(), nil
}
