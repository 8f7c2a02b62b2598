package hostlist

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/testenv"
)

func TestFold(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n3 n1 n2", "n[1-3]"},
		{"n1 n2 n2 n4", "n[1-2,4]"},
		{"n9 n10 n11", "n[9-11]"},
		{"n09 n10 n11", "n[09-11]"},
		{"n099 n100", "n[099-100]"},
		{"n1 n01", "n[1,01]"},
		{"n1 n02 n3", "n[1,02,3]"},
		{"gpu-a gpu-b", "gpu-a,gpu-b"},
		{"n n1 n2", "n,n[1-2]"},
		{"n1-ib n2-ib", "n1-ib,n2-ib"},
		{"r1c1 r1c2 r2c1", "r1c[1-2],r2c1"},
		{"7 8", "[7-8]"},
		{"n99999999999999999999998 n99999999999999999999999", "n99999[999999999999999998-999999999999999999]"},
	} {
		if got := Fold(strings.Fields(c.names)); got != c.want {
			t.Errorf("Fold(%s) = %s, want %s", c.names, got, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"", ""},
		{"n1", "n1"},
		{"n[1-3,7]", "n1 n2 n3 n7"},
		{"n[08-11],m", "n08 n09 n10 n11 m"},
		{"r[1-2]c[1-2]", "r1c1 r1c2 r2c1 r2c2"},
		{"n[1-2]-ib", "n1-ib n2-ib"},
		{"a,b,", "a b"},
	} {
		got, err := Expand(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("Expand(%s) = %v, %v, want %s", c.list, got, err, c.want)
		}
	}
	for _, bad := range []string{"n[1", "n1]", "n[[1]]", "n[]", "n[1-]", "n[3-1]", "n[a-b]", "n[1-2-3]", "n[1 ]", "n[99999999999999999999]"} {
		if got, err := Expand(bad); !errors.Is(err, ErrSyntax) {
			t.Errorf("Expand(%s) = %v, %v, want a syntax error", bad, got, err)
		}
	}
	for _, big := range []string{"n[0-999999999999]", "a[1-999]b[1-999]", strings.Repeat("n[1-99999],", 3)} {
		if got, err := Expand(big); !errors.Is(err, ErrLarge) {
			t.Errorf("Expand(%s) = %d names, %v, want %v", big, len(got), err, ErrLarge)
		}
	}
}

// TestAgainstScontrol: Slurm itself reads what Fold writes, and writes the same.
func TestAgainstScontrol(t *testing.T) {
	scontrol := testenv.Tool(t, "scontrol")
	conf := filepath.Join(t.TempDir(), "slurm.conf") // it asks no daemon, but wants a file
	if err := os.WriteFile(conf, []byte("ClusterName=x\nSlurmctldHost=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ask := func(what, list string) string {
		t.Helper()
		cmd := exec.Command(scontrol, "show", what, list)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("scontrol show %s %s: %v %s", what, list, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	r := rand.New(rand.NewPCG(5, 1))
	for round := range 40 {
		var names []string
		form := []string{"n%d", "n%03d", "gpu-%02d", "rack1node%d"}[round%4]
		for range 1 + r.IntN(60) {
			names = append(names, fmt.Sprintf(form, r.IntN(120)))
		}
		if round%5 == 0 {
			names = append(names, "login", "n1-ib", "dgx7")
		}
		fold := Fold(names)
		slices.Sort(names)
		names = slices.Compact(names)
		real := strings.Fields(ask("hostnames", fold))
		own, err := Expand(fold)
		if err != nil || !slices.Equal(own, real) {
			t.Fatalf("%s: scontrol says %v, Expand %v, %v", fold, real, own, err)
		}
		slices.Sort(own)
		if !slices.Equal(own, names) {
			t.Fatalf("%s does not name %v", fold, names)
		}
		if theirs := ask("hostlistsorted", strings.Join(names, ",")); theirs != fold {
			t.Errorf("scontrol folds %v to %s, Fold to %s", names, theirs, fold)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[001-511,513]", "r[1-2]c[3-4],x", "n[1-2", "a,,b", "[0-1][0-1]", "n[00-1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := Expand(s)
		if err != nil {
			return
		}
		if len(names) > Max {
			t.Fatalf("%d names", len(names))
		}
		for _, n := range names {
			if strings.ContainsAny(n, ",[]") {
				t.Fatalf("name %q", n)
			}
		}
		again, err := Expand(Fold(names))
		if err != nil {
			t.Fatalf("Fold(%q) cannot be read: %v", s, err)
		}
		slices.Sort(names)
		slices.Sort(again)
		if !slices.Equal(slices.Compact(names), again) {
			t.Fatalf("%q: %v became %v", s, names, again)
		}
	})
}
