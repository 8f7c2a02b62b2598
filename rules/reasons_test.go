package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
)

var skipCall = regexp.MustCompile(`\.Skip\("([^"]*)"`)

// TestReasonsHaveBothLanguages reads the checks' sources: what a check says
// when it is skipped is shown to people and needs Chinese words too.
func TestReasonsHaveBothLanguages(t *testing.T) {
	var seen int
	for _, fam := range []string{"install", "node", "nodes"} {
		files, err := filepath.Glob(fam + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range skipCall.FindAllSubmatch(src, -1) {
				seen++
				if why := string(m[1]); !diag.HasReason(why) {
					t.Errorf("%s: %q has no Chinese words in internal/diag/reasons.go", name, why)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no reason was found: is the pattern still right?")
	}
}
