package snapshotv1

import "fmt"

// Texts numbers the strings of a snapshot, so that one that repeats is written once. The zero value is empty.
type Texts struct {
	// List is what the message holds.
	List    []string
	numbers map[string]uint32
}

// Number returns the index of a text in List.
func (t *Texts) Number(text string) uint32 {
	n, known := t.numbers[text]
	if !known {
		if t.numbers == nil {
			t.numbers = map[string]uint32{}
		}
		n = uint32(len(t.List))
		t.numbers[text] = n
		t.List = append(t.List, text)
	}
	return n
}

// Numbers returns the indices of several texts in List.
func (t *Texts) Numbers(texts []string) []uint32 {
	if len(texts) == 0 {
		return nil
	}
	list := make([]uint32, len(texts))
	for i, text := range texts {
		list[i] = t.Number(text)
	}
	return list
}

// TextsOf reads the texts of a message. Err is set by the first index that is none.
type TextsOf struct {
	List []string
	Err  error
}

// At returns the text of an index, "" if there is none.
func (t *TextsOf) At(n uint32) string {
	if int64(n) >= int64(len(t.List)) {
		if t.Err == nil {
			t.Err = fmt.Errorf("the snapshot has %d texts and names text %d", len(t.List), n)
		}
		return ""
	}
	return t.List[n]
}

// All returns the texts of several indices.
func (t *TextsOf) All(numbers []uint32) []string {
	if len(numbers) == 0 {
		return nil
	}
	list := make([]string, len(numbers))
	for i, n := range numbers {
		list[i] = t.At(n)
	}
	return list
}
