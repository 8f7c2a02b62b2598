package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/run"
)

// BenchmarkCollect is what check sees of the interpreter on PATH and this machine.
func BenchmarkCollect(b *testing.B) {
	m, err := run.NewMachine()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		collect(context.Background(), m, gatherFlags{python: "/usr/bin/python3", timeout: 30 * time.Second})
	}
}

// BenchmarkDemo is a whole verdict without collecting: knowledge base, rules, text.
func BenchmarkDemo(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var out, errs bytes.Buffer
		Main([]string{"demo"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		if out.Len() == 0 {
			b.Fatal(errs.String())
		}
	}
}
