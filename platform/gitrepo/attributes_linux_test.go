package gitrepo

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatAStepGivesADirectoryGoes: a default ACL would take the execute bit from the files of the next step's tree, and an attribute
// would tell it something.
func TestWhatAStepGivesADirectoryGoes(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.write("folder/run", "#!/bin/sh\n")
	one := f.commit("one")
	f.write("folder/run", "#!/bin/sh\ntrue\n")
	two := f.commit("two")
	f.publish("main")
	var acl []byte // read and write for the owner alone
	for _, n := range []uint32{2, 1 | 6<<16, 0xffffffff, 4, 0xffffffff, 0x20, 0xffffffff} {
		acl = binary.LittleEndian.AppendUint32(acl, n)
	}
	const noDump = 0x40
	given := map[string]func(dir string) error{
		"attribute":   func(dir string) error { return unix.Setxattr(dir, "user.left", []byte("by a step"), 0) },
		"default ACL": func(dir string) error { return unix.Setxattr(dir, "system.posix_acl_default", acl, 0) },
		"flag": func(dir string) error {
			file, err := os.Open(dir)
			if err != nil {
				return err
			}
			defer file.Close()
			flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
			if err != nil {
				return err
			}
			return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags|noDump))
		},
	}
	for name, give := range given {
		for _, at := range []string{".", "folder"} {
			t.Run(name+" of "+at, func(t *testing.T) {
				w := f.worktree()
				f.checkout(w, one)
				dir := filepath.Join(w.Dir(), at)
				if err := give(dir); err != nil {
					t.Skipf("this file system has none: %v", err)
				}
				f.checkout(w, two)
				names := make([]byte, 4096)
				size, err := unix.Listxattr(dir, names)
				if left := string(names[:max(0, size)]); err != nil || strings.Contains(left, "user.") || strings.Contains(left, "posix_acl") {
					t.Errorf("it has %q, %v", left, err)
				}
				file, err := os.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				if flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS); err == nil && flags&noDump != 0 {
					t.Errorf("its flags are %x", flags)
				}
			})
		}
	}
}
