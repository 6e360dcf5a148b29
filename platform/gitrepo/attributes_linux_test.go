package gitrepo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

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
		"encryption": encrypt,
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

// encrypt empties a directory and has the file system encrypt what is made there, by a key that it then forgets: nothing can be made
// there. ext4 can do so if it was made with the feature "encrypt", and F2FS.
func encrypt(dir string) (err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	call := func(request uintptr, argument unsafe.Pointer) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), request, uintptr(argument)); errno != 0 {
			return errno
		}
		return nil
	}
	key := struct {
		unix.FscryptAddKeyArg
		raw [64]byte
	}{FscryptAddKeyArg: unix.FscryptAddKeyArg{Key_spec: unix.FscryptKeySpecifier{Type: unix.FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}, Raw_size: 64}}
	if err := call(unix.FS_IOC_ADD_ENCRYPTION_KEY, unsafe.Pointer(&key)); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, call(unix.FS_IOC_REMOVE_ENCRYPTION_KEY, unsafe.Pointer(&unix.FscryptRemoveKeyArg{Key_spec: key.Key_spec})))
	}()
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	policy := unix.FscryptPolicyV2{Version: unix.FSCRYPT_POLICY_V2, Contents_encryption_mode: unix.FSCRYPT_MODE_AES_256_XTS,
		Filenames_encryption_mode: unix.FSCRYPT_MODE_AES_256_CTS, Master_key_identifier: [16]uint8(key.Key_spec.U[:16])}
	return call(unix.FS_IOC_SET_ENCRYPTION_POLICY, unsafe.Pointer(&policy))
}

// A file system that bounds the attributes of one file little, such as XFS, Btrfs or one in memory, holds more than the kernel lists.
func TestADirectoryWithMoreAttributesThanAreListedGoes(t *testing.T) {
	for _, at := range []string{".", "folder"} {
		t.Run(at, func(t *testing.T) {
			f := newFixture(t)
			f.write("folder/a", "1")
			one := f.commit("one")
			f.publish("main")
			parent, err := os.MkdirTemp("/dev/shm", "landfall-attributes-")
			if err != nil {
				t.Skipf("there is no file system in memory: %v", err)
			}
			t.Cleanup(func() { os.RemoveAll(parent) })
			w, err := f.repo.AddWorktree(t.Context(), filepath.Join(parent, "tree"))
			if err != nil {
				t.Fatal(err)
			}
			f.checkout(w, one)
			dir := filepath.Join(w.Dir(), at)
			for i := range 300 {
				if err := unix.Setxattr(dir, fmt.Sprintf("user.%0240d", i), nil, 0); err != nil {
					t.Skipf("this file system has too few: %v", err)
				}
			}
			f.checkout(w, one)
			if size, err := unix.Listxattr(dir, nil); err != nil || size > 60_000 {
				t.Errorf("it has names of %d bytes, %v", size, err)
			}
		})
	}
}

// Some file systems hold thousands of attributes of 64 KiB of one file.
func TestAttributesAreReadUpToABound(t *testing.T) {
	parent, err := os.MkdirTemp("/dev/shm", "landfall-attributes-")
	if err != nil {
		t.Skipf("there is no file system in memory: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	read := func() string {
		text, err := attributesAt(os.Open(parent))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	usual := read()
	for i := range 20 {
		if err := unix.Setxattr(parent, fmt.Sprintf("user.%d", i), make([]byte, 60<<10), 0); err != nil {
			t.Skipf("this file system has too few: %v", err)
		}
		const quoted = len(`\x00`)
		if text := read(); len(text) > len(usual)+quoted*mostAttributes+100 || text == usual {
			t.Errorf("%d attributes are read as %d bytes", i+1, len(text))
		}
	}
}
