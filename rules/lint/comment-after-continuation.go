package lint

import (
	"bytes"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("comment-after-continuation", func(c *Ctx) {
	s := c.S
	if !bytes.Contains(s.Src, []byte("\\ ")) && !bytes.Contains(s.Src, []byte("\\\t")) {
		return
	}
	seen := map[int]bool{}
	look := func(words []fact.Word, array bool) {
		for _, w := range words {
			// The word stands for an escaped blank: "\ " or "\ #".
			l := s.Line(w.Line)
			i := w.Col - 1
			if i < 0 || i+1 >= len(l) || seen[w.Line] || l[i] != '\\' || l[i+1] != ' ' && l[i+1] != '\t' {
				continue
			}
			note := strings.TrimLeft(l[i+1:], " \t")
			if !strings.HasPrefix(note, "#") {
				continue
			}
			seen[w.Line] = true
			h := c.Hit(w.Pos, "note", clip(note, 40))
			if array {
				h.Args["variant"] = "array"
			}
		}
	}
	for i := range s.Commands {
		if x := &s.Commands[i]; x.File == "" {
			look(x.Words, false)
		}
	}
	for i := range s.Assigns {
		if a := &s.Assigns[i]; a.File == "" {
			look(a.Array, true)
		}
	}
})
