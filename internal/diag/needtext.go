package diag

import "strings"

// What would decide is a list of commands, which every language shares and which
// can be pasted as they are, and of words. Words stand in needsZh; a test holds
// that everything else is a command.

// IsCommand reports whether something that would decide is a command.
func IsCommand(need string) bool { return needZh(need) == "" }

// NeedText shows what would decide, in a language.
func NeedText(need, lang string) string {
	if zh := needZh(need); lang == "zh" && zh != "" {
		return zh
	}
	return need
}

// needZh returns the Chinese words of a need, "" for a command.
func needZh(need string) string {
	if zh, ok := needsZh[need]; ok {
		return zh
	}
	longest, text := "", ""
	for en, zh := range needsZh {
		if rest, ok := strings.CutPrefix(need, en); ok && strings.HasSuffix(en, " ") && len(en) > len(longest) {
			longest, text = en, zh+rest
		}
	}
	return text
}

// needsZh translates the needs that are words; keys that end in a blank are
// followed by a name.
var needsZh = map[string]string{
	"the standard error of every rank": "每个 rank 的标准错误输出",
	"a run whose output goes to a file, such as --output=slurm-%j.out: that of this one went to a device":           "把输出写到文件（例如 --output=slurm-%j.out）再运行一次：这次的输出写到了设备",
	"the output of the job, from somebody who may read it (its owner: ncclinic job)":                                "作业的输出，由有权读取的人提供（其所有者可用 ncclinic job）",
	"a run with \"set -x\" as the second line of the script: the last command that it shows is the one that failed": "在脚本第二行加上 “set -x” 再运行一次：显示的最后一条命令就是失败的命令",
	"the lines of all ranks around that time":                                                                       "所有 rank 在该时刻前后的日志",
	"the logs of the ranks that did not come":                                                                       "没有加入的那些 rank 的日志",
	"the logs of the other ranks":                                                                                   "其他 rank 的日志",
	"the log of the rank on ":                                                                                       "运行在以下地址上的 rank 的日志：",
	"the log of rank 0 on ":                                                                                         "rank 0 的日志，所在节点：",
	"the log of rank ":                                                                                              "以下 rank 的日志：",
	"the first completion error of all ranks by time":                                                               "所有 rank 中时间最早的 completion 错误",
	"dmesg and ibstat of the nodes":                                                                                 "各节点的 dmesg 和 ibstat",
	"dmesg of the nodes":                                                                                            "各节点的 dmesg",
	"py-spy dump --pid PID on each rank while it hangs":                                                             "卡住时对每个 rank 执行 py-spy dump --pid PID",
	"NCCL_DEBUG=INFO and the launch command of every node":                                                          "每个节点的启动命令，以及设置 NCCL_DEBUG=INFO 后的日志",
	"py-spy dump --pid PID of a rank on each node":                                                                  "在每个节点上对一个 rank 执行 py-spy dump --pid PID",
	"the log of the node of rank 0, where the store is":                                                             "rank 0 所在节点（TCPStore 所在处）的日志",
	"ping between the addresses of that interface":                                                                  "用该接口的地址互相 ping",
	"the stack of the core file":                                                                                    "core 文件中的调用栈",
	"are the ranks of one node in containers of their own?":                                                         "同一节点的各个 rank 是否分别在独立的容器中？",
	"NCCL_DEBUG=VERSION and env | grep NCCL_ on both ranks":                                                         "在两个 rank 上设置 NCCL_DEBUG=VERSION，并执行 env | grep NCCL_",
	"the call that each of them made (TORCH_DISTRIBUTED_DEBUG=DETAIL)":                                              "两者各自发起的集合通信（TORCH_DISTRIBUTED_DEBUG=DETAIL）",
	"did their agents start, with the same rdzv_id and endpoint?":                                                   "各节点的 agent 是否启动，rdzv_id 和 endpoint 是否一致？",
	"the logs of the other nodes and the sbatch script":                                                             "其他节点的日志和 sbatch 脚本",
	"journalctl and dmesg of the nodes around that time (suspend, stalls, clock jumps)":                             "各节点当时的 journalctl 和 dmesg（挂起、停顿、时钟跳变）",
	"ldd of the library that the message names":                                                                     "对报错中的库执行 ldd 的结果",
	"the line \"Bootstrap : Using …\" of every node, which NCCL_DEBUG=INFO writes":                                  "每个节点的 “Bootstrap : Using …” 行（设置 NCCL_DEBUG=INFO 后输出）",
	"a run without --error=/dev/null and 2>/dev/null, in which the shell names the command":                         "去掉 --error=/dev/null 和 2>/dev/null 后再运行一次，shell 会给出该命令的名字",
	"is it one launcher per node?":                                                                                  "是否每个节点只启动一个 launcher？",
	"a run with CUDA_LAUNCH_BLOCKING=1, which shows the call that has no kernel":                                    "设置 CUDA_LAUNCH_BLOCKING=1 再运行一次，可看到缺少内核的调用",
	"nccl-tests on one pair of GPUs, with NCCL_P2P_DISABLE=1 and with NCCL_SHM_DISABLE=1":                           "在一对 GPU 上运行 nccl-tests，分别设置 NCCL_P2P_DISABLE=1 和 NCCL_SHM_DISABLE=1",
	"NCCL_DEBUG=VERSION on every node":                                                                              "在每个节点上设置 NCCL_DEBUG=VERSION",
	"a run with NCCL_DEBUG=INFO and TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (flight recorder)":                            "设置 NCCL_DEBUG=INFO 和 TORCH_NCCL_TRACE_BUFFER_SIZE=2000（flight recorder）再运行一次",
	"the output of the job: the files that --output and --error of sbatch name":                                     "作业的输出：sbatch 的 --output 和 --error 所指的文件",
	"its last 2000 lines alone (tail -n 2000)":                                                                      "只读入最后 2000 行（tail -n 2000）",
}
