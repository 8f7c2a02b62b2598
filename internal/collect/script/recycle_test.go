package script

import (
	"encoding/json"
	"testing"
)

// A script that fills the lists of another one reads as if they were new.
func TestRecycle(t *testing.T) {
	const first = "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:4\nexport A=$B C=(1 2 $3)\nif true; then srun torchrun --nproc_per_node=4 a.py; fi\nfor i in 1 2; do echo $i; done\ncat <<E\n$X\nE\n"
	for _, src := range []string{"", "#!/bin/bash\necho hello\n", "#!/bin/bash\n#SBATCH -N 1\nA=1\npython train.py $A\nsrun -n 2 python x.py\n", first} {
		want, err := json.Marshal(Parse("x", []byte(src), Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			Recycle(Parse("first", []byte(first), Options{}))
			got, err := json.Marshal(Parse("x", []byte(src), Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%q after another one:\n%s\nwant\n%s", src, got, want)
			}
		}
	}
	Recycle(nil)
}
