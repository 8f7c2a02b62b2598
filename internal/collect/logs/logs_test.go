package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

var testSigs = []Signature{
	{Rule: "log-oom", Sig: "S206", Role: "cause", Literals: []string{"CUDA out of memory. Tried to allocate "}, Regex: []*lazyre.Regexp{lazyre.New(`allocate (?P<size>\S+ \w+)`)}},
	{Rule: "log-killed", Sig: "S254", Role: "either", Literals: []string{"Killed"}},
	{Rule: "log-nccl", Sig: "S001", Role: "cause", Literals: []string{"Distributed package doesn't have NCCL built in"}},
	{Rule: "log-reset", Sig: "S070", Role: "consequence", Literals: []string{"Connection reset by peer"}},
}

func read(t testing.TB, o Options, texts ...string) *fact.Logs {
	t.Helper()
	var ins []Input
	for i, s := range texts {
		ins = append(ins, Input{Path: fmt.Sprintf("f%d.out", i), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }})
	}
	o.Signatures = testSigs
	l, err := Collect(context.Background(), ins, o)
	if err != nil && l == nil {
		t.Fatal(err)
	}
	return l
}

func TestHead(t *testing.T) {
	for _, c := range []struct {
		line              string
		rank, local, task int
		node              string
		msg               string
		time              string
	}{
		{"[rank3]:[E731 03:22:46.379096756 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog", 3, -1, -1, "", "Watchdog", "07-31 03:22:46"},
		{"[1,3]<stderr>:Traceback (most recent call last):", 3, -1, -1, "", "Traceback (most recent call last):", ""},
		{"[default2]:hello", -1, 2, -1, "", "hello", ""},
		{"node07: hello there", -1, -1, -1, "node07", "hello there", ""},
		{"dl-b: [rank3]: x", 3, -1, -1, "dl-b", "x", ""},
		{"[dl-b] [rank3]: x", 3, -1, -1, "dl-b", "x", ""},
		{"3: [rank3]: x", 3, -1, 3, "", "x", ""},
		{"E1119 14:02:11.691000 140389274216256 torch/distributed/elastic/api.py:826] failed", -1, -1, -1, "", "failed", "11-19 14:02:11"},
		{"[2024-03-02 00:11:07,653] torch.distributed.run: [WARNING] x", -1, -1, -1, "", "x", "03-02 00:11:07"},
		{"n1:100:200 [5] NCCL INFO x", -1, 5, -1, "n1", "NCCL INFO x", ""},
		{"[2025-08-06 14:20:29] a03:21000:21132 [0] transport/net_ib.cc:2358 NCCL WARN x", -1, 0, -1, "a03", "transport/net_ib.cc:2358 NCCL WARN x", "08-06 14:20:29"},
		{"[Wed Jul 30 19:02:11 2025] NVRM: x", -1, -1, -1, "", "NVRM: x", "07-30 19:02:11"},
		{"[2026-02-20T07:50:33.871] error: x", -1, -1, -1, "", "error: x", "02-20 07:50:33"},
		{"rank 4: x", 4, -1, -1, "", "x", ""},
		{"RuntimeError: x", -1, -1, -1, "", "RuntimeError: x", ""},
		{"epoch1: x", -1, -1, -1, "", "epoch1: x", ""},
		{"step 3: x", -1, -1, -1, "", "step 3: x", ""},
		{"vitg-2n.node0 [stderr] [rank1]:[E ProcessGroupNCCL.cpp:563] y", 1, -1, -1, "vitg-2n.node0", "y", ""},
		{"WARNING:torch.distributed.run:x", -1, -1, -1, "", "x", ""},
		{"submitit WARNING (2022-10-06 21:36:11,310) - Caught", -1, -1, -1, "", "Caught", "10-06 21:36:11"},
	} {
		r := newReader(newEngine(nil), Options{}, &fact.Logs{})
		r.begin(Input{Path: "x"})
		h, msg := r.parseHead(c.line)
		pl := r.place(h, 1)
		when := ""
		if pl.TK == fact.TimeFull || pl.TK == fact.TimeYearless {
			when = time.UnixMilli(pl.Time).UTC().Format("01-02 15:04:05")
		}
		if pl.Rank != c.rank || pl.Local != c.local || pl.Task != c.task || pl.Node != c.node || msg != c.msg || when != c.time {
			t.Errorf("%q: rank %d local %d task %d node %q time %q msg %q", c.line, pl.Rank, pl.Local, pl.Task, pl.Node, when, msg)
		}
	}
}

func TestFinderAgainstIndex(t *testing.T) {
	lits := []string{"Connection reset by peer", "reset by peer now", "Killed at dawn", "NCCL WARN", "CUDA error", "RuntimeError: CUDA error", "AAAAAAAA"}
	f := newFinder(lits)
	text := strings.Repeat("x AAAAAAAAAA Connection reset by peer now RuntimeError: CUDA error and NCCL WAR NCCL WARN Killed at dawn", 40)
	got := make([]int, len(lits))
	f.each([]byte(text), func(l, p int) bool {
		if text[p:p+len(lits[l])] != lits[l] {
			t.Fatalf("%q reported at %d", lits[l], p)
		}
		got[l]++
		return true
	})
	for i, l := range lits {
		want := 0
		for p := 0; p+len(l) <= len(text); p++ {
			if text[p:p+len(l)] == l {
				want++
			}
		}
		if got[i] != want {
			t.Errorf("%q: %d of %d found", l, got[i], want)
		}
	}
}

// TestWindowsLikeWhole: a large file, of which only parts are taken apart, and
// the same lines in a small one give the same events on the right lines.
func TestWindowsLikeWhole(t *testing.T) {
	fill := strings.Repeat("step 1 loss 2.0 lr 1e-4 everything is fine here and nothing to see at all\n", 120000)
	bad := "[rank5]: Traceback (most recent call last):\n[rank5]:   File \"/u/t.py\", line 4, in <module>\n[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
	l := read(t, Options{}, fill+bad+fill)
	if len(l.Events) != 1 || l.Events[0].Line != 120003 || l.Events[0].Rank != 5 || l.Events[0].Args["size"] != "2.00 GiB" {
		t.Fatalf("%+v", l.Events)
	}
	if len(l.Exceptions) != 1 || l.Exceptions[0].Start != 120001 || len(l.Exceptions[0].Frames) != 1 {
		t.Fatalf("%+v", l.Exceptions)
	}
	if got := l.Files[0].Lines; got != 240003 {
		t.Errorf("%d lines", got)
	}
}

func TestOneEndlessLine(t *testing.T) {
	l := read(t, Options{}, strings.Repeat("x", 6<<20)+" RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB "+strings.Repeat("y", 6<<20))
	if len(l.Events) != 1 || l.Events[0].Line != 1 {
		t.Fatalf("%+v", l.Events)
	}
	if len(l.Events[0].Text) > 500 {
		t.Error("the excerpt is as long as the line")
	}
}

func TestLimit(t *testing.T) {
	endless := Input{Path: "yes", Limit: 1 << 20, Open: func() (io.ReadCloser, error) { return io.NopCloser(repeat("y\n")), nil }}
	zero := Input{Path: "zero", Open: func() (io.ReadCloser, error) { return io.NopCloser(repeat("\x00")), nil }}
	l, err := Collect(context.Background(), []Input{endless, zero}, Options{Signatures: testSigs, Limit: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if !l.Files[0].Cut || l.Files[1].Kind != fact.KindBinary || len(l.Problems) != 2 {
		t.Errorf("%+v %+v", l.Files, l.Problems)
	}
}

type repeat string

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r[i%len(r)]
	}
	return len(p) / len(r) * len(r), nil
}

func TestBrokenStream(t *testing.T) {
	in := Input{Path: "half.log", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("RuntimeError: CUDA out of memory. Tried to allocate 1 GiB\n"), failing{})), nil
	}}
	l, err := Collect(context.Background(), []Input{in}, Options{Signatures: testSigs})
	if err != nil || len(l.Events) != 1 || len(l.Problems) != 1 {
		t.Errorf("%v %+v %+v", err, l.Events, l.Problems)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestMaskEverywhere(t *testing.T) {
	mask := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	l := read(t, Options{Mask: mask}, "$ export TOKEN=hunter2\nHOME=/hunter2\nTraceback (most recent call last):\n  File \"t.py\", line 1, in f\n    go(\"hunter2\")\nValueError: hunter2 CUDA out of memory. Tried to allocate 1 hunter2\n")
	if s := fmt.Sprintf("%+v %+v %+v %+v", l.Events, l.Exceptions, l.Commands, l.Listing); strings.Contains(s, "hunter2") {
		t.Error(s)
	}
}

func FuzzCollect(f *testing.F) {
	f.Add([]byte("[rank3]: Traceback (most recent call last):\n  File \"a\", line 1, in b\n    x\nRuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n"))
	f.Add([]byte("\x1f\x8b\x08\x00junk"))
	f.Add([]byte("\xff\xfeT\x00r\x00"))
	f.Add([]byte("3: n1:1:2 [0] NCCL INFO comm 0x1 rank 3 nranks 4 cudaDev 0 - Init START\r\x1b[31mred\x1b]0;x\a\n"))
	f.Add([]byte("| NVIDIA-SMI 550.54.15  Driver Version: 550.54.15  CUDA Version: 12.4 |\n$ pip list\ntorch 2.4.0+cpu\n"))
	f.Add([]byte("#!/bin/bash\n#SBATCH -N 2\nsrun python t.py\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, _ := Collect(context.Background(), []Input{{Path: "x.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}}, Options{Signatures: testSigs, Limit: 1 << 20})
		for _, p := range l.Problems {
			if strings.Contains(p.Why, "reader failed") {
				t.Fatal(p.Why)
			}
		}
		for _, e := range l.Events {
			if e.Line < 1 || strings.ContainsAny(e.Text, "\x1b\r\x00") {
				t.Fatalf("%+v", e)
			}
		}
	})
}

func BenchmarkScan(b *testing.B) {
	text := []byte(strings.Repeat(" [2025-07-30 18:12:11] iteration   1234/  500000 | elapsed time per iteration (ms): 4303.7 | lm loss: 3.05E+00 | grad norm: 0.449 |\n", 1<<13))
	e := newEngine(testSigs)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		e.wake.each(text, func(int, int) bool { return true })
	}
}
