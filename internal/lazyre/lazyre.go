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

// FindStringSubmatch is regexp.Regexp's.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.get().FindStringSubmatch(s) }

// SubexpNames is regexp.Regexp's.
func (r *Regexp) SubexpNames() []string { return r.get().SubexpNames() }
