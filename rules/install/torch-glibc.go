package install

import (
	"strconv"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var manylinux = lazyre.New(`manylinux_2_([0-9]{1,3})_|manylinux(2014|2010|1)_`)

var _ = Checks.Add("torch-glibc", func(b *fact.Bundle, r *diag.Reporter) {
	have, ok := b.Host.Glibc.Get()
	if !ok || imports(b) {
		return
	}
	for _, l := range b.Loads {
		if l.Soname != "libc.so.6" && l.Soname != "libm.so.6" {
			continue
		}
		if v := newest(l.Missing, "GLIBC_"); v != "" {
			a := args(b)
			a["glibc"], a["needs"], a["variant"] = have, v, "symbols"
			r.Hit("torch-needs-newer-glibc", diag.Proven, a, b.Host.Glibc.At, l.Path.At, fact.FileExcerpt(l.Path.V, "does not define GLIBC_"+v))
			return
		}
	}
	// A wheel with several tags runs where one of them is met.
	least := -1
	for _, tag := range b.Winner().Dist.V.Tags {
		for _, m := range manylinux.FindAllStringSubmatch(tag, -1) {
			n, err := strconv.Atoi(m[1])
			if m[2] != "" {
				n, err = map[string]int{"2014": 17, "2010": 12, "1": 5}[m[2]], nil
			}
			if err == nil && (least < 0 || n < least) {
				least = n
			}
		}
	}
	if least < 0 || tables.Compare(have, "2."+strconv.Itoa(least)) >= 0 {
		return
	}
	a := args(b)
	a["glibc"], a["needs"] = have, "2."+strconv.Itoa(least)
	r.Hit("torch-needs-newer-glibc", diag.Likely, a, b.Host.Glibc.At, b.Winner().Dist.At).
		Need(a["python"] + " -c 'import torch'")
})

// newest returns the highest version among symbol versions such as GLIBC_2.28.
func newest(versions []string, prefix string) string {
	best := ""
	for _, v := range versions {
		if n, ok := strings.CutPrefix(v, prefix); ok && n != "" && n[0] >= '0' && n[0] <= '9' && (best == "" || tables.Compare(n, best) > 0) {
			best = n
		}
	}
	return best
}
