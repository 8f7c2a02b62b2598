// Package lazyre compiles regular expressions when they are first needed. The
// knowledge base has hundreds and a log needs a handful.
package lazyre

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression in RE2 syntax that is compiled at its first
// use. It is safe for use by several goroutines.
type Regexp struct {
	src  string
	once sync.Once
	re   *regexp.Regexp

	look  sync.Once
	texts []string // every match contains one of them; empty when none are known
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
	return r.may(s) && r.get().MatchString(s)
}

func (r *Regexp) FindSubmatch(b []byte) [][]byte   { return r.get().FindSubmatch(b) }
func (r *Regexp) FindSubmatchIndex(b []byte) []int { return r.get().FindSubmatchIndex(b) }

func (r *Regexp) FindString(s string) string {
	if !r.may(s) {
		return ""
	}
	return r.get().FindString(s)
}

func (r *Regexp) FindStringIndex(s string) []int {
	if !r.may(s) {
		return nil
	}
	return r.get().FindStringIndex(s)
}

func (r *Regexp) FindStringSubmatch(s string) []string {
	if !r.may(s) {
		return nil
	}
	return r.get().FindStringSubmatch(s)
}

func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	if !r.may(s) {
		return nil
	}
	return r.get().FindStringSubmatchIndex(s)
}

func (r *Regexp) FindAllString(s string, n int) []string {
	if !r.may(s) {
		return nil
	}
	return r.get().FindAllString(s, n)
}

func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	if !r.may(s) {
		return nil
	}
	return r.get().FindAllStringSubmatch(s, n)
}

func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if !r.may(s) {
		return nil
	}
	return r.get().FindAllStringSubmatchIndex(s, n)
}

func (r *Regexp) ReplaceAllString(s, repl string) string {
	if !r.may(s) {
		return s
	}
	return r.get().ReplaceAllString(s, repl)
}

func (r *Regexp) ReplaceAllStringFunc(s string, f func(string) string) string {
	if !r.may(s) {
		return s
	}
	return r.get().ReplaceAllStringFunc(s, f)
}

func (r *Regexp) SubexpNames() []string { return r.get().SubexpNames() }
