package explain

import (
	"strings"

	"github.com/ncclinic/ncclinic/internal/diag"
	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
)

var (
	readsVar = lazyre.New(`(?:environ(?:\.get)?[\[(]|getenv\()\s*['"](RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|SLURM_PROCID|SLURM_LOCALID|SLURM_NTASKS|OMPI_COMM_WORLD_RANK)['"]`)
	noneInt  = lazyre.New(`not 'NoneType'|NoneType`)
)

// launcherVars judges programs that trip over a variable of the launcher that
// is not there, without a message of torch's own.
func (v *view) launcherVars() {
	if v.candidate("rdzv-variables-missing") {
		return
	}
	for _, x := range v.exc {
		n := len(x.Frames)
		if n == 0 || !strings.HasSuffix(x.Type, "TypeError") && !strings.HasSuffix(x.Type, "KeyError") && !strings.HasSuffix(x.Type, "ValueError") {
			continue
		}
		for i := n - 1; i >= 0 && i >= n-3; i-- {
			m := readsVar.FindStringSubmatch(x.Frames[i].Code)
			if m == nil || strings.HasSuffix(x.Type, "TypeError") && !noneInt.MatchString(x.Message) {
				continue
			}
			if strings.HasSuffix(x.Type, "KeyError") && !strings.Contains(x.Message, m[1]) || strings.HasSuffix(x.Type, "ValueError") {
				continue
			}
			v.addExc(cand{id: "rdzv-variables-missing", cert: diag.Likely, args: diag.Args{"var": m[1]}, over: []string{"run-exception"}}, x)
			return
		}
	}
}

// notMyAddress judges a rank 0 that cannot listen because MASTER_ADDR is no
// address of its host (EADDRNOTAVAIL).
func (v *view) notMyAddress() {
	var es []*fact.Event
	for _, e := range v.peek("S061", "S063") {
		if strings.Contains(e.Text, "EADDRNOTAVAIL") || strings.Contains(e.Text, "code: -99") || strings.Contains(e.Text, "errno: 99 ") {
			es = append(es, e)
		}
	}
	if len(es) == 0 {
		return
	}
	c := v.add(cand{id: "rdzv-master-wrong-host", cert: diag.Likely, over: []string{"rdzv-unreachable", "rdzv-too-few-ranks", "run-exception"}, needs: []string{"srun bash -c 'hostname -I; echo $MASTER_ADDR'"}}, cap4(es)...)
	if _, s, ok := v.env("MASTER_ADDR"); ok {
		v.said(c, s)
	}
}

// pythonUnresolved judges a name that Python could not resolve on the way to the
// store; other names, such as those of servers for downloads, say nothing of it.
func (v *view) pythonUnresolved() {
	v.used["log-socket-gaierror"] = true
	if v.candidate("rdzv-host-unresolvable") {
		return
	}
	for _, x := range v.exc {
		if !strings.HasSuffix(x.Type, "gaierror") {
			continue
		}
		for _, f := range x.Frames {
			if strings.Contains(f.Code, "MASTER_ADDR") || strings.Contains(f.Code, "master_addr") || strings.Contains(f.File, "/torch/distributed/") || strings.Contains(f.Code, "gethostbyname(socket.gethostname())") || strings.Contains(f.Code, "getfqdn") {
				v.addExc(cand{id: "rdzv-host-unresolvable", cert: diag.Likely, over: []string{"rdzv-unreachable", "run-exception"}, needs: []string{"srun bash -c 'getent hosts $MASTER_ADDR $(hostname)'"}}, x)
				return
			}
		}
	}
}
