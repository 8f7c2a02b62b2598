// Package near tells how far two words are apart, to recognise slips of the pen.
package near

import "math/bits"

// Far is what Distance gives for words that are too long to compare.
const Far = 99

// Within is Distance for callers that want only words at most so many steps
// apart; the others are Far. Most pairs are told apart by their letters alone.
func Within(a, b string, most int) int {
	d := len(a) - len(b)
	if d > most || d < -most || missing(a, b) > most || missing(b, a) > most {
		return Far
	}
	if d = Distance(a, b); d > most {
		return Far
	}
	return d
}

// missing counts the kinds of letters of a that b lacks: each costs a step.
func missing(a, b string) int { return bits.OnesCount64(letters(a) &^ letters(b)) }

func letters(s string) (set uint64) {
	for i := range len(s) {
		set |= 1 << (s[i] & 63)
	}
	return set
}

// Distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment). Words of more than
// 60 bytes, and words whose lengths differ by more than 3, are Far. It
// allocates nothing: linters ask for every word of a script.
func Distance(a, b string) int {
	if d := len(a) - len(b); d > 3 || d < -3 || len(a) > 60 || len(b) > 60 {
		return Far
	}
	var rows [3][61]int
	prev2, prev, cur := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			k := 1
			if a[i-1] == b[j-1] {
				k = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+k)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
