package nodes

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"net/netip"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// self stands for the node's own name in what equal nodes have in common.
const self = "@NODE@"

// own are the facts that are each node's own. They are sent complete beside the
// common part, in which a mask stands for them, and put back into the facts of
// the one node that stands for its group.
type own struct {
	Name   fact.Val[string]       `json:"name,omitzero"`
	Env    []fact.EnvVar          `json:"env,omitempty"`
	Ifaces fact.Val[[]fact.Iface] `json:"ifaces,omitzero"`
	RDMA   fact.Val[[]fact.HCA]   `json:"rdma,omitzero"`
	GPUs   fact.Val[[]fact.GPU]   `json:"gpus,omitzero"`
	Memory fact.Val[fact.Memory]  `json:"memory,omitzero"`
	Shm    fact.Val[fact.FSUsage] `json:"shm,omitzero"`
	SMI    fact.Val[fact.SMI]     `json:"smi,omitzero"`
	Slurm  fact.Slurm             `json:"slurm,omitzero"`
}

// ownVars are variables whose values Slurm makes different on each node.
var ownVars = map[string]bool{
	"SLURM_PROCID": true, "SLURM_NODEID": true, "SLURM_LOCALID": true, "SLURMD_NODENAME": true, "SLURM_TASK_PID": true,
	"SLURM_GTIDS": true, "SLURM_TOPOLOGY_ADDR": true, "SLURM_STEP_GPUS": true, "SLURM_JOB_GPUS": true, "GPU_DEVICE_ORDINAL": true,
	"SLURM_CPU_BIND": true, "SLURM_CPU_BIND_LIST": true, "SLURM_MEM_BIND": true, "SLURM_MEM_BIND_LIST": true, "HOSTNAME": true,
	"CUDA_VISIBLE_DEVICES": true, "ROCR_VISIBLE_DEVICES": true, "PMIX_RANK": true, "PMI_RANK": true, "PMIX_SERVER_TMPDIR": true,
	"PMIX_NAMESPACE": true, "SLURM_LAUNCH_NODE_IPADDR": true, "SLURM_CPUS_ON_NODE": true, "ENROOT_PID": true,
}

func ownVar(name string) bool {
	return ownVars[name] || strings.HasPrefix(name, "PMIX_SERVER_URI") || strings.HasPrefix(name, "PMIX_SECURITY")
}

// divide takes a bundle apart. The bundle itself becomes the common part.
func divide(b *fact.Bundle) own {
	o := own{Name: b.Host.Name, Ifaces: b.Node.Ifaces, RDMA: b.Node.RDMA, GPUs: b.Node.GPUs, Memory: b.Node.Memory, Shm: b.Node.Shm, SMI: b.Node.SMI, Slurm: b.Slurm}
	var env []fact.EnvVar
	for _, v := range b.Env {
		if ownVar(v.Name) {
			o.Env = append(o.Env, v)
			v.Value = maskVar(v)
		}
		env = append(env, v)
	}
	b.Env = env
	b.Host.Name = fact.Val[string]{}
	b.Subject, b.Tool, b.Schema = fact.Subject{}, "", ""
	b.Taken = time.Time{}
	n := &b.Node
	n.Ifaces = maskEach(n.Ifaces, func(i fact.Iface) fact.Iface {
		addrs := make([]string, 0, len(i.Addrs))
		for _, a := range i.Addrs {
			addrs = append(addrs, maskAddr(a))
		}
		i.Addrs = addrs
		return i
	})
	n.RDMA = maskEach(n.RDMA, func(h fact.HCA) fact.HCA {
		ports := append([]fact.HCAPort(nil), h.Ports...)
		for k := range ports {
			ports[k].GIDs = append([]fact.GID(nil), ports[k].GIDs...)
			for j := range ports[k].GIDs {
				ports[k].GIDs[j].GID = maskGID(ports[k].GIDs[j].GID)
			}
		}
		h.Ports = ports
		return h
	})
	n.GPUs = maskEach(n.GPUs, func(g fact.GPU) fact.GPU {
		g.UUID, g.Bus = "", ""
		g.UsedMiB = bits.Len(uint(max(0, g.UsedMiB)) >> 10) // some hundred MiB more or less are no difference
		return g
	})
	n.Memory.At = fact.Evidence{}
	n.Memory.V.Available = int64(bits.Len64(uint64(max(0, n.Memory.V.Available)) >> 30))
	n.Memory.V.Total >>= 30
	n.Shm.At = fact.Evidence{}
	n.Shm.V.Free = int64(bits.Len64(uint64(max(0, n.Shm.V.Free)) >> 20))
	n.Shm.V.Total >>= 20
	n.SMI.V.Millis = 0
	s := &b.Slurm
	s.Rank, s.LocalRank, s.NodeName, s.GPUIDs = fact.Val[int]{}, fact.Val[int]{}, fact.Val[string]{}, fact.Val[string]{}
	s.Job.At, s.GPUsGranted.At, s.CPUs.At, s.TasksHere.At, s.Stale.At = fact.Evidence{}, fact.Evidence{}, fact.Evidence{}, fact.Evidence{}, fact.Evidence{}
	return o
}

// maskVar keeps what rules look at of a variable that differs by node: whether
// it is empty, and how many things it lists.
func maskVar(v fact.EnvVar) string {
	switch {
	case v.Value == "":
		return ""
	case strings.HasSuffix(v.Name, "_VISIBLE_DEVICES"):
		first, _, _ := strings.Cut(v.Value, ",")
		if strings.Trim(first, "0123456789") == "" {
			first = "#"
		} else if len(first) > 4 { // GPU-… and MIG-…
			first = first[:4]
		}
		return first + strings.Repeat(",", strings.Count(v.Value, ","))
	}
	return "*"
}

func maskEach[T any](v fact.Val[[]T], f func(T) T) fact.Val[[]T] {
	list := make([]T, 0, len(v.V))
	for _, x := range v.V {
		list = append(list, f(x))
	}
	if v.IsKnown() {
		v.V = list
	}
	v.At.Excerpt = ""
	return v
}

// maskAddr keeps family, scope and prefix length of an address.
func maskAddr(s string) string {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return s
	}
	a := p.Addr()
	switch {
	case a.IsLoopback():
		return s
	case a.Is4():
		return "4/" + s[strings.LastIndexByte(s, '/')+1:]
	case a.IsLinkLocalUnicast():
		return "6local"
	}
	return "6/" + s[strings.LastIndexByte(s, '/')+1:]
}

// maskGID keeps of a GID what NCCL looks at: empty, link-local, IPv4 or other.
func maskGID(s string) string {
	switch a, err := netip.ParseAddr(s); {
	case err != nil:
		return "?"
	case a.IsUnspecified():
		return "0"
	case a.Is4In6():
		return "4"
	case a.IsLinkLocalUnicast():
		return "local"
	}
	return "6"
}

// commonPart is what equal nodes send alike: the values to compare, then the
// facts, a line of JSON each, with the node's own name taken out.
func commonPart(values map[string]string, b *fact.Bundle, names []string) ([]byte, error) {
	for k, v := range values {
		values[k] = hideName(v, names)
	}
	head, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), hideName(string(body), names)...), nil
}

// hideName replaces the node's names where they stand as words of their own.
func hideName(s string, names []string) string {
	for _, n := range names {
		if len(n) < 2 || !strings.ContainsAny(n, "0123456789") || !strings.Contains(s, n) {
			continue
		}
		var b strings.Builder
		for rest := s; ; {
			i := strings.Index(rest, n)
			if i < 0 {
				b.WriteString(rest)
				break
			}
			end := i + len(n)
			word := (i == 0 || !wordByte(rest[i-1])) && (end == len(rest) || !wordByte(rest[end]))
			b.WriteString(rest[:i])
			if word {
				b.WriteString(self)
			} else {
				b.WriteString(n)
			}
			rest = rest[end:]
		}
		s = b.String()
	}
	return s
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// readValues reads the first line of a common part.
func readValues(plain []byte) (map[string]string, error) {
	head, _, _ := bytes.Cut(plain, []byte("\n"))
	var v map[string]string
	err := json.Unmarshal(head, &v)
	return v, err
}

// restore makes the facts of one node whole again.
func restore(plain []byte, packedOwn, node string) (*fact.Bundle, error) {
	_, body, _ := bytes.Cut(plain, []byte("\n"))
	body = bytes.ReplaceAll(body, []byte(self), []byte(node))
	b := new(fact.Bundle)
	if err := json.Unmarshal(body, b); err != nil {
		return nil, err
	}
	if packedOwn == "" {
		return b, nil
	}
	raw, err := unpack(packedOwn, maxPlain)
	if err != nil {
		return nil, err
	}
	var o own
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	b.Host.Name, b.Slurm = o.Name, o.Slurm
	n := &b.Node
	n.Ifaces, n.RDMA, n.GPUs, n.Memory, n.Shm, n.SMI = o.Ifaces, o.RDMA, o.GPUs, o.Memory, o.Shm, o.SMI
	real := map[string]string{}
	for _, v := range o.Env {
		real[v.Name] = v.Value
	}
	for i := range b.Env {
		if v, ok := real[b.Env[i].Name]; ok {
			b.Env[i].Value = v
		}
	}
	return b, nil
}

// trim makes a bundle smaller, a step at a time; it reports false when there is
// nothing left to leave out. What rules look at goes last.
func trim(b *fact.Bundle, level int) bool {
	switch level {
	case 0:
		for i := range b.Env {
			b.Env[i].Value = fact.Clip(b.Env[i].Value, 400)
		}
		b.Python.Others = nil
		for i := range b.Loads {
			b.Loads[i].Tried = nil
		}
	case 1:
		for i := range b.Torch {
			t := &b.Torch[i]
			t.Archs.At, t.Distributed.At, t.Gloo.At, t.MPI.At, t.XCCL.At = fact.Evidence{}, fact.Evidence{}, fact.Evidence{}, fact.Evidence{}, fact.Evidence{}
		}
		b.Dists = b.Dists[:min(len(b.Dists), 8)]
		b.Extensions = b.Extensions[:min(len(b.Extensions), 4)]
	case 2:
		for i := range b.Env {
			b.Env[i].Value = fact.Clip(b.Env[i].Value, 120)
		}
		b.Dists, b.Extensions = nil, nil
		b.Node.PCIGPUs, b.Node.DeviceFiles = fact.Val[[]fact.PCIGPU]{}, fact.Val[[]fact.DeviceFile]{}
		b.Torch = b.Torch[:min(len(b.Torch), 2)]
		b.Problems = b.Problems[:min(len(b.Problems), 5)]
	case 3:
		b.Env, b.Python.Path, b.Loads = nil, nil, nil
		for i := range b.Torch {
			b.Torch[i].Entry = -1
		}
	case 4:
		*b = fact.Bundle{}
	default:
		return false
	}
	b.AddProblem("report of the node", "too long for the wire; parts of the facts were left out")
	return true
}
