package diag

import (
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

func hit(cause string, c Certainty) Check {
	return func(_ *fact.Bundle, r *Reporter) { r.Hit(cause, c, nil, fact.File("/"+cause)) }
}

func set(rs ...*Rule) *Set { return NewSet("test", rs) }

func cause(id string, stage int, sev Severity, explains ...string) *Rule {
	return &Rule{ID: id, Family: "cause", Stage: stage, Severity: sev, Actor: "user", Explains: explains}
}

func TestFirstFailureOfAJobsLifeWins(t *testing.T) {
	s := set(cause("late", 80, Error), cause("early", 40, Error), cause("warn", 10, Warning),
		&Rule{ID: "c1", Check: hit("late", Proven)}, &Rule{ID: "c2", Check: hit("early", Proven)}, &Rule{ID: "c3", Check: hit("warn", Proven)})
	rep := Run(s, &fact.Bundle{})
	if rep.Cause == nil || *rep.Cause != "early" || rep.Verdict != Broken || rep.ExitCode() != 1 {
		t.Fatalf("cause %v verdict %s", rep.Cause, rep.Verdict)
	}
	if r := rep.Findings[1].Role; r != Contributing {
		t.Errorf("the other cause is %s, want contributing", r)
	}
	if rep.Findings[2].ID != "warn" {
		t.Errorf("a warning stands before an error: %v", rep.Findings)
	}
}

func TestExplainedBecomesSymptom(t *testing.T) {
	s := set(cause("shadow", 30, Error, "cpu"), cause("cpu", 20, Error),
		&Rule{ID: "c1", Check: hit("cpu", Proven)}, &Rule{ID: "c2", Check: hit("shadow", Proven)})
	rep := Run(s, &fact.Bundle{})
	if *rep.Cause != "shadow" || rep.Findings[0].Explains[0] != "cpu" || rep.Findings[1].Role != Symptom {
		t.Fatalf("%+v", rep.Findings)
	}
}

func TestTwoCausesThatExplainEachOtherKeepOne(t *testing.T) {
	s := set(cause("a", 30, Error, "b"), cause("b", 40, Error, "a"),
		&Rule{ID: "c2", Check: hit("b", Proven)}, &Rule{ID: "c1", Check: hit("a", Proven)})
	if rep := Run(s, &fact.Bundle{}); rep.Cause == nil || *rep.Cause != "a" {
		t.Fatalf("cause %v", rep.Cause)
	}
}

func TestSameCauseFromTwoRulesIsOneFinding(t *testing.T) {
	s := set(cause("a", 30, Error), &Rule{ID: "c1", Check: hit("a", Possible)},
		&Rule{ID: "c2", Check: func(_ *fact.Bundle, r *Reporter) { r.Hit("a", Proven, Args{"x": "1"}, fact.File("/other")) }})
	rep := Run(s, &fact.Bundle{})
	if len(rep.Findings) != 1 {
		t.Fatalf("%d findings", len(rep.Findings))
	}
	f := rep.Findings[0]
	if f.Certainty != Proven || f.Rule != "c2" || len(f.Evidence) != 2 || f.Count != 2 || f.Args["x"] != "1" {
		t.Errorf("%+v", f)
	}
}

func TestRanSaysWhatBecameOfEveryRule(t *testing.T) {
	s := set(cause("a", 30, Error),
		&Rule{ID: "clean", Check: func(*fact.Bundle, *Reporter) {}},
		&Rule{ID: "skips", Check: func(_ *fact.Bundle, r *Reporter) { r.Skip("no table") }},
		&Rule{ID: "needs", Needs: []string{"driver"}, Check: hit("a", Proven)},
		&Rule{ID: "panics", Check: func(*fact.Bundle, *Reporter) { panic("boom") }},
		&Rule{ID: "nofile", Check: hit("no-such-cause", Proven)})
	rep := Run(s, &fact.Bundle{})
	want := []Ran{{"clean", Clean, ""}, {"skips", Skipped, "no table"}, {"needs", Skipped, "no NVIDIA driver was seen"},
		{"panics", RFailed, "boom"}, {"nofile", RFailed, `names the cause "no-such-cause", which has no file`}}
	for i, w := range want {
		if rep.Ran[i] != w {
			t.Errorf("ran[%d] = %v, want %v", i, rep.Ran[i], w)
		}
	}
	if rep.Verdict != OK || rep.Cause != nil || rep.ExitCode() != 0 {
		t.Errorf("verdict %s", rep.Verdict)
	}
}

func TestContextThatNamesADecidingCommandIsUnknown(t *testing.T) {
	s := set(cause("a", 30, Note), &Rule{ID: "c", Check: func(_ *fact.Bundle, r *Reporter) {
		r.Hit("a", Possible, nil).As(Context).Need("srun ncclinic")
	}})
	if rep := Run(s, &fact.Bundle{}); rep.Verdict != Unknown || rep.Cause != nil || rep.ExitCode() != 3 {
		t.Fatalf("verdict %s", rep.Verdict)
	}
}

func TestFill(t *testing.T) {
	a := Args{"python": "/x/python", "v": "1"}
	for in, want := range map[string]string{
		"{python} -m pip":     "/x/python -m pip",
		"${python}":           "${python}",
		"{unknown} {v}":       "{unknown} 1",
		"{}":                  "{}",
		"{v":                  "{v",
		"a{v}b{v}":            "a1b1",
		"awk '{print $1}'":    "awk '{print $1}'",
		"nothing":             "nothing",
		"{V} {v v} {1v} {v1}": "{V} {v v} {1v} {v1}",
	} {
		if got := Fill(in, a); got != want {
			t.Errorf("Fill(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFixesAreGated(t *testing.T) {
	ts := []FixTmpl{{ID: "pip", When: "installer=pip"}, {ID: "conda", When: "installer=conda"}, {ID: "any"},
		{ID: "both", When: "x, !y"}, {ID: "noy", When: "!y"}}
	got := func(a Args) (ids string) {
		for _, f := range expandFixes(ts, a) {
			ids += f.ID + " "
		}
		return ids
	}
	if g := got(Args{"installer": "pip"}); g != "pip any noy " {
		t.Error(g)
	}
	if g := got(Args{"installer": "conda", "x": "1"}); g != "conda any both noy " {
		t.Error(g)
	}
	if g := got(Args{"y": "1"}); g != "any " {
		t.Error(g)
	}
}
