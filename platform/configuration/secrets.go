package configuration

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Secret says where a builder finds a value that steps are given. The value is never in the configuration. Exactly one of
// File, Environment and Command is there.
type Secret struct {
	// File is the absolute path of a file that has the value.
	File string `yaml:"file" maximum:"4096" pattern:"line"`
	// Environment is a variable of the builder's own environment.
	Environment string `yaml:"environment" maximum:"255" pattern:"line"`
	// Command prints the value, in the builder's own environment. No shell reads it.
	Command []string `yaml:"command" maximum:"1000"`
	// For says which steps are given it.
	For string `yaml:"for" enum:"mainline,approved"`
	// As says how: as a file whose path is in NAME_FILE, or in the variable NAME itself.
	As string `yaml:"as" enum:"file,variable"`
}

// Values of Secret.For and Secret.As.
const (
	// ForApproved is for steps as ForMainline is, of changes that somebody with the role approved. Nobody can have it yet.
	ForApproved = "approved"
	// ForMainline is for steps whose definition is the mainline's.
	ForMainline = "mainline"
	AsFile      = "file"
	AsVariable  = "variable"
)

// NewSecret returns a secret with the defaults.
func NewSecret() Secret { return Secret{For: ForMainline, As: AsFile} }

// Variable returns the variable by which a step finds the secret of that name.
func (s Secret) Variable(name string) string {
	if s.As == AsVariable {
		return name
	}
	return name + "_FILE"
}

// placesSecret reports whether a path is at or below a field that says where a secret is. What is written there is not repeated: it may
// be the secret.
func (p *path) placesSecret() bool {
	text := "." + p.text + "."
	return strings.Contains(text, ".secret.") || strings.Contains(text, ".client_secret.") || strings.Contains(text, ".secrets.")
}

func (w fieldHash) secrets(secrets map[string]Secret) {
	w.integer("steps.secrets", int64(len(secrets)))
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		s := secrets[name]
		w.text("name", name)
		w.text("file", s.File)
		w.text("environment", s.Environment)
		w.list("command", s.Command)
		w.text("for", s.For)
		w.text("as", s.As)
	}
}

func checkSecrets(steps Steps, at *path, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(steps.Secrets)) {
		place, s := at.child(name), steps.Secrets[name]
		if !f.sound(place, place.child("file"), place.child("environment"), place.child("command")) {
			continue
		}
		ways := 0
		for _, given := range []bool{s.File != "", s.Environment != "", len(s.Command) > 0} {
			if given {
				ways++
			}
		}
		if ways != 1 {
			f.add(place, fmt.Sprintf("says in %d ways where it is, must say in one", ways), "give it one of file, environment and command")
		}
		if s.File != "" && !filepath.IsAbs(s.File) {
			// Its text is not repeated: it may be the value.
			f.add(place.child("file"), "is relative, must be an absolute path", "the value itself must not be here")
		}
		if s.Environment != "" {
			checkPattern(s.Environment, "variable", "", place.child("environment"), f)
		}
		checkCommand(s.Command, place.child("command"), f)
		if strings.HasPrefix(name, PlatformPrefix) || slices.Contains(ownVariables, name) {
			f.add(place, "has the name of a variable that steps have anyway", "choose another")
		}
		if _, taken := steps.Environment.Variables[s.Variable(name)]; taken {
			f.add(place, fmt.Sprintf("is in the variable %s, which environment.variables sets", s.Variable(name)), "choose another name")
		}
	}
}
