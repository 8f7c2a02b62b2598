package logs

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/fact/kind"
)

// ownStems begin words about work that one rank does while the others wait for
// it, by their first letter.
var ownStems = func() (by [26][]string) {
	for _, w := range []string{"save", "saving", "wrote", "write", "writing", "written", "gathered", "gathering", "exported", "exporting", "consolidat",
		"tokeniz", "tokenis", "upload", "download", "merge", "merging", "convert", "preprocess", "prepare", "preparing", "evaluat", "build", "built",
		"index", "cached", "caching", "copy", "copied", "copying", "extract", "unpack", "decompress", "packed", "packing", "flush", "dumped", "dumping",
		"serializ", "generat", "scored", "scoring", "decod", "filter", "validat"} {
		by[w[0]-'a'] = append(by[w[0]-'a'], w)
	}
	return by
}()

// ownHan are the same in Chinese.
var ownHan = []string{"保存", "写入", "写出", "预处理", "下载", "上传", "合并", "转换", "分词", "构建", "评估", "缓存", "拷贝", "复制", "导出", "解压"}

// ownText reports whether a line speaks of such work. Every line of every small
// file comes here, so that it goes over the bytes once.
func ownText(s string) bool {
	han, in := false, false // in: within a word
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if s[i] >= 0x80 {
			han = true
		}
		if c < 'a' || c > 'z' {
			in = s[i] >= 0x80 || s[i] >= '0' && s[i] <= '9'
			continue
		}
		if in {
			continue
		}
		in = true
		for _, w := range ownStems[c-'a'] {
			if len(s)-i >= len(w) && strings.EqualFold(s[i:i+len(w)], w) {
				return true
			}
		}
	}
	if han {
		for _, w := range ownHan {
			if strings.Contains(s, w) {
				return true
			}
		}
	}
	return false
}

// maxOwn bounds what is kept of one rank; the last line takes the place of the
// one before when there are more.
const maxOwn = 64

// ownWork keeps lines in which one rank tells of work of its own.
func (r *reader) ownWork(msg string, pl fact.Place) {
	if pl.Rank < 0 && pl.Task < 0 || r.quotedBlock || len(msg) > 240 || !ownText(msg) {
		return
	}
	rank := pl.Rank
	if rank < 0 {
		rank = pl.Task
	}
	at := r.own[rank]
	text := r.mask(fact.Clip(msg, 160))
	if len(at) == maxOwn {
		s := &r.out.Listing.Facts[at[maxOwn-1]]
		s.Place, s.V, s.Text = pl, text, text
		return
	}
	n := len(r.out.Listing.Facts)
	r.say(kind.OwnWork, "", text, "", pl)
	if len(r.out.Listing.Facts) > n {
		r.out.Listing.Facts[n].Text = text
		r.own[rank] = append(at, n)
	}
}
