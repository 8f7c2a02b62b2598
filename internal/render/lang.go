// Package render shows reports: text for people, JSON and other forms for
// programs. It knows no rule: prose comes from the knowledge base through
// diag.Texts.
package render

import "strings"

// Lang picks the output language: the flag when it is given, else the first of
// LC_ALL, LC_MESSAGES and LANG that is set, else English.
func Lang(flag string, getenv func(string) string) string {
	v := flag
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v != "" {
			break
		}
		v = getenv(name)
	}
	if strings.HasPrefix(strings.ToLower(v), "zh") {
		return "zh"
	}
	return "en"
}

// words are the renderer's own words; everything else is prose of rules.
type words struct {
	verdict                                                                                                  map[string]string
	certainty, actor, severity                                                                               map[string]string
	okTitle, okFilesTitle                                                                                    string
	unknownTitle, undecidedTitle, undecidedWhy, noOutputTitle, cutOffTitle, candidates                       string
	evidence, why, fix, decide, also, follows, notes                                                         string
	notLooked, nameNode, leaveOut, onAll, onNodes, toldOf, rulesOf, ruleOf, unreadable, lookedAt, more, rank string
	node, verboseHint, plannerHint, ranClean                                                                 string
	colon, comma                                                                                             string
}

var english = words{
	verdict:   map[string]string{"ok": "OK", "warning": "WARNING", "broken": "BROKEN", "unknown": "UNKNOWN"},
	certainty: map[string]string{"proven": "proven", "likely": "likely", "possible": "possible"},
	actor: map[string]string{"user": "you can fix this", "admin": "for the administrator", "hardware": "hardware: for the administrator",
		"upstream": "a fault of the software itself"},
	severity:     map[string]string{"error": "error", "warning": "warning", "note": "note"},
	okTitle:      "Nothing was found that would stop distributed PyTorch here",
	okFilesTitle: "No sign of a failure in what was given",
	unknownTitle: "Nothing wrong was found, but not everything that matters could be seen",
	// For a failure that was seen and whose cause was not.
	undecidedTitle: "What was given does not decide the cause",
	noOutputTitle:  "Nothing in what was given looks like the output of a job",
	cutOffTitle:    "The output ends in the middle of the work and does not say why",
	undecidedWhy:   "%s; what was given does not decide why", candidates: "Possible causes",
	evidence: "Evidence", why: "Why", fix: "Fix", decide: "To be sure", also: "Also found", follows: "Follows from it", notes: "Notes",
	notLooked: "Not looked at", nameNode: "whether it works on a node: --driver, --gpu or --with-node says on which", leaveOut: "Leave out of the next job", onAll: "on all %s nodes that reported", onNodes: "on %s of %d nodes: %s", toldOf: "; the particulars are those of %s", rulesOf: "%d rules: %s", ruleOf: "%d rule: %s", unreadable: "Could not be read", lookedAt: "Looked at",
	more: "and %d more", rank: "rank", node: "node", ranClean: "%d rules looked and found nothing",
	plannerHint: "%s plans the whole change: other builds that would do, pins, the proof, the way back",
	verboseHint: "ncclinic -v lists the facts; ncclinic rules %s explains the cause",
	colon:       ": ", comma: ", ",
}

var chinese = words{
	verdict:   map[string]string{"ok": "正常", "warning": "警告", "broken": "有故障", "unknown": "无法判断"},
	certainty: map[string]string{"proven": "已证实", "likely": "很可能", "possible": "有可能"},
	actor: map[string]string{"user": "用户自己可以解决", "admin": "需要管理员处理", "hardware": "硬件问题，需要管理员处理",
		"upstream": "软件本身的缺陷"},
	severity:     map[string]string{"error": "错误", "warning": "警告", "note": "提示"},
	okTitle:      "没有发现会妨碍分布式 PyTorch 运行的问题",
	okFilesTitle: "所给内容中没有发现故障迹象",
	unknownTitle: "没有发现错误，但有些关键信息在这里看不到",
	// 看到了失败，但看不出原因。
	undecidedTitle: "仅凭所给内容无法判断原因",
	noOutputTitle:  "所给内容看起来不是作业的输出",
	cutOffTitle:    "输出在运行中途中断，其中没有说明原因",
	undecidedWhy:   "%s；仅凭所给内容无法判断具体原因", candidates: "可能的原因",
	evidence: "证据", why: "原因", fix: "解决办法", decide: "如何确认", also: "同时发现", follows: "由此引起", notes: "说明",
	notLooked: "未检查的项目", nameNode: "能否在某个节点上运行：用 --driver、--gpu 或 --with-node 指定节点", leaveOut: "下次提交时排除", onAll: "全部 %s 个已报告的节点", onNodes: "%[2]d 个节点中的 %[1]s 个：%[3]s", toldOf: "；以下为 %s 的情况", rulesOf: "%d 条规则：%s", ruleOf: "%d 条规则：%s", unreadable: "无法读取", lookedAt: "检查对象",
	more: "另有 %d 处", rank: "rank", node: "节点", ranClean: "%d 条规则检查后未发现问题",
	plannerHint: "%s 给出完整方案：其他可行的构建、版本锁定、验证和恢复方法",
	verboseHint: "ncclinic -v 列出全部事实；ncclinic rules %s 解释该原因",
	colon:       "：", comma: "，",
}

func wordsFor(lang string) *words {
	if lang == "zh" {
		return &chinese
	}
	return &english
}
