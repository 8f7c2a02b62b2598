package render

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// A search that could not be followed to its end is not a library that is missing.
func TestSummaryOfLoad(t *testing.T) {
	at := fact.File("/x")
	for want, v := range map[string]fact.Val[string]{
		"not found by the loader":                 fact.None[string](at),
		"which one the loader takes is not known": fact.Fail[string]("permission denied", at),
		"/x/libnccl.so.2":                         fact.Of("/x/libnccl.so.2", at),
	} {
		b := &fact.Bundle{Loads: []fact.Load{{Soname: "libnccl.so.2", Path: v}}}
		if got := strings.Join(Summary(b, "en"), "\n"); !strings.Contains(got, want) || strings.Count(got, "loader")+strings.Count(got, "/x/") != 1 {
			t.Errorf("%q, want %q", got, want)
		}
		if got := strings.Join(Summary(b, "zh"), "\n"); strings.Contains(got, "找不到") != v.IsAbsent() {
			t.Errorf("%q", got)
		}
	}
}
