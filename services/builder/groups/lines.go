package groups

import "bytes"

// maxLine bounds a line of a report. A longer one is no report.
const maxLine = 1 << 20

// lines cuts what is written to it into lines, and calls each for every complete one.
type lines struct {
	each    func([]byte)
	rest    []byte
	tooLong bool
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			if l.tooLong = l.tooLong || len(l.rest)+len(p) > maxLine; l.tooLong {
				l.rest = l.rest[:0]
			} else {
				l.rest = append(l.rest, p...)
			}
			return n, nil
		}
		switch {
		case l.tooLong || len(l.rest)+at > maxLine:
		case len(l.rest) == 0:
			l.each(p[:at])
		default:
			l.each(append(l.rest, p[:at]...))
		}
		l.rest, l.tooLong, p = l.rest[:0], false, p[at+1:]
	}
}
