package fact

// Node holds what /proc, /sys and the driver's tools say about the machine.
type Node struct {
	Driver  Val[Driver]  `json:"driver,omitzero"` // Absent: no NVIDIA kernel module
	LibCUDA Val[LibCUDA] `json:"libcuda,omitzero"`
	GPUs    Val[[]GPU]   `json:"gpus,omitzero"` // GPUs that the driver shows; Known and empty: driver without GPU
	// GPUsBound counts the GPUs that the kernel module drives, whether or not this
	// process may use them: cgroups hide nothing in /proc.
	GPUsBound   Val[int]          `json:"gpusBound,omitzero"`
	PCIGPUs     Val[[]PCIGPU]     `json:"pciGPUs,omitzero"`     // display and 3D controllers on the bus, with or without driver
	DeviceFiles Val[[]DeviceFile] `json:"deviceFiles,omitzero"` // /dev/nvidia*, /dev/kfd, /dev/dri/render*
	SMI         Val[SMI]          `json:"smi,omitzero"`         // what nvidia-smi said
	Fabric      Val[string]       `json:"fabric,omitzero"`      // state of NVSwitch fabric: Completed, In Progress, …; Absent: no NVSwitch
	NVSwitches  Val[int]          `json:"nvswitches,omitzero"`

	Limits Limits       `json:"limits,omitzero"`
	Shm    Val[FSUsage] `json:"shm,omitzero"` // /dev/shm
	Memory Val[Memory]  `json:"memory,omitzero"`

	Ifaces Val[[]Iface] `json:"ifaces,omitzero"`
	RDMA   Val[[]HCA]   `json:"rdma,omitzero"` // Absent: no RDMA device
	// Uverbs are the /dev/infiniband/uverbs* files that this process can see.
	Uverbs Val[[]string] `json:"uverbs,omitzero"`
	// Plugins are libnccl-net*.so files on the loader's path.
	Plugins Val[[]string] `json:"plugins,omitzero"`
	// Peermem says whether nvidia_peermem (or nv_peer_mem) is loaded.
	Peermem Val[bool] `json:"peermem,omitzero"`
	// CXI are the Slingshot devices (/sys/class/cxi); Absent: none.
	CXI Val[[]string] `json:"cxi,omitzero"`
	// IMEX are the /dev/nvidia-caps-imex-channels/channel* files; Absent: none.
	IMEX Val[[]string] `json:"imex,omitzero"`
	// MPS names the pipe directory of an MPS control daemon, when one runs.
	MPS Val[string] `json:"mps,omitzero"`
}

// Driver is the NVIDIA kernel module.
type Driver struct {
	Version string `json:"version"`        // 535.161.08
	Open    bool   `json:"open,omitempty"` // the open kernel module
}

// LibCUDA is the user-mode driver library that a process would load.
type LibCUDA struct {
	Path    string `json:"path"`
	Real    string `json:"real,omitempty"`
	Version string `json:"version,omitempty"` // from the file name libcuda.so.535.161.08
	Via     string `json:"via,omitempty"`     // how the loader found it, as in Load
	Stub    bool   `json:"stub,omitempty"`    // …/stubs/libcuda.so
	Compat  bool   `json:"compat,omitempty"`  // …/compat/libcuda.so: forward compatibility package
}

// GPU is one GPU as the driver shows it.
type GPU struct {
	Index   int    `json:"index"`
	Name    string `json:"name,omitempty"`
	Bus     string `json:"bus,omitempty"`  // 0000:1a:00.0
	UUID    string `json:"uuid,omitempty"` // GPU-… or MIG-…
	Cap     string `json:"cap,omitempty"`  // compute capability 8.0; from nvidia-smi or the name table
	CapFrom string `json:"capFrom,omitempty"`
	MemMiB  int    `json:"memMiB,omitempty"`
	UsedMiB int    `json:"usedMiB,omitempty"`
	Mode    string `json:"mode,omitempty"` // compute mode: Default, Exclusive_Process, Prohibited
	MIG     string `json:"mig,omitempty"`  // Enabled, Disabled
	ECC     string `json:"ecc,omitempty"`  // volatile uncorrected errors
}

// PCIGPU is a display or 3D controller on the PCI bus.
type PCIGPU struct {
	Bus    string `json:"bus"`
	Vendor string `json:"vendor"` // nvidia, amd, intel
	Device string `json:"device"` // PCI device id 0x20b0
	Driver string `json:"driver,omitempty"`
}

// DeviceFile is a device node and whether this process may open it.
type DeviceFile struct {
	Path string `json:"path"`
	OK   bool   `json:"ok"` // readable and writable for this user by its mode; cgroups can still refuse
	Why  string `json:"why,omitempty"`
}

// SMI is the outcome of nvidia-smi.
type SMI struct {
	Path   string `json:"path"`
	Code   int    `json:"code"`
	Driver string `json:"driver,omitempty"`
	CUDA   string `json:"cuda,omitempty"`   // CUDA version that the driver supports
	NVML   string `json:"nvml,omitempty"`   // version of the user-mode library
	Error  string `json:"error,omitempty"`  // its own words when it failed, or in place of a value
	Hung   bool   `json:"hung,omitempty"`   // did not answer within the time limit
	Millis int    `json:"millis,omitempty"` // wall time
}

// Limits are the soft limits of this process; -1 means unlimited.
type Limits struct {
	Memlock     Val[int64] `json:"memlock,omitzero"` // bytes
	MemlockHard Val[int64] `json:"memlockHard,omitzero"`
	Nofile      Val[int64] `json:"nofile,omitzero"`
	NofileHard  Val[int64] `json:"nofileHard,omitzero"`
	Nproc       Val[int64] `json:"nproc,omitzero"`
}

// FSUsage is the size of a mounted file system in bytes.
type FSUsage struct {
	Path  string `json:"path"`
	Type  string `json:"type,omitempty"`
	Total int64  `json:"total"`
	Free  int64  `json:"free"`
}

// Memory is the memory that this process may use, in bytes.
type Memory struct {
	Total     int64  `json:"total"`
	Available int64  `json:"available"`
	Cgroup    int64  `json:"cgroup,omitempty"` // limit of the cgroup; 0: none
	CgroupAt  string `json:"cgroupAt,omitempty"`
}

// Iface is a network interface.
type Iface struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	// NoCarrier: up, but without link (IFF_UP without IFF_RUNNING).
	NoCarrier bool     `json:"noCarrier,omitempty"`
	Loop      bool     `json:"loop,omitempty"`
	Kind      string   `json:"kind,omitempty"`  // ethernet, infiniband, bridge, virtual
	Addrs     []string `json:"addrs,omitempty"` // 10.1.2.3/16, fe80::1/64
	MTU       int      `json:"mtu,omitempty"`
}

// HCA is an RDMA device.
type HCA struct {
	Name   string    `json:"name"`
	Driver string    `json:"driver,omitempty"` // kernel driver of its PCI device: mlx5_core, efa, irdma, bnxt_re
	Ports  []HCAPort `json:"ports,omitempty"`
}

// HCAPort is one port of an RDMA device.
type HCAPort struct {
	Port  int    `json:"port"`
	Link  string `json:"link,omitempty"`  // InfiniBand, Ethernet
	State string `json:"state,omitempty"` // ACTIVE, DOWN, INIT, ARMED
	Phys  string `json:"phys,omitempty"`  // LinkUp, Polling, Disabled
	Rate  string `json:"rate,omitempty"`
	GIDs  []GID  `json:"gids,omitempty"`
}

// GID is one entry of a port's GID table.
type GID struct {
	Index int    `json:"index"`
	GID   string `json:"gid"`
	Type  string `json:"type,omitempty"` // IB/RoCE v1, RoCE v2
	Ndev  string `json:"ndev,omitempty"`
}
