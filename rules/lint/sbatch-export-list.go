package lint

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var _ = Checks.Add("sbatch-export-list", func(c *Ctx) {
	report := func(d *fact.Directive, variant string) {
		from := c.offset(d.ValuePos)
		r := c.Hit(d.ValuePos, "value", d.Value)
		if variant != "" {
			r.Args["variant"] = variant
			return
		}
		if strings.HasPrefix(string(c.S.Src[from:]), d.Value) {
			r.Edit(from, from, "ALL,")
		}
	}
	if d := c.S.Opt("export"); d != nil && onlyNamed(d.Value) {
		report(d, "")
	}
	for i := range c.S.Steps {
		st := &c.S.Steps[i]
		x := &c.S.Commands[st.Cmd]
		d := st.Opt("export")
		if d == nil || st.Tool != "srun" || x.Dead || x.File != "" || !onlyNamed(d.Value) || len(c.out) > 0 {
			continue
		}
		if st.Opt("container-image") != nil || st.Opt("container-name") != nil || strings.Contains(d.Value, "PATH=") {
			continue // the image brings a PATH, or the list does
		}
		y := *d
		y.ValuePos = d.Pos
		report(&y, "step")
	}
})

// onlyNamed reports an export list that names variables and has neither ALL nor
// NONE; one with an element that is not known is not judged.
func onlyNamed(list string) bool {
	if list == "" {
		return false
	}
	for _, e := range strings.Split(list, ",") {
		e = strings.TrimSpace(e)
		switch strings.ToUpper(e) {
		case "ALL", "NONE", "NIL":
			return false
		}
		if name, _, _ := strings.Cut(e, "="); strings.ContainsAny(name, "$`(") {
			return false
		}
	}
	return true
}
