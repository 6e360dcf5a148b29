// Package gitrepo is the system's git behind a Go API: a local bare mirror of one
// remote repository, in which commits are resolved, trees read, compared and merged,
// landing commits written, checked out and pushed.
//
// What holds throughout:
//
//   - Object ids are full lower-case SHA-1 ids (40 hex digits) as strings. Repositories
//     in git's SHA-256 format are not supported.
//   - Paths are byte strings as git keeps them: "/" between the parts, any byte but NUL
//     inside them, not necessarily UTF-8.
//   - A git process sees no configuration but this package's: nothing of the system, the user or
//     the environment, so that two machines make the same merge. It is never given a
//     name that begins with "-", never asks for a password, and has a time limit and
//     bounded output.
//   - Methods of Repo may be called by several goroutines, and several processes may
//     share one mirror. A Worktree belongs to one goroutine at a time.
//
// A mirror is a cache. It can be deleted while nothing runs and is made again from the
// remote; that is also the remedy after a power loss, since git does not sync each object.
package gitrepo
