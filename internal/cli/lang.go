package cli

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/render"
)

// langOf finds the language before flags are parsed, because help texts need it.
func langOf(args []string, getenv func(string) string) string {
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := strings.CutPrefix(a, "--lang="); ok {
			return render.Lang(v, getenv)
		}
		if a == "--lang" && i+1 < len(args) {
			return render.Lang(args[i+1], getenv)
		}
	}
	return render.Lang("", getenv)
}

// tr picks the text of the language in use.
func (a *app) tr(en, zh string) string {
	if a.lang == "zh" {
		return zh
	}
	return en
}
