package plan

import (
	"fmt"
	"strings"

	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/pep440"
	"github.com/ncclinic/ncclinic/internal/tables"
)

// wish is what somebody asks for: releases, a CUDA build, or both.
type wish struct {
	text  string
	specs pep440.Specifiers
	tag   string // cu124, "" for any
	exact string // the one release that is meant, "" for several
	any   bool   // no release is named
	empty string // the bounds that leave nothing between them
}

// parseWish reads "2.6", "2.6.0", "2.6.0+cu124", ">=2.4,<2.8", "cu126", "newest".
func parseWish(s string) (wish, error) {
	w := wish{text: s}
	s = strings.TrimSpace(s)
	s = strings.TrimSpace(strings.TrimPrefix(s, "torch"))
	if s == "" || s == "newest" || s == "latest" {
		w.any = true
		return w, nil
	}
	if buildTag(s) {
		w.tag, w.any = s, true
		return w, nil
	}
	spec := s
	if strings.IndexAny(s[:1], "0123456789v") == 0 {
		v, err := pep440.Parse(s)
		if err != nil {
			return w, fmt.Errorf("%q is no version, specifier or CUDA build: write 2.6.0, 2.6, >=2.4,<2.8, 2.6.0+cu124 or cu126", s)
		}
		w.tag = v.Local()
		if p := tables.Public(v.Public()); p != "" {
			w.exact, spec = p, "=="+p
		} else if strings.Count(v.Public(), ".") < 2 && !v.IsPre() {
			spec = "==" + v.Public() + ".*"
		} else {
			w.exact, spec = v.Public(), "=="+v.Public()
		}
	} else if rest, ok := strings.CutPrefix(s, "=="); ok {
		if v, err := pep440.Parse(strings.TrimSpace(rest)); err == nil {
			w.tag, w.exact, spec = v.Local(), v.Public(), "=="+v.Public()
		}
	}
	if w.tag != "" && !buildTag(w.tag) {
		return w, fmt.Errorf("%q is no CUDA build: its local tag is not like cu126", s)
	}
	var err error
	if w.specs, err = pep440.ParseSpecifiers(spec); err != nil {
		return w, fmt.Errorf("%q is no version, specifier or CUDA build: write 2.6.0, 2.6, >=2.4,<2.8, 2.6.0+cu124 or cu126", s)
	}
	w.empty = emptyRange(spec)
	return w, nil
}

// emptyRange names two bounds of a specifier that no version can meet together,
// "" when there is none.
func emptyRange(spec string) string {
	type bound struct {
		text   string
		v      pep440.Version
		strict bool
	}
	var lows, highs []bound
	for _, part := range strings.Split(spec, ",") {
		part = strings.TrimSpace(part)
		op := part[:len(part)-len(strings.TrimLeft(part, "<>=!~ "))]
		v, err := pep440.Parse(strings.TrimSuffix(part[len(op):], ".*"))
		if err != nil {
			continue
		}
		switch b := (bound{part, v, false}); strings.TrimSpace(op) {
		case ">=", "~=":
			lows = append(lows, b)
		case ">":
			b.strict = true
			lows = append(lows, b)
		case "<=":
			highs = append(highs, b)
		case "<":
			b.strict = true
			highs = append(highs, b)
		case "==":
			lows = append(lows, b)
			if !strings.HasSuffix(part, ".*") {
				highs = append(highs, b)
			}
		}
	}
	for _, l := range lows {
		for _, h := range highs {
			if c := pep440.Compare(l.v, h.v); c > 0 || c == 0 && (l.strict || h.strict) {
				return l.text + " and " + h.text
			}
		}
	}
	return ""
}

// CheckWish says what is wrong with a wish, nil when it can be read.
func CheckWish(s string) error {
	_, err := parseWish(s)
	return err
}

func cudaTag(s string) bool { return tables.TagCUDA(s) != "" }

// buildTag reports whether s is the local tag of a build for GPUs: cu126, rocm6.4.
func buildTag(s string) bool { return cudaTag(s) || tables.TagROCm(s) != "" }

// takes reports whether a release is among those that are asked for.
func (w *wish) takes(version string) bool {
	if w.any {
		return true
	}
	v, err := pep440.Parse(version)
	return err == nil && w.specs.Match(v)
}

var firstVersion = lazyre.New(`[0-9]+(\.[0-9]+)*`)

// beyond reports whether a wish can only be met by releases newer than the table.
func (w *wish) beyond() bool {
	if w.any {
		return false
	}
	for _, v := range tables.Versions() {
		if w.takes(v) {
			return false
		}
	}
	return tables.Compare(firstVersion.FindString(w.text), tables.NewestRelease()) > 0
}
