package node

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/run"
	"github.com/ncclinic/ncclinic/internal/source"
	"github.com/ncclinic/ncclinic/internal/source/recorded"
)

// load returns a recorded machine; edit may change its archive first.
func load(t *testing.T, name string, edit func(*txtar.Archive)) *source.Machine {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(raw)
	if edit != nil {
		edit(ar)
	}
	fsys, err := txtar.FS(ar)
	if err != nil {
		t.Fatal(err)
	}
	m, err := recorded.Machine(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func collect(t *testing.T, m *source.Machine) *fact.Bundle {
	t.Helper()
	b := &fact.Bundle{}
	if err := Collect(context.Background(), m, b); err != nil {
		t.Fatal(err)
	}
	return b
}

func known[T any](t *testing.T, what string, v fact.Val[T], want T) {
	t.Helper()
	if !v.IsKnown() {
		t.Errorf("%s is %s (%s), want %v", what, v.State, v.Why, want)
		return
	}
	if d := cmp.Diff(want, v.V); d != "" {
		t.Errorf("%s: %s", what, d)
	}
	if v.At.IsZero() {
		t.Errorf("%s has no evidence", what)
	}
}

func state[T any](t *testing.T, what string, v fact.Val[T], want fact.State) {
	t.Helper()
	if v.State != want {
		t.Errorf("%s is %s (%v %s), want %s", what, v.State, v.V, v.Why, want)
	}
}

func TestH100(t *testing.T) {
	b := collect(t, load(t, "h100", nil))
	n := &b.Node
	known(t, "driver", n.Driver, fact.Driver{Version: "535.161.08"})
	known(t, "host", b.Host.Name, "gpu-h100-07")
	known(t, "os", b.Host.OS, "linux")
	known(t, "distro", b.Host.Distro, "Ubuntu 22.04.4 LTS")
	known(t, "arch", b.Host.Arch, "x86_64")
	state(t, "board", b.Host.Board, fact.Absent)
	known(t, "bound GPUs", n.GPUsBound, 8)
	gpus := n.GPUs.Or(nil)
	if len(gpus) != 8 {
		t.Fatalf("%d GPUs", len(gpus))
	}
	g := gpus[0]
	g.UUID = ""
	if d := cmp.Diff(fact.GPU{Name: "NVIDIA H100 80GB HBM3", Bus: "0000:1b:00.0", Cap: "9.0", CapFrom: "nvidia-smi", MemMiB: 81559, UsedMiB: 4, Mode: "Default", MIG: "Disabled", ECC: "0"}, g); d != "" {
		t.Error(d)
	}
	if n.SMI.V.CUDA != "12.2" || n.SMI.V.NVML != "535.161" || n.SMI.V.Millis != 1840 || n.SMI.V.Driver != "535.161.08" {
		t.Errorf("%+v", n.SMI.V)
	}
	known(t, "switches", n.NVSwitches, 4)
	known(t, "fabric", n.Fabric, "Completed")
	if p := n.PCIGPUs.V; len(p) != 8 || p[0] != (fact.PCIGPU{Bus: "0000:1b:00.0", Vendor: "nvidia", Device: "0x2330", Driver: "nvidia"}) {
		t.Errorf("%+v", p)
	}
	if len(n.DeviceFiles.V) != 12 {
		t.Errorf("%+v", n.DeviceFiles.V)
	}
	known(t, "memlock", n.Limits.Memlock, -1)
	known(t, "nofile", n.Limits.Nofile, 1024)
	known(t, "nofile hard", n.Limits.NofileHard, 131072)
	if m := n.Memory.V; m.Cgroup != 2040109465600 || !strings.HasSuffix(m.CgroupAt, "job_48213/memory.max") || m.Total != 2113517464<<10 {
		t.Errorf("%+v", m)
	}
	if len(n.RDMA.V) != 8 || len(n.Uverbs.V) != 8 {
		t.Fatalf("%d HCAs, %d uverbs", len(n.RDMA.V), len(n.Uverbs.V))
	}
	want := fact.HCA{Name: "mlx5_0", Driver: "mlx5_core", Ports: []fact.HCAPort{{Port: 1, Link: "InfiniBand", State: "ACTIVE", Phys: "LinkUp", Rate: "400 Gb/sec (4X NDR)",
		GIDs: []fact.GID{{GID: "fe80:0000:0000:0000:a088:c203:00a1:1000", Type: "IB/RoCE v1"}}}}}
	if d := cmp.Diff(want, n.RDMA.V[0]); d != "" {
		t.Error(d)
	}
	known(t, "peermem", n.Peermem, true)
	known(t, "plugins", n.Plugins, []string{"/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so"})
	state(t, "container", b.Container.Kind, fact.Absent)
	state(t, "imex", n.IMEX, fact.Absent)
	state(t, "mps", n.MPS, fact.Absent)
	if s, ok := b.NCCL("NCCL_SOCKET_IFNAME"); !ok || s.Value != "ib0" || s.Layer != LayerEnv {
		t.Errorf("%+v", s)
	}
	if s, ok := b.NCCL("NCCL_IB_HCA"); !ok || !strings.HasPrefix(s.Value, "=mlx5_0,") || s.At.Path != "/etc/nccl.conf" || s.At.Line != 2 {
		t.Errorf("%+v", s)
	}
	if len(b.Problems) > 0 {
		t.Errorf("problems: %+v", b.Problems)
	}
}

func TestV100OldDriver(t *testing.T) {
	b := collect(t, load(t, "v100", nil))
	n := &b.Node
	gpus := n.GPUs.Or(nil)
	if len(gpus) != 4 {
		t.Fatalf("%+v", n.SMI)
	}
	if g := gpus[1]; g.Cap != "7.0" || g.CapFrom != "name" || g.Mode != "Exclusive_Process" || g.MIG != "" || g.MemMiB != 16160 {
		t.Errorf("%+v", g)
	}
	if gpus[2].ECC != "3" || gpus[2].UsedMiB != 15012 {
		t.Errorf("%+v", gpus[2])
	}
	known(t, "memlock", n.Limits.Memlock, 65536)
	known(t, "shm", n.Shm, fact.FSUsage{Path: "/dev/shm", Type: "tmpfs", Total: 67108864, Free: 12288})
	if m := n.Memory.V; m.Cgroup != 68719476736 {
		t.Errorf("%+v", m)
	}
	state(t, "fabric", n.Fabric, fact.Absent)
	known(t, "peermem", n.Peermem, false)
	var bad []fact.DeviceFile
	for _, d := range n.DeviceFiles.V {
		if !d.OK {
			bad = append(bad, d)
		}
	}
	if d := cmp.Diff([]fact.DeviceFile{{Path: "/dev/nvidia3", Why: "operation not permitted"}}, bad); d != "" {
		t.Error(d)
	}
	if p := n.RDMA.V[1].Ports[0]; p.State != "DOWN" || p.Phys != "Polling" {
		t.Errorf("%+v", p)
	}
	kinds := map[string]string{}
	for _, i := range n.Ifaces.V {
		kinds[i.Name] = i.Kind
	}
	if d := cmp.Diff(map[string]string{"lo": "", "em1": "ethernet", "ib0": "infiniband"}, kinds); d != "" {
		t.Error(d)
	}
}

func TestRoCE(t *testing.T) {
	b := collect(t, load(t, "roce", nil))
	n := &b.Node
	known(t, "driver", n.Driver, fact.Driver{Version: "550.54.15", Open: true})
	known(t, "bound GPUs", n.GPUsBound, 2)
	if len(n.GPUs.V) != 1 || n.GPUs.V[0].MIG != "Enabled" {
		t.Errorf("%+v", n.GPUs)
	}
	state(t, "fabric", n.Fabric, fact.Failed)
	gids := n.RDMA.V[0].Ports[0].GIDs
	if len(gids) != 4 || gids[3] != (fact.GID{Index: 3, GID: "0000:0000:0000:0000:0000:ffff:c0a8:640b", Type: "RoCE v2", Ndev: "ens10f0np0"}) {
		t.Errorf("%+v", gids)
	}
	known(t, "container", b.Container.Kind, "enroot")
	known(t, "nv", b.Container.NV, true)
	type s struct {
		Name, Value, Layer string
		Wins               bool
		Line               int
	}
	var got []s
	for _, x := range b.NCCLConf {
		got = append(got, s{x.Name, x.Value, x.Layer, x.Wins, x.At.Line})
	}
	want := []s{
		{"NCCL_CONF_FILE", "/home/u/job.nccl", LayerEnv, true, 0},
		{"NCCL_IB_TC", "", LayerEnv, true, 0}, // an empty value is a value
		{"NCCL_IB_GID_INDEX", "3", LayerFile, true, 2},
		{"NCCL_IB_GID_INDEX", "0", LayerFile, false, 3},
		{"NCCL_DEBUG ", " INFO", LayerFile, true, 4},
		{"export NCCL_ALGO", "Ring", LayerFile, true, 5},
		{"NCCL_P2P_DISABLE", "1", LayerHome, false, 1},
		{"NCCL_IB_GID_INDEX", "1", LayerEtc, false, 1},
		{"NCCL_IB_TC", "106", LayerEtc, false, 2},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, i := range n.Ifaces.V {
		if i.Name == "bond0" && i.Kind != "ethernet" {
			t.Errorf("%+v", i)
		}
	}
}

func TestNoDriver(t *testing.T) {
	b := collect(t, load(t, "nodriver", nil))
	n := &b.Node
	state(t, "driver", n.Driver, fact.Absent)
	state(t, "gpus", n.GPUs, fact.Absent)
	state(t, "device files", n.DeviceFiles, fact.Absent)
	known(t, "PCI GPUs", n.PCIGPUs, []fact.PCIGPU{})
	if s := n.SMI.V; s.Code != 9 || !strings.HasPrefix(s.Error, "NVIDIA-SMI has failed because it couldn't communicate") {
		t.Errorf("%+v", n.SMI)
	}
	state(t, "rdma", n.RDMA, fact.Absent)
	state(t, "uverbs", n.Uverbs, fact.Absent)
	if n.Memory.V.Cgroup != 17179869184 {
		t.Errorf("%+v", n.Memory.V)
	}
}

func TestAMD(t *testing.T) {
	b := collect(t, load(t, "amd", nil))
	n := &b.Node
	state(t, "driver", n.Driver, fact.Absent)
	state(t, "smi", n.SMI, fact.NotLooked) // no runner
	known(t, "PCI GPUs", n.PCIGPUs, []fact.PCIGPU{
		{Bus: "0000:c1:00.0", Vendor: "amd", Device: "0x7408", Driver: "amdgpu"},
		{Bus: "0000:c6:00.0", Vendor: "amd", Device: "0x7408", Driver: "amdgpu"}})
	known(t, "device files", n.DeviceFiles, []fact.DeviceFile{{Path: "/dev/kfd", OK: true}, {Path: "/dev/dri/renderD128", OK: true}, {Path: "/dev/dri/renderD129", Why: "permission denied"}})
	known(t, "cxi", n.CXI, []string{"/sys/class/cxi/cxi0"})
	known(t, "container", b.Container.Kind, "singularity")
	known(t, "image", b.Container.Image, "/appl/rocm.sif")
	known(t, "nv", b.Container.NV, false)
	state(t, "shm", n.Shm, fact.Absent)
}

func TestJetson(t *testing.T) {
	b := collect(t, load(t, "jetson", nil))
	state(t, "driver", b.Node.Driver, fact.Failed)
	known(t, "board", b.Host.Board, "NVIDIA Jetson AGX Orin Developer Kit")
	known(t, "L4T", b.Host.L4T, "35.4.1")
	known(t, "glibc", b.Host.Glibc, "2.31")
	known(t, "container", b.Container.Kind, "docker")
	state(t, "gpus", b.Node.GPUs, fact.NotLooked)
	if len(b.Node.DeviceFiles.V) != 2 {
		t.Errorf("%+v", b.Node.DeviceFiles)
	}
}

// edited replaces files of an archive by name; a nil value removes one.
func edited(changes map[string]string) func(*txtar.Archive) {
	return func(ar *txtar.Archive) {
		var keep []txtar.File
		for _, f := range ar.Files {
			if s, ok := changes[f.Name]; ok {
				if s == "" {
					continue
				}
				f.Data = []byte(s)
			}
			keep = append(keep, f)
		}
		ar.Files = keep
	}
}

func TestBrokenTools(t *testing.T) {
	query := func(out string) func(*txtar.Archive) { return edited(map[string]string{"cmd/query": out}) }
	for _, tt := range []struct {
		name  string
		edit  func(*txtar.Archive)
		check func(t *testing.T, n *fact.Node)
	}{
		{"hangs", query("$ nvidia-smi --query*\n# hang\n"), func(t *testing.T, n *fact.Node) {
			if !n.SMI.V.Hung || len(n.GPUs.Or(nil)) != 8 || n.GPUs.At.Source != fact.SrcFile || n.GPUs.V[0].Cap != "9.0" {
				t.Errorf("%+v %+v", n.SMI, n.GPUs)
			}
			state(t, "fabric", n.Fabric, fact.NotLooked)
		}},
		{"prints nonsense", query("$ nvidia-smi --query*\n<html>\x00\x1b[31mno</html>\n"), func(t *testing.T, n *fact.Node) {
			state(t, "smi", n.SMI, fact.Failed)
			if len(n.GPUs.Or(nil)) != 8 || strings.ContainsAny(n.SMI.Why+n.SMI.At.Excerpt, "\x00\x1b") {
				t.Errorf("%+v", n.SMI)
			}
		}},
		{"prints nothing", query("$ nvidia-smi --query*\n"), func(t *testing.T, n *fact.Node) {
			state(t, "smi", n.SMI, fact.Failed)
			if len(n.GPUs.Or(nil)) != 8 {
				t.Errorf("%+v", n.GPUs)
			}
		}},
		{"half a table", query("$ nvidia-smi --query*\n0, NVIDIA H100\n"), func(t *testing.T, n *fact.Node) {
			state(t, "smi", n.SMI, fact.Failed)
		}},
		{"rejects every field", query("$ nvidia-smi --query*\n# exit 2\nField \"index\" is not a valid field to query.\n"), func(t *testing.T, n *fact.Node) {
			if n.SMI.V.Code != 2 || !strings.Contains(n.SMI.V.Error, "index") {
				t.Errorf("%+v", n.SMI)
			}
		}},
		{"rejects fields for ever", query("$ nvidia-smi --query*\n# exit 2\nField \"compute_cap\" is not a valid field to query.\n"), func(t *testing.T, n *fact.Node) {
			if n.SMI.V.Code != 2 {
				t.Errorf("%+v", n.SMI)
			}
		}},
		{"library mismatch", query("$ nvidia-smi --query*\n# exit 18\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n"), func(t *testing.T, n *fact.Node) {
			if n.SMI.V.Error != "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161" || n.SMI.At.Excerpt != "Failed to initialize NVML: Driver/library version mismatch" || len(n.GPUs.Or(nil)) != 8 {
				t.Errorf("%+v", n.SMI)
			}
		}},
		{"no devices", query("$ nvidia-smi --query*\n# exit 6\nNo devices were found\n"), func(t *testing.T, n *fact.Node) {
			known(t, "gpus", n.GPUs, []fact.GPU{})
			known(t, "bound GPUs", n.GPUsBound, 8)
		}},
		{"fabric in progress", edited(map[string]string{"cmd/fabric": "$ nvidia-smi --query-gpu=index,fabric*\n0, Completed, Success\n1, In Progress, N/A\n"}), func(t *testing.T, n *fact.Node) {
			known(t, "fabric", n.Fabric, "In Progress")
		}},
		{"fabric failed", edited(map[string]string{"cmd/fabric": "$ nvidia-smi --query-gpu=index,fabric*\n0, Completed, System Not Ready\n"}), func(t *testing.T, n *fact.Node) {
			known(t, "fabric", n.Fabric, "Completed: System Not Ready")
		}},
		{"driver file without version", edited(map[string]string{"tree/proc/driver/nvidia/version": "??\n"}), func(t *testing.T, n *fact.Node) {
			// nvidia-smi stands in
			known(t, "driver", n.Driver, fact.Driver{Version: "535.161.08"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, &collect(t, load(t, "h100", tt.edit)).Node) })
	}
}

func TestLostGPU(t *testing.T) {
	gpus, _, trouble, err := parseSMI("0, NVIDIA A100, 00000000:07:00.0, GPU-1, [GPU is lost]\n", []string{"index", "name", "pci.bus_id", "uuid", "memory.used"})
	if err != nil || len(gpus) != 1 || trouble != "memory.used: [GPU is lost]" {
		t.Errorf("%+v %q %v", gpus, trouble, err)
	}
}

func TestCapTable(t *testing.T) {
	for name, want := range map[string]string{
		"Tesla V100-SXM2-16GB": "7.0", "NVIDIA A100-SXM4-80GB": "8.0", "NVIDIA A100 80GB PCIe": "8.0", "NVIDIA H200": "9.0",
		"NVIDIA RTX A6000": "8.6", "NVIDIA RTX 6000 Ada Generation": "8.9", "Quadro RTX 6000": "7.5", "NVIDIA L40S": "8.9",
		"NVIDIA GeForce RTX 3090": "8.6", "NVIDIA GeForce RTX 2080 Ti": "7.5", "Tesla P100-PCIE-16GB": "6.0", "Tesla T4": "7.5",
		"NVIDIA GB200": "10.0", "NVIDIA B200": "10.0", "NVIDIA GH200 480GB": "9.0", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "12.0",
		"NVIDIA GeForce RTX 5090": "12.0", "NVIDIA GB10": "12.1", "Tesla K80": "3.7", "NVIDIA A10G": "8.6", "GeForce GTX 1080 Ti": "6.1",
		"NVIDIA X999": "", "": "",
	} {
		g := fact.GPU{Name: name}
		capFromName(&g)
		if g.Cap != want {
			t.Errorf("%s: %q, want %q", name, g.Cap, want)
		}
	}
}

// TestHere runs on the machine at hand, whatever it is.
func TestHere(t *testing.T) {
	m, err := run.NewMachine()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	b := collect(t, m)
	if d := time.Since(start); d > SMILimit*3 {
		t.Errorf("took %s", d)
	}
	for what, v := range map[string]fact.Val[string]{"host": b.Host.Name, "kernel": b.Host.Kernel, "arch": b.Host.Arch, "glibc": b.Host.Glibc} {
		if !v.IsKnown() {
			t.Errorf("%s is %s: %s", what, v.State, v.Why)
		}
	}
	if !b.Node.Limits.Memlock.IsKnown() || !b.Node.Memory.IsKnown() || !b.Node.Ifaces.IsKnown() || !b.Node.Driver.Looked() {
		t.Errorf("%+v", b.Node)
	}
	t.Logf("glibc %s, %s in %s, problems %v", b.Host.Glibc.V, b.Host.Glibc.At.Excerpt, time.Since(start), b.Problems)
}

// An image has no /proc: nothing may be said to be missing.
func TestFilesOnly(t *testing.T) {
	m := load(t, "h100", func(ar *txtar.Archive) {
		var keep []txtar.File
		for _, f := range ar.Files {
			if strings.HasPrefix(f.Name, "tree/etc/") {
				keep = append(keep, f)
			}
		}
		ar.Files = keep
	})
	b := collect(t, m)
	known(t, "os", b.Host.OS, "linux")
	if b.Node.Driver.Looked() || b.Node.GPUs.Looked() || b.Node.DeviceFiles.Looked() || b.Node.RDMA.Looked() || b.Container.Kind.Looked() || b.Node.MPS.Looked() {
		t.Errorf("%+v", b.Node)
	}
	if _, ok := b.NCCL("NCCL_IB_HCA"); !ok {
		t.Errorf("%+v", b.NCCLConf)
	}
}

// deadFS never returns from a call for what lies under /dead.
type deadFS struct{ fs.FS }

func (d deadFS) Open(name string) (fs.File, error) {
	if strings.HasPrefix(name, "dead") {
		select {}
	}
	return d.FS.Open(name)
}

func TestDeadFileServer(t *testing.T) {
	m := load(t, "h100", nil)
	m.FS = deadFS{m.FS}
	m.Env["LD_LIBRARY_PATH"] = "/dead/lib"
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	ctx2, cancel2 := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel2()
	b := &fact.Bundle{}
	start := time.Now()
	_ = Collect(ctx2, m, b)
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %s", d)
	}
	state(t, "plugins", b.Node.Plugins, fact.Failed)
	if _, ok := b.NCCL("NCCL_DEBUG"); !ok || len(b.Problems) != 1 || len(b.Node.RDMA.V) != 8 {
		t.Errorf("%+v %+v", b.NCCLConf, b.Problems)
	}
	state(t, "driver", b.Node.Driver, fact.Known)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b := &fact.Bundle{}
	if err := Collect(ctx, load(t, "h100", nil), b); err == nil {
		t.Error("no error")
	}
	if !b.Node.Limits.Memlock.IsKnown() {
		t.Error("what was read is lost")
	}
}

func FuzzSMI(f *testing.F) {
	f.Add("0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0, GPU-1, 535.1, 81559, 4, Default, 9.0, Disabled, 0\n")
	f.Add("1,[Unknown Error],,,,,,,,,\n")
	f.Fuzz(func(t *testing.T, s string) {
		gpus, _, _, err := parseSMI(s, smiFields)
		if err == nil && len(gpus) > maxGPUs {
			t.Fatal("too many")
		}
		parseFabric(s, fact.Evidence{})
		badField(s)
	})
}

func FuzzProc(f *testing.F) {
	f.Add("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build")
	f.Add("Model: \t\t x\nGPU UUID: \t GPU-?\nBus Location: \t 0000:1b:00.0")
	f.Add("Max locked memory         65536                65536                bytes     ")
	f.Add("MemTotal:       99 kB\nMemAvailable: 999999999999999999999 kB")
	f.Add("26 1 8:1 / / rw - overlay overlay rw,lowerdir=/run/enroot/x")
	f.Add("\x00GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n")
	f.Fuzz(func(t *testing.T, s string) {
		parseNVRM(s)
		parseInformation(s)
		parseLimits(s)
		parseMeminfo(s)
		enrootRoot(parseMountinfo(s))
		findBanner([]byte(s))
		busID(s)
	})
}

func FuzzConf(f *testing.F) {
	f.Add("#c\nNCCL_DEBUG=INFO\r\n=\nNCCL_X")
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range parseConf(s) {
			if len(x.Name) > 1100 || len(x.Value) > 1100 || strings.ContainsAny(x.Name+x.Value, "\n\x00") {
				t.Fatalf("%+v", x)
			}
		}
	})
}
