package ruletest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ncclinic/ncclinic/internal/collect/env"
	"github.com/ncclinic/ncclinic/internal/collect/node"
	"github.com/ncclinic/ncclinic/internal/collect/slurm"
	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/source/recorded"
	"github.com/ncclinic/ncclinic/rules"
)

// machine is a GPU node on which training runs. Its files are what the real
// collectors read; see internal/collect/node/testdata for where their forms
// come from.
type machine struct {
	arch, driver string
	kmod         string // words of the kernel module before its version
	gpu, cap     string
	gpus, mem    int
	device       string // PCI id
	fabric       bool
	mig          string
	hcas         []hca
	ifaces       []fact.Iface
	shm          int64 // GiB
	memlock      string
	env          string // on top of the job's
	job          string // lines of SLURM_…; "" outside of a job
	files        map[string]string
	torch        fact.Torch
	nccl         string // version of libnccl
	ncclPath     string
	conda        string
}

// hca is an RDMA device with one port.
type hca struct{ name, driver, link, state, rate, gids string }

func wheel(version, cuda string, archs ...string) fact.Torch {
	const dir = "/home/u/venv/lib/python3.11/site-packages/torch"
	t := fact.Torch{Dir: dir, Entry: 1, Kind: fact.PathSite,
		Version: fact.Of(version, fact.File(dir+"/version.py")), HIP: fact.None[string](fact.Evidence{}), XPU: fact.None[string](fact.Evidence{}),
		CUDA:        fact.Of(cuda, fact.File(dir+"/version.py")),
		Dist:        fact.Of(fact.Dist{Name: "torch", Version: version, Entry: 1, Dir: "/home/u/venv/lib/python3.11/site-packages/torch-" + version + ".dist-info", Installer: "pip"}, fact.Evidence{}),
		Origin:      fact.Of(fact.Origin{Kind: fact.OriginWheel, Package: "torch", Version: version}, fact.Evidence{}),
		Distributed: fact.Of(true, fact.Evidence{}), NCCL: fact.Of(true, fact.Evidence{}), Gloo: fact.Of(true, fact.Evidence{}),
		MPI: fact.Of(false, fact.Evidence{}), XCCL: fact.Of(false, fact.Evidence{}), NCCLStatic: fact.Of(false, fact.Evidence{}),
		Archs: fact.Of(archs, fact.Evidence{}), PyTag: fact.Of("cpython-311", fact.Evidence{}), Machine: fact.Of("x86_64", fact.Evidence{}),
	}
	return t
}

// step are the variables of a step with one task for each GPU, as srun sets them.
func step(gpus, nodes int) string {
	var ids []string
	for i := range gpus {
		ids = append(ids, fmt.Sprint(i))
	}
	list := strings.Join(ids, ",")
	return strings.NewReplacer("@G", fmt.Sprint(gpus), "@N", fmt.Sprint(nodes), "@T", fmt.Sprint(gpus*nodes), "@L", list).Replace(`SLURM_JOB_ID=48213
SLURM_JOBID=48213
SLURM_STEP_ID=0
SLURM_STEPID=0
SLURMD_NODENAME=gpu-7
SLURM_JOB_NODELIST=gpu-[7-14]
SLURM_JOB_NUM_NODES=@N
SLURM_NNODES=@N
SLURM_STEP_NUM_NODES=@N
SLURM_NTASKS=@T
SLURM_STEP_NUM_TASKS=@T
SLURM_NTASKS_PER_NODE=@G
SLURM_STEP_TASKS_PER_NODE=@G(x@N)
SLURM_TASKS_PER_NODE=@G(x@N)
SLURM_PROCID=0
SLURM_LOCALID=0
SLURM_NODEID=0
SLURM_CPUS_PER_TASK=12
SLURM_GPUS_ON_NODE=@G
SLURM_JOB_GPUS=@L
SLURM_STEP_GPUS=@L
SLURM_JOB_PARTITION=gpu
SLURM_LAUNCH_NODE_IPADDR=10.20.4.7
MASTER_ADDR=gpu-7
MASTER_PORT=29513
CUDA_VISIBLE_DEVICES=@L
`)
}

func (m machine) bundle(t *testing.T) *fact.Bundle {
	t.Helper()
	f := fstest.MapFS{}
	put := func(name, text string) { f[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	put("tree/proc/version", "Linux version 5.15.0\n")
	put("tree/proc/sys/kernel/hostname", "gpu-7\n")
	put("tree/etc/os-release", "PRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\n")
	put("tree/etc/hosts", "127.0.0.1 localhost\n10.20.4.7 gpu-7\n")
	put("tree/proc/meminfo", "MemTotal:       1056758732 kB\nMemFree:        1027658606 kB\nMemAvailable:   1027659106 kB\n")
	put("tree/proc/self/mountinfo", "30 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n31 30 0:26 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw\n")
	if m.job != "" {
		put("tree/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_48213/step_0/user/task_0\n")
	} else {
		put("tree/proc/self/cgroup", "0::/user.slice\n")
	}
	lock := m.memlock
	if lock == "" {
		lock = "unlimited"
	}
	put("tree/proc/self/limits", fmt.Sprintf("%-26s%-21s%-21s%-10s\n%-26s%-21s%-21s%-10s\n%-26s%-21s%-21s%-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units",
		"Max open files", "65536", "131072", "files", "Max locked memory", lock, lock, "bytes"))
	vendor := "0x10de"
	if m.driver != "" {
		put("tree/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX "+m.kmod+"  "+m.driver+"  Thu Jan 01 00:00:00 UTC 2026\n")
		put("tree/sys/module/nvidia/version", m.driver+"\n")
		for _, d := range []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"} {
			put("tree/dev/"+d, "")
		}
	} else {
		vendor = "0x1002"
	}
	var links, smi, fabric strings.Builder
	for i := range m.gpus {
		bus := fmt.Sprintf("0000:%02x:00.0", 0x10+i*8)
		pci := "tree/sys/bus/pci/devices/" + bus
		put(pci+"/class", "0x030200\n")
		put(pci+"/vendor", vendor+"\n")
		put(pci+"/device", m.device+"\n")
		if m.driver == "" {
			fmt.Fprintf(&links, "/sys/bus/pci/devices/%s/driver -> ../../../../bus/pci/drivers/amdgpu\n", bus)
			put(fmt.Sprintf("tree/dev/dri/renderD%d", 128+i), "")
			continue
		}
		fmt.Fprintf(&links, "/sys/bus/pci/devices/%s/driver -> ../../../../bus/pci/drivers/nvidia\n", bus)
		uuid := fmt.Sprintf("GPU-c72f3eda-9076-d157-3309-0136285900%02d", i)
		put("tree/proc/driver/nvidia/gpus/"+bus+"/information", "Model: \t\t "+m.gpu+"\nGPU UUID: \t "+uuid+"\nBus Location: \t "+bus+"\n")
		put(fmt.Sprintf("tree/dev/nvidia%d", i), "")
		mig := m.mig
		if mig == "" {
			mig = "Disabled"
		}
		fmt.Fprintf(&smi, "%d, %s, 0000%s, %s, %s, %d, 4, Default, %s, %s, 0\n", i, m.gpu, strings.ToUpper(bus), uuid, m.driver, m.mem, m.cap, mig)
		state := "N/A, N/A"
		if m.fabric {
			state = "Completed, Success"
		}
		fmt.Fprintf(&fabric, "%d, %s\n", i, state)
	}
	if m.driver != "" {
		put("cmd/query", "$ nvidia-smi --query-gpu=index,name,pci.bus_id,uuid,driver_version,memory.total,memory.used,compute_mode,compute_cap,mig.mode.current,ecc.errors.uncorrected.volatile.total --format=csv,noheader,nounits\n"+smi.String())
		put("cmd/fabric", "$ nvidia-smi --query-gpu=index,fabric.state,fabric.status --format=csv,noheader,nounits\n"+fabric.String())
		put("cmd/version", "$ nvidia-smi --version\nNVIDIA-SMI version  : "+m.driver+"\nDRIVER version      : "+m.driver+"\n")
	} else {
		put("tree/dev/kfd", "")
		put("tree/sys/module/amdgpu/initstate", "live\n")
	}
	put("cmd/scontrol", "$ scontrol --version\nslurm 23.11.7\n")
	for i, h := range m.hcas {
		p := "tree/sys/class/infiniband/" + h.name + "/ports/1"
		put(p+"/link_layer", h.link+"\n")
		put(p+"/state", h.state+"\n")
		put(p+"/phys_state", "5: LinkUp\n")
		put(p+"/rate", h.rate+"\n")
		for j, g := range strings.Fields(h.gids) {
			gid, typ, _ := strings.Cut(g, "|")
			put(fmt.Sprintf("%s/gids/%d", p, j), gid+"\n")
			put(fmt.Sprintf("%s/gid_attrs/types/%d", p, j), strings.ReplaceAll(typ, "_", " ")+"\n")
		}
		put(fmt.Sprintf("tree/dev/infiniband/uverbs%d", i), "")
		fmt.Fprintf(&links, "/sys/class/infiniband/%s/device/driver -> ../../../../bus/pci/drivers/%s\n", h.name, h.driver)
	}
	for name, text := range m.files {
		put("tree"+name, text)
	}
	put("links", links.String())
	put("env", "HOME=/home/u\nUSER=u\nPATH=/home/u/venv/bin:/usr/bin:/bin\nVIRTUAL_ENV=/home/u/venv\n"+m.job+m.env)
	ifaces := append([]fact.Iface{{Name: "lo", Up: true, Loop: true, Addrs: []string{"127.0.0.1/8", "::1/128"}, MTU: 65536}}, m.ifaces...)
	for _, i := range ifaces {
		kind := "1"
		if strings.HasPrefix(i.Name, "ib") {
			kind = "32"
		}
		if i.Loop {
			kind = "772"
		}
		put("tree/sys/class/net/"+i.Name+"/type", kind+"\n")
		if !i.Loop && i.Name != "docker0" {
			put("tree/sys/class/net/"+i.Name+"/device/vendor", "0x15b3\n")
		}
	}
	shm := m.shm << 30
	raw, err := json.Marshal(map[string]any{"uid": 1000, "release": "5.15.0-105-generic", "arch": m.arch, "cpus": 96,
		"statfs": map[string]fact.FSUsage{"/dev/shm": {Path: "/dev/shm", Type: "tmpfs", Total: shm, Free: shm}}, "interfaces": ifaces})
	if err != nil {
		t.Fatal(err)
	}
	put("os.json", string(raw))
	rec, err := recorded.Machine(f)
	if err != nil {
		t.Fatal(err)
	}
	b := &fact.Bundle{Schema: fact.BundleSchema, Subject: fact.Subject{Kind: "environment"}}
	envfacts.Collect(rec, b)
	if err := node.Collect(context.Background(), rec, b); err != nil {
		t.Fatal(err)
	}
	if err := slurm.Context(context.Background(), rec, b); err != nil {
		t.Fatal(err)
	}
	m.install(b)
	return b
}

// install fills in what the collector of installations would have found.
func (m machine) install(b *fact.Bundle) {
	at := fact.File("/home/u/venv/pyvenv.cfg")
	prefix := "/home/u/venv"
	if m.conda != "" {
		prefix = m.conda
	}
	site := prefix + "/lib/python3.11/site-packages"
	b.Python = fact.Python{Exe: fact.Of(prefix+"/bin/python", at), Real: fact.Of("/usr/bin/python3.11", at), By: fact.ByPath, Version: fact.Of("3.11.9", at),
		Prefix: fact.Of(prefix, at), Base: fact.Of("/usr", at), Venv: fact.Of(m.conda == "", at), SystemSite: fact.Of(false, at), UserSite: fact.Of(m.conda != "", at),
		Conda: fact.None[string](at), Torchrun: fact.Of(fact.Torchrun{Path: prefix + "/bin/torchrun", Python: prefix + "/bin/python"}, at),
		Path: []fact.PathEntry{{Dir: "/usr/lib/python3.11", Kind: fact.PathStdlib, Exists: true}, {Dir: site, Kind: fact.PathSite, Exists: true}}}
	t := m.torch
	if m.conda != "" {
		b.Python.Conda = fact.Of(m.conda, at)
		t.Dir = site + "/torch"
	}
	if m.arch == "aarch64" {
		t.Machine = fact.Of("aarch64", fact.Evidence{})
	}
	b.Torch = []fact.Torch{t}
	soname := "libnccl.so.2"
	if t.Accel() == fact.AccelROCm {
		soname = "librccl.so.1"
	}
	path := m.ncclPath
	if path == "" {
		path = site + "/nvidia/nccl/lib/libnccl.so.2"
	}
	if m.nccl != "" {
		b.Loads = []fact.Load{{Soname: soname, For: t.Dir + "/lib/libtorch_cuda.so", Path: fact.Of(path, at), Via: "DT_RPATH", Version: fact.Of(m.nccl, at), Owner: "nvidia-nccl-cu12"}}
	}
	if m.driver != "" {
		lib := "/usr/lib/x86_64-linux-gnu/libcuda.so."
		b.Node.LibCUDA = fact.Of(fact.LibCUDA{Path: lib + "1", Real: lib + m.driver, Version: m.driver, Via: "ld.so.cache"}, at)
	}
}

func eth(name, addr string) fact.Iface {
	return fact.Iface{Name: name, Up: true, Addrs: []string{addr}, MTU: 9000}
}

const (
	ibGID   = "fe80:0000:0000:0000:a088:c203:0012:3c44|IB/RoCE_v1"
	roceGID = "fe80:0000:0000:0000:0e42:a1ff:fe5d:7a3c|IB/RoCE_v1 fe80:0000:0000:0000:0e42:a1ff:fe5d:7a3c|RoCE_v2 0000:0000:0000:0000:0000:ffff:c0a8:640b|IB/RoCE_v1 0000:0000:0000:0000:0000:ffff:c0a8:640b|RoCE_v2"
)

func ib(n int, rate string) []hca {
	var out []hca
	for i := range n {
		out = append(out, hca{fmt.Sprintf("mlx5_%d", i), "mlx5_core", "InfiniBand", "4: ACTIVE", rate, ibGID})
	}
	return out
}

func healthy() map[string]machine {
	cu124 := wheel("2.6.0+cu124", "12.4", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
	cu121 := wheel("2.4.1+cu121", "12.1", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
	cu128 := wheel("2.7.1+cu128", "12.8", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120")
	arm := wheel("2.7.1+cu128", "12.8", "sm_80", "sm_90", "sm_100", "sm_120")
	rocm := wheel("2.6.0+rocm6.2.4", "", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100")
	rocm.CUDA, rocm.HIP = fact.None[string](fact.Evidence{}), fact.Of("6.2.41134", fact.Evidence{})
	forge := wheel("2.5.1", "12.6", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "compute_90")
	forge.Origin = fact.Of(fact.Origin{Kind: fact.OriginConda, Package: "pytorch", Version: "2.5.1", Build: "cuda126_py311h1234567_306", Channel: "conda-forge"}, fact.Evidence{})
	forge.Dist.V.Installer = "conda"
	pypi := wheel("2.5.1+cu124", "12.4", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")

	closed, open := "x86_64 Kernel Module", "Open Kernel Module for x86_64"
	h100 := machine{arch: "x86_64", driver: "535.161.08", kmod: closed, gpu: "NVIDIA H100 80GB HBM3", cap: "9.0", gpus: 8, mem: 81559, device: "0x2330", fabric: true,
		hcas:   append(ib(8, "400 Gb/sec (4X NDR)"), hca{"mlx5_bond_0", "mlx5_core", "Ethernet", "4: ACTIVE", "100 Gb/sec (2X HDR)", roceGID}),
		ifaces: []fact.Iface{eth("bond0", "10.20.4.7/22"), eth("ib0", "172.16.4.7/16"), {Name: "eno2", Up: false}}, shm: 500,
		job: step(8, 4), torch: cu124, nccl: "2.21.5",
		env: "NCCL_SOCKET_IFNAME=bond0\nGLOO_SOCKET_IFNAME=bond0\nNCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7\nNCCL_DEBUG=WARN\n"}
	plain := h100
	plain.env = ""
	one := h100 // --gpus-per-task=1 --gpu-bind=none or an ordinary single-GPU job
	one.gpus, one.job, one.env, one.fabric = 1, step(1, 1), "", true
	a100 := machine{arch: "x86_64", driver: "550.54.15", kmod: open, gpu: "NVIDIA A100-SXM4-80GB", cap: "8.0", gpus: 8, mem: 81920, device: "0x20b2",
		hcas:   []hca{{"mlx5_0", "mlx5_core", "Ethernet", "4: ACTIVE", "200 Gb/sec (4X HDR)", roceGID}, {"mlx5_1", "mlx5_core", "Ethernet", "4: ACTIVE", "200 Gb/sec (4X HDR)", roceGID}},
		ifaces: []fact.Iface{eth("bond0", "10.20.4.7/22"), eth("ens10f0np0", "192.168.100.11/24"), {Name: "docker0", Up: true, NoCarrier: true, Addrs: []string{"172.17.0.1/16"}}}, shm: 500,
		job: step(8, 2), torch: pypi, nccl: "2.21.5", env: "NCCL_IB_GID_INDEX=3\nNCCL_IB_HCA=mlx5\nNCCL_SOCKET_IFNAME=^lo,docker0\nNCCL_IB_TC=106\n"}
	efa := a100
	efa.gpu, efa.device = "NVIDIA A100-SXM4-40GB", "0x20b0"
	efa.mem = 40960
	efa.hcas = nil
	for _, n := range []string{"rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27"} {
		efa.hcas = append(efa.hcas, hca{n, "efa", "Unspecified", "4: ACTIVE", "100 Gb/sec (4X EDR)", "fe80:0000:0000:0000:0454:00ff:fe12:3456|"})
	}
	efa.ifaces = []fact.Iface{eth("ens32", "10.20.4.7/20"), eth("ens64", "10.20.5.7/20"), {Name: "docker0", Up: true, NoCarrier: true, Addrs: []string{"172.17.0.1/16"}}}
	efa.env = "FI_PROVIDER=efa\nFI_EFA_USE_DEVICE_RDMA=1\nNCCL_SOCKET_IFNAME=ens\nLD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib\nNCCL_DEBUG=INFO\n"
	efa.files = map[string]string{"/opt/amazon/ofi-nccl/lib/libnccl-net.so": "x", "/opt/amazon/efa/lib/libfabric.so.1": "x"}
	v100 := machine{arch: "x86_64", driver: "535.104.12", kmod: closed, gpu: "Tesla V100-SXM2-32GB", cap: "7.0", gpus: 4, mem: 32768, device: "0x1db5",
		hcas: ib(2, "100 Gb/sec (4X EDR)"), ifaces: []fact.Iface{eth("em1", "10.20.4.7/16"), eth("ib0", "172.17.3.12/16")}, shm: 180,
		job: step(4, 2), torch: cu121, nccl: "2.20.5"}
	gh200 := machine{arch: "aarch64", driver: "570.86.15", kmod: "Open Kernel Module for aarch64", gpu: "NVIDIA GH200 120GB", cap: "9.0", gpus: 4, mem: 97871, device: "0x2342",
		ifaces: []fact.Iface{eth("hsn0", "10.20.4.7/16"), eth("hsn1", "10.20.4.8/16"), eth("nmn0", "10.100.4.7/16")}, shm: 400,
		job: step(4, 2), torch: arm, nccl: "2.26.2",
		env:   "NCCL_SOCKET_IFNAME=hsn\nNCCL_NET=AWS Libfabric\nFI_CXI_DISABLE_HOST_REGISTER=1\nNCCL_CROSS_NIC=1\nLD_LIBRARY_PATH=/opt/aws-ofi-nccl/lib\n",
		files: map[string]string{"/opt/aws-ofi-nccl/lib/libnccl-net.so": "x", "/sys/class/cxi/cxi0/device/vendor": "0x17db\n", "/sys/class/cxi/cxi1/device/vendor": "0x17db\n"}}
	mi250 := machine{arch: "x86_64", gpu: "MI250X", gpus: 8, device: "0x7408", ifaces: []fact.Iface{eth("hsn0", "10.20.4.7/16"), eth("hsn1", "10.20.4.8/16")}, shm: 250,
		job: strings.ReplaceAll(step(8, 2), "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"), torch: rocm, nccl: "2.21.5",
		ncclPath: "/home/u/venv/lib/python3.11/site-packages/torch/lib/librccl.so.1",
		env:      "NCCL_SOCKET_IFNAME=hsn0,hsn1\nNCCL_NET_GDR_LEVEL=3\nMIOPEN_USER_DB_PATH=/tmp/u\nLD_LIBRARY_PATH=/opt/aws-ofi-rccl/lib\n",
		files:    map[string]string{"/opt/aws-ofi-rccl/lib/librccl-net.so": "x", "/opt/aws-ofi-rccl/lib/libnccl-net.so": "x", "/sys/class/cxi/cxi0/device/vendor": "0x17db\n"}}
	azure := h100
	azure.driver, azure.kmod = "550.90.07", open
	azure.hcas = nil
	for i := range 8 {
		azure.hcas = append(azure.hcas, hca{fmt.Sprintf("mlx5_ib%d", i), "mlx5_core", "InfiniBand", "4: ACTIVE", "400 Gb/sec (4X NDR)", ibGID})
	}
	azure.hcas = append(azure.hcas, hca{"mlx5_an0", "mlx5_core", "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)", roceGID})
	azure.ifaces = []fact.Iface{eth("eth0", "10.20.4.7/22"), eth("ib0", "172.16.4.7/16")}
	azure.env = "NCCL_SOCKET_IFNAME=eth0\nNCCL_IB_PCI_RELAXED_ORDERING=1\nNCCL_TOPO_FILE=/opt/microsoft/ndv5-topo.xml\nUCX_TLS=rc\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n"
	azure.files = map[string]string{"/opt/microsoft/ndv5-topo.xml": "<system/>"}
	l40 := machine{arch: "x86_64", driver: "560.35.03", kmod: open, gpu: "NVIDIA L40S", cap: "8.9", gpus: 4, mem: 46068, device: "0x26b9",
		ifaces: []fact.Iface{eth("eno1", "10.20.4.7/24")}, shm: 120, job: step(4, 1), torch: forge, nccl: "2.23.4", conda: "/home/u/conda/envs/train",
		ncclPath: "/home/u/conda/envs/train/lib/libnccl.so.2", memlock: "65536",
		env: "CONDA_PREFIX=/home/u/conda/envs/train\nCONDA_DEFAULT_ENV=train\n"}
	b200 := h100
	b200.driver, b200.kmod, b200.gpu, b200.cap, b200.mem, b200.device, b200.torch, b200.nccl = "570.86.15", open, "NVIDIA B200", "10.0", 183359, "0x2901", cu128, "2.26.2"
	desk := machine{arch: "x86_64", driver: "550.54.15", kmod: open, gpu: "NVIDIA GeForce RTX 4090", cap: "8.9", gpus: 2, mem: 24564, device: "0x2684", mig: "[N/A]",
		ifaces: []fact.Iface{eth("enp4s0", "192.168.1.7/24")}, shm: 63, torch: pypi, nccl: "2.21.5", memlock: "8388608"}
	ops := h100 // torchrun: one task on each node that starts a process for each GPU
	ops.job = strings.NewReplacer("SLURM_NTASKS=32", "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=32", "SLURM_STEP_NUM_TASKS=4", "TASKS_PER_NODE=8(x4)", "TASKS_PER_NODE=1(x4)",
		"SLURM_NTASKS_PER_NODE=8", "SLURM_NTASKS_PER_NODE=1", "SLURM_CPUS_PER_TASK=12", "SLURM_CPUS_PER_TASK=96").Replace(step(8, 4))
	return map[string]machine{"H100 InfiniBand": h100, "H100 without settings": plain, "one GPU": one, "A100 RoCE": a100, "AWS EFA": efa, "V100 driver 535": v100, "GH200 Slingshot": gh200,
		"MI250 ROCm": mi250, "Azure H100": azure, "L40S conda-forge": l40, "B200": b200, "workstation": desk, "torchrun": ops}
}

// TestHealthyNodes: on a machine where training runs nobody may be accused of
// anything, and every word of a warning costs somebody an afternoon.
func TestHealthyNodes(t *testing.T) {
	base, err := rules.Load(rules.Embedded(), "test", rules.Environment...)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range healthy() {
		t.Run(name, func(t *testing.T) {
			b := m.bundle(t)
			rep := diag.Run(base.Set(), b)
			if rep.Verdict != diag.OK {
				t.Errorf("verdict %s", rep.Verdict)
			}
			for _, f := range rep.Findings {
				if f.Severity != diag.Note {
					t.Errorf("%s %s %s by %s: %v", f.Severity, f.Certainty, f.ID, f.Rule, f.Args)
				} else {
					t.Logf("note %s by %s: %v", f.ID, f.Rule, f.Args)
				}
			}
			for _, r := range rep.Ran {
				if r.Status == diag.RFailed {
					t.Errorf("%s failed: %s", r.Rule, r.Reason)
				}
			}
			for _, p := range b.Problems {
				t.Logf("problem: %s: %s", p.What, p.Why)
			}
		})
	}
}
