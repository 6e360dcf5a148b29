package lookups

import "golang.org/x/sys/unix"

// calls are the system calls that look paths up, and those that list folders.
var calls = map[int32]call{
	unix.SYS_OPENAT:            {folder: 0, path: 1, flags: 2, opens: true},
	unix.SYS_OPENAT2:           {folder: 0, path: 1, flags: none, reads: true},
	unix.SYS_FSTATAT:           {folder: 0, path: 1, flags: 3},
	unix.SYS_SYMLINKAT:         {folder: none, path: none, flags: none, changes: true},
	unix.SYS_STATX:             {folder: 0, path: 1, flags: 2},
	unix.SYS_READLINKAT:        {folder: 0, path: 1, flags: none, ofLink: true},
	unix.SYS_FACCESSAT:         {folder: 0, path: 1, flags: none},
	unix.SYS_FACCESSAT2:        {folder: 0, path: 1, flags: 3},
	unix.SYS_EXECVE:            {folder: none, path: 0, flags: none, reads: true},
	unix.SYS_EXECVEAT:          {folder: 0, path: 1, flags: none, reads: true},
	unix.SYS_CHDIR:             {folder: none, path: 0, flags: none},
	unix.SYS_FCHMODAT:          {folder: 0, path: 1, flags: none},
	unix.SYS_FCHOWNAT:          {folder: 0, path: 1, flags: none},
	unix.SYS_UTIMENSAT:         {folder: 0, path: 1, flags: none},
	unix.SYS_TRUNCATE:          {folder: none, path: 0, flags: none},
	unix.SYS_RENAMEAT:          {folder: 0, path: 1, flags: none, ofLink: true, changes: true},
	unix.SYS_RENAMEAT2:         {folder: 0, path: 1, flags: none, ofLink: true, changes: true},
	unix.SYS_LINKAT:            {folder: 0, path: 1, flags: none, ofLink: true},
	unix.SYS_STATFS:            {folder: none, path: 0, flags: none},
	unix.SYS_GETXATTR:          {folder: none, path: 0, flags: none},
	unix.SYS_LISTXATTR:         {folder: none, path: 0, flags: none},
	unix.SYS_INOTIFY_ADD_WATCH: {folder: none, path: 1, flags: none},
	unix.SYS_GETDENTS64:        {folder: 0, path: none, flags: none},
}
