package main

import (
	"regexp"
	"slices"

	"landfall.build/tools/proof"
)

// operation is how an operation of a schedule is named, behind its queue's name if that is not the first one.
var operation = regexp.MustCompile(`^([a-z0-9-]+ )?(` +
	`(admit|again|cancel|revise|move|hold|release) c[0-9]+|(push|repair) push[0-9]+|(tick|quarantine|trust|retry|reading|break|heal)[0-9]+|configure|hold|pause|resume|rewrite)$`)

const operationsAre = "admit, again, cancel, revise, move, hold and release of a change (admit c7), push and repair of a push (push push0), " +
	"tick0, quarantine0 and trust0 of a target, retry0 of what is blocked, reading0 of trees, break0 and heal0 of what a target needs, configure, hold, pause, resume and rewrite, of another queue behind its name; -trace names them"

func canBeLeftOut(name string) bool {
	return slices.Contains(proof.Troubles(), name) || operation.MatchString(name)
}
