package configuration

import "time"

// Retention bounds what Data holds besides the log. What is in use is never removed: what a pending change refers to, a
// worktree in which a step runs.
type Retention struct {
	// Every is the time between two looks at what is there.
	Every     time.Duration `yaml:"every" minimum:"1m" maximum:"24h"`
	Logs      KeptLogs      `yaml:"logs"`
	Mirrors   KeptMirrors   `yaml:"mirrors"`
	Worktrees KeptWorktrees `yaml:"worktrees"`
	Outputs   KeptOutputs   `yaml:"outputs"`
}

// KeptLogs bounds the complete logs of steps.
type KeptLogs struct {
	// Age is how long the log of a step is kept that passed or was aborted, FailedAge that of one that failed or timed out.
	Age       time.Duration `yaml:"age" minimum:"1h" maximum:"87600h"`
	FailedAge time.Duration `yaml:"failed_age" minimum:"1h" maximum:"87600h"`
	// Size bounds all logs together. Above it those go first that come to their age next.
	Size Size `yaml:"size" minimum:"1MiB" maximum:"64TiB"`
}

// KeptMirrors bounds what the mirrors of repositories hold besides the mainlines and the pending changes.
type KeptMirrors struct {
	// Age is how long after their last use commits are kept, and trees that were made of them.
	Age time.Duration `yaml:"age" minimum:"1h" maximum:"8760h"`
	// Waste is how much of a mirror may be needed by nothing, before it is packed again without that.
	Waste Size `yaml:"waste" minimum:"1MiB" maximum:"64TiB"`
}

// KeptWorktrees bounds the worktrees that no step uses, and the scratch folders of builders that no longer run.
type KeptWorktrees struct {
	// Age is how long after its last use one is kept.
	Age time.Duration `yaml:"age" minimum:"1h" maximum:"8760h"`
	// Size bounds all of them together, with those in use. Above it the one goes first that was not used for the longest time.
	Size Size `yaml:"size" minimum:"1MiB" maximum:"64TiB"`
}

// KeptOutputs bounds the outputs of steps.
type KeptOutputs struct {
	// Age is how long after its last use one is kept.
	Age time.Duration `yaml:"age" minimum:"1h" maximum:"8760h"`
	// Size bounds all of them together. Above it those go first that were not used for the longest time.
	Size Size `yaml:"size" minimum:"1MiB" maximum:"64TiB"`
}

// newRetention returns the defaults.
func newRetention() Retention {
	const day = 24 * time.Hour
	return Retention{
		Every:     time.Hour,
		Logs:      KeptLogs{Age: 30 * day, FailedAge: 90 * day, Size: 10 * GiB},
		Mirrors:   KeptMirrors{Age: 3 * day, Waste: 64 * MiB},
		Worktrees: KeptWorktrees{Age: 7 * day, Size: 50 * GiB},
		Outputs:   KeptOutputs{Age: 30 * day, Size: 20 * GiB},
	}
}
