package diag

import "strings"

// Reason shows why a rule was skipped, in a language. What a check adds after
// the fixed words (a version, a message) stays as it is.
func Reason(why, lang string) string {
	if lang != "zh" {
		return ErrorText(why, lang)
	}
	for _, n := range needs {
		if n.why == why {
			return n.zh
		}
	}
	if zh, ok := reasonsZh[why]; ok {
		return zh
	}
	for en, zh := range reasonsZh {
		if rest, ok := strings.CutPrefix(why, en); ok && strings.HasSuffix(en, " ") {
			return zh + rest
		}
	}
	return ErrorText(why, lang)
}

// HasReason reports whether the fixed words of a reason have a translation.
func HasReason(why string) bool { return Reason(why, "zh") != why }

// Undecided is the reason of a check that saw signs of a cause, and of others
// too: the finding of an unknown verdict lists them, so a text for people need not.
const Undecided = "what was given does not decide it"

// reasonsZh translates the words of Reporter.Skip; keys that end in a blank are
// followed by something variable. A test holds that no reason is missing.
var reasonsZh = map[string]string{
	"the compressed data ends in the middle: what follows was not there to read": "压缩数据在中途结束，后面的内容没有",
	"the archive ends in the middle: what follows was not there to read":         "归档在中途结束，后面的内容没有",
	"not a text file":                                       "不是文本文件",
	"there is no library of torch in it":                    "其中没有 torch 的任何动态库",
	"there is no libtorch_python.so beside it":              "旁边没有 libtorch_python.so",
	"a core dump, not a text file":                          "是 core dump，不是文本文件",
	"empty":                                                 "空文件",
	"reading stopped after the limit, in bytes (--limit): ": "已达到读取上限（--limit），字节数：",
	"events that carry no date and are kept: ":              "没有日期、因而保留的事件数：",
	"no report within ":                                     "没有报告，已等待 ",
	"no allocation within ":                                 "没有获得资源，已等待 ",
	"nodes were not connected with each other":              "没有测试节点之间的连接",
	Undecided:                                                      "所给的输入不足以判定",
	"no log was given":                                             "没有给出日志",
	"no batch script was given":                                    "没有给出批处理脚本",
	"no list of packages was given":                                "没有给出软件包列表",
	"what was given does not tell two nodes apart":                 "所给的输入无法区分两个节点",
	"the symbols of torch's libraries were not read":               "未能读取 torch 动态库的符号",
	"the PCI bus was not seen: an environment without its machine": "没有看到 PCI 总线：只有环境，没有它所在的机器",
	"outside a job: what a login node has says nothing about the compute nodes": "不在作业中：登录节点的情况不能说明计算节点",
	"nvidia-smi was not run":    "没有运行 nvidia-smi",
	"no extension was examined": "没有检查编译扩展",
	"inside a container variables of the host's environment mean nothing":                               "在容器内，宿主机的环境变量不说明问题",
	"whether this torch can train is not known":                                                         "无法确定这个 torch 能否用于训练",
	"torch/version.py was not read":                                                                     "未能读取 torch/version.py",
	"the version of torch is not known":                                                                 "torch 版本未知",
	"the version of libcuda is not known":                                                               "libcuda 版本未知",
	"the tables do not know CUDA ":                                                                      "数据表中没有该 CUDA 版本：",
	"the plugins of the compute node were not looked at":                                                "没有检查计算节点上的网络插件",
	"the operating system is not known":                                                                 "操作系统未知",
	"the interpreter was not taken from PATH":                                                           "解释器不是取自 PATH",
	"the interpreter did not say what the build computes on":                                            "解释器没有说明该构建使用的计算设备",
	"the import failed with words that no rule knows: ":                                                 "导入失败，报错内容没有对应的规则：",
	"the architectures of the build were not read":                                                      "未能读取该构建支持的 GPU 架构",
	"the architecture of the host or of torch is not known":                                             "主机或 torch 的体系结构未知",
	"the Slurm version is not known":                                                                    "Slurm 版本未知",
	"signs of damage of an unknown kind":                                                                "有未知类型的损坏迹象",
	"one of the two torches could not be read":                                                          "两个 torch 中有一个无法读取",
	"nvidia-smi did not say which GPUs this process can open":                                           "nvidia-smi 没有说明本进程能打开哪些 GPU",
	"neither nvidia-smi nor the device files were observed":                                             "既没有 nvidia-smi 的结果，也没有检查设备文件",
	"neither libcuda nor the device files were observed":                                                "既没有检查 libcuda，也没有检查设备文件",
	"device files were not looked at":                                                                   "没有检查设备文件",
	"how the container is started decides whether the image's forward compatibility package is taken: ": "镜像中的前向兼容包是否生效取决于容器的启动方式：",
	"Jetson drivers are numbered in another way":                                                        "Jetson 的驱动版本编号方式不同",
	"/dev/infiniband was not looked at":                                                                 "没有检查 /dev/infiniband",
}
