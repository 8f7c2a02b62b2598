package fact

import (
	"bytes"
	"strings"
	"testing"

	"time"
)

func TestBundleRoundTrip(t *testing.T) {
	rank := 3
	b := Bundle{Schema: BundleSchema, Taken: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Torch: []Torch{{Dir: "/x/torch", Entry: -1, Version: Of("2.6.0+cu124", FileLine("/x/torch/version.py", 1, "v")),
			CUDA: None[string](File("/x/torch/version.py")), NCCL: Fail[bool]("truncated", File("/x")), HIP: Val[string]{}}},
		Node: Node{Driver: Of(Driver{Version: "535.161.08"}, Evidence{Rank: &rank})}}
	var one, two bytes.Buffer
	if err := WriteBundle(&one, &b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadBundle(bytes.NewReader(one.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteBundle(&two, got); err != nil {
		t.Fatal(err)
	}
	if one.String() != two.String() {
		t.Errorf("changed by a round trip:\n%s\n%s", one.String(), two.String())
	}
	w := got.Winner()
	if !w.Version.IsKnown() || !w.CUDA.IsAbsent() || w.NCCL.State != Failed || w.NCCL.Why != "truncated" || w.HIP.Looked() {
		t.Errorf("states are lost: %+v", w)
	}
	if w.Accel() != AccelCPU {
		t.Errorf("Accel = %q", w.Accel())
	}
	if strings.Contains(one.String(), `"hip"`) {
		t.Error("a value that nobody looked at is written")
	}
}

func TestReadBundleRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":         {"", "not a facts bundle"},
		"text":          {"hello", "not a facts bundle"},
		"list":          {"[1]", "not a facts bundle"},
		"no schema":     {"{}", "not a facts bundle"},
		"report":        {`{"schema":"ncclinic.report/v1"}`, "not a facts bundle"},
		"newer":         {`{"schema":"ncclinic.facts/v9"}`, `"ncclinic.facts/v9"`},
		"cut":           {`{"schema":"ncclinic.facts/v1","torch":[`, "broken JSON"},
		"typo":          {`{"schema":"ncclinic.facts/v1","torsch":[]}`, "torsch"},
		"typo inside":   {`{"schema":"ncclinic.facts/v1","torch":[{"dir":"/x","version":{"vv":"1"}}]}`, "vv"},
		"bad state":     {`{"schema":"ncclinic.facts/v1","torch":[{"dir":"/x","version":{"state":"gone"}}]}`, "gone"},
		"no value":      {`{"schema":"ncclinic.facts/v1","torch":[{"dir":"/x","version":{}}]}`, `needs "v"`},
		"bad entry":     {`{"schema":"ncclinic.facts/v1","python":{"path":[{"dir":"/x","kind":"stdlib","exists":true}]},"torch":[{"dir":"/x","entry":7}]}`, "entry is 7"},
		"wrong type":    {`{"schema":"ncclinic.facts/v1","torch":[{"dir":7}]}`, "torch"},
		"schema number": {`{"schema":7}`, "not a facts bundle"},
	} {
		if _, err := ReadBundle(strings.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that has %q", name, err, c.want)
		}
	}
}

func FuzzReadBundle(f *testing.F) {
	f.Add([]byte(`{"schema":"ncclinic.facts/v1","torch":[{"dir":"/x/torch","entry":-1,"version":{"v":"2.6.0"},"cuda":{"state":"absent"}}]}`))
	f.Add([]byte(`{"schema":"ncclinic.facts/v1","node":{"gpus":{"v":[{"index":0,"cap":"8.0"}]}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := ReadBundle(bytes.NewReader(raw))
		if err != nil {
			return
		}
		var w bytes.Buffer
		if err := WriteBundle(&w, b); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBundle(&w); err != nil {
			t.Fatalf("a bundle that was read cannot be read again: %v", err)
		}
	})
}
