// Package features computes the inputs of predictions: a vector of named numbers for a change, and one for a pair of changes. A vector
// uses only what the log held before it was computed, so nothing in it depends on what ended later (M30). What is not known is missing
// (NaN), never zero.
//
// A prediction is published with its vector, and models are trained on the published vectors. So a model sees in training exactly what
// it sees in production, and no second computation of the features can differ from the first.
//
// The history is bounded: the pending changes, the last 50 builds and outcomes of the queue, and a few thousand authors, teams, files
// and targets, those of the last changes.
package features

import (
	"math"
	"slices"
)

// Version is that of both schemas. It rises whenever a feature is added, removed or changes its meaning. Vectors and models of
// different versions are never mixed.
const Version = 2

// Type is the type of a feature.
type Type int

// The types.
const (
	// Count is a number of things, 0 or more.
	Count Type = iota + 1
	// Seconds is a duration, 0 or more.
	Seconds
	// Share is a number from 0 to 1.
	Share
	// Truth is 0 or 1.
	Truth
	// Number is anything else.
	Number
)

// String returns the lower-case name.
func (t Type) String() string {
	return [...]string{"", "count", "seconds", "share", "truth", "number"}[t]
}

// Feature is one column of a vector.
type Feature struct {
	Name string
	Type Type
	// Unit of the number, e.g. files.
	Unit string
	// Source is the event with the facts that it is computed from.
	Source string
	// Group is one of size, kind, targets, revision, checks, author, queue, history, speculation, evidence, environment and pair.
	Group string
}

// LogScaled returns a value as linear models take it: counts and durations by their logarithm. Missing stays missing.
func (f Feature) LogScaled(x float64) float64 {
	if f.Type == Count || f.Type == Seconds {
		return math.Log1p(math.Max(0, x))
	}
	return x
}

// OfChange returns the schema of a change's vector.
func OfChange() []Feature { return slices.Clone(changeSchema) }

// OfPair returns the schema of a pair's vector.
func OfPair() []Feature { return slices.Clone(pairSchema) }

// IndexOfChange returns the index of a feature of a change by its name, -1 if there is none.
func IndexOfChange(name string) int { return indexOf(changeSchema, name) }

// IndexOfPair returns the index of a feature of a pair by its name, -1 if there is none.
func IndexOfPair(name string) int { return indexOf(pairSchema, name) }

func indexOf(schema []Feature, name string) int {
	return slices.IndexFunc(schema, func(f Feature) bool { return f.Name == name })
}

// column is a feature and its computation.
type column[V any] struct {
	Feature
	value func(v V) float64
	// intrinsic features describe the change itself rather than its surroundings. Only when one of them differs is the vector
	// computed again: otherwise the clock alone would make a new prediction of every change at every record.
	intrinsic bool
}

func schemaOf[V any](columns []column[V]) []Feature {
	out := make([]Feature, len(columns))
	for i, c := range columns {
		out[i] = c.Feature
	}
	return out
}

// missing is the value of a feature that is not known.
var missing = math.NaN()

// maxValue bounds a feature, so that it is finite in 32 bits.
const maxValue = 1e30

func toFloat32(x float64) float32 {
	return float32(math.Max(-maxValue, math.Min(maxValue, x))) // NaN stays
}

// indicator is 1 for true.
func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// same reports whether two values are equal; missing ones are.
func same(a, b float32) bool { return a == b || a != a && b != b }
