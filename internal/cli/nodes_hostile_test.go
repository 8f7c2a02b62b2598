package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/ncclinic/ncclinic/internal/collect/nodes"
	"github.com/ncclinic/ncclinic/internal/demo"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
)

// TestHostileNode: one of three nodes sends escapes, other alphabets' tricks and a
// secret wherever a report has room for text. Nothing of that acts on the terminal
// of who looks at the allocation, in any form and language.
func TestHostileNode(t *testing.T) {
	const nonce = "0123456789abcdef01234567"
	const evil = "\x1b]52;c;aGk=\x07\x1b[2J\u009b31m\u202e\u2066\u200b\x00\r\n\t@ncclinic "
	m := nodes.NewMerger(nonce, []string{"n1", "n2", "n3"})
	for i := range 3 {
		b, err := fact.ReadBundle(bytes.NewReader(demo.Bundle))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("n%d", i+1)
		b.Slurm.NodeName = fact.Of(name, fact.Evidence{})
		if i == 1 {
			b.Host.Name = fact.Of(evil+"h", fact.Evidence{Path: evil})
			b.Host.Kernel = fact.Of(evil+"k", fact.Evidence{})
			b.Torch[0].Version = fact.Of("2.5.1"+evil, fact.Evidence{Path: evil, Excerpt: evil})
			b.Torch[0].Dir = "/opt/" + evil
			b.Python.Exe = fact.Of("/opt/"+evil+"/python", fact.Evidence{})
			b.Node.Driver = fact.Of(fact.Driver{Version: "525" + evil}, fact.Evidence{})
			b.Env = append(b.Env, fact.EnvVar{Name: "NCCL_" + evil, Value: evil}, fact.EnvVar{Name: "NCCL_SOCKET_IFNAME", Value: evil})
			b.Node.Ifaces = fact.Of([]fact.Iface{{Name: evil, Up: true, Addrs: []string{"10.0.0.1/8", evil}}}, fact.Evidence{})
			b.AddProblem(evil, evil)
		}
		mach := &source.Machine{FS: fstest.MapFS{}, Env: map[string]string{"SLURM_PROCID": fmt.Sprint(i), "SLURMD_NODENAME": name, "SLURM_STEP_NODELIST": "n[1-3]", "SLURM_JOB_ID": evil, "SLURM_STEP_ID": evil}}
		var one bytes.Buffer
		if err := nodes.WriteReport(&one, nonce, mach, b); err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Split(strings.Trim(one.String(), "\n"), "\n") {
			m.Line(fmt.Appendf(nil, "%d: %s", i, l))
		}
	}
	set := m.Set(map[string]fact.NodeFault{}, "silent")
	if set.Reported != 3 || len(set.Odd) > 0 {
		t.Fatalf("%d reports, %+v", set.Reported, set.Odd)
	}
	for _, lang := range []string{"en", "zh"} {
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			a := &app{Streams: Streams{Out: &out, Err: &out, Getenv: func(string) string { return "" }}, lang: lang}
			a.out = outputFlags{format: format, maxEvidence: 50, color: "never", verbose: true}
			b := &fact.Bundle{Schema: fact.BundleSchema, Subject: fact.Subject{Kind: "allocation", Name: set.Expected}, Nodes: set}
			_ = a.judge(b)
			if s := out.String(); strings.ContainsAny(s, "\x1b\x07\x00\r\u009b\u202e\u2066\u200b") || !utf8.ValidString(s) || !strings.Contains(s, "n2") || !strings.Contains(s, "525") {
				t.Errorf("%s %s: %q", lang, format, s)
			}
		}
	}
}
