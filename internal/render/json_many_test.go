package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
)

// Many findings are written by several goroutines: all of them, in order, in
// the form that one encoder gives.
func TestJSONMany(t *testing.T) {
	for _, n := range []int{0, 1, 2, 31, 32, 64, 65, 1000} {
		rep := &diag.Report{Schema: diag.ReportSchema, Subject: fact.Subject{Kind: "script", Name: "\n \"findings\": []"}, Findings: []diag.Finding{}}
		for i := range n {
			rep.Findings = append(rep.Findings, diag.Finding{ID: fmt.Sprint("f", i), Args: diag.Args{"a": "<&>\u202e\n"}, Where: []diag.Where{{File: "x", Line: i}}})
		}
		var got bytes.Buffer
		if err := JSON(&got, rep, noTexts{}, "en"); err != nil {
			t.Fatal(err)
		}
		var back, again bytes.Buffer
		var doc jsonReport
		if err := json.Unmarshal(got.Bytes(), &doc); err != nil {
			t.Fatalf("%d findings: %v", n, err)
		}
		if len(doc.Findings) != n {
			t.Fatalf("%d findings came of %d", len(doc.Findings), n)
		}
		for i, f := range doc.Findings {
			if f.ID != fmt.Sprint("f", i) {
				t.Fatalf("%s at %d of %d", f.ID, i, n)
			}
		}
		if err := encode(&back, doc, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := ControlFree(&again).Write(back.Bytes()); err != nil {
			t.Fatal(err)
		}
		if got.String() != again.String() {
			t.Errorf("%d findings: not as one encoder writes them:\n%s\n%s", n, got.String(), again.String())
		}
	}
}

// noTexts knows no rule.
type noTexts struct{}

func (noTexts) Text(string, string) (diag.Text, bool) { return diag.Text{}, false }
