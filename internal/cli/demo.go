package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/ncclinic/ncclinic/internal/demo"
	"github.com/ncclinic/ncclinic/internal/fact"
)

func (a *app) demoCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: a.tr("show a whole verdict on a recorded GPU node", "在录制的 GPU 节点数据上演示完整诊断"),
		Long: a.tr(`demo judges the recorded facts of a node with eight GPUs on which a job died with
"Distributed package doesn't have NCCL built in". It needs no cluster, no GPU and
no torch, and shows what "ncclinic check" would have said there.`,
			`demo 诊断一份录制好的八卡节点数据：该节点上的作业报
"Distributed package doesn't have NCCL built in" 后退出。不需要集群、GPU 或 torch，
输出就是当时在该节点上运行 "ncclinic check" 的结果。`),
		Args: noArgs(a),
		RunE: func(*cobra.Command, []string) error {
			b, err := fact.ReadBundle(bytes.NewReader(demo.Bundle))
			if err != nil {
				return err
			}
			return a.judge(b)
		},
	}
	a.addOutputFlags(c)
	return c
}
