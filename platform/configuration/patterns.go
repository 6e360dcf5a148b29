package configuration

import (
	"regexp"
	"sync"
)

// textPattern is what a text may look like, with the requirement in words.
type textPattern struct {
	expression  func() *regexp.Regexp
	requirement string
}

// compiled returns an expression that is compiled when it is needed first. Counted repetitions take half a megabyte together, and this
// program starts itself anew for every step.
func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// textPatterns are the values of the tags `pattern` and `keys`.
var textPatterns = map[string]textPattern{
	// Names are Kafka keys, folders and metric labels at the same time: safe in all
	// three, also where file names ignore case.
	"name": {
		compiled(`^[a-z0-9][a-z0-9._-]{0,62}$`),
		"must be 1 to 63 of a-z, 0-9, '.', '_', '-', the first a letter or digit",
	},
	"variable": {
		compiled(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`),
		"must be letters, digits and '_', the first not a digit",
	},
	"resource": {
		compiled(`^[a-z][a-z0-9_]{0,62}$`),
		"must be 1 to 63 of a-z, 0-9 and '_', the first a letter",
	},
	"claim": {
		compiled(`^[A-Za-z0-9_@.:/-]{1,200}$`),
		"must be the name of a claim: letters, digits and any of _ @ . : / -",
	},
	"date": {
		compiled(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`),
		"must be a day, as in 2026-12-31",
	},
	"line": {
		compiled(`^[^\x00-\x1f\x7f]*$`),
		"must be one line without control characters",
	},
}

// plainName is a part of a path that can be read without quotes.
var plainName = compiled(`^[A-Za-z0-9_-]{1,64}$`)
