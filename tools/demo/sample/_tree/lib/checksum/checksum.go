// Package checksum checks the numbers that books and cards carry.
package checksum

// ISBN13 says whether 13 digits, which dashes may divide, are the number of a book.
func ISBN13(number string) bool {
	sum, count := 0, 0
	for _, r := range number {
		if r == '-' {
			continue
		}
		if r < '0' || r > '9' {
			return false
		}
		weight := 1
		if count%2 == 1 {
			weight = 3
		}
		sum += int(r-'0') * weight
		count++
	}
	return count == 13 && sum%10 == 0
}

// Luhn says whether digits end with the right check digit, as the numbers of cards do.
func Luhn(number string) bool {
	sum, double := 0, false
	for i := len(number) - 1; i >= 0; i-- {
		d := int(number[i]) - '0'
		if d < 0 || d > 9 {
			return false
		}
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum, double = sum+d, !double
	}
	return len(number) > 1 && sum%10 == 0
}
