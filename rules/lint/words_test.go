package lint

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// says finds what is there, whatever the table of runs holds.
func TestSays(t *testing.T) {
	text := "#!/bin/bash\n#SBATCH --Gres=gpu:4\n # a comment about gloo\n\tsrun Python train.py --CPU \n#PBS -q x\né NCCL\n"
	c := &Ctx{S: &fact.Script{Src: []byte(text)}, shared: &shared{}}
	want := "#!/bin/bash"
	if got := c.code(); strings.Contains(got, want) || strings.Contains(got, "gloo") || !strings.Contains(got, "#SBATCH --Gres") || !strings.Contains(got, "#PBS") {
		t.Errorf("code is %q", got)
	}
	low := c.lower()
	for i := range low {
		for j := i + 1; j <= len(low); j++ {
			if !c.says(low[i:j]) {
				t.Fatalf("%q is not found", low[i:j])
			}
		}
	}
	for _, w := range []string{"gloo", "--gpus", "NCCL", "srunpython", "train.pyx"} {
		if c.says(w) {
			t.Errorf("%q is found", w)
		}
	}
	if !c.says("nothing of it", "nccl") || c.says() {
		t.Error("one of several words")
	}
}

func TestLongToken(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "abcdefghij123456789": false, "abcdefghij1234567890": true, "abcdefghijklmnopqrst": false,
		"x abcdefghij1234567890 y": true, "abcdefghijklmnopqrst0": true, "0abcdefghijklmnopqrs": true,
		"abcdefghij.1234567890abcdefghi": false, "a/b/c/d/e/f/g/h/i/j/k/1/2/3": false,
		"abcdefghijklmnopqrst/1abcdefghijklmnopqrs": true, "12345678901234567890": true, "é1234567890123456789é": false,
	} {
		if got := longToken([]byte(s)); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}
