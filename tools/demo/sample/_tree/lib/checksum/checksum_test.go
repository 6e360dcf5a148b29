package checksum

import "testing"

func TestISBNsAreChecked(t *testing.T) {
	for number, want := range map[string]bool{
		"978-0-306-40615-7": true, "9780306406157": true, "978-0-306-40615-8": false, "978030640615": false, "97803064061x7": false,
	} {
		if got := ISBN13(number); got != want {
			t.Errorf("ISBN13(%s) = %v", number, got)
		}
	}
}

func TestEverySingleWrongDigitIsSeen(t *testing.T) {
	const good = "79927398713"
	if !Luhn(good) {
		t.Fatal("a good number is refused")
	}
	for i := range good {
		for d := byte('0'); d <= '9'; d++ {
			if d != good[i] && Luhn(good[:i]+string(d)+good[i+1:]) {
				t.Errorf("digit %d may be %c", i, d)
			}
		}
	}
}
