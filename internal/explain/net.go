package explain

import (
	"sort"
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/mask"
)

// decideNet judges NCCL's transports.
func (v *view) decideNet() {
	v.versions()
	v.deadPort(v.peek("S137", "S141", "S142", "S144", "S166", "S168", "S169", "S118", "S119", "log-nccl-connect-exceeded-retries", "log-nccl-ib-no-device", "log-nccl-ib-async-event"))
	v.interfaces()
	v.rdma()
	v.shm()
	if v.hcaNamed() {
		v.used["S147"] = true
	} else if es := v.ev("S147", "S148", "S149"); len(es) > 0 {
		v.add(cand{id: "net-plugin-missing", cert: diag.Proven, tier: 1}, cap4(es)...)
	}
	v.used["S143"], v.used["S144"], v.used["S146"] = true, true, true
	v.peers()
	v.nodesDiffer()
}

// hcaNamed judges a job that is told by NCCL_IB_HCA which devices to use, and
// finds none.
func (v *view) hcaNamed() bool {
	es := v.peek("S144")
	if len(es) == 0 || !v.dead && len(v.exc) == 0 && len(v.peek("S147")) == 0 {
		return false
	}
	for _, k := range []string{kind.NCCLEnv, kind.Env} {
		for _, s := range v.facts(k) {
			if s.Name == "NCCL_IB_HCA" && s.V != "" && !strings.HasPrefix(s.V, "^") && s.V != "mlx5" && s.V != "mlx5_" {
				c := v.add(cand{id: "net-rdma-device", cert: diag.Likely, tier: 1, args: diag.Args{"var": s.Name, "value": s.V}, over: []string{"net-plugin-missing", "net-interface-wrong"}, needs: []string{"srun ls /sys/class/infiniband"}}, cap4(es)...)
				v.said(c, s)
				return true
			}
		}
	}
	return false
}

// ncclByNode returns the NCCL versions by node, rank or listing header.
func (v *view) ncclByNode() map[string][]fact.Said {
	out := map[string][]fact.Said{}
	for _, s := range v.l.Listing.Facts {
		if s.Kind == kind.NCCLVer || s.Kind == kind.Pkg && strings.HasPrefix(s.Name, "nvidia-nccl-cu") {
			if s.Kind == kind.Pkg && s.Node == "" {
				continue
			}
			out[s.V] = append(out[s.V], s)
		}
	}
	return out
}

func (v *view) versions() {
	if es := v.ev("S127", "S128"); len(es) > 0 {
		v.add(cand{id: "nccl-version-differs-between-nodes", cert: diag.Proven}, cap4(es)...)
		return
	}
	odd := v.ev("S124", "S131", "S132", "S133", "S134", "S135")
	if len(odd) == 0 {
		v.ncclDiffers()
		return
	}
	byVer := v.ncclByNode()
	if len(byVer) > 1 {
		c := v.add(cand{id: "nccl-version-differs-between-nodes", cert: diag.Proven, over: []string{"net-interface-wrong"}}, cap4(odd)...)
		var vs []string
		for ver, ss := range byVer {
			vs = append(vs, ver)
			v.said(c, ss[0])
		}
		sort.Strings(vs)
		c.args = mergeArgs(c.args, diag.Args{"versions": strings.Join(vs, ", ")})
		return
	}
	family := v.peek("S124")
	if len(family) > 0 {
		if s, ok := v.ifname(); ok {
			c := v.add(cand{id: "net-interface-wrong", cert: diag.Likely, args: diag.Args{"value": s.V, "var": s.Name}}, cap4(family)...)
			v.said(c, s)
			if len(byVer) == 1 {
				c.cert = diag.Proven
			}
			return
		}
		v.unknown(family, "NCCL_DEBUG=VERSION on every node", "env | grep NCCL_", "ip -br a")
		return
	}
	if es := v.peek("S135"); len(es) > 0 {
		v.add(cand{id: "run-ranks-diverged", cert: diag.Likely}, cap4(es)...)
		return
	}
	if d := v.envDiffers(); d != nil {
		c := v.add(cand{id: "net-differs-between-nodes", cert: diag.Likely}, cap4(odd)...)
		v.said(c, d...)
		return
	}
	if len(v.peek("S132")) == len(odd) {
		return
	}
	v.unknown(odd, "NCCL_DEBUG=VERSION and env | grep NCCL_ on both ranks", "the call that each of them made (TORCH_DISTRIBUTED_DEBUG=DETAIL)")
}

// envDiffers returns NCCL settings that differ between nodes or ranks.
func (v *view) envDiffers() []fact.Said {
	seen := map[string]fact.Said{}
	for _, s := range v.l.Listing.Facts {
		if s.Kind != kind.NCCLEnv && !(s.Kind == kind.Env && strings.HasPrefix(s.Name, "NCCL_") && s.Node != "") {
			continue
		}
		if s.Name == "NCCL_DEBUG" || s.Name == "NCCL_DEBUG_FILE" {
			continue
		}
		if o, ok := seen[s.Name]; ok && o.V != s.V && o.Node != s.Node {
			return []fact.Said{o, s}
		}
		seen[s.Name] = s
	}
	return nil
}

func (v *view) ifname() (fact.Said, bool) {
	for _, k := range []string{kind.NCCLEnv, kind.Env} {
		for _, s := range v.facts(k) {
			if s.Name == "NCCL_SOCKET_IFNAME" && s.V != "" {
				return s, true
			}
		}
	}
	for _, s := range v.scripts {
		for _, a := range s.assigns("NCCL_SOCKET_IFNAME") {
			return s.said(a.Pos, a.Name, mask.Text(a.Value.Text)), true
		}
	}
	for _, c := range v.l.Commands {
		if m := ifSet.FindStringSubmatch(c.Text); m != nil {
			return fact.Said{Place: c.Place, Name: "NCCL_SOCKET_IFNAME", V: m[1], Text: c.Text}, true
		}
	}
	return fact.Said{}, false
}

var (
	ifSet     = lazyre.New(`NCCL_SOCKET_IFNAME=([^\s;]+)`)
	bridge    = lazyre.New(`^(?:virbr|docker|br-|lo$|lo\d*$|veth|cni|flannel|cali|podman|vmnet|vboxnet|lxc|lxd|tap|tun|wg|tailscale)`)
	statusRe  = lazyre.New(`(?:with error |status=(?:\w+\()?)(\d+)`)
	statusWrd = lazyre.New(`status=(?:IBV_WC_)?([A-Z_]+)`)
)

func (v *view) interfaces() {
	if es := v.ev("S123"); len(es) > 0 {
		c := v.add(cand{id: "net-interface-wrong", cert: diag.Proven}, cap4(es)...)
		if s, ok := v.ifname(); ok {
			v.said(c, s)
			c.args = mergeArgs(c.args, diag.Args{"var": s.Name, "value": s.V})
		}
		return
	}
	fail := v.ev("S166", "S168", "S169", "S170", "S171", "log-nccl-connect-exceeded-retries")
	if es := v.ev("S081"); len(es) > 0 && v.dead && v.multiNode() {
		v.add(cand{id: "net-interface-wrong", cert: diag.Likely, tier: 1}, cap4(es)...)
	}
	if es := v.ev("log-gloo-unable-find-interface"); len(es) > 0 {
		v.add(cand{id: "net-interface-wrong", cert: diag.Proven}, cap4(es)...)
	}
	if len(fail) == 0 {
		return
	}
	if s, ok := v.bridged(); ok {
		c := v.add(cand{id: "net-interface-wrong", cert: diag.Proven, tier: 1, args: diag.Args{"iface": s.Name, "value": s.Name}}, cap4(fail)...)
		v.said(c, s)
		return
	}
	var hard []*fact.Event
	for _, e := range fail {
		if e.Sig != "S168" || v.dead {
			hard = append(hard, e)
		}
	}
	if len(hard) == 0 {
		return
	}
	if s, ok := v.ifname(); ok {
		c := v.add(cand{id: "net-interface-wrong", cert: diag.Likely, tier: 1, args: diag.Args{"var": s.Name, "value": s.V}}, cap4(hard)...)
		v.said(c, s)
		c.needs = append(c.needs, "srun -l ip -br a", "ping between the addresses of that interface")
		return
	}
	if boots := v.facts(kind.Bootstrap); len(boots) > 0 {
		// the same private address on several nodes
		byAddr := map[string]fact.Said{}
		for _, b := range boots {
			if o, ok := byAddr[b.V]; ok && o.Node != b.Node && o.Node != "" {
				c := v.add(cand{id: "net-interface-wrong", cert: diag.Proven, tier: 1, args: diag.Args{"iface": b.Name}}, cap4(hard)...)
				v.said(c, o, b)
				return
			}
			byAddr[b.V] = b
		}
	}
	if peer, ok := v.sameSubnet(hard); ok {
		// the interface is right; the peer went away, and its log would say why
		v.unknown(hard, "the log of the rank on "+peer, "sacct -j JOBID -o JobID,State,ExitCode,NodeList", "srun -w NODE ping -c 3 "+peer)
		return
	}
	c := v.add(cand{id: "net-interface-wrong", cert: diag.Possible, tier: 2}, cap4(hard)...)
	c.needs = append(c.needs, "srun -l ip -br a", "the line \"Bootstrap : Using …\" of every node, which NCCL_DEBUG=INFO writes", "ncclinic check --nodes")
}

var (
	peerAddr = lazyre.New(`(\d+\.\d+\.\d+)\.\d+(?:<\d+>|:\d+)`)
	refused  = lazyre.New(`(?i)connection refused|connection abort|connection reset|closed by (?:remote )?peer`)
)

// sameSubnet reports that a peer refused or ended a connection on the subnet of
// the interface that NCCL chose here: that says nothing against the interface.
func (v *view) sameSubnet(es []*fact.Event) (string, bool) {
	for _, e := range es {
		m := peerAddr.FindStringSubmatch(e.Text)
		if m == nil || !refused.MatchString(e.Text) {
			continue
		}
		for _, b := range v.facts(kind.Bootstrap) {
			if strings.HasPrefix(b.V, m[1]+".") && (b.Node == e.Node || e.Node == "") {
				return strings.TrimRight(m[0][:strings.IndexAny(m[0], "<:")], "<:"), true
			}
		}
	}
	return "", false
}

// bridged returns a Bootstrap line that chose an interface that leads nowhere.
func (v *view) bridged() (fact.Said, bool) {
	for _, s := range v.facts(kind.Bootstrap) {
		if bridge.MatchString(s.Name) {
			return s, true
		}
	}
	return fact.Said{}, false
}

// rdma judges verbs calls and completion errors.
func (v *view) rdma() {
	var mem, reg []*fact.Event
	for _, e := range v.ev("S138", "S139", "S140", "log-nccl-ibv-reg-mr") {
		switch {
		case strings.Contains(e.Text, "Bad address") || strings.Contains(e.Text, "Invalid argument") && strings.Contains(e.Text, "reg_"):
			reg = append(reg, e)
		default:
			mem = append(mem, e)
		}
	}
	if len(mem) > 0 {
		c := v.add(cand{id: "net-rdma-memlock", cert: diag.Likely}, cap4(mem)...)
		if ms := v.facts(kind.Memlock); len(ms) > 0 {
			v.said(c, ms[0])
			if ms[0].V != "unlimited" {
				c.cert = diag.Proven
			}
		}
		if c.cert != diag.Proven {
			c.needs = append(c.needs, "srun bash -c 'ulimit -l'")
		}
	}
	if len(reg) > 0 {
		v.add(cand{id: "net-rdma-registration", cert: diag.Proven}, cap4(reg)...)
	}
	if es := v.ev("S141"); len(es) > 0 {
		v.add(cand{id: "net-rdma-address", cert: diag.Likely, tier: 1}, cap4(es)...)
	}
	if es := v.ev("S142", "log-nccl-ibv-open-device"); len(es) > 0 {
		v.add(cand{id: "net-rdma-device", cert: diag.Likely, tier: 1}, cap4(es)...)
	}
	es := v.ev("S137")
	if len(es) == 0 {
		return
	}
	var rest []*fact.Event
	for _, e := range es {
		if st := status(e.Text); st != 5 {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		v.add(cand{id: "net-rdma-address", cert: diag.Possible, tier: 2, needs: []string{"the first completion error of all ranks by time", "dmesg and ibstat of the nodes"}}, cap4(es)...)
		return
	}
	e := rest[0]
	id, cert := "net-rdma-address", diag.Likely
	switch status(e.Text) {
	case 1, 2, 3, 4, 6, 7, 8, 9, 10, 11:
		id = "net-rdma-registration"
	}
	if id == "net-rdma-registration" && v.gdr() {
		cert = diag.Proven
	}
	if id == "net-rdma-address" && (strings.Contains(e.Text, "localGid fe80") || len(v.facts(kind.Init)) > 0) {
		cert = diag.Proven
		if !strings.Contains(e.Text, "fe80") {
			cert = diag.Likely
		}
	}
	c := v.add(cand{id: id, cert: cert, tier: 1, over: []string{"run-exception", "run-native-crash"}}, cap4(rest)...)
	for _, s := range v.facts(kind.NCCLEnv) {
		if s.Name == "NCCL_IB_GID_INDEX" || s.Name == "NCCL_IB_HCA" {
			v.said(c, s)
			break
		}
	}
	for _, s := range v.facts(kind.Hardware) {
		if s.Name == "iommu" {
			v.said(c, s)
			break
		}
	}
}

func (v *view) gdr() bool {
	for _, s := range v.facts(kind.Via) {
		if strings.Contains(s.V, "GDRDMA") {
			return true
		}
	}
	return false
}

var wcNames = map[string]int{"LOC_LEN_ERR": 1, "LOC_QP_OP_ERR": 2, "LOC_PROT_ERR": 4, "WR_FLUSH_ERR": 5, "MW_BIND_ERR": 6, "REM_INV_REQ_ERR": 9, "REM_ACCESS_ERR": 10, "REM_OP_ERR": 11, "RETRY_EXC_ERR": 12, "RNR_RETRY_EXC_ERR": 13}

// status reads the verbs completion status of a "Got completion" line.
func status(t string) int {
	if m := statusRe.FindStringSubmatch(t); m != nil {
		n := 0
		for _, c := range m[1] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	if m := statusWrd.FindStringSubmatch(t); m != nil {
		return wcNames[m[1]]
	}
	return 0
}

// shm judges /dev/shm.
func (v *view) shm() {
	es := v.ev("S150", "S151", "S152", "S306", "S307")
	attach := v.ev("S153")
	for _, e := range v.peek("S316") {
		if inShm(e.Text) {
			es = append(es, e)
		}
	}
	for _, e := range v.peek("S319") {
		if shmWrite(e) {
			v.used["S319"] = true
			es = append(es, e)
		}
	}
	if len(es) == 0 && len(attach) > 0 {
		v.add(cand{id: "net-shared-memory-full", cert: diag.Possible, tier: 1, needs: []string{"df -h /dev/shm", "are the ranks of one node in containers of their own?"}}, cap4(attach)...)
		return
	}
	if len(es) == 0 {
		return
	}
	v.sortEvents(es)
	c := v.add(cand{id: "net-shared-memory-full", cert: diag.Likely, over: []string{"run-exception", "host-disk-full", "run-native-crash"}}, cap4(es)...)
	for _, e := range es {
		if strings.Contains(e.Text, "No space left") {
			c.cert = diag.Proven
		}
	}
	if ss := v.facts(kind.Shm); len(ss) > 0 {
		v.said(c, ss[0])
		c.cert = diag.Proven
	}
	for _, e := range v.ev("S326") {
		c.ev = append(c.ev, v.evidence(e.Place, e.Text))
		c.cert = diag.Proven
		break
	}
	if c.cert != diag.Proven {
		c.needs = append(c.needs, "df -h /dev/shm")
	}
}

// inShm reports that what is full is shared memory and no disk.
// shmWrite reports whether torch could open its file in /dev/shm and not fill it:
// that is full. Older versions give no errno.
func shmWrite(e *fact.Event) bool {
	return strings.Contains(e.Text, "unable to write to file </torch_") && !strings.Contains(e.Text, "Too many open files")
}

func inShm(text string) bool {
	return strings.Contains(text, "/dev/shm") || strings.Contains(text, "shared memory(shm)") || strings.Contains(text, "</torch_") || strings.Contains(text, "shared memory segment")
}

// peers judges a hang over peer-to-peer: a run without it passes, or the
// platform redirects peer requests.
func (v *view) peers() {
	if es := v.ev("log-simple-p2p-failed"); len(es) > 0 {
		v.add(cand{id: "gpu-peer-access-broken", cert: diag.Proven, forced: true, over: []string{"run-collective-hang"}}, cap4(es)...)
		return
	}
	acs := v.facts(kind.ACS)
	p2p := false
	var via fact.Said
	for _, s := range v.facts(kind.Via) {
		if strings.HasPrefix(s.V, "P2P/") {
			p2p, via = true, s
		}
	}
	var without fact.ShellCmd
	for _, c := range v.l.Commands {
		if strings.Contains(c.Text, "NCCL_P2P_DISABLE=1") && c.Line > via.Line {
			without = c
		}
	}
	// The run without it trains, and nothing does before.
	passes, before := false, false
	for _, s := range v.l.Streams {
		if without.Line > 0 && s.First.File == without.File {
			passes = passes || s.Last.Line > without.Line
			before = before || s.First.Line < without.Line && s.First.Line > via.Line
		}
	}
	for _, s := range v.facts(kind.P2POff) {
		if without.Line == 0 {
			without = fact.ShellCmd{Place: s.Place, Text: s.Text}
		}
		passes = true
	}
	hung := passes && !before
	for _, c := range v.l.Commands {
		if strings.Contains(c.Text, "timeout ") && !strings.Contains(c.Text, "NCCL_P2P_DISABLE=1") {
			hung = true
		}
	}
	for _, s := range v.facts(kind.Hardware) { // the IOMMU refuses what one GPU writes to the other
		if s.Name == "iommu" && p2p {
			acs = append(acs, s)
			hung = hung || without.Line > 0
		}
	}
	if p2p && (len(acs) > 0 && (hung || v.has("S021")) || without.Line > 0 && hung) {
		c := v.add(cand{id: "gpu-peer-access-broken", cert: diag.Likely, tier: 1, forced: true, over: []string{"run-collective-hang"}})
		v.said(c, via)
		c.where = append(c.where, v.where(via.Place))
		c.at = via.Place
		if without.Line > 0 {
			c.ev = append(c.ev, v.evidence(without.Place, without.Text))
		}
		v.said(c, first(acs, 1)...)
		if len(acs) > 0 && passes { // typing the command alone says nothing of how it ended
			c.cert = diag.Proven
		}
	}
}

// nodesDiffer compares what each node prints about its network.
func (v *view) nodesDiffer() {
	mixed := v.ev("log-nccl-mixed-net-devices")
	type net struct{ network, hcas, node string }
	per := map[string]*net{}
	get := func(s fact.Said) *net {
		k := s.Node
		if k == "" && s.Task >= 0 {
			k = "task " + itoa(s.Task)
		}
		if k == "" {
			return nil
		}
		if per[k] == nil {
			per[k] = &net{node: k}
		}
		return per[k]
	}
	var nets, hcas []fact.Said
	for _, s := range v.l.Listing.Facts {
		switch s.Kind {
		case kind.NCCLNet:
			if n := get(s); n != nil && n.network == "" {
				n.network = s.V
				nets = append(nets, s)
			}
		case kind.NCCLHCAs:
			if n := get(s); n != nil && n.hcas == "" {
				n.hcas = s.V
				hcas = append(hcas, s)
			}
		}
	}
	diffNet, diffHCA := distinct(nets), distinct2(hcas)
	if !diffNet && !diffHCA && len(mixed) == 0 || len(per) < 2 && len(mixed) == 0 {
		return
	}
	if !v.dead && !v.stopped() && !v.setupOpen() && len(mixed) == 0 {
		return
	}
	c := cand{id: "net-differs-between-nodes", cert: diag.Likely, tier: 1}
	if len(mixed) > 0 {
		c.cert = diag.Proven
	}
	p := v.add(c, cap4(mixed)...)
	if diffNet {
		v.said(p, first(nets, 2)...)
	} else {
		v.said(p, first(hcas, 2)...)
	}
	for _, e := range v.peek("log-nccl-ibv-open-device") {
		p.ev = append(p.ev, v.evidence(e.Place, e.Text))
		p.where = append(p.where, v.where(e.Place))
	}
	for _, s := range append(first(nets, 4), first(hcas, 4)...) {
		p.where = append(p.where, v.where(s.Place))
	}
}

// stopped reports that a wrapper ended a job that no longer said anything.
func (v *view) stopped() bool {
	return len(v.facts("silence")) > 0
}

// setupOpen reports that NCCL began to set communicators up, that no rank says
// that it ended, and that nothing was trained.
func (v *view) setupOpen() bool {
	began := false
	for _, s := range v.facts(kind.Init) {
		if s.V == "COMPLETE" {
			return false
		}
		began = true
	}
	return began && !v.trained() && len(v.facts("success")) == 0
}

func distinct(ss []fact.Said) bool {
	for _, s := range ss {
		if s.V != ss[0].V {
			return true
		}
	}
	return false
}

// distinct2 compares device lists, not their order of ports.
func distinct2(ss []fact.Said) bool {
	for _, s := range ss {
		if strings.Count(s.V, "[") != strings.Count(ss[0].V, "[") || roce(s.V) != roce(ss[0].V) {
			return true
		}
	}
	return false
}

func roce(s string) bool { return strings.Contains(s, "RoCE") }
