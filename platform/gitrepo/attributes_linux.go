package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// flagsOfOwners are the flags of <linux/fs.h> that the owner of a directory may set, by chattr or a policy of encryption:
// FS_FL_USER_MODIFIABLE, ENCRYPT, NOCOW, DAX, PROJINHERIT and CASEFOLD. Others, such as that of an index, a file system sets itself.
const flagsOfOwners = 0x000380ff | 0x00000800 | 0x00800000 | 0x02000000 | 0x20000000 | 0x40000000

// mostAttributes bounds the names and values that are compared of user's attributes, in bytes. It is the most that one value takes. A new
// directory has none of them.
const mostAttributes = 64 << 10

// attributesOf returns what a step can change of a directory besides its entries, permissions and times: who owns it, its extended
// attributes, such as permissions that new files inherit, and its flags.
func attributesOf(dir *os.File) (string, error) {
	info, err := dir.Stat()
	if err != nil {
		return "", err
	}
	of, fd := info.Sys().(*syscall.Stat_t), int(dir.Fd())
	text := fmt.Sprintf("%d %d", of.Uid, of.Gid)
	if flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS); err == nil {
		text += fmt.Sprintf(" %x", flags&flagsOfOwners)
	}
	size, err := unix.Flistxattr(fd, nil)
	if errors.Is(err, unix.ENOTSUP) || err == nil && size == 0 {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	names := make([]byte, size)
	size, err = unix.Flistxattr(fd, names)
	if errors.Is(err, unix.E2BIG) {
		return text + " more than the kernel lists", nil
	}
	if err != nil {
		return "", err
	}
	list := strings.Split(string(names[:size]), "\x00")
	slices.Sort(list)
	value, left := make([]byte, mostAttributes), mostAttributes
	for _, name := range list {
		if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
			continue // a step cannot set it
		}
		size, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(name, "user.") {
			if left -= len(name) + size; left < 0 {
				return text + " more than is compared", nil
			}
		}
		text += fmt.Sprintf(" %q=%q", name, value[:size])
	}
	return text, nil
}
