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

// TestOfAQueueThatProvesWhenNeededTheFirstSurveyNamesNoTarget: it says how trees are read, and no more.
func TestOfAQueueThatProvesWhenNeededTheFirstSurveyNamesNoTarget(t *testing.T) {
	w := newWorld(t, monorepo, func(q *configuration.Queue) { q.Base.Prove = configuration.ProveWhenNeeded })
	w.start("a")
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.analysis("docs")
	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	w.analysis("tool")
	for _, m := range w.facts {
		if f, is := m.(*eventsv1.MainlineSurveyed); is && (len(f.Targets) > 0 || f.Whole != nil || f.Reading == "") {
			t.Errorf("it is surveyed: %v", f)
		}
	}
}

// TestAnotherConfigurationSurveysTheMainlineAgain, once for each instance that has another one, and has pending changes analysed
// again.
func TestAnotherConfigurationSurveysTheMainlineAgain(t *testing.T) {
	w := newWorld(t, monorepo)
	stop := w.start("a")
	first := await(w, "the survey", func(f *eventsv1.MainlineSurveyed) bool { return f.Commit == w.main && !f.Again })
	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	w.analysis("tool")
	stop()
	q := w.config.Queues[queueName]
	q.Analysis.Uncovered.Policy = configuration.UncoveredWarn
	w.config.Queues[queueName] = q
	stop = w.start("b")
	again := await(w, "the second survey", func(f *eventsv1.MainlineSurveyed) bool { return f.Again })
	if again.Commit != w.main || again.Reading == first.Reading || len(again.Targets) != 3 || again.Whole.GetHash() == "" {
		t.Errorf("the second survey is %v, the first was %v", again, first)
	}
	analyses := 0
	await(w, "the second analysis", func(f *eventsv1.ChangeAnalyzed) bool { analyses++; return analyses == 2 })
	stop()
	w.start("b again")
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.analysis("docs")
	surveys := 0
	for _, m := range w.facts {
		if _, is := m.(*eventsv1.MainlineSurveyed); is {
			surveys++
		}
	}
	if surveys != 2 {
		t.Errorf("%d surveys of two configurations", surveys)
	}
}
