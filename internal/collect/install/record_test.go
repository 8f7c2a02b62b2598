package install

import (
	"os"
	"path"
	"testing"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// TestTruncatedLibrary tells a library that was cut from one that was stripped:
// both are smaller than RECORD says.
func TestTruncatedLibrary(t *testing.T) {
	self, err := os.Executable() // any ELF file with segments
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	lib := path.Join(site, "torch/lib/libtorch_cpu.so")
	for _, c := range []struct {
		name, data, kind string
	}{
		{"stripped", string(whole), fact.DamageChangedFile},
		{"cut in its segments", string(whole[:len(whole)/8]), fact.DamageTruncatedFile},
		{"cut in its header", string(whole[:20]), fact.DamageTruncatedFile},
		{"empty", "", fact.DamageTruncatedFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := addAll(basePython(), torchAt(site, "2.5.1", "'12.4'", "2.5.1"))
			m[site+"/torch-2.5.1.dist-info/RECORD"] = "torch/lib/libtorch_cpu.so,sha256=x,999999999\n"
			m[lib] = c.data
			b := run(t, files(m), map[string]string{}, Options{})
			for _, d := range b.Torch[0].Damage {
				if d.What == lib {
					if d.Kind != c.kind {
						t.Errorf("%s, want %s", d.Kind, c.kind)
					}
					return
				}
			}
			t.Errorf("nothing said of it: %+v", b.Torch[0].Damage)
		})
	}
}
