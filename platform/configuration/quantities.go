package configuration

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes.
type Size int64

// Units of Size.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
	TiB       = 1024 * GiB
)

// The schema has the same two patterns.
var (
	durationPattern = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
	sizePattern     = regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB|TiB)$`)
)

var sizeUnits = []struct {
	name string
	size Size
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte}}

const (
	durationAdvice = "write a number with a unit, as in 500ms, 90s, 5m, 1h30m"
	sizeAdvice     = "write a whole number with a unit, as in 512B, 16KiB, 64MiB, 2GiB"
)

// String writes the size in its largest whole unit, as the file takes it.
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	for _, unit := range sizeUnits {
		if s%unit.size == 0 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// parseSize reads what Size.String writes.
func parseSize(text string) (Size, error) {
	match := sizePattern.FindStringSubmatch(text)
	if match == nil {
		return 0, fmt.Errorf("%s is not a size", quote(text))
	}
	number, err := strconv.ParseInt(match[1], 10, 64)
	for _, unit := range sizeUnits {
		if match[2] == unit.name {
			if err != nil || number > math.MaxInt64/int64(unit.size) {
				return 0, fmt.Errorf("%s is too large", quote(text))
			}
			return Size(number) * unit.size, nil
		}
	}
	return 0, fmt.Errorf("%s has no known unit", quote(text))
}

// ParseDuration reads durations as the file has them: like time.ParseDuration, but
// neither negative nor below a millisecond's unit, and never without a unit.
func ParseDuration(text string) (time.Duration, error) {
	if !durationPattern.MatchString(text) {
		return 0, fmt.Errorf("%s is not a duration", quote(text))
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s is too long", quote(text))
	}
	return duration, nil
}

// formatDuration writes a duration without the zero parts that time.Duration adds:
// 30m, not 30m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
