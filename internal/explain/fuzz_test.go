package explain_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/render"
	"github.com/ncclinic/ncclinic/rules"
)

// FuzzExplain drives the whole way from bytes to the report in every form.
func FuzzExplain(f *testing.F) {
	names, _ := filepath.Glob("testdata/kinds/*.txtar")
	for i, n := range names {
		if raw, err := os.ReadFile(n); err == nil && i%4 == 0 {
			f.Add(raw, []byte("#!/bin/bash\n#SBATCH -N 2\nsrun torchrun t.py\n"))
		}
	}
	e := newEngine(f)
	base, err := rules.Load(rules.Embedded(), "test", "cause")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		rep := e.run(t, []file{{"a.log", a}, {"b.sbatch", b}})
		for _, p := range rep.Problems {
			if strings.Contains(p.Why, "reader failed") {
				t.Fatal(p.Why)
			}
		}
		var out bytes.Buffer
		if err := render.JSON(&out, &rep, base, "en"); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Fatal("no JSON")
		}
		out.Reset()
		if err := render.SARIF(&out, &rep, base, "zh"); err != nil || !json.Valid(out.Bytes()) {
			t.Fatal("no SARIF", err)
		}
		out.Reset()
		if err := render.Text(&out, &rep, base, render.TextOptions{Lang: "en"}); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(out.Bytes(), "\x1b\r\x00") {
			t.Fatal("control characters reach the terminal")
		}
	})
}
