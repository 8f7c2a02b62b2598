// Package tables holds facts about releases that no machine tells: which driver
// a CUDA family needs, which wheels a torch release has, which GPUs a build has
// kernels for, which NCCL release brought a symbol. Each file holds one table
// with its source and the date on which it was read. A cell that was not
// verified is not in the table: a function then says that it does not know.
package tables

import (
	"strconv"
	"strings"
)

// Answer is the outcome of a question to a table. The zero value is Unknown, so
// that a missing row never turns into an accusation.
type Answer uint8

const (
	Unknown Answer = iota
	Yes
	No
)

// Compare compares dotted version numbers field by field (535.161.08, 12.4). A
// missing field counts as 0; what is not a number ends the comparison there.
func Compare(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := 0; i < len(as) || i < len(bs); i++ {
		x, okx := field(as, i)
		y, oky := field(bs, i)
		switch {
		case !okx || !oky:
			return 0
		case x != y && x < y:
			return -1
		case x != y:
			return 1
		}
	}
	return 0
}

func field(fs []string, i int) (int, bool) {
	if i >= len(fs) {
		return 0, true
	}
	n, err := strconv.Atoi(fs[i])
	return n, err == nil
}

// numeric reports whether s consists of numbers and dots and begins with a number.
func numeric(s string) bool {
	for _, f := range strings.Split(s, ".") {
		if _, err := strconv.Atoi(f); err != nil || len(f) > 9 {
			return false
		}
	}
	return true
}
