package render

import (
	"bufio"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Pairs writes rows of a name and two values as a table. Rows that would not fit
// beside each other stand below it, one value under the other.
func Pairs(w io.Writer, rows [][]string, st Style) error {
	name, most := 0, 0
	for _, r := range rows {
		name = max(name, displaywidth.String(Clean(r[0], false)))
	}
	if st.Width > 0 {
		most = max((st.Width-name-4)/2, 12)
	}
	fit, long := rows[:1:1], [][]string(nil)
	for _, r := range rows[1:] {
		if most > 0 && (displaywidth.String(Clean(r[1], false)) > most || displaywidth.String(Clean(r[2], false)) > most) {
			long = append(long, r)
		} else {
			fit = append(fit, r)
		}
	}
	if len(fit) > 1 {
		if err := Table(w, fit, st); err != nil {
			return err
		}
	}
	p := newPrinter(w, st)
	for i, r := range long {
		if i > 0 || len(fit) > 1 {
			p.line("")
		}
		p.line(Clean(r[0], false))
		p.hang(2, rows[0][1]+"  ", Clean(r[1], false))
		p.hang(2, rows[0][2]+"  ", Clean(r[2], false))
	}
	return p.w.Flush()
}

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
