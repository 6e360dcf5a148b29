package view

import (
	"fmt"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
)

// actorText returns who had a record written, as people read it; "" where no proof was asked for.
func actorText(a *eventsv1.Actor) string {
	if a == nil || a.Issuer == access.IssuerOpen {
		return ""
	}
	parts := []string{a.Subject + " at " + a.Issuer}
	switch {
	case a.Token != "":
		parts[0] = "token " + a.Token
	case a.Issuer == access.IssuerPublisher:
		parts[0] = "the publisher " + a.Subject
	case a.Issuer == access.IssuerLog:
		parts[0] = "a program that writes the log"
		if a.Subject != "" {
			parts[0] += ", " + a.Subject
		}
	}
	// In quotes: whoever may choose its name could write a role there. That of a program on the log is the author that it names.
	if a.Name != "" && a.Name != a.Subject && a.Issuer != access.IssuerLog {
		parts[0] = fmt.Sprintf("%q (%s)", a.Name, parts[0])
	}
	if a.Role != "" {
		parts = append(parts, "as "+a.Role)
	}
	if a.Client != "" {
		parts = append(parts, "with "+a.Client)
	}
	return strings.Join(parts, ", ")
}
