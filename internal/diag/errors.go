package diag

import "strings"

// ErrorText shows an error in a language: its parts, which ": " separates, are
// translated one by one, so that names of files between them stay as they are.
// What has no translation stays English. What was done with a file that is not
// there ("stat", "open") is nobody's concern in any language.
func ErrorText(text, lang string) string {
	parts := strings.Split(text, ": ")
	known := make([]bool, len(parts)+1) // from here on something is
	for i := len(parts) - 1; i >= 0; i-- {
		_, ok := errorsZh[parts[i]]
		known[i] = known[i+1] || ok
		for _, call := range calls {
			if rest, ok := strings.CutPrefix(parts[i], call); ok && known[i+1] {
				parts[i] = rest
			}
		}
	}
	if lang != "zh" {
		return strings.Join(parts, ": ")
	}
	any := known[0]
	for i, p := range parts {
		if zh, ok := errorsZh[p]; ok {
			parts[i] = zh
			continue
		}
		for en, zh := range verbsZh {
			if rest, ok := strings.CutPrefix(p, en); ok && known[i+1] && strings.ContainsAny(rest, "/.") {
				parts[i] = zh + rest
			}
		}
		if at := strings.LastIndex(p, `" `); at > 0 {
			if zh, ok := aboutZh[p[at+2:]]; ok {
				parts[i], any = p[:at+2]+zh, true
			}
		}
	}
	if !any {
		return text
	}
	return strings.Join(parts, "：")
}

// NamedPipe is the error of a named pipe where a file is read.
const NamedPipe = "a named pipe, which waits for a writer; give - and its content on standard input"

// calls are system calls that Go names in front of a path.
var calls = []string{"stat ", "lstat ", "open ", "openat ", "statat "}

// verbsZh are what the operating system was asked to do with a file.
var verbsZh = map[string]string{"read ": "读取 ", "readdirent ": "列出 ", "write ": "写入 "}

// aboutZh translates what is said of a word in quotes.
var aboutZh = map[string]string{
	"is not a size":                          "不是大小（如 10M、2G）",
	"is neither a time nor an age":           "既不是时间，也不是时长",
	"is no version, specifier or CUDA build": "不是版本号、版本限定或 CUDA 构建",
	"is no CUDA build":                       "不是 CUDA 构建",
	"is not a job id":                        "不是作业号",
	"is no version such as 23.11":            "不是 23.11 这样的版本号",
	"is not error, warning, note, on or off": "无效，可用的有 error、warning、note、on、off",
}

// errorsZh translates words of the operating system, of readers of archives and
// images, and of the command line.
var errorsZh = map[string]string{
	"no such file or directory":                      "没有该文件或目录",
	"permission denied":                              "没有权限",
	"operation not permitted":                        "不允许的操作",
	"is a directory":                                 "是目录",
	"is a folder":                                    "是目录",
	"not a directory":                                "不是目录",
	"file exists":                                    "文件已存在",
	"file does not exist":                            "文件不存在",
	"input/output error":                             "输入/输出错误",
	"stale NFS file handle":                          "NFS 文件句柄已失效",
	"no space left on device":                        "设备上没有剩余空间",
	"read-only file system":                          "只读文件系统",
	"too many open files":                            "打开的文件过多",
	"too many levels of symbolic links":              "符号链接层数过多",
	"file name too long":                             "文件名过长",
	"unexpected EOF":                                 "文件不完整，意外结束",
	"EOF":                                            "文件已结束",
	"an empty file":                                  "空文件",
	"file is too long":                               "文件过长",
	"not a regular file":                             "不是普通文件",
	"larger than 64 MiB":                             "大于 64 MiB",
	"not a regular file but a pipe":                  "不是普通文件，而是管道",
	"not a regular file but a socket":                "不是普通文件，而是套接字",
	"not a regular file but a device":                "不是普通文件，而是设备",
	"not a regular file but a folder":                "不是普通文件，而是目录",
	"not a regular file but a special file":          "不是普通文件，而是特殊文件",
	"the file changed while it was read":             "文件在读取期间被改动",
	NamedPipe:                                        "是命名管道，读取会一直等待写入方；请改用 - 从标准输入读取",
	"unknown flag":                                   "未知选项",
	"unknown shorthand flag":                         "未知短选项",
	"flag needs an argument":                         "选项缺少参数",
	"invalid header":                                 "文件头无效",
	"invalid checksum":                               "校验和不符",
	"not a wheel":                                    "不是 wheel",
	"a zip file, not a wheel":                        "是 zip 文件，但不是 wheel",
	"not a SIF image":                                "不是 SIF 镜像",
	"corrupt SIF image":                              "SIF 镜像已损坏",
	"unsupported SIF image":                          "不支持的 SIF 镜像",
	"no partition for the architecture":              "没有该体系结构的分区",
	"not a squashfs image":                           "不是 squashfs 镜像",
	"corrupt squashfs image":                         "squashfs 镜像已损坏",
	"unsupported squashfs image":                     "不支持的 squashfs 镜像",
	"beyond the limits of the squashfs reader":       "超出 squashfs 读取器的上限",
	"more data than a block holds":                   "数据超出块的容量",
	"not valid LZMA data":                            "LZMA 数据无效",
	"not a valid xz block":                           "xz 块无效",
	"xz checksum mismatch":                           "xz 校验和不符",
	"index.json names no image":                      "index.json 中没有镜像",
	"manifest.json names no image":                   "manifest.json 中没有镜像",
	"the image has no layers":                        "镜像没有任何层",
	"too many layers":                                "镜像层数过多",
	"there is no such layer in the archive":          "归档中没有该镜像层",
	"the member is encrypted":                        "归档成员已加密",
	"the member lies outside of the archive":         "归档成员位于文件之外",
	"the zip64 end record is damaged":                "zip64 结尾记录已损坏",
	"unpacks to more than any real archive":          "解压后的大小超出任何真实归档",
	"this part of the compressed file was not kept":  "压缩文件的这一部分没有保留",
	"not a zip file":                                 "不是 zip 文件",
	"the archive has changed":                        "归档在读取期间发生了变化",
	"an archive of more than 20000 files":            "归档中的文件超过 20000 个",
	"the archive holds no file that could be a log":  "归档中没有可作为日志的文件",
	"it has no central directory":                    "没有中央目录",
	"a link that is too long":                        "链接过长",
	"the central directory lies outside of the file": "中央目录位于文件之外",
	"not a wheel, conda package, archive, image, environment or library":  "不是 wheel、conda 包、归档、镜像、环境或动态库",
	"it holds no root file system, no interpreter and no torch package":   "其中没有根文件系统、解释器或 torch 包",
	"the SIF image is encrypted":                                          "SIF 镜像已加密",
	"its files can only be seen with its key or passphrase":               "需要密钥或口令才能看到其中的文件",
	"not a tar archive, gzip or zstd":                                     "不是 tar 归档、gzip 或 zstd",
	"encrypted layers cannot be read":                                     "无法读取加密的镜像层",
	"the archive is damaged or cut":                                       "归档已损坏或不完整",
	"the time limit was hit while it was read":                            "读取时达到了时间上限",
	"beyond what is examined of one archive":                              "超出单个归档的检查上限",
	"too many files (more than 250000)":                                   "文件过多（超过 250000 个）",
	"too many files (their names have more than 32 MB)":                   "文件过多（文件名超过 32 MB）",
	"too many files (more than 250000, or 32 MB of names, in its layers)": "文件过多（各层合计超过 250000 个或文件名超过 32 MB）",
	"too much to keep":                                                    "需要保留的内容过多",
	"its dictionary is larger than 64 MB":                                 "字典大于 64 MB",
	"windows of more than 64 MB are refused":                              "不接受大于 64 MB 的窗口",
	"window size exceeded":                                                "窗口过大",
	"decompressed size exceeds configured limit":                          "解压后的大小超出上限",
	"cannot be read":                                                      "无法读取",
	"not a valid xz stream":                                               "xz 数据流无效",
	"xz filters for machine code are not read":                            "不支持 xz 的机器码过滤器",
	"an index that names itself, or is named twice":                       "索引引用了自身或被重复引用",
	"too many indexes within indexes":                                     "索引嵌套过多",
	"no such blob":                                                        "没有该 blob",
	"a list of more than 4096 elements":                                   "列表超过 4096 个元素",
	"its content is not what its digest says":                             "内容与其摘要（digest）不符",
	"it was changed or damaged":                                           "已被改动或损坏",
	"write 2.6.0, 2.6, >=2.4,<2.8, 2.6.0+cu124 or cu126":                  "可写成 2.6.0、2.6、>=2.4,<2.8、2.6.0+cu124 或 cu126",
	"its local tag is not like cu126":                                     "本地标签不是 cu126 这种形式",
	"no such file":                                                        "没有该文件",
	"no such rule":                                                        "没有这条规则",
	"no such job":                                                         "没有这个作业",
	"not a program":                                                       "不是程序",
	"not an environment":                                                  "不是环境目录",
	"no python on PATH":                                                   "PATH 中没有 python",
	"no such program on PATH":                                             "PATH 中没有这个程序",
	"executable file not found in $PATH":                                  "PATH 中没有这个程序",
	"broken JSON":                                                         "JSON 已损坏",
	"unexpected end of JSON input":                                        "内容不完整",
	"not a facts bundle":                                                  "不是事实文件",
	"not a text file":                                                     "不是文本文件",
	"a quote is not closed":                                               "引号没有闭合",
	"neither scontrol nor sacct is on PATH":                               "PATH 中既没有 scontrol，也没有 sacct",
	"no answer from Slurm":                                                "Slurm 没有应答",
	"squeue is not on PATH":                                               "PATH 中没有 squeue",
	"squeue did not answer in time":                                       "squeue 未及时应答",
	"sinfo is not on PATH":                                                "PATH 中没有 sinfo",
	"sinfo did not answer in time":                                        "sinfo 未及时应答",
	"a gzip file without a tar archive inside":                            "gzip 文件，其中没有 tar 归档",
}
