package lint

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var _ = Checks.Add("time-unit", func(c *Ctx) {
	d := c.S.Opt("time")
	if d == nil || !c.submitted() {
		return
	}
	n, err := strconv.Atoi(d.Value)
	if err != nil || n <= 0 || n > 240 {
		return
	}
	note := ""
	if l := c.S.Line(d.Line); strings.Contains(l, "#") {
		_, note, _ = strings.Cut(strings.TrimPrefix(l, "#SBATCH"), "#")
	}
	said := hoursSaid.MatchString(note) && !minutesSaid.MatchString(note)
	// A day or several, in hours, is no number of minutes that people choose.
	days := n == 24 || n == 48 || n == 72 || n == 96 || n == 168
	if !said && (!days || note != "" && minutesSaid.MatchString(note)) {
		return
	}
	c.Hit(d.ValuePos, "value", d.Value)
})

var (
	hoursSaid   = lazyre.New(`(?i)\bhours?\b|\bhrs?\b|\d\s*h\b|小时`)
	minutesSaid = lazyre.New(`(?i)\bmin|分钟`)
)
