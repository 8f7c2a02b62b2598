package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  a.tr("print the manual page (roff)", "输出手册页（roff）"),
		Hidden: true,
		Args:   noArgs(a),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(a.Out, manPage(a.english().root()))
			return err
		},
	}
}

// manPage renders the command tree as one manual page. It carries no date, so
// that the committed page changes only when the commands do.
func manPage(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH NCCLINIC 1 \"\" \"ncclinic\" \"User Commands\"\n.SH NAME\nncclinic \\- %s\n", roff(root.Short))
	b.WriteString(".SH SYNOPSIS\n")
	for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
		if !c.Hidden {
			fmt.Fprintf(&b, ".B %s\n.br\n", roff(c.UseLine()))
		}
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", roffParas(root.Long))
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		long := c.Long
		if long == "" {
			long = c.Short
		}
		fmt.Fprintf(&b, ".SH COMMAND %s\n%s", strings.ToUpper(c.Name()), roffParas(long))
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { b.WriteString(roffFlag(f)) })
		if c.Example != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(c.Example))
		}
	}
	b.WriteString(".SH OPTIONS OF EVERY COMMAND\n")
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { b.WriteString(roffFlag(f)) })
	b.WriteString(".SH EXIT STATUS\n0 nothing wrong, 1 a problem was found, 2 wrong usage or unreadable input, 3 could not decide.\n")
	b.WriteString(".SH ENVIRONMENT\n.TP\n.B LC_ALL, LC_MESSAGES, LANG\nlanguage of the output when \\-\\-lang is not given.\n.TP\n.B NO_COLOR\nno colours.\n")
	return b.String()
}

func roffFlag(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if f.Value.Type() != "bool" {
		name += " " + strings.ToUpper(f.Value.Type())
	}
	return fmt.Sprintf(".TP\n.B %s\n%s\n", roff(name), roff(f.Usage))
}

func roffParas(s string) string {
	var b strings.Builder
	for i, para := range strings.Split(s, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if strings.HasPrefix(para, "  ") {
			fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(para))
		} else {
			fmt.Fprintf(&b, "%s\n", roff(para))
		}
	}
	return b.String()
}

func roff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}
