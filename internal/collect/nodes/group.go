package nodes

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

//go:embed group.py
var groupScript string

const rankMark = "ncclinic-rank-1 "

// maxRanks bounds the ranks of one node.
const maxRanks = 64

// groupPlan is how the ranks of the process group are laid out.
type groupPlan struct {
	Backend string   `json:"b"`
	Addr    string   `json:"a"`
	Port    int      `json:"p"`
	World   int      `json:"w"`
	Seconds int      `json:"s"`
	Starts  [][3]int `json:"r"` // task, first rank, number of ranks
}

// groupOf lays out ranks: one for each GPU when all nodes have some, else one
// on each node over gloo. nil when the first node did not report: nobody else
// can be rank 0.
func groupOf(tasks []*task, o Options) *groupPlan {
	if len(tasks) == 0 || tasks[0].id != 0 {
		return nil
	}
	first := tasks[0]
	g := &groupPlan{Backend: "nccl", Port: first.live, Seconds: max(5, int(o.LiveLimit/time.Second))}
	for _, t := range tasks {
		if t.ranks == 0 {
			g.Backend = "gloo"
		}
	}
	for _, t := range tasks {
		n := o.LiveRanks
		if n == 0 {
			n = 1
			if g.Backend == "nccl" {
				n = t.ranks
			}
		}
		n = min(n, maxRanks)
		g.Starts = append(g.Starts, [3]int{t.id, g.World, n})
		g.World += n
	}
	if r := first.master; r != nil && !r.Default && r.Error == "" {
		g.Addr = r.Name
	} else if len(first.ends) > 0 {
		g.Addr, _, _ = strings.Cut(first.ends[0].Addr, "/")
	} else {
		g.Addr = first.name
	}
	if first.port == "free" {
		if p, err := strconv.Atoi(first.group.values[EnvPrefix+"MASTER_PORT"]); err == nil {
			g.Port = p
		}
	}
	return g
}

// rankResult is how far one rank came.
type rankResult struct {
	Rank   int    `json:"r"`
	Step   string `json:"s"` // "done": everything
	Error  string `json:"e,omitempty"`
	Time   int64  `json:"t,omitempty"` // milliseconds since 1970 of the failure
	Device string `json:"d,omitempty"`
}

// failed reports that a rank failed by itself, and did not only wait for others.
func (r *rankResult) failed() bool { return r.Step != "done" && !waiting.MatchString(r.Error) }

// rankFailed reports that a rank of a node that has answered failed by itself.
func (m *Merger) rankFailed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tasks {
		if slices.ContainsFunc(t.ranksAt, func(r rankResult) bool { return r.failed() }) {
			return true
		}
	}
	return false
}

func decodeRanks(raw []byte) ([]rankResult, error) {
	var r []rankResult
	err := json.Unmarshal(raw, &r)
	return r[:min(len(r), maxRanks)], err
}

// When one rank has failed by itself the others wait for nothing: those of its
// node get rankGrace to say so too, those of other nodes groupGrace.
const (
	rankGrace  = 4 * time.Second
	groupGrace = 8 * time.Second
)

// stopped is what a rank says that was ended because another one had failed.
const stopped = "stopped: another rank had failed"

// runRanks starts this node's ranks with the job's interpreter and waits for
// them, at most the plan's limit and a little, or until ctx ends.
func runRanks(ctx context.Context, m *source.Machine, self int, python string, p *groupPlan) []rankResult {
	first, n := 0, 0
	for _, s := range p.Starts {
		if s[0] == self {
			first, n = s[1], min(s[2], maxRanks)
		}
	}
	out := make([]rankResult, n)
	if python == "" {
		for i := range out {
			out[i] = rankResult{Rank: first + i, Step: "start", Error: "no interpreter was found"}
		}
		return out
	}
	limit := time.Duration(p.Seconds) * time.Second
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var once sync.Once
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			env := groupEnv(m, map[string]string{"RANK": itoa(first + i), "WORLD_SIZE": itoa(p.World), "LOCAL_RANK": itoa(i), "LOCAL_WORLD_SIZE": itoa(n),
				"MASTER_ADDR": p.Addr, "MASTER_PORT": itoa(p.Port)})
			// torch's own limit is a little shorter, so that it can say what it waits for.
			inner := max(p.Seconds-5, p.Seconds*4/5)
			res, err := m.Runner.Run(ctx, source.Cmd{Path: python, Args: []string{"-c", groupScript, p.Backend, itoa(inner)}, Env: env, Timeout: limit, MaxOut: 256 << 10})
			out[i] = readRank(first+i, res, err)
			if ctx.Err() != nil && out[i].Step != "done" && (err != nil || res.TimedOut || res.Code < 0) {
				out[i].Error, out[i].Time = stopped, time.Now().UnixMilli()
			}
			if out[i].failed() {
				once.Do(func() { time.AfterFunc(rankGrace, stop) })
			}
		}()
	}
	wg.Wait()
	room := 6000 / max(1, n) // the message must fit on the wire
	for i := range out {
		out[i].Error = fact.Clip(out[i].Error, min(300, room))
	}
	return out
}

func groupEnv(m *source.Machine, set map[string]string) []string {
	var env []string
	for k, v := range m.Env {
		if _, ours := set[k]; !ours {
			env = append(env, k+"="+v)
		}
	}
	for k, v := range set {
		env = append(env, k+"="+v)
	}
	slices.Sort(env)
	return env
}

// readRank takes the last whole line of a rank and what its end says.
func readRank(rank int, res source.Result, err error) rankResult {
	r := rankResult{Rank: rank, Step: "start"}
	if err != nil {
		r.Error = clean(err.Error())
		return r
	}
	for _, l := range bytes.Split(res.Stdout, []byte("\n")) {
		rest, ok := bytes.CutPrefix(l, []byte(rankMark))
		var next rankResult
		if ok && json.Unmarshal(rest, &next) == nil && next.Step != "" {
			r = next
			r.Rank = rank
		}
	}
	r.Step, r.Device, r.Error = fact.Clip(clean(r.Step), 20), fact.Clip(clean(r.Device), 60), clean(r.Error)
	if r.Step == "done" || r.Error != "" {
		return r
	}
	r.Time = time.Now().UnixMilli()
	if res.TimedOut {
		r.Error = "no end within the time limit"
		return r
	}
	last := strings.TrimSpace(string(res.Stderr))
	r.Error = clean(fmt.Sprintf("ended with status %d %s", res.Code, last[strings.LastIndexByte(last, '\n')+1:]))
	return r
}

// waiting matches what a rank says that only waited for others.
var waiting = lazyre.New(`(?i)^stopped: |time ?limit|timed? ?out|connection (?:closed|reset)|closed by peer|broken pipe|remote process exited|Stop_waiting|socket Timeout|failed to recv`)

// addGroup turns what the ranks said into the first failure and the rest.
func (m *Merger) addGroup(s *fact.NodeSet) {
	if m.ran == nil {
		return
	}
	g := fact.GroupTest{Backend: m.ran.Backend, World: m.ran.World, Addr: hostPort(m.ran.Addr, m.ran.Port)}
	type failed struct {
		fact.RankFault
		at time.Time
	}
	var all []failed
	type device struct{ node, name string }
	on := map[device][]int{}
	for _, st := range m.ran.Starts {
		t := m.tasks[st[0]]
		if t.ranksAt == nil {
			for i := range st[2] {
				all = append(all, failed{RankFault: fact.RankFault{Rank: st[1] + i, Node: t.name, Error: "the node did not answer"}})
			}
			continue
		}
		for _, r := range t.ranksAt {
			if r.Device != "" {
				d := device{t.name, fact.Clip(clean(r.Device), 60)}
				on[d] = append(on[d], r.Rank)
			}
			if r.Step == "done" {
				g.Good++
				continue
			}
			f := fact.RankFault{Rank: r.Rank, Node: t.name, Step: fact.Clip(clean(r.Step), 20), Error: fact.Clip(clean(r.Error), 300)}
			f.Waits = waiting.MatchString(f.Error)
			all = append(all, failed{f, time.UnixMilli(r.Time).Add(-t.skew)})
		}
	}
	// Whoever failed by itself comes before those that waited; of these, who was
	// first. A node that never answered failed before all of them.
	slices.SortFunc(all, func(a, b failed) int {
		return cmp.Or(cmpBool(a.Waits, b.Waits), a.at.Compare(b.at), cmp.Compare(a.Rank, b.Rank))
	})
	for i, f := range all {
		if i == 0 {
			first := f.RankFault
			g.First = &first
		}
		if i < maxFaults {
			g.Faults = append(g.Faults, f.RankFault)
		}
	}
	for d, ranks := range on {
		if len(ranks) > 1 {
			slices.Sort(ranks)
			g.Shared = append(g.Shared, fact.SharedDevice{Node: d.node, Device: d.name, Ranks: ranks})
		}
	}
	slices.SortFunc(g.Shared, func(a, b fact.SharedDevice) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Device, b.Device))
	})
	s.Group = fact.Of(g, fact.Evidence{Source: fact.SrcLive})
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
