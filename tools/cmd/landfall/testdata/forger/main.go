// Command forger is a step that uses a cache, if the file of its second argument is there. With fill it puts honest files there;
// with forge it tries to leave there what other steps take for honest files, in every way; with look it prints each forgery
// that it finds as a line "FOUND …".
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	honest = "honest\n"
	forged = "for" + "ged\n"
)

// ways make something of an honest file, each of one of its own.
var ways = []func(path string){
	func(path string) { _ = os.WriteFile(path, []byte(forged), 0o644) },
	func(path string) { // in place, by what was opened to read
		file, err := os.Open(path)
		if err == nil {
			_ = os.WriteFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), []byte(forged), 0o644)
		}
	},
	func(path string) { _ = os.Truncate(path, 0) },
	func(path string) { _ = os.Remove(path) },
	func(path string) {
		_ = os.WriteFile(path+".forged", []byte(forged), 0o644)
		_ = os.Rename(path+".forged", path)
	},
	func(path string) { _ = os.Rename(path, path+".forged") },
	func(path string) { // in place, by another name of the same file
		_ = os.Link(path, path+".forged")
		_ = os.WriteFile(path+".forged", []byte(forged), 0o644)
	},
	func(path string) {
		_ = os.WriteFile(path+".forged", []byte(forged), 0o644)
		_ = os.Remove(path)
		_ = os.Symlink(path+".forged", path)
	},
	func(path string) { // in place, by memory
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return
		}
		memory, err := unix.Mmap(int(file.Fd()), 0, len(honest), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			copy(memory, forged)
			_ = unix.Msync(memory, unix.MS_SYNC)
		}
	},
	func(path string) { // in place, by memory that is private
		file, err := os.Open(path)
		if err != nil {
			return
		}
		memory, err := unix.Mmap(int(file.Fd()), 0, len(honest), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err == nil {
			copy(memory, forged)
		}
	},
	func(path string) {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			_ = unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4)
			_ = file.Chmod(0)
			_ = file.Chown(os.Getuid(), os.Getgid())
		}
	},
	func(path string) {
		_ = os.Remove(path)
		_ = unix.Mknod(path, unix.S_IFCHR|0o666, 0) // as the system marks what is removed
	},
	func(path string) {
		for _, name := range []string{"user.overlay.redirect", "user.overlay.metacopy", "user.overlay.opaque", "user.overlay.whiteout", "trusted.overlay.redirect", "trusted.overlay.opaque", "user.note"} {
			_ = unix.Setxattr(path, name, []byte("y"), 0)
			_ = unix.Setxattr(filepath.Dir(path), name, []byte("y"), 0)
		}
		_ = os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))
	},
	func(path string) { // under another root folder
		if unix.Unshare(unix.CLONE_NEWNS) == nil {
			_ = unix.Unmount(filepath.Dir(path), unix.MNT_DETACH)
		}
		_ = os.WriteFile(filepath.Join("/proc/1/root", path), []byte(forged), 0o644)
	},
}

func main() {
	cache, at := os.Getenv("GOCACHE"), func(i int) string { return fmt.Sprintf("%s/folder/%d", os.Getenv("GOCACHE"), i) }
	if _, err := os.Stat(os.Args[2]); err != nil {
		return
	}
	switch os.Args[1] {
	case "fill":
		if err := os.MkdirAll(filepath.Join(cache, "folder"), 0o755); err != nil {
			panic(err)
		}
		for i := range ways {
			if err := os.WriteFile(at(i), []byte(honest), 0o644); err != nil {
				panic(err)
			}
		}
		fmt.Println("filled")
	case "forge":
		look(cache, at) // it begins with honest ones
		for i, way := range ways {
			way(at(i))
		}
		beside(cache)
		_ = os.WriteFile(filepath.Join(cache, "new.forged"), []byte(forged), 0o644)
		_ = os.Mkdir(filepath.Join(cache, "folder.forged"), 0o755)
		fmt.Println("has made forgeries")
	case "look":
		look(cache, at)
		fmt.Println("has looked")
	}
}

// beside looks for the folders that the cache is made of, and writes there.
func beside(cache string) {
	var all []string
	for _, folder := range []string{filepath.Dir(cache), "/proc/self/root" + filepath.Dir(cache), "/proc/1/root" + filepath.Dir(cache), "/proc/1/cwd", "/.outside" + filepath.Dir(cache)} {
		for _, name := range []string{"layers", "runs", "planted.forged"} {
			all = append(all, filepath.Join(folder, name))
		}
	}
	for _, path := range all {
		if _, err := os.Lstat(path); err == nil {
			fmt.Println("FOUND beside the cache:", path)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		for part := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' || r == ':' || r == '=' }) {
			if strings.HasPrefix(part, "layers") || strings.HasPrefix(part, "runs") {
				if _, err := os.Lstat(filepath.Join(filepath.Dir(cache), part)); err == nil {
					fmt.Println("FOUND a layer:", part)
				}
			}
		}
	}
	for _, path := range all {
		_ = os.WriteFile(path, []byte(forged), 0o644)
	}
}

func look(cache string, at func(int) string) {
	found := func(path, what string) { fmt.Printf("FOUND %s: %s\n", strings.TrimPrefix(path, cache), what) }
	for i := range ways {
		info, err := os.Lstat(at(i))
		switch {
		case err != nil:
			found(at(i), err.Error())
			continue
		case info.Mode() != 0o644 || info.ModTime().Unix() < 10 || info.Sys().(*syscall.Stat_t).Nlink == 0:
			found(at(i), fmt.Sprint(info.Mode(), info.ModTime()))
		}
		if text, err := os.ReadFile(at(i)); err != nil || string(text) != honest {
			found(at(i), fmt.Sprintf("%q, %v", text, err))
		}
	}
	_ = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			found(path, err.Error())
			return nil
		}
		if strings.HasSuffix(path, ".forged") {
			found(path, "is there")
		}
		names := make([]byte, 1<<10)
		if n, err := unix.Llistxattr(path, names); err == nil && bytes.Contains(names[:n], []byte("user.")) {
			found(path, fmt.Sprintf("has attributes %q", names[:n]))
		}
		return nil
	})
}
