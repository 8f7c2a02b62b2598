package cli

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown is a block of documentation that shows what a command prints:
// <!-- output: ncclinic … --> and a fenced block.
var shown = regexp.MustCompile("(?s)<!-- output: ncclinic ([^\n]*?) -->\n```text\n(.*?)```")

// TestDocumentsShowRealOutput re-runs the commands whose output the READMEs
// and guides show. UPDATE_GOLDEN=1 rewrites the blocks.
func TestDocumentsShowRealOutput(t *testing.T) {
	t.Chdir("../..")
	for _, name := range []string{"README.md", "README.zh-CN.md", "docs/explain.md", "docs/explain.zh-CN.md", "docs/nodes.md", "docs/nodes.zh-CN.md"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		blocks := shown.FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no output", name)
		}
		for _, b := range blocks {
			var out, errs bytes.Buffer
			code := Main(strings.Fields(b[1]), Streams{In: strings.NewReader(""), Out: &out, Err: &errs,
				Getenv: func(string) string { return "" }, Terminal: func() (bool, int) { return false, 0 }})
			if code == exitUsage || errs.Len() > 0 {
				t.Errorf("%s: ncclinic %s: exit %d, %s", name, b[1], code, errs.String())
				continue
			}
			if d := cmp.Diff(b[2], out.String()); d != "" && os.Getenv("UPDATE_GOLDEN") == "" {
				t.Errorf("%s: ncclinic %s (-shown +real):\n%s", name, b[1], d)
			}
			text = strings.Replace(text, b[0], strings.TrimSuffix(b[0], b[2]+"```")+out.String()+"```", 1)
		}
		if os.Getenv("UPDATE_GOLDEN") != "" && text != string(raw) {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
