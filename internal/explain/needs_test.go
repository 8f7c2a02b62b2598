package explain

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
)

var (
	needLine = regexp.MustCompile(`needs(?: =|:|,)|\.unknown\(|Needs(?: =|:)|hangNeeds +=`)
	needLit  = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"")
	prose    = regexp.MustCompile(`\b(?:the|every|between|are|each|both|while)\b`)
	quotes   = regexp.MustCompile(`'[^']*'|#.*$`)
)

// TestNeedsHaveBothLanguages reads the sources: what would decide is shown to
// people, and where it is words and no command it needs Chinese ones.
func TestNeedsHaveBothLanguages(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(src), "\n") {
			if !needLine.MatchString(line) {
				continue
			}
			for _, lit := range needLit.FindAllString(line, -1) {
				s, err := strconv.Unquote(lit)
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range strings.Split(s, "; ") {
					if !prose.MatchString(quotes.ReplaceAllString(part, "")) {
						continue
					}
					seen++
					if diag.NeedText(part, "zh") == part {
						t.Errorf("%s:%d: %q has no Chinese words in internal/diag/needtext.go", name, n+1, part)
					}
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d found: are the patterns still right?", seen)
	}
}
