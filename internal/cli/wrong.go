package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ncclinic/ncclinic/internal/near"
)

// notOneOf is the error of a value that is none of those that are taken.
func (a *app) notOneOf(name, got string, want ...string) error {
	if a.lang == "zh" {
		return usagef("%s：%q 无效，可用的有 %s%s", name, got, strings.Join(want, "、"), a.perhaps(got, want))
	}
	if n := len(want); n > 1 && n < 6 {
		return usagef("%s: %q is not %s or %s%s", name, got, strings.Join(want[:n-1], ", "), want[n-1], a.perhaps(got, want))
	}
	return usagef("%s: %q is not one of %s%s", name, got, strings.Join(want, ", "), a.perhaps(got, want))
}

// wrongFlag says what is wrong with a flag, in words of this program in place of
// those of the libraries that read it.
func (a *app) wrongFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		var flags []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Deprecated == "" {
				flags = append(flags, "--"+f.Name)
			}
		})
		return usagef("%w%s", err, a.perhaps("--"+name, flags))
	case errors.As(err, &unknown):
		return usagef(a.tr("unknown flag: -%s", "未知选项：-%s"), unknown.GetSpecifiedShortnames())
	case errors.As(err, &value):
		f := value.GetFlag()
		what := a.tr("is no value for it", "不是有效的取值")
		switch f.Value.Type() {
		case "int", "int64", "uint":
			what = a.tr("is not a whole number", "不是整数")
		case "duration":
			what = a.tr("is not a duration such as 30s or 5m", "不是 30s、5m 这样的时长")
		case "bool":
			what = a.tr("is neither true nor false", "既不是 true 也不是 false")
		}
		return usagef("--%s: %q %s", f.Name, value.GetValue(), what)
	}
	return usageError{err}
}

// perhaps suggests what was meant, "" when nothing is near.
func (a *app) perhaps(word string, known []string) string {
	best, at := "", 3
	for _, k := range known {
		if d := near.Within(word, k, 2); d < at {
			best, at = k, d
		}
	}
	// Beginnings are meant too: --verb.
	if stem := strings.TrimLeft(word, "-"); best == "" && len(stem) > 2 {
		for _, k := range known {
			if strings.HasPrefix(k, word) {
				best = k
				break
			}
		}
	}
	if best == "" || len(strings.TrimLeft(word, "-")) < 3 || at >= len(strings.TrimLeft(best, "-"))-1 {
		return ""
	}
	return fmt.Sprintf(a.tr("; did you mean %s?", "；是否想用 %s？"), best)
}

// commandNames are the names of the commands that people type.
func commandNames(root *cobra.Command) []string {
	var out []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			out = append(out, c.Name())
		}
	}
	return out
}
