package slurm

import "testing"

func TestParseOffer(t *testing.T) {
	got := ParseOffer("gpu|4|64|515000|gpu:a100:4(S:0-1),nvme:1|2-00:00:00\ncpu|10|32+|64000+|(null)|infinite\nbroken\n|1|1|1|1|1\n")
	want := []Partition{{"gpu", 4, 64, 515000, "gpu:a100:4(S:0-1),nvme:1", 172800}, {"cpu", 10, 32, 64000, "", -1}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got[i], want[i])
		}
	}
	for s, sec := range map[string]int64{"30:00": 1800, "1:00:00": 3600, "1-00:00:00": 86400, "x": 0, "infinite": -1} {
		if n := limit(s); n != sec {
			t.Errorf("limit(%q) = %d, want %d", s, n, sec)
		}
	}
}
