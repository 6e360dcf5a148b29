// Package textline counts the lines of a text as people's editors do.
package textline

import "bytes"

// At returns the line, from 1, of the byte at an offset. The end of a text, where parsers miss what is not there, is on its last line
// that is not blank: a file does not have the one that its last line's end would begin.
func At(content []byte, offset int) int {
	offset = min(max(offset, 0), len(bytes.TrimRight(content, " \t\r\n")))
	return 1 + bytes.Count(content[:offset], []byte("\n"))
}
