package script

import (
	"slices"
	"strings"
	"sync"

	"github.com/ncclinic/ncclinic/internal/near"
)

// Argument kinds of an option.
const (
	noArg = iota
	needArg
	optArg
)

// option is one option of sbatch or srun.
type option struct {
	name  string
	short byte
	arg   uint8
	alias string // canonical name, when it differs
}

// optionText lists sbatch's options by name/argument/short letter: the union of
// releases 17.11 to 26.11 (src/sbatch/opt.c and src/common/slurm_opt.c). A name
// that a release lacks is silent here: the version decides in removed.go. Not
// here is --tasks: since 19.05 getopt takes it for --tasks-per-node.
const optionText = `account/r/A acctg-freq/r array/r/a batch/r bbf/r begin/r/b bb/r consolidate-segments/n cluster-constraint/r
chdir/r/D clusters/r/M cluster/r//clusters comment/r constraint/r/C container/r container-id/r runtime/r context/r contiguous/n core-spec/r/S
cores-per-socket/r cpu-freq/r cpus-per-gpu/r cpus-per-task/r/c deadline/r delay-boot/r dependency/r/d distribution/r/m
error/r/e exclude/r/x exclusive/o export/r export-file/r external/n extra/r extra-node-info/r/B get-user-env/o gid/r
gpu-bind/r tres-bind/r gpu-freq/r gpus/r/G gpus-per-node/r gpus-per-socket/r gpus-per-task/r tres-per-task/r gres/r
gres-flags/r help/n/h hint/r hold/n/H ignore-pbs/n immediate/o/I input/r/i job-name/r/J kill-on-invalid-dep/r licenses/r/L
mail-type/r mail-user/r mcs-label/r oom-kill-step/o mem/r mem-bind/r mem-per-cpu/r mem-per-gpu/r mem-update/r mincpus/r
network/r nice/o no-kill/o/k no-requeue/n nodefile/r/F nodelist/r/w nodes/r/N ntasks/r/n ntasks-per-core/r
ntasks-per-node/r ntasks-per-socket/r ntasks-per-tres/r//ntasks-per-gpu ntasks-per-gpu/r open-mode/r output/r/o
overcommit/n/O oversubscribe/n/s share/n//oversubscribe parsable/n partition/r/p power/r prefer/r priority/r profile/r propagate/o qos/r/q
quiet/n/Q reboot/n requeue/o reservation/r resources/r segment/r signal/r sockets-per-node/r spread-job/n
spread-segments/n stepmgr/n switches/r tasks-per-node/r//ntasks-per-node test-only/n thread-spec/r threads-per-core/r time/r/t
time-min/r tmp/r uid/r use-min-nodes/n usage/n verbose/n/v version/n/V wait/n/W wait-all-nodes/r wckey/r wrap/r
mincores/r minsockets/r minthreads/r tres-per-node/r tres-per-job/r tres-per-socket/r x11/o`

// srunText lists what srun has besides, or otherwise.
const srunText = `accel-bind/r async/n bcast/o bcast-exclude/r compress/o cpu-bind/r cpu_bind/r//cpu-bind debugger-test/n disable-status/n/X epilog/r exact/n
external-launcher/o ignore-signals/r interactive/n jobid/r kill-on-bad-exit/o/K label/n/l threads/r/T mpi/r msg-timeout/r
multi-prog/n no-allocate/n/Z overlap/o pack-group/r het-group/r//pack-group preserve-env/n/E prolog/r pty/o
quit-on-interrupt/n relative/r/r resv-ports/o send-libs/o slurmd-debug/r task-epilog/r task-prolog/r treewidth/r
unbuffered/n/u wait/r/W wait-for-children/n whole/n x11/o kill-command/o mem_bind/r//mem-bind
container-image/r container-mounts/r container-name/r container-workdir/r container-save/r container-env/r container-entrypoint-log/n
container-entrypoint/n no-container-entrypoint/n container-mount-home/n no-container-mount-home/n container-remap-root/n no-container-remap-root/n
container-writable/n container-readonly/n environment/r uenv/r view/r image/r module/r auto-resume/r`

// removed are options that Slurm once had: name, the release that dropped it,
// and what took its place. 20.02 dropped --workdir (NEWS of that release).
var removed = map[string]struct{ in, now string }{
	"workdir":        {"19.05", "chdir"},
	"checkpoint":     {"20.11", ""},
	"checkpoint-dir": {"20.11", ""},
	"geometry":       {"20.02", ""},
	"conn-type":      {"20.02", ""},
	"no-rotate":      {"20.02", ""},
	"blrts-image":    {"20.02", ""},
	"linux-image":    {"20.02", ""},
	"cnload-image":   {"20.02", ""},
	"mloader-image":  {"20.02", ""},
	"ramdisk-image":  {"20.02", ""},
	"ioload-image":   {"20.02", ""},
	"jobid":          {"22.05", ""},
}

type optionTable struct {
	long  map[string]*option
	short [256]*option
	names []string
}

func parseTable(texts ...string) *optionTable {
	t := &optionTable{long: map[string]*option{}}
	for _, text := range texts {
		for _, f := range strings.Fields(text) {
			p := strings.Split(f, "/")
			o := &option{name: p[0]}
			switch p[1] {
			case "r":
				o.arg = needArg
			case "o":
				o.arg = optArg
			}
			if len(p) > 2 && p[2] != "" {
				o.short = p[2][0]
				t.short[o.short] = o
			}
			if len(p) > 3 {
				o.alias = p[3]
			}
			if t.long[o.name] == nil {
				t.names = append(t.names, o.name)
			}
			t.long[o.name] = o
		}
	}
	return t
}

// Most commands read no script.
var (
	sbatchOptions = sync.OnceValue(func() *optionTable { return parseTable(optionText) })
	srunOptions   = sync.OnceValue(func() *optionTable { return parseTable(optionText, srunText) })
)

func (o *option) canon() string {
	if o.alias != "" {
		return o.alias
	}
	return o.name
}

// find looks a long option up as getopt_long does: the exact name, else the
// only one that starts so. siteOption names come from plugins and are not here.
func (t *optionTable) find(name string) *option {
	if o := t.long[name]; o != nil {
		return o
	}
	if name == "" {
		return nil
	}
	var hit *option
	for _, n := range t.names {
		if strings.HasPrefix(n, name) {
			o := t.long[n]
			if hit != nil && hit.canon() != o.canon() {
				return nil // ambiguous
			}
			hit = o
		}
	}
	return hit
}

// newer lists options that a release in use, or a site without pyxis, lacks:
// they alone make a beginning ambiguous on some clusters only.
const newer = ` consolidate-segments cluster-constraint cluster container-id runtime context container external extra oom-kill-step
 prefer resources segment spread-segments stepmgr tres-bind tres-per-task mem-update power x11 async disable-status external-launcher
 interactive treewidth wait-for-children kill-command container-image container-mounts container-name container-workdir container-save
 container-env container-entrypoint-log container-entrypoint no-container-entrypoint container-mount-home no-container-mount-home
 container-remap-root no-container-remap-root container-writable container-readonly environment uenv view image module auto-resume
 bbf bb batch deadline delay-boot mcs-label ntasks-per-gpu ntasks-per-tres send-libs export-file overlap exact whole het-group
 mincores minsockets minthreads share cpu_bind mem_bind jobid tres-per-node tres-per-job tres-per-socket `

// ambiguous lists the options that begin with name, when that is none and
// several do in every release: getopt_long refuses it.
func (t *optionTable) ambiguous(name string) []string {
	if name == "" || t.find(name) != nil {
		return nil
	}
	var out []string
	for _, n := range t.names {
		if strings.HasPrefix(n, name) && t.long[n].alias == "" && !strings.Contains(newer, " "+n+" ") {
			out = append(out, n)
		}
	}
	if len(out) < 2 {
		return nil
	}
	slices.Sort(out)
	return out
}

// synonyms are names that people of other schedulers and programs write, by what
// Slurm calls it. They are far from it letter by letter.
var synonyms = map[string]string{
	"memory": "mem", "mem-per-node": "mem", "ram": "mem", "vmem": "mem", "walltime": "time", "wall-time": "time", "timeout": "time", "time-limit": "time", "runtime-limit": "time",
	"queue": "partition", "name": "job-name", "email": "mail-user", "mail": "mail-user", "stdout": "output", "stderr": "error", "log": "output", "err": "error",
	"cores": "cpus-per-task", "ncpus": "cpus-per-task", "ncores": "cpus-per-task", "cpus": "cpus-per-task", "cpu": "cpus-per-task", "num-cpus": "cpus-per-task", "cores-per-task": "cpus-per-task", "threads": "cpus-per-task",
	"num-gpus": "gpus", "num-nodes": "nodes", "num-tasks": "ntasks", "project": "account", "cwd": "chdir", "working-directory": "chdir",
}

// guess returns the option that a name which is none was meant to be, or "". A
// short name must be nearer than a long one: plugins of a site have short ones.
func (t *optionTable) guess(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	if len(name) < 3 || len(name) > 40 {
		return ""
	}
	if o := t.long[name]; o != nil {
		return o.name
	}
	if s := synonyms[name]; s != "" {
		return s
	}
	most := 1
	if len(name) >= 7 {
		most = 2
	}
	best := ""
	for _, n := range t.names {
		if len(n) < 4 || len(name) < 4 {
			continue
		}
		if d := near.Within(name, n, most); d <= most {
			if d == most && best != "" {
				continue // the first of equals; names in the table are in order of the alphabet
			}
			best, most = n, d
		}
	}
	return best
}
