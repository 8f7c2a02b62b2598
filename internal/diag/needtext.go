package diag

import "strings"

// NeedText shows what would decide, in a language. Most of it is commands,
// which every language shares; the words between them are translated. Parts are
// separated by "; ".
func NeedText(need, lang string) string {
	if lang != "zh" {
		return need
	}
	parts := strings.Split(need, "; ")
	for i, p := range parts {
		parts[i] = needPartZh(p)
	}
	return strings.Join(parts, "; ")
}

func needPartZh(p string) string {
	if zh, ok := needsZh[p]; ok {
		return zh
	}
	for en, zh := range needsZh {
		if rest, ok := strings.CutPrefix(p, en); ok && strings.HasSuffix(en, " ") {
			return zh + rest
		}
	}
	return p
}

// needsZh translates the parts of needs that are words; keys that end in a
// blank are followed by a name. A test holds that no part is missing.
var needsZh = map[string]string{
	"it has no timeout of its own":                                                      "它自己没有报超时",
	"the standard error of every rank":                                                  "每个 rank 的标准错误输出",
	"the lines of all ranks around that time":                                           "所有 rank 在该时刻前后的日志",
	"the logs of the ranks that did not come":                                           "没有加入的那些 rank 的日志",
	"the logs of the other ranks":                                                       "其他 rank 的日志",
	"the log of the rank on ":                                                           "运行在以下地址上的 rank 的日志：",
	"the log of rank 0 on ":                                                             "rank 0 的日志，所在节点：",
	"the log of rank ":                                                                  "以下 rank 的日志：",
	"the first completion error of all ranks by time":                                   "所有 rank 中时间最早的 completion 错误",
	"dmesg and ibstat of the nodes":                                                     "各节点的 dmesg 和 ibstat",
	"dmesg of the nodes":                                                                "各节点的 dmesg",
	"py-spy dump --pid PID on each rank while it hangs":                                 "卡住时对每个 rank 执行 py-spy dump --pid PID",
	"NCCL_DEBUG=INFO and the launch command of every node":                              "每个节点的启动命令，以及设置 NCCL_DEBUG=INFO 后的日志",
	"py-spy dump --pid PID of a rank on each node":                                      "在每个节点上对一个 rank 执行 py-spy dump --pid PID",
	"the log of the node of rank 0, where the store is":                                 "rank 0 所在节点（TCPStore 所在处）的日志",
	"nc between the nodes":                                                              "在节点之间用 nc 测试连通性",
	"ip -br a on every node":                                                            "在每个节点上执行 ip -br a",
	"ping between the addresses of that interface":                                      "用该接口的地址互相 ping",
	"getent hosts $(hostname) on every node":                                            "在每个节点上执行 getent hosts $(hostname)",
	"ldd the library that the message names":                                            "对报错中的库执行 ldd",
	"the stack of the core file":                                                        "core 文件中的调用栈",
	"are the ranks of one node in containers of their own?":                             "同一节点的各个 rank 是否分别在独立的容器中？",
	"NCCL_DEBUG=VERSION on every node":                                                  "在每个节点上设置 NCCL_DEBUG=VERSION",
	"NCCL_DEBUG=VERSION and env | grep NCCL_ on both ranks":                             "在两个 rank 上设置 NCCL_DEBUG=VERSION，并执行 env | grep NCCL_",
	"the call that each of them made (TORCH_DISTRIBUTED_DEBUG=DETAIL)":                  "两者各自发起的集合通信（TORCH_DISTRIBUTED_DEBUG=DETAIL）",
	"did their agents start, with the same rdzv_id and endpoint?":                       "各节点的 agent 是否启动，rdzv_id 和 endpoint 是否一致？",
	"the logs of the other nodes and the sbatch script":                                 "其他节点的日志和 sbatch 脚本",
	"journalctl and dmesg of the nodes around that time (suspend, stalls, clock jumps)": "各节点当时的 journalctl 和 dmesg（挂起、停顿、时钟跳变）",
}
