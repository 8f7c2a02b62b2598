package lazyre

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// may reports whether the expression can match at all in s: whether one of the
// texts is there that every match contains. Looking for them first is many times
// faster than trying the expression at every place; package regexp does so only
// for one text at the very beginning of an expression.
func (r *Regexp) may(s string) bool {
	r.look.Do(func() { r.texts = texts(r.src) })
	if len(r.texts) == 0 {
		return true
	}
	for _, t := range r.texts {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

// maxTexts bounds how many texts are worth looking for.
const maxTexts = 8

// texts returns texts of which every match contains at least one; nil when
// nothing is known.
func texts(src string) []string {
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil || anchored(re) {
		return nil
	}
	return needed(re)
}

// anchored reports whether an expression fails at once where it does not begin
// at the start of the text: that is faster still.
func anchored(re *syntax.Regexp) bool {
	return re.Op == syntax.OpBeginText || re.Op == syntax.OpConcat && anchored(re.Sub[0])
}

func needed(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		// U+FFFD matches bytes that are no UTF-8 too.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if t := needed(sub); shortest(t) > shortest(best) || shortest(t) == shortest(best) && len(t) < len(best) {
				best = t
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			t := needed(sub)
			if len(t) == 0 || len(all)+len(t) > maxTexts {
				return nil
			}
			all = append(all, t...)
		}
		return all
	}
	return nil
}

// shortest returns the length of the shortest of several texts: what is short
// is found in many lines. 0: there are none.
func shortest(texts []string) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}
