package render

import (
	"fmt"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/ncclinic/ncclinic/internal/diag"
)

// NodesSummary says in a few lines how the nodes of an allocation compare.
func NodesSummary(n *diag.NodesReport, lang string) []string {
	pick := func(en, cn string) string {
		if lang == "zh" {
			return cn
		}
		return en
	}
	var out []string
	add := func(name, text string) {
		out = append(out, name+strings.Repeat(" ", max(1, 10-displaywidth.String(name)))+text)
	}
	add(pick("nodes", "节点"), fmt.Sprintf(pick("%d of %d reported: %s", "%d/%d 个已报告：%s"), n.Reported, n.Total, n.Expected))
	for _, m := range n.Missing {
		add(pick("missing", "缺失"), m.Nodes)
	}
	switch {
	case n.Reported < 2:
	case n.AlikeCount == n.Total:
		add(pick("alike", "一致"), fmt.Sprintf(pick("all of them, in the %d things that were compared", "全部节点在 %d 个比较项上一致"), n.Compared))
	default:
		add(pick("alike", "一致"), fmt.Sprintf(pick("%d: %s", "%d 个：%s"), n.AlikeCount, n.Alike))
		var names []string
		for i, c := range n.Different {
			if i == 6 {
				names = append(names, fmt.Sprintf("… %d", len(n.Different)-i))
				break
			}
			names = append(names, strings.TrimPrefix(strings.TrimPrefix(c.Name, "set."), "env."))
		}
		if len(names) > 0 {
			add(pick("differ", "差异"), fmt.Sprintf(pick("%s (%d compared)", "%s（共比较 %d 项）"), strings.Join(names, ", "), n.Compared))
		}
	}
	if r := n.Reach; r != nil {
		add(pick("reach", "连通"), fmt.Sprintf(pick("%d of %d connections between nodes worked", "节点之间的 %d/%d 个连接成功"), r.Good, r.Tested))
	}
	if g := n.Group; g != nil {
		add("--live", fmt.Sprintf(pick("%s over %d ranks: %d finished", "%s，%d 个 rank：%d 个完成"), g.Backend, g.World, g.Good))
	}
	return out
}

// place says on which nodes of an allocation a rule for one node found something.
func (x *textReport) place(f *diag.Finding) string {
	if x.rep.Nodes == nil || f.Args["node_count"] == "" {
		return ""
	}
	told := ""
	if n := f.Args["told_of"]; n != "" {
		told = fmt.Sprintf(x.ui.toldOf, Clean(n, false))
	}
	if f.Args["nodes_all"] != "" {
		return fmt.Sprintf(x.ui.onAll, f.Args["node_count"]) + told
	}
	return fmt.Sprintf(x.ui.onNodes, f.Args["node_count"], x.rep.Nodes.Reported, Clean(f.Args["nodes"], false)) + told
}

// exclude tells which nodes to leave out of the next job.
func (x *textReport) exclude() {
	if n := x.rep.Nodes; n != nil && n.Exclude != "" {
		x.section(x.ui.leaveOut)
		x.commands(4, []string{"sbatch --exclude=" + n.Exclude + " job.sbatch"})
	}
}
