// Package kind names the facts that listings give (fact.Listing): what a
// collector reads out of a pasted table and what a judge asks for.
package kind

// Kinds of facts. Name, V and Aux are given for each.
const (
	Pkg        = "pkg"            // a package: name, version, build or origin
	CondaEnv   = "conda-env"      // an environment that conda lists: name, V prefix; Aux: * when it is the active one
	PkgEnv     = "pkg-env"        // environment that a listing describes: V = prefix
	TorchDist  = "torch-dist"     // name: folder; V: version of the torch that ls shows there
	P2POff     = "p2p-off"        // somebody says that it works with NCCL_P2P_DISABLE=1
	FullDisk   = "full-disk"      // name: where a file system is mounted that df shows as full (V: Full), or quota as over a limit (V: OverQuota)
	DiskTable  = "disk-table"     // a table of df or quota
	NodeSays   = "node-says"      // name: node; V: its answer to a command that asks several
	Stuck      = "stuck"          // somebody says that it hangs
	TorchVer   = "torch"          // version of torch as a program prints it
	TorchCUDA  = "torch-cuda"     // torch.version.cuda; "None": none
	TorchPath  = "torch-path"     // folder of the torch that a program says it runs
	NCCLAvail  = "nccl-available" // True, False
	DistAvail  = "distributed"    // torch.distributed.is_available(): True, False
	Debian     = "debian-package" // torch as a package of the system: V version
	TorchHIP   = "torch-hip"
	CUDAAvail  = "cuda-available" // True, False
	Driver     = "driver"         // NVIDIA driver version; Aux: CUDA version that it supports
	OtherGPU   = "other-gpu"      // V: amd or intel, as lspci, rocm-smi … show an accelerator
	GPU        = "gpu"            // name: index; V: model
	UUID       = "gpu-uuid"       // of a GPU or of a part of one (MIG), as nvidia-smi -L lists them
	NoModule   = "no-module"      // the kernel's words for an NVIDIA module that is not there or cannot be loaded
	Port       = "rdma-port"      // name: RDMA device; V: up, down or init
	Pending    = "pending"        // name: job; V: why it waits, or "running"
	Stack      = "stack"          // a frame of a main thread as py-spy shows it, innermost first: name process, V function, Aux file:line
	Recipe     = "recipe"         // name: compose, pod: a file that starts containers; gpu: it hands GPUs over
	Python     = "python-version" // of the interpreter that a session asks
	Proc       = "gpu-process"    // name: GPU index; V: process; Aux: MiB
	Mode       = "compute-mode"
	Env        = "env"      // environment variable
	NCCLEnv    = "nccl-env" // variable that NCCL says is set, per rank
	NCCLVer    = "nccl-version"
	NCCLNet    = "nccl-net"  // Using network X
	NCCLHCAs   = "nccl-hcas" // NET/IB : Using …
	NCCLPlugin = "nccl-plugin"
	Bootstrap  = "bootstrap" // name: interface; V: address
	Via        = "via"       // P2P/IPC, SHM/…, NET/IB/0/GDRDMA
	Init       = "nccl-init" // name: rank; V: START or COMPLETE
	Iface      = "iface"     // name: interface; V: addresses
	LDD        = "ldd"       // name: soname; V: path
	Memlock    = "memlock"   // V: kB or unlimited
	Shm        = "shm"       // V: size as df prints it
	TRES       = "tres"      // AllocTRES
	Sacct      = "sacct"     // name: job or step; V: state; Aux: exit code
	ArchList   = "arch-list"
	Capability = "capability"     // 8.0
	Machine    = "machine"        // aarch64, x86_64
	OS         = "os"             // windows, darwin, tegra
	Which      = "which"          // name: program; V: path
	PipOut     = "pip-uninstall"  // torch version that pip removed
	PipIn      = "pip-install"    // package that pip installed: name, V version
	PipNoop    = "pip-satisfied"  // name; V version
	PipBroken  = "pip-invalid"    // Ignoring invalid distribution
	EmptyLib   = "empty-library"  // V: a library of torch that ls shows with no bytes
	Hardware   = "hardware"       // name: aer, iommu, ecc, remap or recovery; V: the words; Aux: bus of the GPU
	Xid        = "xid"            // V: number; name: bus
	ACS        = "acs"            // ReqRedir+
	FM         = "fabric-manager" // state
	Dev        = "device-node"
	NetOut     = "listener"  // a listening socket of ss/netstat: V port
	Submitted  = "submitted" // V: job id that sbatch gave
	SlurmVer   = "slurm-version"
	Affinity   = "affinity"
	RankHost   = "rank-host" // name: rank; V: host
	Resolve    = "nodelist"
	NoProgram  = "no-program"    // a command that the shell does not find; name
	GlobalRank = "global-rank"   // name: rank; V: number of ranks, as Lightning announces them
	NNodes     = "nnodes"        // how many nodes a launcher expects
	Endpoint   = "rdzv-endpoint" // host:port
	OwnWork    = "own-work"      // a line of one rank about work that ranks do alone: saving, tokenising …
	Silence    = "silence"       // a wrapper ended the job because it said nothing
)

// What a FullDisk is.
const (
	Full      = "100%"
	OverQuota = "over its quota"
)
