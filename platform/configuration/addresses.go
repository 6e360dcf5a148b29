package configuration

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var urlSchemes = []string{"file", "git", "http", "https", "ssh"}

// isPath reports whether an address is a path, and neither a URL nor host:path, as git does: the latter has a
// colon before its first slash.
func isPath(text string) bool {
	if text == "" || strings.Contains(text, "://") {
		return false
	}
	colon, slash := strings.Index(text, ":"), strings.Index(text, "/")
	return colon < 0 || (slash >= 0 && slash < colon)
}

// checkURL refuses what git would take for an option or for a command to run, and
// passwords, which would end up in logs.
func checkURL(text string) (message, advice string) {
	switch {
	case strings.HasPrefix(text, "-"):
		return fmt.Sprintf("is %s, must not begin with '-'", quote(text)), "git would take it for an option"
	case strings.HasPrefix(text, "~"):
		return fmt.Sprintf("is %s, but '~' is not replaced", quote(text)), "write the path out"
	case !strings.Contains(text, "://") && strings.Contains(text, "::"):
		return fmt.Sprintf("is %s, but git's remote helpers are not supported", quote(text)), "use a path, or " + strings.Join(urlSchemes, ", ")
	case !strings.Contains(text, "://"):
		return "", ""
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return "is not a URL that can be read", "as in https://git.example.com/shop.git"
	}
	if _, has := parsed.User.Password(); has {
		return fmt.Sprintf("is %s with a password in it", quote(parsed.Redacted())), "use a git credential helper or an SSH key"
	}
	if !slices.Contains(urlSchemes, parsed.Scheme) {
		return fmt.Sprintf("has the scheme %s, must be %s", quote(parsed.Scheme), strings.Join(urlSchemes, ", ")), ""
	}
	if parsed.Host == "" && parsed.Scheme != "file" {
		return fmt.Sprintf("is %s, without a host", quote(text)), "as in https://git.example.com/shop.git"
	}
	return "", ""
}

// checkBranch follows git check-ref-format for what comes after refs/heads/.
func checkBranch(branch string) (message, advice string) {
	if strings.HasPrefix(branch, "refs/") {
		return fmt.Sprintf("is %s, must be the name alone", quote(branch)), "as in main, without refs/heads/"
	}
	if reason := branchDefect(branch); reason != "" {
		return fmt.Sprintf("is %s, which git refuses for a branch: %s", quote(branch), reason), ""
	}
	return "", ""
}

func branchDefect(branch string) string {
	switch {
	case branch == "HEAD" || branch == "@":
		return "it means something else"
	case strings.HasPrefix(branch, "-"):
		return "it begins with '-'"
	case strings.ContainsAny(branch, " ~^:?*[\\"):
		return "it has one of space ~ ^ : ? * [ \\"
	case strings.Contains(branch, ".."), strings.Contains(branch, "@{"):
		return "it has '..' or '@{'"
	case strings.HasSuffix(branch, "."):
		return "it ends with '.'"
	}
	for part := range strings.SplitSeq(branch, "/") {
		switch {
		case part == "":
			return "it has an empty part"
		case strings.HasPrefix(part, "."):
			return "a part begins with '.'"
		case strings.HasSuffix(part, ".lock"):
			return "a part ends with '.lock'"
		}
	}
	return ""
}

// checkAddress checks host:port. To listen, the host may be empty (all interfaces)
// and the port 0 (any free one).
func checkAddress(address string, listen bool) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Sprintf("is %s, must be host:port", quote(address))
	}
	if host == "" && !listen {
		return fmt.Sprintf("is %s, without a host", quote(address))
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || r == '@' || r == 0x7f }) {
		return fmt.Sprintf("is %s, whose host has a character that no host has", quote(address))
	}
	lowest := 1
	if listen {
		lowest = 0
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < lowest || number > 65535 || port != strconv.Itoa(number) {
		return fmt.Sprintf("is %s, whose port must be %d to 65535", quote(address), lowest)
	}
	return ""
}

// isHostName reports whether a text is a name as requests have it: letters, digits, hyphens and dots.
func isHostName(name string) bool {
	ok := func(r rune) bool {
		return r == '-' || r == '.' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return name != "" && len(name) <= 253 && !strings.ContainsFunc(name, func(r rune) bool { return !ok(r) })
}

// isWebAddress reports whether a text is an http or https URL that a path can follow.
func isWebAddress(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Hostname() != "" && at.User == nil &&
		at.RawQuery == "" && at.Fragment == "" && !strings.ContainsAny(text, "?#") && !strings.HasSuffix(text, "/")
}
