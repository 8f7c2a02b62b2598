package nodes_test

import (
	"strings"
	"testing"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/nodes"
	"github.com/ncclinic/ncclinic/internal/ruletest"
	"github.com/ncclinic/ncclinic/rules"
)

// cpuBuild and cudaBuild are facts of a node, with the build that it imports.
const (
	cudaBuild = `{torch: [{dir: /sw/llm/torch, entry: -1, version: {v: "2.6.0+cu124"}, cuda: {v: "12.4"}, hip: {state: absent}, xpu: {state: absent}, nccl: {v: true}, distributed: {v: true}}], python: {exe: {v: /sw/llm/bin/python}}, host: {os: {v: linux}, arch: {v: x86_64}}}`
	cpuBuild  = `{torch: [{dir: /usr/lib/torch, entry: -1, version: {v: "2.6.0+cpu"}, cuda: {state: absent}, hip: {state: absent}, xpu: {state: absent}, nccl: {v: false}, distributed: {v: true}}], python: {exe: {v: /usr/bin/python3}}, host: {os: {v: linux}, arch: {v: x86_64}}}`
)

func facts(t *testing.T, y string) *fact.Bundle {
	t.Helper()
	b, err := ruletest.Facts([]byte(y))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func judge(t *testing.T, s *fact.NodeSet) diag.Report {
	t.Helper()
	base, err := rules.Load(rules.Embedded(), "test", rules.Allocation...)
	if err != nil {
		t.Fatal(err)
	}
	r := nodes.Judge(base.Set(), &fact.Bundle{Nodes: s})
	for _, ran := range r.Ran {
		if ran.Status == diag.RFailed {
			t.Errorf("%s failed: %s", ran.Rule, ran.Reason)
		}
	}
	return r
}

func ids(r diag.Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, string(f.Role)+":"+f.ID)
	}
	return strings.Join(out, " ")
}

func set(total int, groups ...fact.NodeGroup) *fact.NodeSet {
	s := &fact.NodeSet{Total: total, Reported: total, First: "n1"}
	s.Groups = append(s.Groups, groups...)
	s.Expected = "n[1-8]"
	return s
}

// TestCPUOnlyEverywhere: absolute rules first. What is wrong on all nodes has no outlier.
func TestCPUOnlyEverywhere(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-8]", Count: 8, Bundle: facts(t, cpuBuild)})
	r := judge(t, s)
	f := r.Top()
	if f == nil || f.ID != "torch-cpu-build" || f.Args["nodes_all"] != "1" || r.Nodes.Exclude != "" || r.Verdict != diag.Broken {
		t.Errorf("%s: %s, exclude %q", r.Verdict, ids(r), r.Nodes.Exclude)
	}
}

// TestAbsoluteFirst: one node has another release of the same wrong build.
func TestAbsoluteFirst(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-7]", Count: 7, Bundle: facts(t, cpuBuild)}, fact.NodeGroup{Nodes: "n8", Count: 1, Bundle: facts(t, strings.ReplaceAll(cpuBuild, "2.6.0", "2.5.1"))})
	s.Compared = []fact.Compared{{Name: "torch.version", Values: []fact.ValueFor{{Value: "2.6.0+cpu", Nodes: "n[1-7]", Count: 7}, {Value: "2.5.1+cpu", Nodes: "n8", Count: 1}}}}
	r := judge(t, s)
	if f := r.Top(); f == nil || f.ID != "torch-cpu-build" || !strings.Contains(ids(r), "contributing:env-differs-between-nodes") || r.Nodes.Exclude != "" {
		t.Errorf("%s, exclude %q", ids(r), r.Nodes.Exclude)
	}
}

// TestExactCauseExplainsDifference: the odd node has a CPU build; that its torch
// is another one is no second problem.
func TestExactCauseExplainsDifference(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-7]", Count: 7, Bundle: facts(t, cudaBuild)}, fact.NodeGroup{Nodes: "n8", Count: 1, Bundle: facts(t, cpuBuild)})
	s.Compared = []fact.Compared{{Name: "torch.version", Values: []fact.ValueFor{{Value: "2.6.0+cu124", Nodes: "n[1-7]", Count: 7}, {Value: "2.6.0+cpu", Nodes: "n8", Count: 1}}}}
	r := judge(t, s)
	f := r.Top()
	if f == nil || f.ID != "torch-cpu-build" || f.Args["nodes"] != "n8" || r.Nodes.Exclude != "n8" || r.Nodes.Alike != "n[1-7]" {
		t.Fatalf("%s, %+v", ids(r), r.Nodes)
	}
	if !strings.Contains(ids(r), "symptom:env-differs-between-nodes") || len(f.Explains) != 1 {
		t.Errorf("%s, explains %v", ids(r), f.Explains)
	}
	// Another variable on that node is a problem of its own.
	s.Compared = append(s.Compared, fact.Compared{Name: "set.NCCL_IB_DISABLE", Values: []fact.ValueFor{{Value: "(none)", Nodes: "n[1-7]", Count: 7}, {Value: "1", Nodes: "n8", Count: 1}}})
	if r := judge(t, s); !strings.Contains(ids(r), "contributing:net-differs-between-nodes") {
		t.Error(ids(r))
	}
}

// TestDifferenceAlone is a cause when no rule for one node finds more.
func TestDifferenceAlone(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-7]", Count: 7, Bundle: facts(t, cudaBuild)}, fact.NodeGroup{Nodes: "n8", Count: 1, Bundle: facts(t, strings.ReplaceAll(cudaBuild, "2.6.0+cu124", "2.5.1+cu124"))})
	s.Compared = []fact.Compared{{Name: "torch.version", Values: []fact.ValueFor{{Value: "2.6.0+cu124", Nodes: "n[1-7]", Count: 7}, {Value: "2.5.1+cu124", Nodes: "n8", Count: 1}}},
		{Name: "nccl.version", Values: []fact.ValueFor{{Value: "2.21.5", Nodes: "n[1-7]", Count: 7}, {Value: "2.20.5", Nodes: "n8", Count: 1}}}}
	r := judge(t, s)
	if f := r.Top(); f == nil || f.ID != "env-differs-between-nodes" || r.Verdict != diag.Broken || r.Nodes.Exclude != "n8" {
		t.Errorf("%s: %s, exclude %q", r.Verdict, ids(r), r.Nodes.Exclude)
	}
}

// TestExcludeBesideAFaultOfAll: the rank that dies first of what is wrong
// everywhere does not put its node on the list; a firewall does.
func TestExcludeBesideAFaultOfAll(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-8]", Count: 8, Bundle: facts(t, cpuBuild)})
	rank := fact.RankFault{Rank: 0, Node: "n1", Step: "init", Error: "RuntimeError: Distributed package doesn't have NCCL built in"}
	s.Group = fact.Of(fact.GroupTest{Backend: "nccl", World: 8, First: &rank, Faults: []fact.RankFault{rank}}, fact.Evidence{Source: fact.SrcLive})
	if r := judge(t, s); r.Nodes.Exclude != "" || !strings.Contains(ids(r), "torch-built-without-nccl") {
		t.Errorf("exclude %q, %s", r.Nodes.Exclude, ids(r))
	}
	s.Group = fact.Val[fact.GroupTest]{}
	s.Reach = fact.Of(fact.Reach{Nodes: 8, Tested: 31, Good: 28, Failed: 3, Explain: []fact.Blame{{Kind: "in", Nodes: "n5", Way: "both", Faults: 3}},
		Faults: []fact.NoReach{{From: "n1", To: "n5", Way: "both", Iface: "eth0", Addr: "10.213.7.5/24", Error: "timeout"}}}, fact.Evidence{Source: fact.SrcLive})
	if r := judge(t, s); r.Nodes.Exclude != "n5" || r.Top().ID != "torch-cpu-build" {
		t.Errorf("exclude %q, %s", r.Nodes.Exclude, ids(r))
	}
}

// TestExcludeIsTheSmallerPart: half of the nodes cannot be left out.
func TestExcludeIsTheSmallerPart(t *testing.T) {
	s := set(8, fact.NodeGroup{Nodes: "n[1-4]", Count: 4, Bundle: facts(t, cudaBuild)}, fact.NodeGroup{Nodes: "n[5-8]", Count: 4, Bundle: facts(t, cpuBuild)})
	if r := judge(t, s); r.Nodes.Exclude != "" || r.Top() == nil {
		t.Errorf("exclude %q, %s", r.Nodes.Exclude, ids(r))
	}
	s = set(8, fact.NodeGroup{Nodes: "n[1-6]", Count: 6, Bundle: facts(t, cudaBuild)})
	s.Reported = 6
	s.Missing = []fact.NodeFault{{Nodes: "n[7-8]", Kind: fact.FaultSilent, Why: "no report within 1m0s", Count: 2}}
	if r := judge(t, s); r.Nodes.Exclude != "n[7-8]" || r.Top() == nil || r.Top().ID != "node-failed" {
		t.Errorf("exclude %q, %s", r.Nodes.Exclude, ids(r))
	}
}

// TestParticularsOfOneNode: two nodes have the same fault in different ways; the
// words are those of one, which is named.
func TestParticularsOfOneNode(t *testing.T) {
	wrong := func(name string) *fact.Bundle {
		return facts(t, `{host: {os: {v: linux}}, node: {ifaces: {v: [{name: eth0, up: true, addrs: [10.1.0.7/16]}]}}, slurm: {job: {v: "3"}, where: step, nodes: {v: 3}}, env: [{name: NCCL_SOCKET_IFNAME, value: `+name+`}]}`)
	}
	s := set(3, fact.NodeGroup{Nodes: "n1", Count: 1, Bundle: wrong("ib7")}, fact.NodeGroup{Nodes: "n2", Count: 1, Bundle: wrong("ib8")}, fact.NodeGroup{Nodes: "n3", Count: 1, Bundle: facts(t, cudaBuild)})
	r := judge(t, s)
	f := r.Top()
	if f == nil || f.Args["value"] != "ib7" || f.Args["told_of"] != "n1" || f.Args["nodes"] != "n[1-2]" {
		t.Fatalf("%s: %+v", ids(r), f)
	}
	s = set(2, fact.NodeGroup{Nodes: "n1", Count: 1, Bundle: wrong("ib7")}, fact.NodeGroup{Nodes: "n2", Count: 1, Bundle: wrong("ib7")})
	if r = judge(t, s); r.Top().Args["told_of"] != "" {
		t.Errorf("%+v", r.Top().Args)
	}
}

// TestMergedArgs: a rule for one node must not use a name that the merging gives
// another meaning.
func TestMergedArgs(t *testing.T) {
	base, err := rules.Load(rules.Embedded(), "test", rules.Allocation...)
	if err != nil {
		t.Fatal(err)
	}
	for id, f := range base.Files {
		if f.Family() != "install" && f.Family() != "node" {
			continue
		}
		for _, lang := range []string{"en", "zh"} {
			text, _ := f.Text(lang)
			all := text.Title + text.Message
			for _, s := range text.Sections {
				all += s
			}
			for _, name := range nodes.Merged {
				if strings.Contains(all, "{"+name+"}") {
					t.Errorf("%s, %s: {%s} is where a finding stands", id, lang, name)
				}
			}
		}
	}
}
