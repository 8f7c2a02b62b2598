package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// TestTexts holds that every reason that the code makes has both texts, with the
// same placeholders, and that each text is used.
func TestTexts(t *testing.T) {
	used := map[string]bool{}
	ids := regexp.MustCompile(`(?:why|no\(true,|no\(false,|step)\(?\s*(?:Step[A-Za-z]+,\s*)?"([a-z0-9-]+)"`)
	files, _ := filepath.Glob("*.go")
	more, _ := filepath.Glob("../cli/fix*.go")
	for _, f := range append(files, more...) {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"([a-z0-9-]+)"`).FindAllStringSubmatch(string(src), -1) {
			used[m[1]] = true
		}
		for _, m := range ids.FindAllStringSubmatch(string(src), -1) {
			if strings.Contains(m[0], "step(") {
				m[1] = "step-" + m[1]
			}
			used[m[1]] = true
			if _, ok := texts[m[1]]; !ok && m[1] != "nccl-" && m[1] != "maker-" && m[1] != "step-" {
				t.Errorf("%s: reason %q has no text", f, m[1])
			}
		}
	}
	place := regexp.MustCompile(`\{[a-z]+\}`)
	for id, x := range texts {
		if strings.Join(sorted(place.FindAllString(x[0], -1)), "") != strings.Join(sorted(place.FindAllString(x[1], -1)), "") {
			t.Errorf("%s: placeholders differ:\n%s\n%s", id, x[0], x[1])
		}
		if !used[id] && !used[strings.TrimPrefix(id, "step-")] && !strings.HasPrefix(id, "nccl-") && !strings.HasPrefix(id, "maker-") {
			t.Errorf("text %q is not used", id)
		}
	}
}

func sorted(s []string) []string { sort.Strings(s); return s }
