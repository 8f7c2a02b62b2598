package demo

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	envfacts "github.com/ncclinic/ncclinic/internal/collect/env"
	"github.com/ncclinic/ncclinic/internal/collect/install"
	"github.com/ncclinic/ncclinic/internal/collect/node"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/elfx/elftest"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/recorded"
)

var update = flag.Bool("update", false, "write bundle.json")

// libraries are the parts of the record that no text file holds: stand-ins with
// the symbols and strings that the real files of torch 2.6.0+cpu are known by.
func libraries() map[string][]byte {
	const prefix = "home/zhang/miniconda3/envs/llm/"
	const torch = prefix + "lib/python3.11/site-packages/torch/"
	const usr = "usr/lib/x86_64-linux-gnu/"
	return map[string][]byte{
		prefix + "bin/python3.11":                    elftest.Lib{Interp: "/lib64/ld-linux-x86-64.so.2"}.Bytes(),
		torch + "_C.cpython-311-x86_64-linux-gnu.so": elftest.Lib{Needed: []string{"libtorch_python.so"}}.Bytes(),
		torch + "lib/libtorch_cpu.so":                elftest.Lib{Soname: "libtorch_cpu.so", Defined: []string{"_ZTIN4c10d5StoreE", "_ZTIN4c10d16ProcessGroupGlooE"}}.Bytes(),
		torch + "lib/libtorch.so":                    elftest.Lib{Soname: "libtorch.so", Needed: []string{"libtorch_cpu.so"}}.Bytes(),
		torch + "lib/libc10.so":                      elftest.Lib{Soname: "libc10.so"}.Bytes(),
		torch + "lib/libtorch_python.so":             elftest.Lib{Soname: "libtorch_python.so", Needed: []string{"libtorch.so", "libtorch_cpu.so", "libc10.so"}, Undefined: []string{"_ZTIN4c10d16ProcessGroupGlooE"}, Sections: []elftest.Section{{Name: ".rodata", Data: []byte("\x00_c10d_init\x00")}}}.Bytes(),
		usr + "libcuda.so.535.161.08":                elftest.Lib{Soname: "libcuda.so.1", Defined: []string{"cuInit"}}.Bytes(),
		usr + "libc.so.6":                            elftest.Lib{Soname: "libc.so.6", Sections: []elftest.Section{{Name: ".rodata", Data: []byte("\x00GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3.6) stable release version 2.35.\x00")}}}.Bytes(),
		"usr/lib64/ld-linux-x86-64.so.2":             elftest.Lib{Soname: "ld-linux-x86-64.so.2"}.Bytes(),
	}
}

func machine(t *testing.T) *source.Machine {
	t.Helper()
	raw, err := os.ReadFile("testdata/node.txtar")
	if err != nil {
		t.Fatal(err)
	}
	rec := fstest.MapFS{}
	for _, f := range txtar.Parse(raw).Files {
		rec[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	for p, b := range libraries() {
		rec["tree/"+p] = &fstest.MapFile{Data: b, Mode: 0o755}
	}
	m, err := recorded.Machine(rec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(t *testing.T) *fact.Bundle {
	t.Helper()
	m := machine(t)
	ctx := context.Background()
	b := &fact.Bundle{Schema: fact.BundleSchema, Taken: time.Date(2025, 3, 6, 9, 30, 0, 0, time.UTC)}
	envfacts.Collect(m, b)
	if err := install.Collect(ctx, m, install.Options{}, b); err != nil {
		t.Fatal(err)
	}
	if err := node.Collect(ctx, m, b); err != nil {
		t.Fatal(err)
	}
	if err := slurm.Context(ctx, m, b); err != nil {
		t.Fatal(err)
	}
	b.Subject = fact.Subject{Kind: "environment", Name: b.Host.Name.V}
	return b
}

func TestBundleIsWhatTheCollectorsSay(t *testing.T) {
	var buf bytes.Buffer
	if err := fact.WriteBundle(&buf, collect(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("bundle.json", buf.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(strings.Split(string(Bundle), "\n"), strings.Split(buf.String(), "\n")); d != "" {
		t.Errorf("bundle.json differs from what the collectors say of testdata/node.txtar; go test ./internal/demo -update writes it anew\n%s", d)
	}
}

func TestBundle(t *testing.T) {
	b, err := fact.ReadBundle(bytes.NewReader(Bundle))
	if err != nil {
		t.Fatal(err)
	}
	w := b.Winner()
	if w == nil || w.Version.V != "2.6.0+cpu" || !w.CUDA.IsAbsent() || w.NCCL.Or(true) || !w.Gloo.V {
		t.Errorf("torch %+v", w)
	}
	if b.Python.Exe.V == "" || b.Python.Conda.V != "/home/zhang/miniconda3/envs/llm" {
		t.Errorf("python %+v", b.Python)
	}
	if len(b.Node.GPUs.V) != 8 || b.Node.Driver.V.Version != "535.161.08" || b.Node.Fabric.V != "Completed" {
		t.Errorf("node %+v", b.Node)
	}
	if s := b.Slurm; s.Job.V != "48213" || s.Where != "step" || s.GPUsGranted.V != 8 || s.Nodes.V != 2 || s.Version.V != "23.11.4" {
		t.Errorf("slurm %+v", s)
	}
	for _, p := range b.Problems {
		t.Errorf("problem: %s: %s", p.What, p.Why)
	}
}
