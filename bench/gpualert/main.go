// Command gpualert compares "ncclinic explain" with the labels of a checkout
// of the public GPU failure logs Parv-01/gpualert-eval (MIT licence) and lists
// every disagreement. None of its data is part of this repository.
//
//	go run ./bench/gpualert -data CHECKOUT -binary ./ncclinic
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modes maps the classes of the data set to causes that mean the same. Its
// classes name the kind of message; several are one cause here, because the
// way out is the same: read the traceback.
var modes = map[string][]string{
	"cuda_oom":        {"gpu-out-of-memory"},
	"nccl":            {"run-collective-hang", "run-ranks-diverged", "run-rank-slow", "rdzv-unreachable", "rdzv-too-few-ranks", "net-interface-wrong", "net-rdma-address", "run-process-suspended", "gpu-shared-by-ranks", "unknown"},
	"cuda_runtime":    {"gpu-kernel-fault", "gpu-index-out-of-range", "gpu-hardware-fault", "torch-gpu-arch-unsupported", "gpu-busy"},
	"ram_oom":         {"host-out-of-memory", "run-exception"},
	"oom_killer":      {"host-out-of-memory", "unknown"},
	"segfault":        {"run-native-crash"},
	"file_not_found":  {"run-exception"},
	"permission":      {"run-exception"},
	"missing_module":  {"run-exception", "torch-not-installed", "env-not-activated"},
	"div_zero":        {"run-exception"},
	"device_mismatch": {"run-exception", "torch-backend-mismatch"},
	"nan_loss":        {"run-exception"},
	"traceback":       {"run-exception"},
	"assertion":       {"run-exception", "gpu-kernel-fault"},
	"runtime_error":   {"run-exception"},
}

func main() {
	data := flag.String("data", "", "checkout of the data set")
	binary := flag.String("binary", "ncclinic", "ncclinic binary")
	flag.Parse()
	f, err := os.Open(filepath.Join(*data, "corpus", "labels.jsonl"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	defer f.Close()
	agree, n := map[string]int{}, map[string]int{}
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var l struct {
			ID, Mode string
			LogPath  string `json:"log_path"`
		}
		if json.Unmarshal(sc.Bytes(), &l) != nil || l.LogPath == "" {
			continue
		}
		n[l.Mode]++
		got := ask(*binary, filepath.Join(*data, filepath.FromSlash(l.LogPath)))
		ok := false
		for _, w := range modes[l.Mode] {
			ok = ok || got == w
		}
		if ok {
			agree[l.Mode]++
		} else {
			fmt.Printf("%-28s label %-16s ours %s\n", l.ID, l.Mode, got)
		}
	}
	all, good := 0, 0
	for m, k := range n {
		all, good = all+k, good+agree[m]
		fmt.Printf("%-16s %3d of %3d\n", m, agree[m], k)
	}
	fmt.Printf("%d of %d agree (%.1f %%)\n", good, all, 100*float64(good)/float64(max(all, 1)))
}

func ask(binary, path string) string {
	out, _ := exec.Command(binary, "explain", "--format", "json", path).Output()
	var rep struct {
		Verdict string
		Cause   *string
	}
	if json.Unmarshal(out, &rep) != nil {
		return "no report"
	}
	switch {
	case rep.Cause != nil:
		return *rep.Cause
	case strings.EqualFold(rep.Verdict, "unknown"):
		return "unknown"
	}
	return "none"
}
