package view

import (
	"strings"
	"testing"
)

func TestM36AStepThatComesFirstBecauseItIsOwedIsSaidToBe(t *testing.T) {
	low, high := &RankedStep{Target: "//low", Ready: true, Owed: true, Index: 1}, &RankedStep{Target: "//high", Ready: true, Index: 9}
	w := &WaitingStep{Open: 1, Before: 1, Step: high, First: low}
	if s := w.sentence(); !strings.Contains(s, "owed to its change") || strings.Contains(s, "index") {
		t.Error(s)
	}
	w.Step = &RankedStep{Target: "//other", Ready: true, Owed: true, Index: 9}
	if s := w.sentence(); !strings.Contains(s, "both are owed") {
		t.Error(s)
	}
	w.First = &RankedStep{Target: "//urgent", Ready: true, Urgent: true}
	if s := w.sentence(); strings.Contains(s, "owed") {
		t.Error(s)
	}
}
