package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ncclinic/ncclinic/rules"
)

// BenchmarkFolder lints the scripts of the folder that NCCLINIC_SCRIPTS names.
func BenchmarkFolder(b *testing.B) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("NCCLINIC_SCRIPTS"), "*"))
	base, err := rules.Load(rules.Embedded(), "bench", "lint")
	if err != nil {
		b.Fatal(err)
	}
	var srcs [][]byte
	var n int64
	for _, f := range files {
		if s, err := os.ReadFile(f); err == nil {
			srcs = append(srcs, s)
			n += int64(len(s))
		}
	}
	b.SetBytes(n)
	for b.Loop() {
		for i, s := range srcs {
			File(files[i], s, Options{Set: base.Set()})
		}
	}
}
