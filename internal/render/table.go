package render

import (
	"bufio"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Table writes rows as columns, the first row as their heads. A cell that is
// longer than all of the line stays whole: it is cut nowhere.
func Table(w io.Writer, rows [][]string, st Style) error {
	var wide []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], displaywidth.String(Clean(c, false)))
		}
	}
	bw := bufio.NewWriter(w)
	p := newPrinter(bw, st)
	for n, r := range rows {
		var b strings.Builder
		for i, c := range r {
			c = Clean(c, false)
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-displaywidth.String(c)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 {
			line = p.paint(bold, line)
		}
		p.line(line)
	}
	if err := p.w.Flush(); err != nil {
		return err
	}
	return bw.Flush()
}
