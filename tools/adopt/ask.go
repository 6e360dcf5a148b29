package adopt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// asker asks the person at the terminal. One that is nil takes every default.
type asker struct {
	in  *bufio.Reader
	out io.Writer
}

// text asks for a text; an empty answer is the default.
func (a *asker) text(question, byDefault string) (string, error) {
	if a == nil {
		return byDefault, nil
	}
	fmt.Fprintf(a.out, "%s [%s]: ", question, byDefault)
	answer, err := a.in.ReadString('\n')
	if err != nil && !(errors.Is(err, io.EOF) && answer != "") {
		return "", errors.New("nothing is written: the questions were not answered")
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return byDefault, nil
	}
	return answer, nil
}

// number asks for a number of at least 1.
func (a *asker) number(question string, byDefault int) (int, error) {
	for {
		answer, err := a.text(question, strconv.Itoa(byDefault))
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 {
			return n, nil
		}
		fmt.Fprintln(a.out, "a number from 1 on, please")
	}
}

// yes asks a question that yes is the default of.
func (a *asker) yes(question string) (bool, error) {
	answer, err := a.text(question, "yes")
	return strings.HasPrefix(strings.ToLower(answer), "y"), err
}
