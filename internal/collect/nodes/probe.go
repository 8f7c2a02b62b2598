package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/source"
)

// resolveLimit bounds the question for MASTER_ADDR: a dead name server must not
// hold up the report.
const resolveLimit = 6 * time.Second

// guessLimit is the same for a name that nobody set: the answer is told beside
// the verdict.
const guessLimit = 2 * time.Second

// ProbeOptions say what one probe does besides looking.
type ProbeOptions struct {
	Nonce string
	In    io.Reader // the parent's plan comes here; its end is the end of the probe
	Out   io.Writer
	Reach bool // listen, and connect to others when the plan says so
	Live  bool // start ranks of a process group when the plan says so
}

// Probe looks at this node with collect, reports, and does what the plan says.
// It returns when its standard input ends or ctx does.
func Probe(ctx context.Context, m *source.Machine, o ProbeOptions, collect func(context.Context) (*fact.Bundle, error)) error {
	began := time.Now()
	self, err := strconv.Atoi(m.Getenv("SLURM_PROCID"))
	if err != nil {
		return errors.New("not started by srun: SLURM_PROCID is not set")
	}
	master := make(chan *resolved, 1)
	go func() { master <- resolve(ctx, m) }()
	b, err := collect(ctx)
	if err != nil {
		return err
	}
	r := newReport(m, b)
	a := newAnswering(self)
	port, portSet := masterPort(m)
	if self == 0 {
		r.Addrs = allAddrs(b)
		if portSet {
			r.Port = a.master(port, o.Reach)
		}
		if o.Live {
			r.LivePort = freePort()
		}
	}
	if o.Reach {
		if r.Ends, err = a.open(ctx, m, b); err != nil {
			b.AddProblem("reachability", err.Error())
		}
		defer a.close()
	}
	r.Master = <-master
	python := b.Python.Exe.Or("")
	if err := r.write(o.Out, o.Nonce, m, b, began); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(o.In, maxPlan), 64<<10)
	// Others may still want an answer: stay until the parent has all of them and
	// closes the input.
	plans := make(chan planOr, 1)
	go func() {
		for {
			p, err := readPlan(in)
			plans <- planOr{p, err}
			if p == nil || err != nil {
				return
			}
		}
	}()
	ctx, end := context.WithCancel(ctx)
	defer end()
	rankCtx, stopRanks := context.WithCancel(ctx)
	defer stopRanks()
	ranks := make(chan []rankResult, 1)
	for known := false; ; {
		var p *plan
		var err error
		select {
		case next := <-plans:
			if p, err = next.plan, next.err; err != nil || p == nil {
				return err
			}
		case got := <-ranks:
			if err := send(o, kindGroup, got); err != nil {
				return err
			}
			continue
		}
		switch {
		case p.Stop:
			stopRanks()
		case p.Reach != nil && o.Reach && !known:
			known = true
			a.know(p.Token)
			addr := ""
			if r.Master != nil && len(r.Master.Addrs) > 0 {
				addr = net.JoinHostPort(r.Master.Addrs[0], strconv.Itoa(port))
			}
			err = send(o, kindReach, reachAll(ctx, self, p.Token, p.Reach, addr))
		case p.Group != nil && o.Live:
			a.closeMaster() // rank 0 needs the port now
			o.Live = false  // one group
			go func() { ranks <- runRanks(rankCtx, m, self, python, p.Group) }()
		}
		if err != nil {
			return err
		}
	}
}

// planOr is what came from the parent.
type planOr struct {
	plan *plan
	err  error
}

func newReport(m *source.Machine, b *fact.Bundle) *report {
	mem := b.Node.Memory.Or(fact.Memory{})
	return &report{Node: m.Getenv("SLURMD_NODENAME"), List: m.Getenv("SLURM_STEP_NODELIST"), Job: m.Getenv("SLURM_JOB_ID"), Step: m.Getenv("SLURM_STEP_ID"),
		Ranks: visibleGPUs(b), Avail: mem.Available >> 20, Total: mem.Total >> 20}
}

// WriteReport sends the facts of a node as its probe does, without anything
// that needs the node itself. The bundle is taken apart.
func WriteReport(w io.Writer, nonce string, m *source.Machine, b *fact.Bundle) error {
	return newReport(m, b).write(w, nonce, m, b, time.Now())
}

func (r *report) write(w io.Writer, nonce string, m *source.Machine, b *fact.Bundle, began time.Time) error {
	payload, err := encode(m, b, r, began)
	if err != nil {
		return err
	}
	return writeMessage(w, nonce, kindReport, payload)
}

func send(o ProbeOptions, kind string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeMessage(o.Out, o.Nonce, kind, raw)
}

// encode makes the report fit into MaxLine.
func encode(m *source.Machine, b *fact.Bundle, r *report, began time.Time) ([]byte, error) {
	vals := values(m, b)
	node := r.Node
	host, _, _ := strings.Cut(b.Host.Name.Or(""), ".")
	o := divide(b)
	rawOwn, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var z packer
	if r.Own, err = z.pack(rawOwn); err != nil {
		return nil, err
	}
	for level := 0; ; level++ {
		plain, err := commonPart(vals, b, []string{node, host})
		if err != nil {
			return nil, err
		}
		if r.Common, err = z.pack(plain); err != nil {
			return nil, err
		}
		now := time.Now()
		r.Time, r.Took = now.UnixMilli(), now.Sub(began).Milliseconds()
		payload, err := encodeReport(r)
		if err != nil || len(payload) <= MaxLine {
			return payload, err
		}
		trimValues(vals, level)
		if !trim(b, level) {
			// A list of interfaces or adapters without end: the comparison alone.
			if r.Own == "" {
				return nil, fmt.Errorf("the report has %d bytes", len(payload))
			}
			r.Own = ""
		}
	}
}

// visibleGPUs counts the GPUs that a process here would use.
func visibleGPUs(b *fact.Bundle) int {
	n := len(b.Node.GPUs.Or(nil))
	v, set := b.Lookup("CUDA_VISIBLE_DEVICES")
	if !set {
		return n
	}
	if v == "" || v == "NoDevFiles" || strings.HasPrefix(v, "-") {
		return 0
	}
	return min(n, strings.Count(v, ",")+1)
}

// open listens and returns the addresses under which others should reach this node.
func (a *answering) open(ctx context.Context, m *source.Machine, b *fact.Bundle) ([]endpoint, error) {
	port, err := a.listen(0)
	if err != nil {
		return nil, err
	}
	list := ways(b, b.Node.Ifaces.Or(nil))
	if len(list) == 0 || list[len(list)-1].Way != fact.WayGloo {
		if v, _ := b.Lookup("GLOO_SOCKET_IFNAME"); len(v) < 2 {
			list = append(list, glooDefault(ctx, m, b)...)
		}
	}
	var out []endpoint
	for _, e := range list {
		if e.Addr == "" {
			continue
		}
		e.Port = port
		if len(out) == 1 && out[0].Addr == e.Addr {
			out[0].Way = fact.WayBoth
			continue
		}
		out = append(out, e)
	}
	return out, nil
}

// glooDefault is the address to which Gloo binds when nothing is set: that of
// the host's own name.
func glooDefault(ctx context.Context, m *source.Machine, b *fact.Bundle) []endpoint {
	name, ok := b.Host.Name.Get()
	if !ok {
		return nil
	}
	r := lookup(ctx, m, name, resolveLimit)
	if len(r.Addrs) == 0 {
		return nil // then it takes the loopback interface, and warns
	}
	ip, err := netip.ParseAddr(r.Addrs[0])
	if err != nil {
		return nil
	}
	for _, i := range b.Node.Ifaces.Or(nil) {
		for _, s := range i.Addrs {
			if p, err := netip.ParsePrefix(s); err == nil && p.Addr() == ip {
				return []endpoint{{Way: fact.WayGloo, Iface: i.Name, Addr: s}}
			}
		}
	}
	return nil // not an address of this node: Gloo falls back to loopback then too
}

// allAddrs are the addresses of a node that others could mean.
func allAddrs(b *fact.Bundle) []string {
	var out []string
	for _, i := range b.Node.Ifaces.Or(nil) {
		for _, s := range i.Addrs {
			if p, err := netip.ParsePrefix(s); err == nil && len(out) < 64 {
				out = append(out, p.Addr().String())
			}
		}
	}
	return out
}

// masterPort is MASTER_PORT, and whether it is set to a port.
func masterPort(m *source.Machine) (int, bool) {
	n, err := strconv.Atoi(m.Getenv("MASTER_PORT"))
	return n, err == nil && n > 0 && n < 1<<16
}

// master tries to bind MASTER_PORT as rank 0 will. With keep it goes on
// listening there: others try to connect as soon as they know the plan.
func (a *answering) master(port int, keep bool) string {
	n := len(a.ls)
	_, err := a.listen(port)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "busy"
	case err != nil:
		return fact.Clip(err.Error(), 100)
	}
	a.onMaster = a.ls[n]
	if !keep {
		a.closeMaster()
	}
	return "free"
}

func (a *answering) closeMaster() {
	if a.onMaster != nil {
		a.onMaster.Close()
	}
}

func freePort() int {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return 0
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// resolve asks what MASTER_ADDR is here, or the name of the first node when it
// is not set; nil when there is nothing to ask.
func resolve(ctx context.Context, m *source.Machine) *resolved {
	name, byDefault, limit := m.Getenv("MASTER_ADDR"), false, resolveLimit
	if name == "" {
		list := m.Getenv("SLURM_STEP_NODELIST")
		names, err := hostlist.Expand(list)
		if err != nil || len(names) < 2 {
			return nil
		}
		name, byDefault, limit = names[0], true, guessLimit
	}
	r := lookup(ctx, m, name, limit)
	r.Default = byDefault
	return r
}

// lookup asks as the C library does, through getent: files, DNS and whatever
// else the site has in nsswitch.conf. Go's own resolver knows the first two.
func lookup(ctx context.Context, m *source.Machine, name string, limit time.Duration) *resolved {
	r := &resolved{Name: fact.Clip(name, 100)}
	if ip, err := netip.ParseAddr(name); err == nil {
		r.Addrs = []string{ip.String()}
		return r
	}
	if ip, ok := fromHosts(m, name); ok {
		r.Addrs = []string{ip.String()}
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	add := func(s string) {
		if ip, err := netip.ParseAddr(s); err == nil && len(r.Addrs) < 8 {
			for _, x := range r.Addrs {
				if x == ip.String() {
					return
				}
			}
			r.Addrs = append(r.Addrs, ip.String())
		}
	}
	if getent, err := m.Runner.LookPath("getent"); err == nil && !strings.HasPrefix(name, "-") {
		res, err := m.Runner.Run(ctx, source.Cmd{Path: getent, Args: []string{"ahosts", name}, Timeout: limit, MaxOut: 16 << 10})
		for _, l := range strings.Split(string(res.Stdout), "\n") {
			if f := strings.Fields(l); len(f) > 0 {
				add(f[0])
			}
		}
		switch {
		case err != nil:
			r.Error = fact.Clip(err.Error(), 80)
		case res.TimedOut:
			r.Error = "no answer in time"
		case len(r.Addrs) == 0:
			r.Error = "not found"
		}
		return r
	}
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	for _, s := range addrs {
		add(s)
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		r.Error = "not found"
	case errors.As(err, &dns) && dns.IsTimeout:
		r.Error = "no answer in time"
	case err != nil:
		r.Error = fact.Clip(err.Error(), 80)
	}
	return r
}
