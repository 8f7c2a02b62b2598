package logs

import (
	"regexp"
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// ownRe matches work that one rank does while the others wait for it.
var ownRe = regexp.MustCompile(`(?i)\b(?:sav(?:e|ed|ing)|wr(?:ote|iting|itten)|gather(?:ed|ing)|export(?:ed|ing)|consolidat|token|upload|download|merg(?:e|ed|ing)|convert|preprocess|prepar(?:e|ed|ing)|evaluat|build(?:ing)?|built|index(?:ed|ing)|cach(?:ed|ing)|cop(?:y|ied|ying)|extract|unpack|decompress|pack(?:ed|ing)|flush|dump(?:ed|ing)|serializ|generat|scor(?:ed|ing)|reading shard|shard \d+|decod|filter|validat|sync(?:ed|ing) to)|保存|写入|写出|预处理|下载|上传|合并|转换|分词|构建|评估|缓存|拷贝|复制|导出|解压`)

// ownStems are in every line that ownRe can match, but for the case of their
// first letter: a look for them is cheaper.
var ownStems = []string{"av", "rote ", "rit", "ather", "xport", "onsolidat", "oken", "load", "erg", "onvert", "repro", "repar", "valuat", "uil", "ndex", "ach", "op", "xtract", "pack", "compress", "lush", "ump", "erializ", "enerat", "cor", "shard", "ecod", "ilter", "alidat", "ync", "保", "写", "预", "下", "上", "合", "转", "分", "构", "评", "缓", "拷", "复", "导", "解"}

func maybeOwn(s string) bool {
	for _, w := range ownStems {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// maxOwn bounds what is kept of one rank; the last line takes the place of the
// one before when there are more.
const maxOwn = 64

// ownWork keeps lines in which one rank tells of work of its own.
func (r *reader) ownWork(msg string, pl fact.Place) {
	if pl.Rank < 0 && pl.Task < 0 || pl.File != r.file || r.quotedBlock || len(msg) > 240 || !maybeOwn(msg) || !ownRe.MatchString(msg) {
		return
	}
	rank := pl.Rank
	if rank < 0 {
		rank = pl.Task
	}
	at := r.own[rank]
	if len(at) < maxOwn || at[maxOwn-1] >= len(r.out.Listing.Facts) {
		n := len(r.out.Listing.Facts)
		r.say(kind.OwnWork, "", clip(msg, 160), "", pl)
		if len(r.out.Listing.Facts) > n && len(at) < maxOwn {
			r.out.Listing.Facts[n].Text = r.mask(clip(msg, 160))
			r.own[rank] = append(at, n)
		}
		return
	}
	s := &r.out.Listing.Facts[at[maxOwn-1]]
	s.Place, s.V, s.Text = pl, r.mask(clip(msg, 160)), r.mask(clip(msg, 160))
}
