package near

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"SBATCH", "SBTACH", 1}, {"SBATCH", "SBATC", 1}, {"source", "soruce", 1}, {"abc", "", 3}, {"abc", "xyz", 3}, {"NCCL_IB", "NCLL_IB", 1}, {"a", strings.Repeat("a", 41), Far}, {strings.Repeat("a", 61), strings.Repeat("a", 61), Far}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		for most := range 4 {
			want := c.want
			if want > most {
				want = Far
			}
			if got := Within(c.a, c.b, most); got != want {
				t.Errorf("Within(%q, %q, %d) = %d, want %d", c.a, c.b, most, got, want)
			}
		}
		if Distance(c.a, c.b) != Distance(c.b, c.a) {
			t.Errorf("Distance(%q, %q) depends on the order", c.a, c.b)
		}
	}
}

func FuzzWithin(f *testing.F) {
	f.Add("SBATCH", "SBTACH")
	f.Add("NCCL_IB_HCA", "nccl_ib_hca")
	f.Add("0p0p", "pp00")
	f.Fuzz(func(t *testing.T, a, b string) {
		d := Distance(a, b)
		for most := range 5 {
			want := d
			if d > most {
				want = Far
			}
			if got := Within(a, b, most); got != want {
				t.Errorf("Within(%q, %q, %d) = %d, want %d", a, b, most, got, want)
			}
		}
	})
}
