package analyzer

import (
	"slices"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
)

// TestTheMainlineIsSurveyedOnce by several instances: the first record names all targets that commands verify, and a push asks
// for no other.
func TestTheMainlineIsSurveyedOnce(t *testing.T) {
	w := newWorld(t, monorepo)
	first := w.main
	w.start("a")
	w.start("b")
	f := await(w, "the survey", func(f *eventsv1.MainlineSurveyed) bool { return f.Commit == first })
	var names []string
	for _, v := range f.Targets {
		if v.Hash == "" || v.Trivial {
			t.Errorf("%v is surveyed", v)
		}
		names = append(names, v.Target)
	}
	if !slices.Equal(names, []string{"//app", "//lib", "//tool"}) {
		t.Errorf("the targets are %v", names)
	}
	from, to := w.push(files{"docs/docs.txt": "pushed\n"})
	await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.From == from && f.To == to })
	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	w.analysis("tool")
	for _, m := range w.facts {
		if again, is := m.(*eventsv1.MainlineSurveyed); is && again.Commit != first {
			t.Errorf("it was surveyed again: %v", again)
		}
	}
}

// TestASurveyOfUnknownTargetsSaysWhy, and names none.
func TestASurveyOfUnknownTargetsSaysWhy(t *testing.T) {
	w := newWorld(t, files{"landfall.yaml": "targets: [", "docs/docs.txt": "1\n"})
	w.start("a")
	f := await(w, "the survey", func(f *eventsv1.MainlineSurveyed) bool { return f.Commit == w.main })
	if len(f.Targets) != 0 || f.Message == "" {
		t.Errorf("the survey is %v", f)
	}
}

func TestAQueueThatProvesWhenNeededIsNotSurveyed(t *testing.T) {
	w := newWorld(t, monorepo, func(q *configuration.Queue) { q.Base.Prove = configuration.ProveWhenNeeded })
	w.start("a")
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.analysis("docs")
	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	w.analysis("tool")
	for _, m := range w.facts {
		if f, is := m.(*eventsv1.MainlineSurveyed); is {
			t.Errorf("it is surveyed: %v", f)
		}
	}
}
