package nodes

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func planOf(n int) *plan {
	r := &reachPlan{Master: true}
	for i := range n {
		r.Nodes = append(r.Nodes, peer{task: i, ends: []string{fmt.Sprintf("nccl 10.1.%d.%d:%d", i/250, i%250, 30000+i*7919%30000), "gloo [fd00::1]:4000"}})
	}
	return &plan{Token: Nonce(), Reach: r}
}

// TestPlanTravels: what the parent writes is what the probes read, behind lines
// that are none, and a plan over a thousand nodes stays small on srun's wire.
func TestPlanTravels(t *testing.T) {
	none := planOf(2)
	none.Reach.Nodes[1].ends = nil // it listens nowhere
	for _, p := range []*plan{{Stop: true}, planOf(1), none, planOf(1000)} {
		var b bytes.Buffer
		b.WriteString("a banner\n@ncclinic other\n")
		if err := writePlan(&b, p); err != nil {
			t.Fatal(err)
		}
		if n := b.Len(); p.Reach != nil && len(p.Reach.Nodes) == 1000 && n > 14<<10 {
			t.Errorf("the plan over 1000 nodes has %d bytes", n)
		}
		if n := strings.Count(b.String(), "\n"); n != 3 {
			t.Errorf("%d lines", n)
		}
		in := bufio.NewReader(&b)
		got, err := readPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got, cmp.AllowUnexported(peer{})); d != "" {
			t.Error(d)
		}
		if last, err := readPlan(in); last != nil || err != nil {
			t.Error(last, err)
		}
	}
}

func FuzzReadPlan(f *testing.F) {
	for _, p := range []*plan{{Stop: true}, planOf(3), planOf(40)} {
		var b bytes.Buffer
		if err := writePlan(&b, p); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(planMark + `{"reach":{"nodes":"0\n\n1\t\t"}}` + "\n"))
	f.Add([]byte(packedMark + "AAAA\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := readPlan(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil || p == nil || p.Reach == nil {
			return
		}
		for _, x := range p.Reach.Nodes {
			if slices.Contains(x.ends, "\n") {
				t.Error("an end with a line break")
			}
		}
	})
}
