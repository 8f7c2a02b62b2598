package listing

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/fact/kind"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

// what a session asks of torch, in the order of a print
var (
	asks    = lazyre.New(`\b(?:torch|dist|torch\.distributed|td|d)\.(__file__|__version__|version\.cuda|version\.hip|cuda\.is_available\(\)|cuda\.nccl\.version\(\)|cuda\.device_count\(\)|cuda\.get_device_capability\((?:\d|"cuda")?\)|cuda\.get_arch_list\(\)|is_nccl_available\(\)|distributed\.is_nccl_available\(\)|distributed\.is_available\(\)|is_available\(\))`)
	prints  = lazyre.New(`\bprint\((.*)\)`)
	replIn  = lazyre.New(`^(?:>>> ?|In \[\d+\]: ?)(.*)$`)
	replOut = lazyre.New(`^Out\[\d+\]: ?`)
	tuple3  = lazyre.New(`\((\d+), (\d+), (\d+)\)`)
	tuple2  = lazyre.New(`\((\d+), (\d+)\)`)
	verTok  = lazyre.New(`^\d+\.\d+(?:\.\d+)?[a-z0-9.]*(?:\+[\w.]+)?$`)
	cudaTok = lazyre.New(`^(?:None|\d+\.\d+(?:[\w.-]*)?)$`)
	numTok  = lazyre.New(`^\d+$`)
	pathTok = lazyre.New(`^(/\S+)/torch/__init__\.pyc?$`)
)

// asking notes what the prints of a command will show, one list for each line.
func (p *Parser) asking(cmd string) {
	p.asked = p.asked[:0]
	if !strings.Contains(cmd, "torch") || !strings.Contains(cmd, "python") || !strings.Contains(cmd, "print") {
		return
	}
	for _, s := range strings.Split(cmd, ";") {
		m := prints.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		if q := expressions(m[1]); len(q) > 0 && len(p.asked) < 16 {
			p.asked = append(p.asked, q)
		}
	}
}

// expressions lists what a print shows, or nil when it shows anything else too.
func expressions(list string) []string {
	rest := strings.Trim(asks.ReplaceAllString(list, ""), " ,()\"'")
	if strings.Trim(rest, " ,") != "" {
		return nil
	}
	var q []string
	for _, m := range asks.FindAllStringSubmatch(list, -1) {
		q = append(q, m[1])
	}
	return q
}

// answers reads the output of what was asked, in a shell or in a Python session.
func (p *Parser) answers(msg string, add adder) bool {
	if m := replIn.FindStringSubmatch(msg); m != nil {
		if p.replBare == "version.cuda" {
			add(kind.TorchCUDA, "", "None", "") // None shows nothing
		}
		p.asked, p.replBare = p.asked[:0], ""
		in := strings.TrimSpace(m[1])
		if k := prints.FindStringSubmatch(in); k != nil {
			if q := expressions(k[1]); len(q) > 0 {
				p.asked = append(p.asked, q)
			}
		} else if q := expressions(in); len(q) > 0 {
			p.asked = append(p.asked, q)
			if len(q) == 1 {
				p.replBare = q[0]
			}
		}
		p.cmdAge, p.lastCmd = 0, ""
		return true
	}
	if len(p.asked) == 0 || len(msg) > 500 {
		return false
	}
	if p.cmdAge > 12 {
		p.asked = p.asked[:0]
		return false
	}
	say := replOut.ReplaceAllString(msg, "")
	say = tuple3.ReplaceAllString(say, "$1.$2.$3")
	say = tuple2.ReplaceAllString(say, "$1.$2")
	q := p.asked[0]
	if len(q) == 1 && q[0] == "cuda.get_arch_list()" {
		if strings.HasPrefix(say, "[") {
			add(kind.ArchList, "", strings.Join(archRe.FindAllString(say, -1), " "), "")
			p.next()
			return true
		}
		return false
	}
	f := strings.FieldsFunc(say, func(r rune) bool { return strings.ContainsRune(" ,()'\"\t", r) })
	if len(f) != len(q) {
		return false
	}
	for i, k := range q {
		if !fits(k, f[i]) {
			return false
		}
	}
	for i, k := range q {
		switch k {
		case "__file__":
			add(kind.TorchPath, "", pathTok.FindStringSubmatch(f[i])[1]+"/torch", "")
		case "__version__":
			add(kind.TorchVer, "", f[i], "")
		case "version.cuda":
			add(kind.TorchCUDA, "", f[i], "")
		case "version.hip":
			add(kind.TorchHIP, "", f[i], "")
		case "cuda.is_available()":
			add(kind.CUDAAvail, "", f[i], "")
		case "cuda.nccl.version()":
			if strings.Count(f[i], ".") == 2 {
				add(kind.NCCLVer, "", f[i], "")
			}
		case "distributed.is_available()":
			add(kind.DistAvail, "", f[i], "")
		case "is_nccl_available()", "distributed.is_nccl_available()":
			add(kind.NCCLAvail, "", f[i], "")
		default:
			if strings.HasPrefix(k, "cuda.get_device_capability") {
				add(kind.Capability, "", f[i], "")
			}
		}
	}
	p.next()
	return true
}

func (p *Parser) next() { p.asked, p.replBare = p.asked[1:], "" }

// fits reports whether a word can be the answer to an expression.
func fits(q, word string) bool {
	switch {
	case q == "__file__":
		return pathTok.MatchString(word)
	case q == "__version__" || strings.HasSuffix(q, "version()"):
		return verTok.MatchString(word)
	case strings.HasPrefix(q, "version."):
		return cudaTok.MatchString(word)
	case strings.HasSuffix(q, "available()"):
		return word == "True" || word == "False"
	case strings.HasPrefix(q, "cuda.get_device_capability"):
		return cudaTok.MatchString(word)
	}
	return numTok.MatchString(word)
}
