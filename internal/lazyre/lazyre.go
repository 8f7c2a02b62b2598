// Package lazyre compiles regular expressions when they are first needed. The
// knowledge base has hundreds and a log needs a handful.
package lazyre

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Regexp is a regular expression in RE2 syntax that is compiled at its first
// use. It is safe for use by several goroutines.
type Regexp struct {
	src  string
	once sync.Once
	re   *regexp.Regexp

	look sync.Once
	has  string // every match contains it; "" when no such text is known
}

// New returns an expression without compiling it. A wrong one panics at its
// first use; Check tells before.
func New(src string) *Regexp { return &Regexp{src: src} }

// Check reports whether the expression compiles.
func (r *Regexp) Check() error {
	_, err := regexp.Compile(r.src)
	return err
}

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.src) })
	return r.re
}

// String returns the source text.
func (r *Regexp) String() string { return r.src }

// The methods below are regexp.Regexp's own.

func (r *Regexp) Match(b []byte) bool { return r.get().Match(b) }

func (r *Regexp) MatchString(s string) bool {
	r.look.Do(func() { r.has = contained(r.src) })
	return (r.has == "" || strings.Contains(s, r.has)) && r.get().MatchString(s)
}

func (r *Regexp) FindString(s string) string       { return r.get().FindString(s) }
func (r *Regexp) FindStringIndex(s string) []int   { return r.get().FindStringIndex(s) }
func (r *Regexp) FindSubmatch(b []byte) [][]byte   { return r.get().FindSubmatch(b) }
func (r *Regexp) FindSubmatchIndex(b []byte) []int { return r.get().FindSubmatchIndex(b) }
func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.get().FindStringSubmatch(s)
}
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.get().FindStringSubmatchIndex(s)
}
func (r *Regexp) FindAllString(s string, n int) []string { return r.get().FindAllString(s, n) }
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}
func (r *Regexp) ReplaceAllString(s, repl string) string { return r.get().ReplaceAllString(s, repl) }
func (r *Regexp) ReplaceAllStringFunc(s string, f func(string) string) string {
	return r.get().ReplaceAllStringFunc(s, f)
}
func (r *Regexp) SubexpNames() []string { return r.get().SubexpNames() }

// contained returns the longest text that every match of an expression contains.
// Searching for it first is many times faster than trying the expression at
// every place: package regexp does so only for text at the very beginning.
func contained(src string) string {
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return ""
	}
	return required(re)
}

func required(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		// U+FFFD matches bytes that are no UTF-8 too.
		if re.Flags&syntax.FoldCase == 0 && !slices.Contains(re.Rune, utf8.RuneError) {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		best := ""
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > len(best) {
				best = l
			}
		}
		return best
	}
	return ""
}
