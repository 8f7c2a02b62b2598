package diag

import (
	"fmt"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// needs says for each word that a rule file may use under "needs:" whether the
// bundle has it, and why the rule is skipped when it has not.
var needs = map[string]struct {
	has func(b *fact.Bundle) bool
	why string
	zh  string
}{
	"python":    {func(b *fact.Bundle) bool { return b.Python.Exe.IsKnown() }, "no interpreter was found", "没有找到 Python 解释器"},
	"torch":     {func(b *fact.Bundle) bool { return b.Winner() != nil }, "no torch was found", "没有找到 torch"},
	"path":      {func(b *fact.Bundle) bool { return len(b.Python.Path) > 0 }, "the search path was not built", "没有得到模块搜索路径"},
	"loads":     {func(b *fact.Bundle) bool { return len(b.Loads) > 0 }, "no library of torch was examined", "没有检查 torch 的动态库"},
	"linux":     {func(b *fact.Bundle) bool { return b.Host.OS.Or("linux") == "linux" }, "not Linux", "不是 Linux"},
	"node":      {func(b *fact.Bundle) bool { return b.Node.Driver.Looked() }, "the node was not looked at", "没有检查节点"},
	"driver":    {func(b *fact.Bundle) bool { return b.Node.Driver.IsKnown() }, "no NVIDIA driver was seen", "没有看到 NVIDIA 驱动"},
	"gpus":      {func(b *fact.Bundle) bool { return len(b.Node.GPUs.Or(nil)) > 0 }, "no GPU was seen", "没有看到 GPU"},
	"limits":    {func(b *fact.Bundle) bool { return b.Node.Limits.Memlock.Looked() }, "limits were not looked at", "没有检查资源限制"},
	"shm":       {func(b *fact.Bundle) bool { return b.Node.Shm.IsKnown() }, "/dev/shm was not looked at", "没有检查 /dev/shm"},
	"ifaces":    {func(b *fact.Bundle) bool { return b.Node.Ifaces.IsKnown() }, "network interfaces were not looked at", "没有检查网络接口"},
	"rdma":      {func(b *fact.Bundle) bool { return b.Node.RDMA.Looked() }, "RDMA devices were not looked at", "没有检查 RDMA 设备"},
	"slurm-job": {func(b *fact.Bundle) bool { return b.Slurm.Job.IsKnown() }, "not inside a Slurm job", "不在 Slurm 作业中"},
	"nodes":     {func(b *fact.Bundle) bool { return b.Nodes != nil }, "only one node was looked at", "只检查了一个节点"},
	"live":      {func(b *fact.Bundle) bool { return b.Live.State.Looked() }, "needs --live", "需要 --live"},
}

// KnownNeed reports whether a rule file may use the word.
func KnownNeed(word string) bool { _, ok := needs[word]; return ok }

// unmet returns why a rule cannot run on this bundle, "" when it can.
func unmet(words []string, b *fact.Bundle) string {
	for _, w := range words {
		n, ok := needs[w]
		if !ok {
			return fmt.Sprintf("unknown need %q", w)
		}
		if !n.has(b) {
			return n.why
		}
	}
	return ""
}
