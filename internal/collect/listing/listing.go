// Package listing reads facts out of listings that people paste beside a log
// or print in it: pip list and freeze, conda list, collect_env, ds_report,
// nvidia-smi, env, ldd, ulimit, ip, df, dmesg, sacct, scontrol and one-line
// prints of versions. It works line by line and needs no file of its own: a
// listing may stand in the middle of a log.
package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// MaxFacts bounds what is kept of all inputs together.
const MaxFacts = 20000

// Parser keeps the state of one file.
type Parser struct {
	path     string
	header   string // kind of the table that is being read: pip, conda, sacct, smi, gpuq
	prefix   string // environment of the listing
	node     string // of dshbak headers
	lockName string // package that a lock file describes
	rule     int    // 1: a line of hyphens was met, 2: and a host's name behind it
	host     string // that name
	lockVer  string // version of lockName
	showName string // package that pip show describes
	showVer  string
	asked    [][]string // what prints of the last command show, line by line
	uv       bool       // a plan of uv was met
	replBare string     // expression of a Python session that waits for its value
	smi      int        // lines since an nvidia-smi banner
	smiGPU   string
	lastCmd  string
	hca      string // RDMA device that ibstat or ibv_devinfo describes
	smiq     bool   // nvidia-smi -q is read
	smiSec   string // its section
	gone     string // torch that a plan of mamba takes away
	tres     bool   // the table of sacct has a column AllocTRES
	echo     string // variable whose value the last command shows
	cmdAge   int
	disk     string // file system of a table of quotas whose numbers stand on the next line
	spyPID   string // process whose stack py-spy shows
	spyLeft  int    // frames of it that are still read
}

// NewParser starts a file.
func NewParser(path string) *Parser { return &Parser{path: path, smi: -1} }

// Command tells the parser that a command line stands here.
func (p *Parser) Command(c fact.ShellCmd) {
	p.lastCmd, p.cmdAge, p.header, p.smi = c.Text, 0, "", -1
	p.hca, p.smiq, p.smiSec, p.gone = "", false, "", ""
	if i := strings.Index(c.Text, "/bin/python"); i > 0 && strings.Contains(c.Text, " list") {
		s := c.Text[:i]
		p.prefix = s[strings.LastIndexAny(s, " ;'\"(")+1:]
	} else if strings.Contains(c.Text, "pip") || strings.Contains(c.Text, "conda") {
		p.prefix = ""
	}
	p.showName, p.showVer, p.replBare = "", "", ""
	p.asking(c.Text)
	p.echoes(c.Text)
}

var interesting = lazyre.New(`^(?:torch|pytorch|libtorch|torchvision|torchaudio|torch-?geometric|pytorch-mutex|pytorch-cuda|pytorch-gpu|pytorch-cpu|cpuonly|nccl|nvidia-[a-z0-9-]+|cuda-version|cudatoolkit|cudnn|cupy[a-z0-9-]*|triton|pytorch-triton[a-z-]*|flash[-_]attn|apex|xformers|mamba[-_]ssm|causal[-_]conv1d|transformer[-_]engine[a-z0-9_-]*|deepspeed|vllm|intel-extension-for-pytorch|oneccl[a-z0-9_-]*|tensorflow|jax)$`)

var (
	freeze   = lazyre.New(`^(?:\[pip3?\] )?([A-Za-z][\w.-]*)==(\d[^\s;]*)\s*$`)
	freezeAt = lazyre.New(`^([A-Za-z][\w.-]*) @ (\S+)`)
	column   = lazyre.New(`^(?:\[conda\] )?([A-Za-z][\w.-]*)\s{1,}(v?\d[\w.+!-]*)(?:\s+(\S+))?(?:\s+(\S+))?\s*$`)
	planRow  = lazyre.New(`^\s*[+-]?\s*([a-z][\w.-]*)\s+(\S+/\S+?)::([a-z][\w.-]*?)-(\d[\w.!]*)-(\S+)`)
	linking  = lazyre.New(`(?:Linking|Extracting|Downloading|Installing|Installed|extracting|linking)\s*:?\s+((?:py|lib)?torch)-(\d[\w.]*)-(\S+)`)
	mambaRow = lazyre.New(`^\s*[+-]\s+((?:py|lib)?torch|pytorch-mutex|nccl)\s+(\d[\w.]*)\s+(\S+)\s+(\S+)`)
	torchSay = lazyre.New(`(?i)\b(?:py)?torch(?:\.__version__)?(?:[ _]version)?\s*(?:is|[:=,.]+)?\s*['"]?v?(\d+\.\d+(?:\.\d+)?[a-z0-9]*(?:\+[\w.]+)?)['"]?`)
	cudaSay  = lazyre.New(`(?i)\b(?:torch\.version\.)?cuda(?:[ _]version)?\s*(?:is|[:=,])?\s*['"]?(None|\d+\.\d+)\b`)
	replVer  = lazyre.New(`^\(?['"]?(\d+\.\d+(?:\.\d+)?[a-z0-9]*(?:\+[\w.]+)?)['"]?(?:,? +['"]?(None|\d+\.\d+)['"]?)?(?:,? +(?:['"]?None['"]?,? +)?(True|False))?(?:,? +(True|False))?\)?$`)
	// what print(torch.__file__, torch.__version__, torch.version.cuda) gives, bare or as a tuple
	torchFile = lazyre.New(`(?:^|[\s('"=:])(/[^\s'",()]*/(?:site|dist)-packages/torch)/__init__\.pyc?(?:['"]?[\s,)]|['"]?$)`)
	emptyLib  = lazyre.New(`^-[rwx-]{9}\S*\s+\d+\s+\S+\s+\S+\s+0\s.*?((?:lib(?:torch|c10|caffe2|nccl|cud|cu)\w*)\.so[\d.]*)$`)
	envExport = lazyre.New(`^\s*-\s+([a-z][\w.-]*)=(\d[\w.!]*)=([\w.]+)$`)
	lockLine  = lazyre.New(`^(name|version) = "([^"]+)"$`)
	exeSays   = lazyre.New(`^(/\S*/bin/python[\d.]*)[, ]+([12]\.\d+\.\d+\S*?)[, ]+(None|\d+\.\d+)(?:[, ]+(?:True|False|None))*$`)
	bareVer   = lazyre.New(`^['"(]*([12]\.\d+\.\d+(?:a0|rc\d|\.dev\d+)?\+(?:cpu|cu\d{2,3}|rocm[\d.]+|xpu|git[0-9a-f]{4,}|[0-9a-f]{7,}(?:\.nv[\d.]+)?))(?:['"]?[, ]+['"]?(None|\d+\.\d+))?\b['")]*(?:[, ]+(?:True|False))?$`)
	torchVers = lazyre.New(`^[\s,'"]*(\d+\.\d+\.\d+[a-z0-9]*(?:\+[\w.]+)?)\b`)
	torchCUDA = lazyre.New(`[\s,'"](None|\d+\.\d)(?:['"]?[\s,)]|['"]?$)`)
	smiHead   = lazyre.New(`Driver Version: ([\d.]+)\s+CUDA Version: ([\d.]+|N/A|ERR!)`)
	smiRow    = lazyre.New(`^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A)\s*\|\s*([0-9A-Fa-f]{8}:[0-9A-Fa-f:.]+)`)
	smiUse    = lazyre.New(`(\d+)MiB /\s*(\d+)MiB \|\s+\d+%\s+(\S.*?)\s*\|`)
	smiProc   = lazyre.New(`^\|\s+(\d+)\s+(?:N/A|\d+)\s+(?:N/A|\d+)\s+(\d+)\s+\S+\s+(\S.*?)\s+(\d+)MiB \|`)
	gpuL      = lazyre.New(`^GPU (\d+): ([A-Z][\w ./-]+?)(?: \(UUID: (\S+)\))?$`)
	migL      = lazyre.New(`^\s*MIG \S+\s+Device\s+\d+: \(UUID: (MIG-\S+)\)`)
	archsRe   = lazyre.New(`(?i)\b(?:arch(?:s|es|itectures)?|kernels)\b(?: \w+)?\s*[:=] *sm_\d+ sm_\d+`)
	distShown = lazyre.New(`^torch-(\d[\w.+]*)\.dist-info$`)
	whichSays = lazyre.New(`^(?:which )?python3?\s*(?::|=|->|is)\s*(/\S*/bin/python[\d.]*)$`)
	p2pOff    = lazyre.New(`NCCL_P2P_DISABLE=1\b.*(?:\b(?:it |training |everything )?(?:trains|works|runs|passes|is fine|goes away|helps|solves|fixes)\b|正常|能跑|可以跑|解决|就好了)`)
	stuckSays = lazyre.New(`(?:^|[^显网])卡(?:住不动|住了|在|死)|一直卡住|不动了|没有?任何?反应|(?i:\b(?:my|the|our) (?:job|training|script|program|code|run) (?:just |simply |always )?(?:hangs?|freezes|gets stuck|is stuck)\b)`)
	rankOn    = lazyre.New(`^(?i:global[_ ])?(?i:rank) (\d+)(?:/\d+)? on (?:host )?([A-Za-z][\w.-]*\d[\w.-]*)\b`)
	nodeSays  = lazyre.New(`^([A-Za-z][\w-]*\d+): (\S.*)$`)
	asksNodes = lazyre.New(`^(?:pdsh|clush|pssh|parallel-ssh|xdsh)\b`)
	condaRow  = lazyre.New(`^\s*(?:([\w.-]+)\s+)?(\*\s+)?(/\S+)$`)
	gpuCSV    = lazyre.New(`^(?:\d+, )?((?:NVIDIA|Tesla|Quadro|GeForce|AMD)\b[^,]*)((?:, ?[^,]+)*)$`)
	fileVer   = lazyre.New(`[-_/](\d+\.\d+\.\d+[\w.+%-]*?)(?:-cp|-py|\.tar|/|$)`)
	bareDrv   = lazyre.New(`^\d{3}\.\d+(\.\d+)?$`)
	driverIn  = lazyre.New(`(?i)\b(?:nvidia )?driver(?: version)?[:= ]+(\d{3}\.\d+(?:\.\d+)?)\b`)
	envRow    = lazyre.New(`^(?:export |declare -x |set(?:env)? )?([A-Za-z_][A-Za-z0-9_%]*)=(.*)$`)
	envEcho   = lazyre.New(`\b(CUDA_VISIBLE_DEVICES|SLURM_JOB_GPUS|NCCL_SOCKET_IFNAME|LD_LIBRARY_PATH|LD_PRELOAD|SLURM_EXPORT_ENV|MASTER_ADDR|MASTER_PORT|ROCR_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|PYTHONPATH)=(\S*)`)
	lddRow    = lazyre.New(`^\s*(lib[\w.+-]+\.so[\w.]*) => (\S+|not found)`)
	ncclVer   = lazyre.New(`NCCL version (\d+\.\d+\.\d+)(?:\+cuda([\d.]+))?`)
	setEnv    = lazyre.New(`\b(NCCL_\w+|FI_\w+) set (?:by environment )?to ([^\s]+?)\.?$`)
	bootRe    = lazyre.New(`Bootstrap ?: Using (?:\[\d+\])?([\w.-]+):([0-9a-fA-F.:%]+)<`)
	netRe     = lazyre.New(`Using network (.+)$`)
	hcaRe     = lazyre.New(`NET/IB : Using (.+?); OOB`)
	viaRe     = lazyre.New(`(\d+)\[\w+\] -> (\d+)\[\w+\].* via (\S+(?: pointer)?)`)
	initRe    = lazyre.New(`\brank (\d+) n[rR]anks (\d+).*?(?:- )?Init (START|COMPLETE)`)
	ipBr      = lazyre.New(`^([a-z][\w.@-]*)\s+(UP|DOWN|UNKNOWN)\s*(.*)$`)
	ipO       = lazyre.New(`^(\d+): ([a-z][\w.@-]*)\s+inet6? (\S+)`)
	memlock   = lazyre.New(`(?i)max locked memory\s+\(k?bytes, -l\)\s+(\d+|unlimited)`)
	dfShm     = lazyre.New(`^\S+\s+(\S+)\s+\S+\s+\S+\s+\d+% /dev/shm$`)
	tresRe    = lazyre.New(`AllocTRES=(\S*)`)
	archRe    = lazyre.New(`(?:sm|compute)_\d+[a-z]?`)
	capRe     = lazyre.New(`(?i)(?:cuda )?capabilit(?:y|ies)\s*[:= ]*(?:sm_)?\(?(\d+)(?:[., ]+(\d+))?\)?`)
	whichRe   = lazyre.New(`^(/\S*/bin)/(python[\d.]*|torchrun|accelerate|deepspeed)$`)
	pipOut    = lazyre.New(`Found existing installation: (torch|nvidia-nccl-cu\d+) (\S+)`)
	pipIn     = lazyre.New(`\b(torch|nvidia-nccl-cu\d+|triton)-(\d[\w.+]*)`)
	pipSat    = lazyre.New(`Requirement already satisfied: torch(?:==\S+)? in (\S+) \(([\w.+]+)\)`)
	xidRe     = lazyre.New(`NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)`)
	dshbak    = lazyre.New(`^(?:={2,}|-{2,}|#{2,}|\*{2,}|>{2,}) ?(?:(?i:host|node|hostname)[:= ]+)?([A-Za-z][\w.-]*\d[\w.-]*|[a-z]+-[\w.-]+):? ?(?:={2,}|-{2,}|#{2,}|\*{2,}|<{2,})?$`)
	ansible   = lazyre.New(`^([A-Za-z][\w.-]*) \| (?:SUCCESS|CHANGED|FAILED)\b.*(?:rc=\d+ >>|=> \{)$`)
	notHost   = lazyre.New(`(?i)^(?:rank|step|epoch|gpu|attempt|run|test|stage|phase|iter|iteration|task|fold|round|part|exp|trial|layer|local|global|node_rank|stack|job)[-_.]?\d*$|^(?:end|begin|start)-`)
	hostSet   = lazyre.New(`^[A-Za-z][\w.-]*(?:\[[\d,-]+\])?[\w.-]*$`)
	pidAff    = lazyre.New(`(?:cpus|affinity(?: list)?|cpu list):\s*([\d,-]+)\s*$`)
	slurmV    = lazyre.New(`^(?:\d+: )?slurm(?:-wlm)? (\d+\.\d+\.\d+)`)
	condaEnv  = lazyre.New(`packages in environment at ([^:\s]+)`)
	noProg    = lazyre.New(`(?:^|: )([\w.+-]+): (?:command )?not found`)
	procIndex = lazyre.New(`^(?:Process index|[Gg]lobal[ _]rank|RANK): (\d+)$`)
	lightRank = lazyre.New(`(?i)GLOBAL_RANK: (\d+), MEMBER: \d+/(\d+)`)
	nnodesRe  = lazyre.New(`(?:--nnodes[ =]|min_nodes\s*: |num_nodes[ =:]+|nnodes[ =]+)(\d+)`)
	endpoint  = lazyre.New(`rdzv[_-]endpoint\s*[:= ]\s*([\w.\-:\[\]]+)`)
	silentRe  = lazyre.New(`(?i)no output for \d+|(?:sending|send) SIG(?:TERM|KILL)|\bno progress (?:since|for|in)\b|watchdog: no progress|\bstalled for \d+|\bhang (?:was )?detected\b|\bjob (?:is )?hung\b|\bkilling (?:the )?(?:process )?(?:group|job|step|hung)`)
	rankHost  = lazyre.New(`(?i)\bhost(?:name)?[ =:]+(\S+) (?:global_)?rank[ =:]+(\d+)\b`)
	sacctRow  = lazyre.New(`^(\d+(?:_\d+)?(?:\.\S+)?)\s+.*?\b(COMPLETED|FAILED|TIMEOUT|OUT_OF_ME\S*|CANCELLED(?: by \d+)?\+?|NODE_FAIL|PREEMPTED|REQUEUED|BOOT_FAIL|DEADLINE|RUNNING|PENDING)`)
	sacctEC   = lazyre.New(`^\d+:\d+$`)
	devNode   = lazyre.New(`^[cb][rwx-]{9}\S* .* (/dev/\S+)$`)
	fmRe      = lazyre.New(`Active: (\S+)`)
	lsn       = lazyre.New(`^LISTEN\s+\d+\s+\d+\s+\S*:(\d+)\s`)
)

// Feed reads one line: text is cleaned, msg is without prefixes.
func (p *Parser) Feed(text, msg string, pl fact.Place, nccl bool, out *fact.Listing, mask func(string) string) {
	if len(out.Facts) >= MaxFacts || msg == "" {
		return
	}
	p.cmdAge++
	add := func(kind, name, v, aux string) {
		if len(v) > 600 {
			v = v[:600]
		}
		q := pl
		if q.Node == "" {
			q.Node = p.node
		}
		s := fact.Said{Place: q, Kind: kind, Name: name, V: mask(v), Aux: aux}
		if len(text) <= 300 {
			s.Text = mask(text)
		} else {
			s.Text = mask(text[:300])
		}
		out.Facts = append(out.Facts, s)
	}
	if nccl || strings.Contains(msg, "NCCL") || strings.Contains(msg, "NET/") {
		p.ncclLine(msg, add)
		if nccl {
			return
		}
	}
	if p.echoed(msg, add) || p.answers(msg, add) || p.kernel(msg, add) || p.detail(msg, add) || p.ports(msg, add) || p.queue(msg, add) || p.says(text, msg, add) || p.recipes(msg, add) || p.spy(text, add) || p.forms(text, msg, add) {
		return
	}
	p.tables(text, msg, add)
	p.prints(text, msg, add)
}

func (p *Parser) ncclLine(msg string, add func(kind, name, v, aux string)) {
	if m := ncclVer.FindStringSubmatch(msg); m != nil {
		add(kind.NCCLVer, "", m[1], m[2])
	}
	switch {
	case strings.Contains(msg, " set by environment to ") || strings.Contains(msg, " set to "):
		if m := setEnv.FindStringSubmatch(msg); m != nil {
			add(kind.NCCLEnv, m[1], m[2], "")
		}
	case strings.Contains(msg, "Bootstrap"):
		if m := bootRe.FindStringSubmatch(msg); m != nil {
			add(kind.Bootstrap, m[1], m[2], "")
		}
	case strings.Contains(msg, "Using network "):
		if m := netRe.FindStringSubmatch(msg); m != nil {
			add(kind.NCCLNet, "", strings.TrimSpace(m[1]), "")
		}
	case strings.Contains(msg, "NET/IB : Using "):
		if m := hcaRe.FindStringSubmatch(msg); m != nil {
			add(kind.NCCLHCAs, "", m[1], "")
		}
	case strings.Contains(msg, " via "):
		if m := viaRe.FindStringSubmatch(msg); m != nil {
			add(kind.Via, m[1]+">"+m[2], m[3], "")
		}
	case strings.Contains(msg, " Init "):
		if m := initRe.FindStringSubmatch(msg); m != nil {
			add(kind.Init, m[1], m[3], m[2])
		}
	case strings.Contains(msg, "Plugin Path"), strings.Contains(msg, "P2P plugin"):
		add(kind.NCCLPlugin, "", msg, "")
	}
}

func (p *Parser) tables(text, msg string, add func(kind, name, v, aux string)) {
	if m := envExport.FindStringSubmatch(msg); m != nil {
		if interesting.MatchString(m[1]) { // conda env export
			add(kind.Pkg, m[1], m[2], m[3])
		}
		return
	}
	if m := lockLine.FindStringSubmatch(msg); m != nil { // uv.lock, poetry.lock, pdm.lock
		switch {
		case m[1] == "name":
			p.lockName, p.lockVer = m[2], ""
		case p.lockName != "" && interesting.MatchString(p.lockName):
			p.lockVer = m[2]
			add(kind.Pkg, p.lockName, m[2], "lock")
		}
		return
	}
	switch {
	case strings.HasPrefix(msg, "Package ") && strings.Contains(msg, "Version"):
		p.header = "pip"
		return
	case strings.HasPrefix(msg, "JobID"):
		p.header, p.tres = "sacct", strings.Contains(strings.ToLower(msg), "alloctres")
		return
	case strings.HasPrefix(msg, "# conda environments:"):
		p.header = "conda-envs"
		return
	case p.header == "conda-envs":
		if m := condaRow.FindStringSubmatch(msg); m != nil {
			add(kind.CondaEnv, m[1], m[3], strings.TrimSpace(m[2]))
			return
		}
		if msg != "#" {
			p.header = ""
		}
	case strings.Contains(msg, "packages in environment at"):
		if m := condaEnv.FindStringSubmatch(msg); m != nil {
			p.header, p.prefix = "conda", m[1]
			add(kind.PkgEnv, "", m[1], "")
		}
		return
	}
	if p.hostHeader(msg) {
		return
	}
	pkg := func(name, ver, aux string) {
		n := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if interesting.MatchString(n) {
			if p.prefix != "" {
				add(kind.PkgEnv, n, p.prefix, "")
			}
			add(kind.Pkg, n, strings.TrimPrefix(ver, "v"), aux)
		}
	}
	switch {
	case strings.Contains(msg, "=="):
		if m := freeze.FindStringSubmatch(msg); m != nil {
			pkg(m[1], m[2], "")
			return
		}
	case strings.Contains(msg, " @ "):
		if m := freezeAt.FindStringSubmatch(msg); m != nil {
			v := ""
			if k := fileVer.FindStringSubmatch(m[2]); k != nil && !strings.Contains(m[2], "/croot/") {
				v = strings.ReplaceAll(k[1], "%2B", "+")
			}
			pkg(m[1], v, m[2])
			return
		}
	case strings.Contains(msg, "::"):
		if m := planRow.FindStringSubmatch(text); m != nil {
			pkg(m[3], m[4], m[5])
			return
		}
	}
	if strings.Contains(msg, "torch") || strings.Contains(msg, "nccl") || strings.Contains(msg, "cpuonly") || strings.Contains(msg, "nvidia") || p.header == "pip" || p.header == "conda" {
		if m := linking.FindStringSubmatch(msg); m != nil {
			pkg(m[1], m[2], strings.TrimSuffix(m[3], ".conda"))
			return
		}
		if m := mambaRow.FindStringSubmatch(text); m != nil {
			pkg(m[1], m[2], m[3])
			return
		}
		row := msg
		if p.header == "conda" || strings.Contains(p.lastCmd, "mamba list") || strings.Contains(p.lastCmd, "conda list") {
			row = strings.TrimLeft(msg, " ") // micromamba indents
		}
		if m := pixiRow.FindStringSubmatch(row); m != nil {
			pkg(m[1], m[2], m[3])
		} else if m := column.FindStringSubmatch(row); m != nil {
			if p.header == "conda" || m[3] != "" || p.header == "pip" || strings.Contains(msg, "  ") || strings.Contains(p.lastCmd, "pip") || strings.Contains(p.lastCmd, "conda") {
				pkg(m[1], m[2], m[3])
			}
		}
	}
	if p.header == "sacct" || strings.Contains(p.lastCmd, "sacct") || sacctPipe.MatchString(msg) {
		msg := strings.ReplaceAll(msg, "|", " ")
		if m := sacctRow.FindStringSubmatch(msg); m != nil {
			ec := ""
			for _, f := range strings.Fields(msg) {
				if sacctEC.MatchString(f) {
					ec = f
				}
			}
			add(kind.Sacct, m[1], m[2], ec)
			if t := tresCol.FindStringSubmatch(msg); p.tres && t != nil {
				add(kind.TRES, "", t[1], "")
			}
		}
	}
}

// hostHeader reads the headings under which tools for many hosts put the
// output of each: clush -b and dshbak -c (a name between two lines of hyphens),
// ansible, and loops that print "== host ==".
func (p *Parser) hostHeader(msg string) bool {
	if len(msg) >= 6 && msg[0] == '-' && strings.Trim(msg, "-") == "" {
		if p.rule == 2 {
			p.node, p.rule = p.host, 0
		} else {
			p.rule = 1
		}
		return true
	}
	if p.rule == 1 && len(msg) < 64 && strings.ContainsAny(msg, "0123456789-[") && hostSet.MatchString(msg) && !notHost.MatchString(msg) {
		p.rule, p.host = 2, msg
		return true
	}
	p.rule = 0
	if len(msg) > 200 {
		return false
	}
	re := ansible
	if strings.IndexByte("=-#*>", msg[0]) >= 0 {
		re = dshbak
	} else if !strings.Contains(msg, " | ") {
		return false
	}
	if m := re.FindStringSubmatch(msg); m != nil && !notHost.MatchString(m[1]) {
		p.node = m[1]
		return true
	}
	return false
}

func (p *Parser) prints(text, msg string, add func(kind, name, v, aux string)) {
	has := func(s string) bool { return strings.Contains(msg, s) }
	switch {
	case has("Driver Version:"):
		if m := smiHead.FindStringSubmatch(msg); m != nil {
			add(kind.Driver, "", m[1], m[2])
			p.smi = 0
		}
		return
	case strings.HasPrefix(msg, "|"):
		if m := smiRow.FindStringSubmatch(msg); m != nil {
			p.smiGPU = m[1]
			add(kind.GPU, m[1], strings.TrimSuffix(strings.TrimSpace(m[2]), " "), m[3])
		} else if m := smiUse.FindStringSubmatch(msg); m != nil {
			add(kind.Mode, p.smiGPU, m[3], m[1])
		} else if strings.Contains(msg, "ERR!") {
			add(kind.Hardware, "err", msg, p.smiGPU)
		} else if m := smiProc.FindStringSubmatch(msg); m != nil {
			add(kind.Proc, m[1], m[3], m[4])
		}
		return
	case strings.HasPrefix(msg, "GPU "):
		if m := gpuL.FindStringSubmatch(msg); m != nil {
			add(kind.GPU, m[1], m[2], "")
			if m[3] != "" {
				add(kind.UUID, m[1], m[3], "")
			}
			return
		}
	case has("(UUID: MIG-"):
		if m := migL.FindStringSubmatch(msg); m != nil {
			add(kind.UUID, "", m[1], "")
			return
		}
	case strings.HasPrefix(msg, "PyTorch version:"):
		add(kind.TorchVer, "", strings.TrimSpace(msg[16:]), "")
		return
	case strings.HasPrefix(msg, "PyTorch Version "):
		add(kind.TorchVer, "", strings.TrimSpace(msg[16:]), "image")
		return
	case strings.HasPrefix(msg, "CUDA used to build PyTorch:"):
		add(kind.TorchCUDA, "", strings.TrimSpace(msg[27:]), "")
		return
	case strings.HasPrefix(msg, "ROCM used to build PyTorch:"):
		add(kind.TorchHIP, "", strings.TrimSpace(msg[27:]), "")
		return
	case strings.HasPrefix(msg, "Is CUDA available:"):
		add(kind.CUDAAvail, "", strings.TrimSpace(msg[18:]), "")
		return
	case strings.HasPrefix(msg, "Nvidia driver version:"):
		if v := strings.TrimSpace(msg[22:]); v != "" && v[0] >= '0' && v[0] <= '9' {
			add(kind.Driver, "", v, "")
		}
		return
	case strings.HasPrefix(msg, "GPU models and configuration: GPU "):
		if m := gpuL.FindStringSubmatch(msg[30:]); m != nil {
			add(kind.GPU, m[1], m[2], "")
		}
		return
	case strings.HasPrefix(msg, "torch version ."):
		if i := strings.LastIndexByte(msg, ' '); i > 0 {
			add(kind.TorchVer, "", msg[i+1:], "")
		}
		return
	case strings.HasPrefix(msg, "torch install path"):
		add(kind.TorchPath, "", strings.Trim(msg[strings.LastIndexByte(msg, ' ')+1:], "[']"), "")
		return
	case strings.HasPrefix(msg, "torch cuda version") || strings.HasPrefix(msg, "torch hip version"):
		add(map[bool]string{true: kind.TorchCUDA, false: kind.TorchHIP}[strings.HasPrefix(msg, "torch cuda")], "", msg[strings.LastIndexByte(msg, ' ')+1:], "")
		return
	}
	if has("Xid (PCI") {
		if m := xidRe.FindStringSubmatch(msg); m != nil {
			add(kind.Xid, m[1], m[2], "")
		}
	}
	if has("AER: ") || has("IO_PAGE_FAULT") {
		add(kind.Hardware, map[bool]string{true: "aer", false: "iommu"}[has("AER: ")], msg, "")
	}
	if has("ReqRedir+") {
		add(kind.ACS, "", "ReqRedir+", "")
	}
	if has("aarch64") {
		add(kind.Machine, "", "aarch64", "")
	}
	if has("tegra") {
		add(kind.OS, "", "tegra", "")
	}
	if has("=>") {
		if m := lddRow.FindStringSubmatch(msg); m != nil {
			add(kind.LDD, m[1], m[2], "")
			return
		}
	}
	if has("locked") {
		if m := memlock.FindStringSubmatch(msg); m != nil {
			add(kind.Memlock, "", m[1], "")
		}
	}
	if has("/dev/shm") {
		if m := dfShm.FindStringSubmatch(msg); m != nil {
			add(kind.Shm, "", m[1], "")
		}
	}
	if has("AllocTRES=") {
		if m := tresRe.FindStringSubmatch(msg); m != nil {
			add(kind.TRES, "", m[1], "")
		}
	}
	if has("Requirement already satisfied: torch") {
		if m := pipSat.FindStringSubmatch(msg); m != nil {
			add(kind.PipNoop, "torch", m[2], m[1])
		}
		return
	}
	if has("Found existing installation:") {
		if m := pipOut.FindStringSubmatch(msg); m != nil {
			add(kind.PipOut, m[1], m[2], p.lastCmd)
		}
		return
	}
	if has("Successfully installed ") {
		for _, m := range pipIn.FindAllStringSubmatch(msg, -1) {
			add(kind.PipIn, m[1], m[2], p.lastCmd)
		}
		return
	}
	if has("Ignoring invalid distribution") {
		add(kind.PipBroken, "", msg, "")
		return
	}
	if has("/dev/nvidia") {
		if m := devNode.FindStringSubmatch(msg); m != nil {
			add(kind.Dev, "", m[1], "")
			return
		}
	}
	if strings.HasPrefix(strings.TrimSpace(msg), "Active: ") && (strings.Contains(p.lastCmd, "fabricmanager") || strings.Contains(p.lastCmd, "fabric-manager")) {
		if m := fmRe.FindStringSubmatch(msg); m != nil {
			add(kind.FM, "", m[1], "")
		}
	}
	if strings.HasPrefix(msg, "LISTEN") {
		if m := lsn.FindStringSubmatch(msg); m != nil {
			add(kind.NetOut, "", m[1], "")
		}
	}
	if strings.HasPrefix(msg, "Python ") {
		if m := pyVersion.FindStringSubmatch(msg); m != nil {
			add(kind.Python, "", m[1], "")
		}
	}
	if m := slurmV.FindStringSubmatch(msg); m != nil {
		add(kind.SlurmVer, "", m[1], "")
	}
	if has("cpus:") || has("affinity") || has("cpu list") {
		if m := pidAff.FindStringSubmatch(msg); m != nil {
			add(kind.Affinity, "", m[1], "")
		}
	}
	if has(" on ") {
		if m := rankOn.FindStringSubmatch(msg); m != nil {
			add(kind.RankHost, m[1], m[2], "")
		}
	}
	if has("host ") || has("host=") || has("hostname") || has("Host") {
		if m := rankHost.FindStringSubmatch(msg); m != nil {
			add(kind.RankHost, m[2], m[1], "")
		}
	}
	if has("not found") {
		if m := noProg.FindStringSubmatch(msg); m != nil {
			add(kind.NoProgram, m[1], msg, "")
		}
	}
	if len(msg) < 40 && (has("ndex: ") || has("ank: ") || has("RANK: ")) {
		if m := procIndex.FindStringSubmatch(msg); m != nil { // accelerate's state
			add(kind.GlobalRank, m[1], "", "")
		}
	}
	if has("GLOBAL_RANK") {
		if m := lightRank.FindStringSubmatch(msg); m != nil {
			add(kind.GlobalRank, m[1], m[2], "")
		}
	}
	if has("nodes") {
		if m := nnodesRe.FindStringSubmatch(msg); m != nil {
			add(kind.NNodes, "", m[1], "")
		}
	}
	if has("endpoint") {
		if m := endpoint.FindStringSubmatch(msg); m != nil {
			add(kind.Endpoint, "", m[1], "")
		}
	}
	if has("o output") || has("SIGTERM") || has("o progress") || has("stalled") || has("hang ") || has("hung") || has("illing ") {
		if silentRe.MatchString(msg) && !has("closing signal") && !has("death signal") {
			add(kind.Silence, "", msg, "")
		}
	}
	if len(msg) < 300 {
		if m := whichSays.FindStringSubmatch(msg); m != nil {
			add(kind.Which, "python", m[1], "")
			return
		}
		if m := distShown.FindStringSubmatch(msg); m != nil && p.cmdAge <= 30 && strings.HasPrefix(p.lastCmd, "ls ") {
			for _, w := range strings.Fields(p.lastCmd) {
				if strings.HasPrefix(w, "/") {
					add(kind.TorchDist, strings.TrimRight(w, "/"), m[1], "")
					return
				}
			}
		}
		p.disks(msg, add)
		if p.cmdAge <= 64 && asksNodes.MatchString(p.lastCmd) {
			if m := nodeSays.FindStringSubmatch(text); m != nil {
				add(kind.NodeSays, m[1], m[2], "")
			}
		}
		if stuckSays.MatchString(text) {
			add(kind.Stuck, "", msg, "")
		}
		if has("NCCL_P2P_DISABLE=1") && p2pOff.MatchString(msg) {
			add(kind.P2POff, "", msg, "")
		}
		if m := whichRe.FindStringSubmatch(msg); m != nil {
			add(kind.Which, m[2], msg, "")
			return
		}
	}
	if has("(max, min)") {
		return
	}
	p.versions(text, msg, add)
	p.env(text, msg, add)
	if m := ipBr.FindStringSubmatch(msg); m != nil {
		add(kind.Iface, m[1], m[3], m[2])
	} else if m := ipO.FindStringSubmatch(msg); m != nil && has(" inet") {
		add(kind.Iface, m[2], m[3], "")
	}
}

// versions reads one-line prints such as "torch 2.5.1+cu121 cuda 12.1".
func (p *Parser) versions(text, msg string, add func(kind, name, v, aux string)) {
	if len(msg) > 400 {
		return
	}
	low := msg
	if strings.Contains(low, "orch") && !strings.Contains(msg, ".whl") && !strings.Contains(msg, "Downloading") && !strings.Contains(msg, "Collecting") &&
		!strings.Contains(msg, "requires torch") && !strings.Contains(msg, "has requirement") && !strings.Contains(msg, "Installing collected") && !strings.Contains(msg, "site-packages/") && !strings.HasPrefix(strings.TrimSpace(msg), "File ") &&
		!strings.Contains(msg, "pip install") && !strings.Contains(msg, "conda install") && !strings.Contains(msg, "ninstall") && !strings.Contains(msg, "torch==") && p.header == "" && !strings.Contains(msg, "per environment") && !strings.Contains(msg, "PyTorch was compiled") {
		if m := torchSay.FindStringSubmatchIndex(msg); m != nil {
			v := msg[m[2]:m[3]]
			pre := msg[:m[0]]
			if !strings.HasSuffix(pre, "/") && !strings.HasSuffix(pre, "_") && !strings.Contains(msg, "built with") {
				add(kind.TorchVer, "", v, "")
				if c := cudaSay.FindStringSubmatch(msg[m[1]:]); c != nil {
					add(kind.TorchCUDA, "", c[1], "")
				}
				if strings.Contains(msg, "available False") || strings.Contains(msg, "available=False") {
					add(kind.CUDAAvail, "", "False", "")
				} else if strings.Contains(msg, "available True") || strings.Contains(msg, "available=True") {
					add(kind.CUDAAvail, "", "True", "")
				}
			}
		}
	}
	if rest, ok := strings.CutPrefix(msg, "Submitted batch job "); ok {
		add(kind.Submitted, "", rest, "")
	}
	if strings.Contains(msg, ".so") {
		if m := emptyLib.FindStringSubmatch(msg); m != nil {
			add(kind.EmptyLib, "", m[1], "")
		}
	}
	if len(msg) < 60 && strings.IndexByte("12'\"(", msg[0]) >= 0 && strings.IndexByte(msg, '+') > 0 {
		// a version alone on its line: only torch has such local tags and a major number
		if m := bareVer.FindStringSubmatch(msg); m != nil && !(p.cmdAge <= 30 && strings.Contains(p.lastCmd, "torch")) {
			add(kind.TorchVer, "", m[1], "")
			if m[2] != "" {
				add(kind.TorchCUDA, "", m[2], "")
			}
		}
	}
	if len(msg) < 300 && strings.Contains(msg, "/bin/python") {
		// print(sys.executable, torch.__version__, torch.version.cuda)
		if m := exeSays.FindStringSubmatch(msg); m != nil {
			add(kind.Which, "python", m[1], "")
			add(kind.TorchVer, "", m[2], "")
			add(kind.TorchCUDA, "", m[3], "")
		}
	}
	m := []int(nil)
	if strings.Contains(msg, "-packages/torch/__init__.py") && !strings.Contains(msg, "line ") {
		m = torchFile.FindStringSubmatchIndex(msg)
	}
	if m != nil {
		// print(torch.__file__, …): the path, and often the versions behind it
		add(kind.TorchPath, "", msg[m[2]:m[3]], "")
		rest := msg[m[1]:]
		if v := torchVers.FindStringSubmatch(rest); v != nil {
			add(kind.TorchVer, "", v[1], "")
		}
		if c := torchCUDA.FindStringSubmatch(rest); c != nil {
			add(kind.TorchCUDA, "", c[1], "")
		}
	}
	if p.cmdAge <= 3 && strings.Contains(p.lastCmd, "torch") || p.cmdAge <= 30 && strings.Contains(p.lastCmd, "torch.__version__") || strings.HasPrefix(msg, "('") {
		say := msg
		if m := tuple3.FindStringSubmatch(msg); m != nil && strings.Contains(p.lastCmd, "nccl") { // torch.cuda.nccl.version()
			add(kind.NCCLVer, "", m[1]+"."+m[2]+"."+m[3], "")
			say = strings.TrimRight(strings.Replace(msg, m[0], "", 1), " ,")
		}
		if m := replVer.FindStringSubmatch(say); m != nil && strings.Contains(m[1], ".") {
			add(kind.TorchVer, "", m[1], "")
			if m[2] != "" && strings.Contains(p.lastCmd+msg, "cuda") || m[2] == "None" || strings.HasPrefix(msg, "('") && m[2] != "" {
				add(kind.TorchCUDA, "", m[2], "")
			}
		}
	}
	if strings.Contains(msg, "sm_") && (strings.Contains(msg, "supports CUDA capabilities") || strings.Contains(msg, "arch_list") || strings.Contains(msg, "arch list") || strings.Contains(msg, "['sm_") || archsRe.MatchString(msg)) {
		add(kind.ArchList, "", strings.Join(archRe.FindAllString(msg, -1), " "), "")
	} else if strings.Contains(msg, "apabilit") || strings.Contains(msg, "compute_cap") {
		if m := capRe.FindStringSubmatch(msg); m != nil {
			major, minor := m[1], m[2]
			if minor == "" && len(major) > 1 {
				major, minor = major[:len(major)-1], major[len(major)-1:]
			}
			if minor != "" && len(major) <= 2 {
				add(kind.Capability, "", major+"."+minor, "")
			}
		}
	}
	if m := gpuCSV.FindStringSubmatch(msg); m != nil && p.csv(m[1], m[2], add) {
		return
	} else if strings.Contains(strings.ToLower(msg), "driver") {
		if m := driverIn.FindStringSubmatch(msg); m != nil {
			add(kind.Driver, "", m[1], "")
		}
	} else if strings.Contains(p.lastCmd, "driver_version") && p.cmdAge <= 4 && bareDrv.MatchString(msg) {
		add(kind.Driver, "", msg, "")
	}
}

// env reads NAME=value lines and prints of single variables.
func (p *Parser) env(text, msg string, add func(kind, name, v, aux string)) {
	if m := envRow.FindStringSubmatch(msg); m != nil && upper(m[1]) && !strings.HasPrefix(msg, "SeqNum") {
		v := m[2]
		if m[1] == "CUDA_VISIBLE_DEVICES" || m[1] == "SLURM_JOB_GPUS" {
			if i := strings.IndexByte(v, ' '); i >= 0 {
				v = v[:i]
			}
		}
		if matters(m[1]) {
			add(kind.Env, m[1], strings.Trim(v, "\"'"), "")
		}
		for _, k := range envEcho.FindAllStringSubmatch(m[2], -1) {
			add(kind.Env, k[1], strings.Trim(k[2], "\"',;"), "")
		}
		return
	}
	if strings.Contains(msg, "=") && len(msg) < 600 {
		for _, k := range envEcho.FindAllStringSubmatch(msg, -1) {
			if !strings.Contains(msg, "$ ") && !strings.Contains(msg, "'"+k[1]) {
				add(kind.Env, k[1], strings.Trim(k[2], "\"',;"), "")
			}
		}
	}
}

func upper(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			return false
		}
	}
	return true
}

// matters reports whether a variable says something about a run.
func matters(n string) bool {
	for _, p := range [...]string{"NCCL_", "CUDA_", "SLURM_", "SBATCH_", "TORCH_", "FI_", "NVIDIA_", "LD_", "GLOO_", "MASTER_", "CONDA_", "EBROOT", "OMP_", "FLASH_ATTN", "UCX_", "HIP_", "ROCR_", "PYTHON"} {
		if strings.HasPrefix(n, p) {
			return true
		}
	}
	switch n {
	case "PATH", "VIRTUAL_ENV", "LOADEDMODULES", "RANK", "LOCAL_RANK", "WORLD_SIZE", "HOME", "USER", "GPU_DEVICE_ORDINAL", "LIBRARY_PATH", "HOSTNAME":
		return true
	}
	return false
}
