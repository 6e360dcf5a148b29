package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// wanted are the packages of the image; what they depend on comes with them. Without a shell and its usual programs no git hook and no
// step runs.
var wanted = []string{
	"base-files", "bash", "ca-certificates", "coreutils", "dash", "findutils", "git", "grep", "gzip", "openssh-client", "sed", "tar",
}

// fetch downloads the packages and all that they depend on, as if nothing were installed; apt checks what comes. It returns their files.
func fetch(ctx context.Context, dir string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "partial"), 0o755); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{
		"install", "--yes", "--quiet", "--quiet", "--download-only", "--no-install-recommends",
		"-o", "Dir::State::status=/dev/null", "-o", "Dir::Cache::archives=" + dir, "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=",
	}, wanted...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("apt-get cannot fetch the packages (apt-get update first?): %w\n%s", err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err == nil && len(packages) < len(wanted) {
		err = fmt.Errorf("apt-get fetched %d packages of %d", len(packages), len(wanted))
	}
	slices.Sort(packages)
	return packages, err
}

// layer writes the archive of a layer. All times in it are the same.
type layer struct {
	w    *tar.Writer
	seen map[string]bool
	// certificates are those of authorities, for one file.
	certificates bytes.Buffer
}

func writeLayer(path string, content func(*layer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	l := &layer{w: tar.NewWriter(file), seen: map[string]bool{}}
	if err := content(l); err != nil {
		return err
	}
	return l.w.Close()
}

// put writes one entry, unless it is there already.
func (l *layer) put(h tar.Header, content io.Reader) error {
	h.Name = strings.Trim(h.Name, "/")
	if l.seen[h.Name] {
		return nil
	}
	l.seen[h.Name] = true
	h.ModTime, h.AccessTime, h.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
	h.Uname, h.Gname, h.PAXRecords, h.Format = "", "", nil, tar.FormatUnknown
	if err := l.w.WriteHeader(&h); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(l.w, content)
	return err
}

func (l *layer) text(name, text string) error {
	return l.put(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}, strings.NewReader(text))
}

func (l *layer) directory(name string, mode int64, owner int) error {
	return l.put(tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner}, nil)
}

// file copies a file of this machine.
func (l *layer) file(from, to string, mode int64) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return l.put(tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: mode, Size: info.Size()}, f)
}

// folder copies a folder of this machine.
func (l *layer) folder(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return l.directory(filepath.Join(to, relative), 0o755, 0)
		}
		return l.file(path, filepath.Join(to, relative), 0o755)
	})
}

// merged are folders of the root that are links into /usr.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// inUsr returns where a path of a package is once these are links.
func inUsr(path string) string {
	path = strings.Trim(strings.TrimPrefix(path, "."), "/")
	if first, _, _ := strings.Cut(path, "/"); slices.Contains(merged, first) {
		return "usr/" + path
	}
	return path
}

// unneeded reports whether a file of a package is for people at a terminal. Licences stay.
func unneeded(path string) bool {
	if strings.HasPrefix(path, "usr/share/doc/") {
		return !strings.HasSuffix(path, "/copyright")
	}
	for _, dir := range []string{"usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bash-completion/", "etc/cron", "etc/init.d/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// debian unpacks packages and does what their scripts would: links into /usr, users, the file of certificates.
func (l *layer) debian(ctx context.Context, packages []string) error {
	for _, file := range packages {
		if err := l.unpack(ctx, file); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	for _, dir := range merged {
		if l.seen["usr/"+dir] {
			if err := l.put(tar.Header{Typeflag: tar.TypeSymlink, Name: dir, Linkname: "usr/" + dir, Mode: 0o777}, nil); err != nil {
				return err
			}
		}
	}
	if l.certificates.Len() == 0 {
		return errors.New("the packages have no certificates of authorities")
	}
	return errors.Join(
		l.text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nlandfall:x:%d:%d::%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n", user, user, home)),
		l.text("etc/group", fmt.Sprintf("root:x:0:\nlandfall:x:%d:\nnogroup:x:65534:\n", user)),
		l.directory("etc/ssl", 0o755, 0), l.directory("etc/ssl/certs", 0o755, 0),
		l.text("etc/ssl/certs/ca-certificates.crt", l.certificates.String()),
		l.directory("etc/landfall", 0o755, 0), l.directory("tmp", 0o1777, 0), l.directory(home, 0o755, user),
	)
}

func (l *layer) unpack(ctx context.Context, file string) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = l.entries(tar.NewReader(out))
	if err != nil {
		_ = cmd.Process.Kill()
	}
	if ended := cmd.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("%w: %s", ended, strings.TrimSpace(failure.String()))
	}
	return err
}

func (l *layer) entries(r *tar.Reader) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			// The padding behind the archive is read too, so that dpkg-deb can end.
			return nil
		}
		if err != nil {
			return err
		}
		h.Name = inUsr(h.Name)
		if h.Name == "" || unneeded(h.Name) {
			continue
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname = inUsr(h.Linkname)
		}
		h.Mode &^= 0o6000 // nobody gains rights by a program
		var content io.Reader = r
		if strings.HasPrefix(h.Name, "usr/share/ca-certificates/") && strings.HasSuffix(h.Name, ".crt") {
			content = io.TeeReader(r, &l.certificates)
		}
		if h.Typeflag != tar.TypeReg {
			content = nil
		}
		if err := l.put(*h, content); err != nil {
			return err
		}
	}
}
