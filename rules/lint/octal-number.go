package lint

import (
	"strconv"
	"strings"
)

var _ = Checks.Add("octal-number", func(c *Ctx) {
	s := c.S
	if !c.says("seq -w", "{0") {
		return
	}
	padded := map[string]int{} // loop variable and its line
	for n := 1; n <= s.NumLines && len(padded) < 20; n++ {
		if name := paddedLoop(s.Line(n)); name != "" {
			padded[name] = n
		}
	}
	for i := range s.Reads {
		r := &s.Reads[i]
		from, ok := padded[r.Name]
		if !ok || !r.Arith || r.Line <= from || r.File != "" || len(c.out) > 0 {
			continue
		}
		l := s.Line(r.Line)
		if strings.Contains(l, "10#") || strings.Contains(l, "{"+r.Name+"#") || strings.Contains(l, "{"+r.Name+"%") || !strings.Contains(l, "((") {
			continue // the zero is taken off, or the base is said
		}
		c.Hit(r.Pos, "name", r.Name, "line", itoa(from))
	}
})

// paddedLoop returns the variable of a loop over numbers with leading zeros
// that reach 08: "for i in $(seq -w 1 12)", "for i in {01..12}".
func paddedLoop(l string) string {
	f := strings.Fields(l)
	if len(f) < 4 || f[0] != "for" || f[2] != "in" {
		return ""
	}
	rest := strings.Join(f[3:], " ")
	if i := strings.Index(rest, "seq -w "); i >= 0 {
		args, _, _ := strings.Cut(strings.NewReplacer(")", "`", ";", "`").Replace(rest[i+7:]), "`")
		a := strings.Fields(args)
		if len(a) == 0 {
			return ""
		}
		// seq -w pads to the width of the last number: below 10 nothing.
		if k, err := strconv.Atoi(strings.Trim(a[len(a)-1], `"'`)); err == nil && k < 10 {
			return ""
		}
		return f[1]
	}
	if from, ok := strings.CutPrefix(rest, "{0"); ok {
		_, to, ok := strings.Cut(from, "..")
		to, _, _ = strings.Cut(to, "}")
		to, _, _ = strings.Cut(to, "..")
		if k, err := strconv.Atoi(to); ok && err == nil && k >= 8 {
			return f[1]
		}
	}
	return ""
}
