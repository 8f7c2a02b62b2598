package nodes

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/hostlist"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// Limits of what is kept. What comes beyond them is counted.
const (
	maxOdd    = 50
	maxGroups = 400 // whose facts are kept; those of smaller groups are compared only
	maxTasks  = hostlist.Max
)

// Merger takes in the lines of a step's output and keeps equal nodes once. It
// is safe for one writer and any number of readers.
type Merger struct {
	nonce string
	begin time.Time
	now   func() time.Time

	mu       sync.Mutex
	expected []string // by task; nil until known
	tasks    map[int]*task
	names    map[string]int // task that reported in a name
	groups   map[[sha256.Size]byte]*group
	order    []*group
	odd      []fact.NodeFault
	oddMore  int
	reported int
	answered map[string]int // messages of the other kinds
	last     *task
	job      string
	step     string
	list     string
	notify   func()

	planned       []peer // what the probes were told, nil for nothing
	plannedMaster bool
	ran           *groupPlan
}

type task struct {
	id      int
	name    string
	parts   []byte
	kind    string
	next    int
	got     map[string]bool // kinds of messages that are complete
	at      time.Time
	group   *group
	skew    time.Duration // its clock against ours, plus the way of the report
	avail   int64         // MiB
	total   int64
	took    time.Duration
	ranks   int
	ends    []endpoint
	master  *resolved
	port    string
	addrs   []string // of the first node only
	live    int
	reach   *reachResult
	ranksAt []rankResult
}

// group are nodes whose common part is the same.
type group struct {
	values map[string]string
	plain  []byte // nil when there are too many groups
	own    string // of the first node
	first  *task
	tasks  []*task
}

// NewMerger returns a Merger for reports that know the nonce. expected are the
// nodes of the step by task, nil when that is not known before the first report.
func NewMerger(nonce string, expected []string) *Merger {
	return &Merger{nonce: nonce, begin: time.Now(), now: time.Now, expected: expected, tasks: map[int]*task{}, names: map[string]int{},
		groups: map[[sha256.Size]byte]*group{}, answered: map[string]int{}}
}

// Line takes one line of srun's standard output, with srun's label in front.
// Lines that are no frames are what prologs and banners print: left alone.
func (m *Merger) Line(line []byte) {
	line = bytes.TrimRight(line, "\r\n")
	id, rest := label(line)
	f, is, err := parseFrame(rest, m.nonce)
	if !is {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == errForeign:
		m.addOdd(fact.FaultForeign, m.nodeOf(id), "")
		return
	case id < 0 || id >= maxTasks || m.expected != nil && id >= len(m.expected):
		m.addOdd(fact.FaultForeign, "", fmt.Sprintf("task %d", id))
		return
	}
	t := m.tasks[id]
	if t == nil {
		t = &task{id: id, got: map[string]bool{}}
		m.tasks[id] = t
	}
	if err != nil || f.seq > 1 && (f.kind != t.kind || f.seq != t.next) {
		why := "a part is missing"
		if err != nil {
			why = err.Error()
		}
		m.addOdd(fact.FaultCut, m.nodeOf(id), why)
		t.parts, t.next = nil, 0
		return
	}
	if f.seq == 1 {
		if t.next != 0 {
			m.addOdd(fact.FaultCut, m.nodeOf(id), "a part is missing")
		}
		t.parts, t.kind = nil, f.kind
	}
	t.parts = append(t.parts, f.body...)
	if t.next = f.seq + 1; f.seq < f.of {
		return
	}
	whole := t.parts
	t.parts, t.next = nil, 0
	if t.got[f.kind] {
		m.addOdd(fact.FaultTwice, m.nodeOf(id), "")
		return
	}
	if err := m.take(t, f.kind, whole); err != nil {
		m.addOdd(fact.FaultCut, m.nodeOf(id), fact.Clip(err.Error(), 120))
		return
	}
	t.got[f.kind] = true
	if f.kind != kindReport {
		m.answered[f.kind]++
	}
	if m.notify != nil {
		m.notify()
	}
}

func (m *Merger) take(t *task, kind string, whole []byte) error {
	switch {
	case len(whole) > MaxLine:
		return fmt.Errorf("%d bytes", len(whole))
	case kind == kindReport:
		return m.report(t, whole)
	case t.group == nil:
		return fmt.Errorf("an answer without a report")
	case kind == kindReach:
		r, err := decodeReach(whole)
		t.reach = r
		return err
	case kind == kindGroup:
		r, err := decodeRanks(whole)
		t.ranksAt = r
		return err
	}
	return fmt.Errorf("of an unknown kind")
}

// nodeName is what Slurm lets a node be called.
var nodeName = lazyre.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,253}$`)

func (m *Merger) report(t *task, whole []byte) error {
	r, err := decodeReport(whole)
	if err != nil {
		return err
	}
	if m.expected == nil && r.List != "" {
		if names, err := hostlist.Expand(r.List); err == nil && t.id < len(names) && validNames(names) {
			m.expected = names
		}
	}
	name := r.Node
	switch known := m.nodeOf(t.id); {
	case !nodeName.MatchString(name):
		m.addOdd(fact.FaultBadName, known, strconv.Quote(fact.Clip(name, 60)))
		if name = known; name == "" {
			return fmt.Errorf("no node name")
		}
	case known != "" && known != name:
		m.addOdd(fact.FaultOtherName, known, "it says "+name)
		name = known
	}
	if first, dup := m.names[name]; dup && first != t.id {
		m.addOdd(fact.FaultTwice, name, fmt.Sprintf("tasks %d and %d", first, t.id))
		return nil
	}
	g := m.groups[sha256.Sum256([]byte(r.Common))]
	if g == nil {
		plain, err := unpack(r.Common, maxPlain)
		if err != nil {
			return err
		}
		g = &group{first: t}
		if g.values, err = readValues(plain); err != nil {
			return err
		}
		if len(m.order) < maxGroups {
			if _, err := restore(plain, r.Own, name); err != nil {
				return err
			}
			g.plain, g.own = plain, r.Own
		}
		m.groups[sha256.Sum256([]byte(r.Common))] = g
		m.order = append(m.order, g)
	}
	g.tasks = append(g.tasks, t)
	m.names[name] = t.id
	t.name, t.group, t.at = name, g, m.now()
	t.skew = time.UnixMilli(r.Time).Sub(t.at)
	t.took = time.Duration(r.Took) * time.Millisecond
	t.avail, t.total, t.ranks, t.live = r.Avail, r.Total, r.Ranks, r.LivePort
	t.ends, t.master = r.Ends[:min(len(r.Ends), 4)], r.Master
	if t.id == 0 {
		t.port, t.addrs = r.Port, r.Addrs
	}
	if m.job == "" {
		m.job, m.step, m.list = digits(r.Job), digits(r.Step), r.List
	}
	m.reported++
	m.last = t
	return nil
}

func digits(s string) string {
	if s == "" || len(s) > 12 || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

func validNames(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !nodeName.MatchString(n) })
}

func (m *Merger) nodeOf(id int) string {
	if id >= 0 && id < len(m.expected) {
		return m.expected[id]
	}
	if t := m.tasks[id]; t != nil {
		return t.name
	}
	return ""
}

func (m *Merger) addOdd(kind, node, why string) {
	for i := range m.odd {
		if o := &m.odd[i]; o.Kind == kind && o.Nodes == node && o.Why == why {
			o.Count++
			return
		}
	}
	if len(m.odd) == maxOdd {
		m.oddMore++
		return
	}
	m.odd = append(m.odd, fact.NodeFault{Nodes: node, Kind: kind, Why: why, Count: 1})
}

// Progress is how far a step has come.
type Progress struct {
	Reported, Expected int // Expected is 0 while it is not known
	Reached, Grouped   int // nodes that answered in the later phases
	Slowest            string
}

// lost counts the nodes of which somebody said that nothing will come and that
// did not report.
func (m *Merger) lost(said map[string]fact.NodeFault) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for name := range said {
		if _, ok := m.names[name]; !ok {
			n++
		}
	}
	return n
}

// gone counts the nodes that reported, did not answer in a later phase, and of
// which somebody said that they ended.
func (m *Merger) gone(kind string, said map[string]fact.NodeFault) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for name := range said {
		if id, ok := m.names[name]; ok && !m.tasks[id].got[kind] {
			n++
		}
	}
	return n
}

// Progress returns the state of now.
func (m *Merger) Progress() Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := Progress{Reported: m.reported, Expected: len(m.expected), Reached: m.answered[kindReach], Grouped: m.answered[kindGroup]}
	if m.last != nil {
		p.Slowest = m.last.name
	}
	return p
}

// Set returns what was merged. why says for a node that did not report what
// srun said of it; silent is what is said when it said nothing.
func (m *Merger) Set(why map[string]fact.NodeFault, silent string) *fact.NodeSet {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &fact.NodeSet{Job: m.job, Step: m.step, Reported: m.reported, Total: len(m.expected), Seconds: m.now().Sub(m.begin).Seconds()}
	for id, t := range m.tasks {
		if t.next > 0 {
			m.addOdd(fact.FaultCut, m.nodeOf(id), "the end is missing")
		}
	}
	s.Odd = slices.Clone(m.odd)
	slices.SortFunc(s.Odd, func(a, b fact.NodeFault) int { return strings.Compare(a.Kind+"\x00"+a.Nodes, b.Kind+"\x00"+b.Nodes) })
	if m.oddMore > 0 {
		s.Odd = append(s.Odd, fact.NodeFault{Kind: fact.FaultForeign, Why: "more of them", Count: m.oddMore})
	}
	if m.last != nil {
		s.Slowest = m.last.name
	}
	if m.expected == nil {
		for _, t := range m.byTask() {
			m.expected = append(m.expected, t.name)
		}
		s.Total = len(m.expected)
	}
	s.Expected = hostlist.Fold(m.expected)
	if len(m.expected) > 0 {
		s.First = m.expected[0]
	}
	s.Missing = m.missing(why, silent)
	s.Compared = m.compare()
	s.Groups = m.groupFacts()
	m.addNumbers(s)
	m.addResolved(s)
	m.addReach(s)
	m.addGroup(s)
	return s
}

// byTask returns the nodes that reported, in the order of their tasks.
func (m *Merger) byTask() []*task {
	var out []*task
	for _, t := range m.tasks {
		if t.group != nil {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *task) int { return a.id - b.id })
	return out
}

func (m *Merger) missing(why map[string]fact.NodeFault, silent string) []fact.NodeFault {
	type key struct{ kind, why string }
	at := map[key][]string{}
	for _, n := range m.expected {
		if _, ok := m.names[n]; ok {
			continue
		}
		k := key{fact.FaultSilent, silent}
		if f, ok := why[n]; ok {
			k = key{f.Kind, f.Why}
		}
		at[k] = append(at[k], n)
	}
	var out []fact.NodeFault
	for k, names := range at {
		out = append(out, fact.NodeFault{Nodes: hostlist.Fold(names), Kind: k.kind, Why: k.why, Count: len(names)})
	}
	slices.SortFunc(out, func(a, b fact.NodeFault) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Nodes, b.Nodes))
	})
	return out
}

// compare tells for each compared thing which nodes have which value.
func (m *Merger) compare() []fact.Compared {
	names := map[string]bool{}
	for _, g := range m.order {
		for n := range g.values {
			names[n] = n != trimmed
		}
	}
	var out []fact.Compared
	for n, compares := range names {
		if !compares {
			continue
		}
		nodes := map[string][]string{}
		var unknown []string
		for _, g := range m.order {
			v, ok := g.values[n]
			if !ok && g.values[trimmed] == "" && (strings.HasPrefix(n, SetPrefix) || strings.HasPrefix(n, EnvPrefix)) {
				v, ok = fact.NoValue, true
			}
			for _, t := range g.tasks {
				if ok {
					nodes[v] = append(nodes[v], t.name)
				} else {
					unknown = append(unknown, t.name)
				}
			}
		}
		out = append(out, compared(n, nodes, unknown))
	}
	slices.SortFunc(out, func(a, b fact.Compared) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func compared(name string, nodes map[string][]string, unknown []string) fact.Compared {
	c := fact.Compared{Name: name, Unknown: hostlist.Fold(unknown)}
	for v, list := range nodes {
		x := fact.ValueFor{Value: v, Count: len(list)}
		if len(nodes) > 1 || len(unknown) > 0 {
			x.Nodes = hostlist.Fold(list)
		}
		c.Values = append(c.Values, x)
	}
	slices.SortFunc(c.Values, func(a, b fact.ValueFor) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Value, b.Value))
	})
	return c
}

// groupFacts returns the groups, the largest first, with the facts of a node of each.
func (m *Merger) groupFacts() []fact.NodeGroup {
	order := slices.Clone(m.order)
	sort.SliceStable(order, func(i, j int) bool { return len(order[i].tasks) > len(order[j].tasks) })
	var out []fact.NodeGroup
	for _, g := range order {
		names := make([]string, 0, len(g.tasks))
		for _, t := range g.tasks {
			names = append(names, t.name)
		}
		x := fact.NodeGroup{Nodes: hostlist.Fold(names), Count: len(names)}
		if g.plain != nil {
			x.Bundle, _ = restore(g.plain, g.own, g.first.name) // it could be read when it came
		}
		out = append(out, x)
	}
	return out
}

// Bounds of what counts as different. A report that waits in srun makes a
// clock look late by as much, so small differences say nothing.
const (
	maxSkew   = 20 * time.Second
	lowMemory = 0.6 // of the median
)

// addNumbers compares what is different on each node anyway, with the median.
func (m *Merger) addNumbers(s *fact.NodeSet) {
	all := m.byTask()
	if len(all) < 2 {
		return
	}
	var skews []time.Duration
	var avail []int64
	for _, t := range all {
		skews = append(skews, t.skew)
		if t.avail > 0 {
			avail = append(avail, t.avail)
		}
	}
	slices.Sort(skews)
	slices.Sort(avail)
	mid := skews[len(skews)/2]
	clock := map[string][]string{}
	for _, t := range all {
		v := "0 s"
		if d := t.skew - mid; d > maxSkew || d < -maxSkew {
			v = fmt.Sprintf("%+d s", int64(d.Round(time.Second)/time.Second))
		}
		clock[v] = append(clock[v], t.name)
	}
	s.Compared = append(s.Compared, compared("clock", clock, nil))
	if len(avail) == 0 {
		return
	}
	usual := avail[len(avail)/2]
	mem := map[string][]string{}
	for _, t := range all {
		if t.avail <= 0 {
			continue
		}
		v := "usual"
		if float64(t.avail) < lowMemory*float64(usual) {
			v = fmt.Sprintf("%s of %s", gib(t.avail<<20), gib(t.total<<20))
		}
		mem[v] = append(mem[v], t.name)
	}
	s.Compared = append(s.Compared, compared("memory.free", mem, nil))
}

func (m *Merger) addResolved(s *fact.NodeSet) {
	first := m.tasks[0]
	var firstAddrs []string
	if first != nil && first.group != nil {
		firstAddrs = first.addrs
		switch first.port {
		case "":
		case "free":
			s.PortFree = fact.Of(true, fact.Evidence{Node: first.name})
		case "busy":
			s.PortFree = fact.Of(false, fact.Evidence{Node: first.name})
		default:
			s.PortFree = fact.Fail[bool](fact.Clip(first.port, 100), fact.Evidence{Node: first.name})
		}
	}
	at := map[string]*fact.Resolved{}
	nodes := map[string][]string{}
	for _, t := range m.byTask() {
		r := t.master
		if r == nil {
			continue
		}
		addrs := slices.Clone(r.Addrs[:min(len(r.Addrs), 8)])
		sort.Strings(addrs)
		k := r.Name + "\x00" + strings.Join(addrs, " ") + "\x00" + r.Error
		if at[k] == nil {
			at[k] = &fact.Resolved{Name: fact.Clip(r.Name, 100), Addrs: addrs, Error: fact.Clip(r.Error, 120), Default: r.Default}
			if len(firstAddrs) > 0 && r.Error == "" {
				at[k].Wrong = !slices.ContainsFunc(addrs, func(a string) bool { return slices.Contains(firstAddrs, a) })
			}
		}
		at[k].Count++
		nodes[k] = append(nodes[k], t.name)
	}
	for k, r := range at {
		r.Nodes = hostlist.Fold(nodes[k])
		s.Resolve = append(s.Resolve, *r)
	}
	slices.SortFunc(s.Resolve, func(a, b fact.Resolved) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Nodes, b.Nodes))
	})
}
