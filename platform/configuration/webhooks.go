package configuration

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/events"
)

// Webhook is an endpoint that is told of outcomes, by Standard Webhooks.
type Webhook struct {
	// URL is what is posted to.
	URL string `yaml:"url" required:"true" minimum:"1" maximum:"2000" pattern:"line"`
	// Secret says where the secret is that requests are signed with.
	Secret SecretPlace `yaml:"secret"`
	// Queues and States are those that it is told of; empty: all.
	Queues []string `yaml:"queues" maximum:"1000"`
	States []string `yaml:"states" maximum:"100"`
	// AllowPrivate lets the address be one of the machine itself or of its link, on or off.
	AllowPrivate string `yaml:"allow_private" enum:"on,off"`
}

// Values of settings that are on or off.
const (
	On  = "on"
	Off = "off"
)

// NewWebhook returns a webhook with the defaults.
func NewWebhook() Webhook { return Webhook{AllowPrivate: Off} }

// SecretPlace says where a service finds a value. Exactly one of its fields is there.
type SecretPlace struct {
	// File is the absolute path of a file that has the value.
	File string `yaml:"file" maximum:"4096" pattern:"line"`
	// Environment is a variable of the service's own environment.
	Environment string `yaml:"environment" maximum:"255" pattern:"line"`
	// Command prints the value, in the service's own environment. No shell reads it.
	Command []string `yaml:"command" maximum:"1000"`
}

// Given reports whether it says where the value is.
func (s SecretPlace) Given() bool { return s.File != "" || s.Environment != "" || len(s.Command) > 0 }

// WebhookNames returns the names of all webhooks, sorted.
func (c *Configuration) WebhookNames() []string { return slices.Sorted(maps.Keys(c.Webhooks)) }

func checkWebhooks(c *Configuration, at *path, f *findings) {
	for _, name := range c.WebhookNames() {
		place, w := at.child(name), c.Webhooks[name]
		// The URL is not repeated: there may be a token in it.
		if where := place.child("url"); f.sound(where) && f.given(where) && !isEndpoint(w.URL) {
			f.add(where, "is not the address of an endpoint", "as in https://bot.example.com/landfall")
		}
		for i, queue := range w.Queues {
			if _, known := c.Queues[queue]; !known {
				f.add(place.child("queues").index(i), fmt.Sprintf("is %s, which is not under queues", quote(queue)), adviseName(queue, c.QueueNames()))
			}
		}
		for i, state := range w.States {
			if !slices.Contains(events.OutcomeStates(), state) {
				f.add(place.child("states").index(i), fmt.Sprintf("is %s, which is no state of an outcome", quote(state)), "one of "+strings.Join(events.OutcomeStates(), ", "))
			}
		}
		checkSecretPlace(w.Secret, place.child("secret"), f)
	}
}

func checkSecretPlace(s SecretPlace, place *path, f *findings) {
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
}

// isEndpoint reports whether a text is an http or https URL without a user.
func isEndpoint(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Hostname() != "" && at.User == nil
}
