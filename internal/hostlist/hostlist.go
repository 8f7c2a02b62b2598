// Package hostlist reads and writes Slurm's lists of host names, such as
// n[001-511,513]. It is pure and bounded: a list from foreign bytes can name
// more hosts than memory holds.
package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Max is the most names that Expand returns: more than any cluster has nodes.
const Max = 1 << 17

// maxDigits is the longest number that is taken for one; longer ones are text.
const maxDigits = 18

// Errors of Expand.
var (
	ErrSyntax = errors.New("not a host list")
	ErrLarge  = fmt.Errorf("names more than %d hosts", Max)
)

// Expand returns the names of a list in its order, repetitions included, as
// "scontrol show hostnames" prints them. Several brackets in one name are a
// product; the last one runs fastest. An empty list has no names.
func Expand(list string) ([]string, error) {
	var out []string
	for list != "" {
		item, rest, err := next(list)
		if err != nil {
			return nil, err
		}
		if out, err = product(out, item); err != nil {
			return nil, err
		}
		if list = rest; list == "" {
			break
		}
	}
	return out, nil
}

// next cuts the first item off: up to a comma that stands outside of brackets.
func next(list string) (item, rest string, err error) {
	open := false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '[' && !open:
			open = true
		case c == ']' && open:
			open = false
		case c == '[' || c == ']':
			return "", "", fmt.Errorf("%w: brackets do not match", ErrSyntax)
		case c == ',' && !open:
			return list[:i], list[i+1:], nil
		}
	}
	if open {
		return "", "", fmt.Errorf("%w: brackets do not match", ErrSyntax)
	}
	return list, "", nil
}

// product appends the names of one item.
func product(out []string, item string) ([]string, error) {
	if item == "" {
		return out, nil
	}
	names := []string{""}
	for item != "" {
		i := strings.IndexByte(item, '[')
		if i < 0 {
			i = len(item)
		}
		for k := range names {
			names[k] += item[:i]
		}
		if item = item[i:]; item == "" {
			break
		}
		end := strings.IndexByte(item, ']')
		parts, err := numbers(item[1:end])
		if err != nil {
			return nil, err
		}
		item = item[end+1:]
		if len(names)*len(parts) > Max {
			return nil, ErrLarge
		}
		all := make([]string, 0, len(names)*len(parts))
		for _, n := range names {
			for _, p := range parts {
				all = append(all, n+p)
			}
		}
		names = all
	}
	if len(out)+len(names) > Max {
		return nil, ErrLarge
	}
	return append(out, names...), nil
}

// numbers reads what stands in brackets: 001-511,513.
func numbers(s string) ([]string, error) {
	var out []string
	for _, r := range strings.Split(s, ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		lo, ok1 := number(from)
		hi, ok2 := number(to)
		if !ok1 || !ok2 || hi < lo {
			return nil, fmt.Errorf("%w: %q", ErrSyntax, clip(r))
		}
		if hi-lo >= uint64(Max-len(out)) {
			return nil, ErrLarge
		}
		for n := lo; n <= hi; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return out, nil
}

func number(s string) (uint64, bool) {
	if s == "" || len(s) > maxDigits {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func clip(s string) string { return s[:min(len(s), 40)] }

// name is a host name with its last number apart.
type name struct {
	prefix, digits string
	n              uint64
}

func split(s string) name {
	i := len(s)
	for i > 0 && len(s)-i < maxDigits && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	n, _ := strconv.ParseUint(s[i:], 10, 64)
	return name{s[:i], s[i:], n}
}

func (a name) compare(b name) int {
	return cmp.Or(strings.Compare(a.prefix, b.prefix), cmp.Compare(a.n, b.n), cmp.Compare(len(a.digits), len(b.digits)))
}

// Fold writes names as one list, sorted, each once: n[1-3,7]. Only the number
// at the end of a name is folded, as Slurm does.
func Fold(names []string) string {
	all := make([]name, 0, len(names))
	for _, s := range names {
		if s != "" {
			all = append(all, split(s))
		}
	}
	slices.SortFunc(all, name.compare)
	all = slices.Compact(all)
	var b strings.Builder
	for len(all) > 0 {
		k := 1
		for k < len(all) && all[k].prefix == all[0].prefix {
			k++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		group(&b, all[:k])
		all = all[k:]
	}
	return b.String()
}

// group writes the names of one prefix.
func group(b *strings.Builder, all []name) {
	b.WriteString(all[0].prefix)
	if all[0].digits == "" { // the bare prefix is a name of its own
		if all = all[1:]; len(all) == 0 {
			return
		}
		b.WriteString("," + all[0].prefix)
	}
	if len(all) == 1 {
		b.WriteString(all[0].digits)
		return
	}
	sep := byte('[')
	for len(all) > 0 {
		k := 1
		for k < len(all) && follows(all[0], all[k-1], all[k]) {
			k++
		}
		b.WriteByte(sep)
		sep = ','
		b.WriteString(all[0].digits)
		if k > 1 {
			b.WriteString("-" + all[k-1].digits)
		}
		all = all[k:]
	}
	b.WriteByte(']')
}

// follows reports whether x continues the range from first to last: the next
// number, in the width that the range's first number sets.
func follows(first, last, x name) bool {
	return x.n == last.n+1 && x.digits == fmt.Sprintf("%0*d", len(first.digits), x.n)
}
