package plan

import "strings"

// texts are the reasons in English and Chinese; {name} is an argument. The ids
// are stable, the words are not.
var texts = map[string][2]string{
	"need-python":  {"Python is one of {pythons}", "Python 版本为以下之一：{pythons}"},
	"need-driver":  {"the GPU node's NVIDIA driver is {need} or newer (CUDA {family}.x)", "GPU 节点的 NVIDIA 驱动不低于 {need}（CUDA {family}.x）"},
	"need-gpu":     {"the GPUs can run one of {archs}", "GPU 能运行以下架构之一：{archs}"},
	"need-cap":     {"the compute capability of {gpu} is covered by {archs}", "{gpu} 的计算能力在 {archs} 的覆盖范围内"},
	"need-compat":  {"{package} is installed where the job runs and comes first on LD_LIBRARY_PATH (data-centre GPUs only; ask the administrator or use a container that has it)", "作业运行处装有 {package}，且其目录位于 LD_LIBRARY_PATH 最前面（仅限数据中心 GPU；请联系管理员，或使用自带它的容器）"},
	"not-cuda":     {"not a CUDA build", "不是 CUDA 构建"},
	"no-release":   {"there is no torch {torch}", "没有发布过 torch {torch}"},
	"beyond-table": {"torch {torch} is outside of the table, which ends at {end} ({read})", "torch {torch} 超出了表的范围（表截至 {end}，{read}）"},
	"no-build":     {"torch {torch} has no {tag} build; it has {tags}", "torch {torch} 没有 {tag} 构建，只有 {tags}"},
	"python":       {"torch {torch} has no wheel for Python {python}; it has them for {pythons}", "torch {torch} 没有面向 Python {python} 的 wheel，只有 {pythons}"},
	"glibc":        {"the wheel needs glibc {need}, this system has {glibc}", "该 wheel 需要 glibc {need}，本系统为 {glibc}"},
	"driver":       {"{tag} needs driver {need} or newer, {node} has {driver}", "{tag} 需要 {need} 及以上的驱动，{node} 为 {driver}"},
	"driver-compat": {"{tag} needs driver {need} or newer, {node} has {driver}; only with {package} it could run on these data-centre GPUs (--allow-compat plans with it)",
		"{tag} 需要 {need} 及以上的驱动，{node} 为 {driver}；只有装上 {package} 才可能在这类数据中心 GPU 上运行（--allow-compat 会将其纳入方案）"},
	"driver-consumer": {"{tag} needs driver {need} or newer, {node} has {driver}; a compatibility package does not help on these GPUs", "{tag} 需要 {need} 及以上的驱动，{node} 为 {driver}；这类 GPU 不能使用兼容包"},
	"driver-unknown":  {"nothing is known of driver {driver} with CUDA {cuda}", "表中没有驱动 {driver} 与 CUDA {cuda} 的信息"},
	"archs-unknown":   {"which GPUs the {tag} wheel of torch {torch} for {machine} has kernels for was not verified", "未核实 torch {torch} 的 {tag} wheel（{machine}）包含哪些 GPU 的内核"},
	"arch":            {"the {tag} wheel of torch {torch} has no kernels for {gpu}; it has {archs}", "torch {torch} 的 {tag} wheel 不含 {gpu} 的内核，只含 {archs}"},
	"arch-unknown":    {"whether {archs} runs on {gpu} is not promised by NVIDIA", "{archs} 能否在 {gpu} 上运行，NVIDIA 没有保证"},
	"ptx-minor":       {"on {gpu} the {tag} wheel has only PTX, which driver {driver} is too old to compile (CUDA {cuda}: {need})", "{tag} wheel 对 {gpu} 只含 PTX，驱动 {driver} 过旧，无法编译（CUDA {cuda} 需要 {need}）"},
	"minor":           {"driver {driver} is older than CUDA {cuda}'s own ({need}): torch runs by minor-version compatibility, but code that compiles PTX of CUDA {cuda} on the node does not", "驱动 {driver} 早于 CUDA {cuda} 自带的 {need}：依靠次版本兼容可以运行 torch，但需要在节点上编译 CUDA {cuda} PTX 的代码不行"},
	"older":           {"an older release than {from}: what needs a newer torch stops working", "比 {from} 旧：依赖更新版 torch 的功能将不可用"},
	"newer":           {"a newer release than {from}: compiled extensions (flash-attn, apex …) must be installed again", "比 {from} 新：编译型扩展（flash-attn、apex 等）需要重装"},
	"nccl-ll128":      {"NCCL {nccl} can corrupt data with Tree/LL128 on systems with one GPU and one NIC; fixed in {fixed}", "NCCL {nccl} 在一 GPU 一网卡的系统上使用 Tree/LL128 时可能损坏数据，{fixed} 已修复"},
	"nccl-arm-cas":    {"NCCL {nccl} can hang on Arm; fixed in {fixed}", "NCCL {nccl} 在 Arm 上可能卡死，{fixed} 已修复"},
	"nccl-gb200-gdr":  {"NCCL {nccl} hangs on GB200/GB300 with ConnectX-8 when GPUDirect RDMA is disabled; fixed in {fixed}", "在 GB200/GB300 + ConnectX-8 上禁用 GPUDirect RDMA 时，NCCL {nccl} 会卡死，{fixed} 已修复"},

	"need-branch":       {"the driver is of branch R{branch}, the last one for {gpu}", "驱动属于 R{branch} 分支（支持 {gpu} 的最后一个分支）"},
	"need-newer-driver": {"driver and GPU are as given: {gpu} is known from CUDA {cuda} (driver {need}) on, the driver is {driver}", "驱动与 GPU 确如所给：{gpu} 从 CUDA {cuda}（驱动 {need}）起才被支持，而驱动为 {driver}"},
	"need-amdgpu":       {"the node's kernel driver (amdgpu) is one that ROCm {rocm} works with", "节点的内核驱动（amdgpu）能与 ROCm {rocm} 配合"},

	"maker-intel":  {"{gpu} is Intel's: it needs torch's XPU build (https://download.pytorch.org/whl/xpu) and the oneCCL backend \"xccl\"; NCCL and CUDA builds do not run on it, and ncclinic does not plan XPU builds", "{gpu} 是 Intel GPU：需要 torch 的 XPU 构建（https://download.pytorch.org/whl/xpu）和 oneCCL 后端 \"xccl\"；NCCL 和 CUDA 构建不能在上面运行，ncclinic 也不为 XPU 构建制定方案"},
	"maker-gaudi":  {"{gpu} is an Intel Gaudi: it needs the torch of the Gaudi software (habana-torch-plugin) and the backend \"hccl\", from the vendor's container or installer; no wheel of the PyTorch index runs on it", "{gpu} 是 Intel Gaudi：需要 Gaudi 软件栈提供的 torch（habana-torch-plugin）和后端 \"hccl\"，由厂商容器或安装程序提供；PyTorch 索引上的 wheel 都不能在上面运行"},
	"maker-ascend": {"{gpu} is a Huawei Ascend NPU: it needs CANN, the torch-npu package of the same release as torch (its CPU build) and the backend \"hccl\"; no CUDA wheel runs on it", "{gpu} 是华为昇腾 NPU：需要 CANN、与 torch（CPU 版）版本配套的 torch-npu 以及后端 \"hccl\"；CUDA wheel 不能在上面运行"},
	"maker-apple":  {"{gpu} is Apple's: torch uses it as the device \"mps\" on macOS, without NCCL; Slurm GPU nodes have none", "{gpu} 是 Apple GPU：torch 在 macOS 上以 \"mps\" 设备使用它，没有 NCCL；Slurm GPU 节点上不会有它"},
	"maker-other":  {"{gpu} is not an NVIDIA or AMD GPU: torch needs the plug-in and the communication library of its maker; no wheel of the PyTorch index is for it", "{gpu} 不是 NVIDIA 或 AMD 的 GPU：torch 需要其厂商提供的插件和通信库；PyTorch 索引上没有适用的 wheel"},
	"makers-mixed": {"{gpus}: no single build of torch serves GPUs of several makers; plan for each kind of node by itself", "{gpus}：没有哪一种 torch 构建能同时支持多家厂商的 GPU；请按节点类型分别制定方案"},
	"rocm-machine": {"there are no ROCm wheels of torch for {machine}", "没有面向 {machine} 的 ROCm 版 torch wheel"},
	"no-rocm":      {"no ROCm build of torch {torch} is in the table (read {read})", "表中没有 torch {torch} 的 ROCm 构建（{read}）"},
	"amd-cuda":     {"{tag} is a build for NVIDIA GPUs, {gpu} is AMD's", "{tag} 是面向 NVIDIA GPU 的构建，而 {gpu} 属于 AMD"},
	"nvidia-rocm":  {"{tag} is a build for AMD GPUs, {gpu} is NVIDIA's", "{tag} 是面向 AMD GPU 的构建，而 {gpu} 属于 NVIDIA"},
	"wish-empty":   {"no version can be all of {wish}", "没有任何版本能同时满足 {wish}"},
	"driver-dropped-gpu": {"driver {driver} does not know {gpu} any more: R{branch} is the last branch for it. Either the node has another driver or GPU than this, or it needs a driver of branch R{branch}",
		"驱动 {driver} 已不再支持 {gpu}：R{branch} 是支持它的最后一个分支。要么节点的驱动或 GPU 并非如此，要么需要换成 R{branch} 分支的驱动"},

	"os":      {"NCCL exists on Linux only, this is {os}", "NCCL 仅支持 Linux，这里是 {os}"},
	"board":   {"{board} is a Jetson board: the wheels of the PyTorch index are not built for it; take NVIDIA's wheel for your JetPack", "{board} 是 Jetson 板卡：PyTorch 索引上的 wheel 不适用，请使用 NVIDIA 为对应 JetPack 提供的 wheel"},
	"machine": {"there are no CUDA wheels of torch for {machine}", "没有面向 {machine} 的 CUDA 版 torch wheel"},

	"ask-python":   {"which Python the job uses: --python 3.11, or --python PATH", "作业使用的 Python 版本：--python 3.11，或 --python 路径"},
	"ask-driver":   {"the driver of the GPU node: srun --gres=gpu:1 nvidia-smi --query-gpu=driver_version,name,compute_cap --format=csv, then --driver", "GPU 节点的驱动：srun --gres=gpu:1 nvidia-smi --query-gpu=driver_version,name,compute_cap --format=csv，然后用 --driver 给出"},
	"ask-gpu":      {"the GPUs of the node: --gpu H100 (or --facts with a file that srun --gres=gpu:1 ncclinic facts wrote there)", "节点的 GPU：--gpu H100（或用 --facts 给出在该节点上由 srun --gres=gpu:1 ncclinic facts 写出的文件）"},
	"ask-gpu-name": {"the compute capability of {gpu}, which the table of GPUs does not hold: --arch sm_90, from nvidia-smi --query-gpu=compute_cap --format=csv", "{gpu} 的计算能力（GPU 表中没有）：用 --arch sm_90 给出，可由 nvidia-smi --query-gpu=compute_cap --format=csv 查得"},

	"ask-gpu-near":      {"the compute capability of {gpu}, which the table of GPUs does not hold (is {near} meant?): --arch sm_90, from nvidia-smi --query-gpu=compute_cap --format=csv", "{gpu} 的计算能力（GPU 表中没有，是否指 {near}？）：用 --arch sm_90 给出，可由 nvidia-smi --query-gpu=compute_cap --format=csv 查得"},
	"ask-gfx":           {"the architecture of {gpu}: --gpu gfx90a, from rocminfo | grep gfx", "{gpu} 的架构：用 --gpu gfx90a 给出，可由 rocminfo | grep gfx 查得"},
	"ask-amdgpu":        {"the kernel driver of the GPU node: srun --gres=gpu:1 cat /sys/module/amdgpu/version; the wheel brings ROCm itself, and AMD's support matrix says which drivers go with it", "GPU 节点的内核驱动：srun --gres=gpu:1 cat /sys/module/amdgpu/version；wheel 自带 ROCm，与之配套的驱动见 AMD 的支持矩阵"},
	"driver-not-amd":    {"driver {driver} is read as NVIDIA's, but {gpu} is AMD's: it is not used", "驱动 {driver} 按 NVIDIA 驱动理解，而 {gpu} 属于 AMD：不予采用"},
	"rocm-tool":         {"{tool} has no ROCm build of torch that is known here: the commands are pip's", "{tool} 没有已知的 ROCm 版 torch：命令改用 pip"},
	"cap-differs":       {"{gpu} has compute capability {table} by the table, but {cap} was given; {cap} is used", "按表 {gpu} 的计算能力为 {table}，而给出的是 {cap}；按 {cap} 计算"},
	"grace-x86":         {"{gpu} sits beside an Arm CPU, but the plan is for x86_64: is this the login node's architecture? --arch aarch64", "{gpu} 搭配的是 Arm CPU，而方案针对 x86_64：这是登录节点的架构吗？请用 --arch aarch64"},
	"driver-before-gpu": {"driver {driver} is older than the first CUDA that knows {gpu} (CUDA {cuda}, driver {need}): one of the two is probably wrong", "驱动 {driver} 早于最先支持 {gpu} 的 CUDA（CUDA {cuda}，驱动 {need}）：两者之一可能有误"},
	"compat-there":      {"a forward compatibility libcuda {compat} is in front of the driver's own {driver}", "前向兼容包的 libcuda {compat} 位于驱动自带的 {driver} 之前"},
	"driver-beyond":     {"driver {driver} is older than the table of drivers", "驱动 {driver} 早于驱动表的范围"},
	"driver-other":      {"{given} was given by hand; the facts say {facts}: the value given by hand is used", "手工给出的是 {given}，而事实文件中为 {facts}：按手工给出的值计算"},
	"gres-hint":         {"GPU taken from the GRES type {type}: a hint, not a measurement", "GPU 取自 GRES 类型 {type}：只是线索，并非实测"},
	"login-node":        {"no NVIDIA driver on this machine: the plan is for the GPU node that the flags describe", "本机没有 NVIDIA 驱动：方案针对选项所描述的 GPU 节点"},

	"nothing":      {"no build of torch in the table runs here", "表中没有任何 torch 构建能在这里运行"},
	"none-listed":  {"the index has no CUDA wheel of torch {torch} for this Python and machine", "索引中没有面向该 Python 和架构的 torch {torch} CUDA wheel"},
	"not-in-index": {"{index} has no torch that meets {wish}", "{index} 中没有满足 {wish} 的 torch"},
	"wish-beyond":  {"the table ends at torch {end}, read {read}: nothing is known of {wish}; with --index ncclinic plans from what a mirror has", "表截至 torch {end}（{read}），没有 {wish} 的信息；可用 --index 按镜像中的内容制定方案"},
	"before-table": {"the table begins at torch {first}: nothing is known of {wish}", "表从 torch {first} 开始，没有 {wish} 的信息"},
	"pin":          {"{file}:{line} does not allow it: {text}", "{file}:{line} 不允许：{text}"},
	"pin-index":    {"{file}:{line} takes torch from the {index} index: change it too, or the next installation brings that build back", "{file}:{line} 从 {index} 索引获取 torch：也要修改，否则下次安装会把那个构建装回来"},
	"pin-cpu":      {"{file}:{line} asks for a CPU build: {text}", "{file}:{line} 要求 CPU 构建：{text}"},
	"pin-change":   {"{file}:{line} has to change to torch {torch}: {text}", "{file}:{line} 需要改为 torch {torch}：{text}"},

	"step-save":            {"Keep the state as it is now in {file}.", "把当前状态保存到 {file}。"},
	"step-remove-user":     {"Take the copy in {dir} away: it wins over the environment's, for every environment of this Python version.", "移除 {dir} 中的那一份：它优先于环境中的 torch，影响该 Python 版本的所有环境。"},
	"step-ensurepip":       {"This environment has no pip: Python brings one along (on Debian in the package python3-venv).", "该环境没有 pip：用 Python 自带的安装（Debian 上由 python3-venv 软件包提供）。"},
	"step-own-venv":        {"{python} is a shared installation: make an environment of your own and leave it alone.", "{python} 是公用的安装：另建自己的环境，不改动它。"},
	"step-new-venv":        {"An environment of your own made by {python}, which a module or uv may have to bring.", "用 {python} 另建自己的环境（可能需要先加载模块，或由 uv 提供该版本）。"},
	"step-new-conda":       {"An environment of its own with Python {python}.", "新建一个 Python {python} 的环境。"},
	"step-pip":             {"The local tag +{tag} matters: without it pip keeps an installed build of the same version, CPU or not.", "本地标签 +{tag} 不能省：不带标签时，pip 会保留已装的同版本构建，不管是不是 CPU 版。"},
	"step-pip-untagged":    {"The wheel's name has no tag, and is CUDA {cuda}: over an installed torch {torch} of another build only --force-reinstall changes anything; the second line adds what is missing.", "该 wheel 名中没有标签，实为 CUDA {cuda}：已装有其他构建的 torch {torch} 时，只有 --force-reinstall 才会生效；第二行补上缺失的依赖。"},
	"step-pip-broken":      {"The build is the right one, its files are not: put them in again.", "构建本身没错，但文件不完整：重新安装。"},
	"step-uv":              {"uv keeps an installed torch of the same version unless --reinstall-package is given.", "不加 --reinstall-package，uv 会保留已安装的同版本 torch。"},
	"step-companion":       {"{package} {version} is installed; which release belongs to torch {torch} is not in the tables. Install it again from the same index, or remove it.", "已装有 {package} {version}；表中没有与 torch {torch} 对应的版本。请从同一索引重装，或卸载。"},
	"step-pin":             {"So that no other package replaces torch: install with this file from now on (then pip refuses instead of replacing):\n    {later}", "防止其他软件包替换 torch：以后安装时都带上该文件（这样会报冲突，而不是悄悄替换）：\n    {later}"},
	"step-check":           {"The proof: ends with an error unless torch {torch} with CUDA {cuda} and NCCL is what this interpreter imports. The last line needs a GPU.", "验证：除非该解释器导入的是带 CUDA {cuda} 和 NCCL 的 torch {torch}，否则报错退出。最后一行需要 GPU。"},
	"step-check-rocm":      {"The proof: ends with an error unless torch {torch} for ROCm with RCCL (which torch calls nccl) is what this interpreter imports. The last line needs a GPU.", "验证：除非该解释器导入的是带 RCCL（torch 中称为 nccl）的 ROCm 版 torch {torch}，否则报错退出。最后一行需要 GPU。"},
	"step-check-module":    {"The proof: ends with an error unless this interpreter imports a torch with CUDA (the module says {cuda}) and NCCL.", "验证：除非该解释器导入的 torch 带有 CUDA（模块名为 {cuda}）和 NCCL，否则报错退出。"},
	"step-job-python":      {"In the job's script, so that it starts this environment's interpreter ({python}).", "写入作业脚本，使其使用该环境的解释器（{python}）。"},
	"step-back":            {"To go back to the state in {file}.", "恢复到 {file} 中的状态。"},
	"step-uv-project":      {"{file} says where torch comes from; otherwise the next uv sync brings the old build back.", "在 {file} 中写明 torch 的来源，否则下次 uv sync 会把旧构建装回来。"},
	"step-uv-sync":         {"Resolve again and install.", "重新解析并安装。"},
	"step-conda":           {"The pin on the build string forces a CUDA build, cuda-version keeps it in the family {family} that the driver runs, and CONDA_OVERRIDE_CUDA={cuda} tells the solver what the GPU node has. Which CUDA builds conda-forge has of this release is not in the tables: the solver chooses.", "对构建字符串的限定会强制选择 CUDA 构建；cuda-version 把它限制在驱动能运行的 {family} 系列；CONDA_OVERRIDE_CUDA={cuda} 把 GPU 节点的情况告诉求解器。conda-forge 对该版本提供哪些 CUDA 构建不在表中，由求解器选择。"},
	"step-conda-pin":       {"So that no later installation replaces it.", "防止以后的安装替换它。"},
	"step-pixi":            {"In {file} (with pixi before 0.71: [system-requirements] cuda = \"{family}\" instead of the platforms entry).", "写入 {file}（pixi 0.71 之前用 [system-requirements] cuda = \"{family}\" 代替 platforms 条目）。"},
	"step-pixi-install":    {"CONDA_OVERRIDE_CUDA tells the solver what the GPU node has.", "CONDA_OVERRIDE_CUDA 把 GPU 节点的情况告诉求解器。"},
	"step-poetry":          {"The source is explicit: only torch and what is named with it comes from there.", "来源设为 explicit：只有 torch 及同时指定的包取自该处。"},
	"step-apptainer":       {"The definition: take your own image in place of {from} when you have one; the lines of %post matter.", "定义文件：有自己的基础镜像时替换 {from}，关键是 %post 中的命令。"},
	"step-apptainer-build": {"Build it, then run the job with {flag}.", "构建镜像，作业中用 {flag} 运行。"},
	"step-module":          {"Load this module.", "加载该模块。"},
	"step-module-instead":  {"Load {module} instead of {old}.", "用 {module} 代替 {old}。"},
	"step-module-none":     {"No module in the list is known to be a CUDA build that runs on these nodes (seen: {seen}). Ask the support for torch {torch}, or use an environment of your own: --with pip.", "列表中没有已知能在这些节点上运行的 CUDA 构建（看到：{seen}）。请向集群支持人员申请 torch {torch}，或使用自己的环境：--with pip。"},
}

// Text renders a reason in a language, en or zh.
func (r Reason) Text(lang string) string {
	t, ok := texts[r.ID]
	if !ok {
		return r.ID
	}
	s := t[0]
	if lang == "zh" {
		s = t[1]
	}
	var kv []string
	for k, v := range r.Args {
		if k == "node" && v == "" {
			v = "the node"
			if lang == "zh" {
				v = "节点"
			}
		}
		kv = append(kv, "{"+k+"}", v)
	}
	s = strings.NewReplacer(kv...).Replace(s)
	if lang == "zh" {
		s = strings.ReplaceAll(s, "节点 为", "节点为")
	}
	return s
}
