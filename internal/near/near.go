// Package near tells how far two words are apart, to recognise slips of the pen.
package near

// Far is what Distance gives for words that are too long to compare.
const Far = 99

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
