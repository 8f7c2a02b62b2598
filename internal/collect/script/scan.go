package script

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/near"
)

// maxLine bounds what is kept of one directive line; sbatch has no limit, but
// nobody writes more.
const maxLine = 1 << 16

// maxDirectives bounds directives and stray lines of one file.
const maxDirectives = 10000

var magic = []byte("#SBATCH")

// scan reads the bytes of the file as sbatch does (_opt_batch_script and
// get_argument of src/sbatch/opt.c): what it takes, what it refuses, and lines
// that only look like directives.
func (p *parser) scan() {
	s := p.s
	src := s.Src
	s.BOM = bytes.HasPrefix(src, []byte("\xef\xbb\xbf"))
	if i := bytes.IndexByte(src, 0); i >= 0 {
		s.NUL = p.posOf(i)
	}
	het, done, line := 0, false, 0
	words := &getopt{p: p}
	for at := 0; at < len(src); {
		line++
		end := bytes.IndexByte(src[at:], '\n')
		next := len(src)
		if end < 0 {
			end = len(src)
		} else {
			end += at
			next = end + 1
		}
		raw := src[at:end]
		if n := len(raw); n > 0 && raw[n-1] == '\r' && next > end {
			if s.CRLF == 0 {
				s.CRLF = line
			}
			s.CRLFs++
		}
		s.NumLines = line
		if len(raw) > maxLine {
			raw = raw[:maxLine]
		}
		if i := bytes.IndexByte(raw, 0); i >= 0 {
			raw = raw[:i] // a C string ends here
		}
		switch {
		case bytes.HasPrefix(raw, magic) && !done:
			rest := raw[len(magic):]
			skip := len(rest) - len(bytes.TrimLeft(rest, " \t\v\f\r"))
			if n := hetWord(rest[skip:]); n > 0 {
				words.flush(het)
				het++
				s.HetGroups = het + 1
				rest = append(append([]byte{}, rest[:skip]...), append(bytes.Repeat([]byte(" "), n), rest[skip+n:]...)...)
			}
			if len(s.Directives) < maxDirectives {
				p.arguments(rest, line, len(magic), words)
			}
		case bytes.HasPrefix(raw, magic):
			p.stray(fact.StrayLate, raw, line, 0)
		default:
			t := bytes.TrimLeft(raw, " \t\v\f\r")
			switch {
			case len(t) == 0:
			case t[0] != '#':
				if !done {
					done = true
					s.FirstCmd = fact.Pos{Line: line, Col: len(raw) - len(t) + 1}
				}
			default:
				p.lookalike(raw, t, line, done)
			}
		}
		at = next
	}
	words.flush(het)
	p.shebang()
}

// hetWord returns the length of a component separator at the start of b, or 0.
func hetWord(b []byte) int {
	for _, w := range []string{"packjob", "hetjob"} {
		if len(b) >= len(w) && strings.EqualFold(string(b[:len(w)]), w) && (len(b) == len(w) || isSpace(b[len(w)])) {
			return len(w)
		}
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// arg is one word of a directive line.
type arg struct {
	text string
	pos  fact.Pos
}

// arguments splits a directive line into words as get_argument does.
func (p *parser) arguments(b []byte, line, off int, out *getopt) {
	for i := 0; ; {
		a, n, why := argument(b[i:], p.o.BlankEnds)
		pos := fact.Pos{Line: line, Col: off + i + a.lead + 1}
		switch why {
		case fact.RefuseColon, fact.RefuseQuote:
			p.refuse(fact.DirectiveError{Pos: pos, Kind: why, Text: fact.Clip(clean(string(b[i:])), 120)})
			return
		}
		if !a.ok {
			return
		}
		out.words = append(out.words, arg{a.text, pos})
		i += n
	}
}

type word struct {
	text string
	lead int
	ok   bool
}

// argument reads one word and says how much of b it took. blankEnds: a blank
// ends a word even behind a backslash.
func argument(b []byte, blankEnds bool) (w word, n int, refused string) {
	i := 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	w.lead = i
	if i < len(b) && b[i] == ':' {
		return w, i, fact.RefuseColon
	}
	var out []byte
	quoted, escaped := byte(0), false
	for i < len(b) && (quoted != 0 || !isSpace(b[i])) {
		c := b[i]
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			i++
			if i < len(b) && b[i] == ' ' && !blankEnds {
				out, w.ok = append(out, ' '), true
				i++
			} else {
				escaped = true
			}
			continue
		case quoted != 0 && c == quoted:
			quoted = 0
			i++
			continue
		case quoted != 0:
		case c == '"' || c == '\'':
			quoted = c
			i++
			continue
		case c == '#':
			w.text = string(out)
			return w, i, ""
		}
		out, w.ok = append(out, c), true
		i++
	}
	w.text = string(out)
	if quoted != 0 {
		return w, i, fact.RefuseQuote
	}
	return w, i, ""
}

// getopt turns words into options as getopt_long with a leading "+" does: the
// first word that is no option ends it, and sbatch refuses the script.
type getopt struct {
	p     *parser
	words []arg
}

func (g *getopt) flush(het int) {
	ds, bad := options(sbatchOptions(), g.words, false)
	for i := range ds {
		ds[i].Het = het
	}
	g.p.s.Directives = append(g.p.s.Directives, ds...)
	for _, e := range bad {
		g.p.refuse(e)
	}
	g.words = nil
}

func (p *parser) refuse(e fact.DirectiveError) {
	if len(p.s.Refused) < 100 {
		p.s.Refused = append(p.s.Refused, e)
	}
}

// options reads words as options of a table. lenient goes on after words that
// are no option of the table, because it may be a site's.
func options(t *optionTable, ws []arg, lenient bool) (ds []fact.Directive, bad []fact.DirectiveError) {
	take := func(i int) (string, fact.Pos, bool) {
		if i+1 < len(ws) {
			return ws[i+1].text, ws[i+1].pos, true
		}
		return "", fact.Pos{}, false
	}
	for i := 0; i < len(ws); i++ {
		w := ws[i]
		switch {
		case strings.HasPrefix(w.text, "--") && len(w.text) > 2:
			name, val, eq := strings.Cut(w.text[2:], "=")
			o := t.find(name)
			d := fact.Directive{Pos: w.pos, Name: name, Written: "--" + name}
			if eq {
				d.Value, d.HasValue, d.ValuePos = val, true, shift(w.pos, len(name)+3)
			}
			if o == nil {
				kind := fact.RefuseUnknown
				if _, was := removed[name]; was {
					kind = fact.RefuseRemoved
				}
				bad = append(bad, fact.DirectiveError{Pos: w.pos, Kind: kind, Text: w.text, Option: name, Near: t.guess(name), Maybe: t.ambiguous(name)})
				// A plugin's option may take the next word.
				if v, vp, ok := take(i); !eq && ok && !strings.HasPrefix(v, "-") && ws[i+1].pos.Line == w.pos.Line {
					d.Value, d.HasValue, d.ValuePos = v, true, vp
					i++
				}
				ds = append(ds, d)
				continue
			}
			d.Known, d.Name = true, o.canon()
			if o.arg == needArg && !eq {
				v, vp, ok := take(i)
				if !ok {
					bad = append(bad, fact.DirectiveError{Pos: w.pos, Kind: fact.RefuseNoValue, Text: w.text, Option: d.Name})
					continue
				}
				d.Value, d.HasValue, d.ValuePos = v, true, vp
				i++
			}
			ds = append(ds, d)
		case strings.HasPrefix(w.text, "-") && len(w.text) > 1 && w.text != "--":
			rest := w.text[1:]
			for k := 0; k < len(rest); k++ {
				o := t.short[rest[k]]
				d := fact.Directive{Pos: shift(w.pos, k), Written: "-" + rest[k:k+1], Name: rest[k : k+1]}
				if o == nil {
					bad = append(bad, fact.DirectiveError{Pos: w.pos, Kind: fact.RefuseUnknown, Text: w.text, Option: rest[k : k+1]})
					d.Value, d.ValuePos = rest[k+1:], shift(w.pos, k+2)
					ds = append(ds, d)
					break
				}
				d.Known, d.Name = true, o.canon()
				if o.arg == noArg {
					ds = append(ds, d)
					continue
				}
				if k+1 < len(rest) {
					d.Value, d.HasValue, d.ValuePos = rest[k+1:], true, shift(w.pos, k+2)
				} else if o.arg == needArg {
					v, vp, ok := take(i)
					if !ok {
						bad = append(bad, fact.DirectiveError{Pos: w.pos, Kind: fact.RefuseNoValue, Text: w.text, Option: d.Name})
						break
					}
					d.Value, d.HasValue, d.ValuePos = v, true, vp
					i++
				}
				ds = append(ds, d)
				break
			}
		default:
			kind := fact.RefuseWord
			if r, _ := utf8.DecodeRuneInString(w.text); isDash(r) {
				kind = fact.RefuseDash
			}
			bad = append(bad, fact.DirectiveError{Pos: w.pos, Kind: kind, Text: w.text})
			if !lenient && kind == fact.RefuseWord && w.text == "--" {
				return ds, bad
			}
		}
	}
	return ds, bad
}

// isDash reports whether r looks like "-" and is not.
func isDash(r rune) bool {
	return r >= 0x2010 && r <= 0x2015 || r == 0x2212 || r == 0xfe58 || r == 0xff0d
}

func shift(p fact.Pos, n int) fact.Pos { return fact.Pos{Line: p.Line, Col: p.Col + n} }

// lookalike classifies a comment line that may have been meant as a directive.
// t is the line without leading blanks.
func (p *parser) lookalike(raw, t []byte, line int, done bool) {
	lead := len(raw) - len(t)
	if bytes.HasPrefix(t, magic) {
		if lead > 0 {
			p.stray(fact.StrayIndented, raw, line, lead)
		}
		return
	}
	body := bytes.TrimLeft(t, "#")
	hashes := len(t) - len(body)
	if hashes > 1 {
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t"), magic[1:]) {
			p.stray(fact.StrayDisabled, raw, line, lead)
		}
		return
	}
	trim := bytes.TrimLeft(body, " \t")
	blank := len(body) - len(trim)
	k := 0
	for k < len(trim) && (trim[k] >= 'A' && trim[k] <= 'Z' || trim[k] >= 'a' && trim[k] <= 'z') {
		k++
	}
	w := string(trim[:k])
	arg := bytes.TrimLeft(trim[k:], " \t")
	opt := len(arg) > 1 && arg[0] == '-' && (arg[1] == '-' || arg[1] >= 'A' && arg[1] <= 'z')
	switch {
	case w == "SBATCH" && blank == 1 && opt:
		p.stray(fact.StrayCommented, raw, line, lead)
	case w == "SBATCH":
	case blank == 0 && lead == 0 && opt && strings.EqualFold(w, "SBATCH") && mostlyUpper(w):
		p.stray(fact.StrayMisspelt, raw, line, lead) // #SBATCh: the case counts
	case blank == 0 && lead == 0 && opt && strings.EqualFold(w, "SBATCH"):
		p.stray(fact.StrayLower, raw, line, lead)
	case blank == 0 && lead == 0 && opt && w == strings.ToUpper(w) && !switchedOff(w) && slip(w, "SBATCH"):
		p.stray(fact.StrayMisspelt, raw, line, lead)
	}
}

// mostlyUpper tells a slip of the shift key from a word in small letters, which
// people write to switch a line off.
func mostlyUpper(w string) bool {
	n := 0
	for i := 0; i < len(w); i++ {
		if w[i] >= 'a' && w[i] <= 'z' {
			n++
		}
	}
	return n <= 2
}

// switchedOff reports words that are near SBATCH and meant so: XSBATCH is an
// option taken out on purpose, YBATCH a directive of another tool (ybatch).
func switchedOff(w string) bool {
	return w == "SLURM" || w == "YBATCH" || w == "NOSBATCH" || len(w) == 7 && strings.HasSuffix(w, "SBATCH") && w[0] != 'S'
}

// slip reports whether two words are one or two edits apart (a swap of
// neighbours counts as one).
func slip(a, b string) bool { d := near.Within(a, b, 2); return d > 0 && d <= 2 }

func (p *parser) stray(kind string, raw []byte, line, lead int) {
	if len(p.s.Stray) >= maxDirectives {
		return
	}
	st := fact.Stray{Pos: fact.Pos{Line: line, Col: lead + 1}, Kind: kind, Text: clean(string(raw))}
	rest := raw[lead:]
	if i := bytes.IndexByte(rest, '-'); i >= 0 {
		var ws getopt
		tmp := &parser{s: &fact.Script{}}
		ws.p = tmp
		tmp.arguments(rest[i:], line, lead+i, &ws)
		st.Options, _ = options(sbatchOptions(), ws.words, true)
	}
	p.s.Stray = append(p.s.Stray, st)
}

// clean drops what cannot be shown of a piece of source.
func clean(t string) string { return strings.ToValidUTF8(strings.TrimRight(t, "\r\n"), "\uFFFD") }

func (p *parser) posOf(off int) fact.Pos {
	l := bytes.Count(p.s.Src[:off], []byte("\n"))
	return fact.Pos{Line: l + 1, Col: off - bytes.LastIndexByte(p.s.Src[:off], '\n')}
}

// shebang names the interpreter as the kernel would start it.
func (p *parser) shebang() {
	s := p.s
	if !bytes.HasPrefix(s.Src, []byte("#!")) {
		return
	}
	s.HasShebang = true
	line := s.Src[2:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	if len(line) > 512 {
		line = line[:512]
	}
	s.Shebang = strings.TrimSpace(clean(string(line)))
	f := strings.Fields(s.Shebang)
	for len(f) > 0 && (base(f[0]) == "env" || f[0] == "-S" || strings.Contains(f[0], "=")) {
		f = f[1:]
	}
	if len(f) == 0 {
		return
	}
	name := base(f[0])
	switch {
	case name == "bash" || name == "sh" || name == "dash" || name == "zsh" || name == "csh" || name == "tcsh" || name == "fish" || name == "perl":
		s.Shell = name
	case name == "ksh" || name == "ksh93" || name == "mksh":
		s.Shell = "ksh"
	case strings.HasPrefix(name, "python"):
		s.Shell = "python"
	default:
		s.Shell = "other"
	}
	for _, a := range f[1:] {
		switch {
		case a == "--login":
			s.ShellFlags += "l"
		case strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--"):
			s.ShellFlags += a[1:]
		}
	}
}

func base(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[i+1:]
	}
	return p
}
