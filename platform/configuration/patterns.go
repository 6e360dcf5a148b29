package configuration

import "regexp"

// textPattern is what a text may look like, with the requirement in words.
type textPattern struct {
	expression  *regexp.Regexp
	requirement string
}

// textPatterns are the values of the tags `pattern` and `keys`.
var textPatterns = map[string]textPattern{
	// Names are Kafka keys, folders and metric labels at the same time: safe in all
	// three, also where file names ignore case.
	"name": {
		regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`),
		"must be 1 to 63 of a-z, 0-9, '.', '_', '-', the first a letter or digit",
	},
	"variable": {
		regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,254}$`),
		"must be letters, digits and '_', the first not a digit",
	},
	"resource": {
		regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`),
		"must be 1 to 63 of a-z, 0-9 and '_', the first a letter",
	},
	"claim": {
		regexp.MustCompile(`^[A-Za-z0-9_@.:/-]{1,200}$`),
		"must be the name of a claim: letters, digits and any of _ @ . : / -",
	},
	"date": {
		regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`),
		"must be a day, as in 2026-12-31",
	},
	"line": {
		regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`),
		"must be one line without control characters",
	},
}

// plainName is a part of a path that can be read without quotes.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
