package install

import (
	"regexp"
	"strconv"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/tables"
)

var manylinux = regexp.MustCompile(`manylinux_2_([0-9]{1,3})_|manylinux(2014|2010|1)_`)

var _ = Checks.Add("torch-glibc", func(b *fact.Bundle, r *diag.Reporter) {
	have, ok := b.Host.Glibc.Get()
	if !ok || imports(b) {
		return
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
