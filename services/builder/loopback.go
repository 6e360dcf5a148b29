package builder

import (
	"fmt"
	"regexp"

	"landfall.build/platform/sandbox"
)

var (
	refusal = regexp.MustCompile(`(?i)connection ?refused|ECONNREFUSED|actively refused|(?:couldn't|could not|failed to) connect to (?:server|localhost|127\.|::1)`)
	// ownAddress is one of the machine itself, with its port where it follows.
	ownAddress = regexp.MustCompile(`(?i)(?:^|[^\w.:-])((?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|::1)(?::\d{1,5})?)(?:[^\w.-]|\.?$|\.\s)`)
)

// unreachable returns a line about the address of the machine itself to which a step was refused a connection; "" if it was not, or
// if steps reach the machine.
func (p *workplace) unreachable(output []byte) string {
	if !p.step.Sandboxed() || p.step.Network == sandbox.Host {
		return ""
	}
	for _, at := range refusal.FindAllIndex(output, mostRefusals) {
		if own := ownAddress.FindSubmatch(lineAround(output, at[0])); own != nil {
			return fmt.Sprintf("Nothing listens at %s inside the step; a step reaches the machine that it runs on only with steps.network: host.", own[1])
		}
	}
	return ""
}

// mostRefusals bounds how many refusals are looked at: a client may try for as long as the step runs.
const mostRefusals = 1000

// lineAround returns the line of a text that holds a place.
func lineAround(text []byte, at int) []byte {
	begin, end := at, at
	for begin > 0 && text[begin-1] != '\n' && at-begin < maxRefusal {
		begin--
	}
	for end < len(text) && text[end] != '\n' && end-at < maxRefusal {
		end++
	}
	return text[begin:end]
}

// maxRefusal bounds how many bytes before and after a refusal are looked at for the address.
const maxRefusal = 500
