// Package features is what is known of a change, and of a pair of changes, when they are predicted: a schema of
// named numbers, and the folds of facts that they come from. Everything in a vector was in the log before it was
// asked for, so nothing in it can rest on what ended later (M30). What is not known is missing, never zero.
//
// The vector that a prediction was made from is written in the event, and models are trained on those. So a model is
// trained on exactly what it is asked with, and a change of the fold cannot come between the two.
//
// What is kept is bounded: what is pending, the last 50 builds and outcomes of the queue, and the last few thousand
// authors, teams, files and targets that anything happened to.
package features

import (
	"math"
	"slices"
)

// Version is that of both schemas. It rises whenever a feature is added, goes, or means something else: vectors and
// models of another version are not mixed with these.
const Version = 2

// Type is how a feature is to be read.
type Type int

// The types.
const (
	// Count is a number of things, from 0.
	Count Type = iota + 1
	// Seconds are a length of time, from 0.
	Seconds
	// Share is from 0 to 1.
	Share
	// Truth is 0 or 1.
	Truth
	// Number is anything else.
	Number
)

// String is the lower-case name.
func (t Type) String() string {
	return [...]string{"", "count", "seconds", "share", "truth", "number"}[t]
}

// Feature is one column of a vector.
type Feature struct {
	Name string
	Type Type
	// Unit of the number, e.g. files.
	Unit string
	// Source is the event that it comes from.
	Source string
	// Group as in the documentation: size, kind, targets, revision, checks, author, queue, history, speculation,
	// evidence, environment, pair.
	Group string
}

// Straightened is a value as a linear model takes it: counts and times by their logarithm, so that ten times as much
// is one step and not ten. Missing stays missing.
func (f Feature) Straightened(x float64) float64 {
	if f.Type == Count || f.Type == Seconds {
		return math.Log1p(math.Max(0, x))
	}
	return x
}

// OfChange is the schema of a change's vector.
func OfChange() []Feature { return slices.Clone(changeSchema) }

// OfPair is the schema of a pair's vector.
func OfPair() []Feature { return slices.Clone(pairSchema) }

// IndexOfChange is where a feature of a change stands, -1 if there is none of that name.
func IndexOfChange(name string) int { return indexOf(changeSchema, name) }

// IndexOfPair is where a feature of a pair stands, -1 if there is none of that name.
func IndexOfPair(name string) int { return indexOf(pairSchema, name) }

func indexOf(schema []Feature, name string) int {
	return slices.IndexFunc(schema, func(f Feature) bool { return f.Name == name })
}

// column is a feature with how it is computed from V.
type column[V any] struct {
	Feature
	value func(v V) float64
	// standing: it is about the change itself, and not about the moment. Only when such a one moves is a change
	// predicted anew; the clock alone would have every change predicted at every record.
	standing bool
}

func schemaOf[V any](columns []column[V]) []Feature {
	out := make([]Feature, len(columns))
	for i, c := range columns {
		out[i] = c.Feature
	}
	return out
}

// unknown is a feature that is missing.
var unknown = math.NaN()

// largest bounds a feature, so that it stays a number in 32 bits.
const largest = 1e30

func single(x float64) float32 {
	return float32(math.Max(-largest, math.Min(largest, x))) // NaN stays
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// same says whether two features are one, a missing one among them.
func same(a, b float32) bool { return a == b || a != a && b != b }
