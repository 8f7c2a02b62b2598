package explain_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// TestKinds runs the small samples of testdata/kinds: one situation each, with
// the causes that are right and those that would be traps.
func TestKinds(t *testing.T) {
	e := newEngine(t)
	names, err := filepath.Glob("testdata/kinds/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no samples", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			ar := txtar.Parse(raw)
			x := expectation{}
			for _, l := range strings.Split(string(ar.Comment), "\n") {
				k, v, _ := strings.Cut(l, ": ")
				switch k {
				case "want":
					w := strings.Split(v, "|")
					x.Cause, x.AlsoAccept = w[0], w[1:]
				case "never":
					x.Never = strings.Split(v, "|")
				case "rank":
					n, err := strconv.Atoi(v)
					if err != nil {
						t.Fatal(err)
					}
					x.Rank = &n
				}
			}
			var fs []file
			for _, f := range ar.Files {
				fs = append(fs, file{f.Name, f.Data})
			}
			rep := e.run(t, fs)
			if got := answer(&rep); judge(x, got) != "right" {
				t.Fatalf("%s: got %s, want %s", judge(x, got), got, x.Cause)
			}
			checkReport(t, &rep)
			if x.Rank != nil && !namesRank(rep.Top(), *x.Rank) {
				t.Errorf("rank %d is not named in %+v", *x.Rank, rep.Top().Where)
			}
		})
	}
}

// checkReport holds what every report promises.
func checkReport(t *testing.T, rep *diag.Report) {
	t.Helper()
	if rep.Verdict == diag.Unknown {
		need := false
		for _, f := range rep.Findings {
			need = need || len(f.Needs) > 0
		}
		if !need {
			t.Error("unknown, and nothing says what would decide")
		}
	}
	if top := rep.Top(); top != nil {
		if len(top.Evidence) == 0 {
			t.Errorf("%s without evidence", top.ID)
		}
		if top.Certainty != diag.Proven && len(top.Needs) == 0 && top.Certainty == diag.Possible {
			t.Errorf("%s is only possible, and nothing says what would decide", top.ID)
		}
	}
}
