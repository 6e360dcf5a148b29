package pipeline

import (
	"os"

	"landfall.build/services/builder"
)

// logStore returns the folder of the complete logs of steps.
func (p *Process) logStore() string { return closed(builder.LogDir(p.Configuration.Data)) }

// closed returns a folder, made so that other users of the machine do not reach it. Users of its group may: services that share a data
// directory need not be of one user. Where it is another user's, that one decides.
func closed(folder string) string {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return folder // whoever uses it says why it cannot be
	}
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o007 != 0 { // an earlier release has made it for all
		_ = os.Chmod(folder, info.Mode().Perm()&^0o007)
	}
	return folder
}
