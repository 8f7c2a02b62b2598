package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
	"github.com/ncclinic/ncclinic/internal/lazyre"
	"github.com/ncclinic/ncclinic/internal/source"
)

// SMILimit is how long nvidia-smi may take. Without persistence mode it
// initialises every GPU first, which takes about a second each.
const SMILimit = 10 * time.Second

// smiFields are the fields that are asked for, in order. A driver that does not
// know one says so by name, and it is left out.
var smiFields = []string{"index", "name", "pci.bus_id", "uuid", "driver_version", "memory.total", "memory.used",
	"compute_mode", "compute_cap", "mig.mode.current", "ecc.errors.uncorrected.volatile.total"}

// smiNeeds must stay: without them the answer says nothing.
var smiNeeds = []string{"index", "name", "pci.bus_id", "uuid"}

// gpus fills SMI and GPUs. nvidia-smi sees what this process may use; /proc
// has all GPUs of the machine and stands in when nvidia-smi does not answer.
func (r *reader) gpus(ctx context.Context) {
	n := &r.b.Node
	defer func() {
		if n.GPUs.Looked() {
			return
		}
		switch {
		case len(r.procGPUs) > 0:
			n.GPUs = fact.Of(r.procGPUs, fact.File("/proc/driver/nvidia/gpus"))
		case n.Driver.IsAbsent():
			n.GPUs = fact.None[[]fact.GPU](n.Driver.At)
		case n.Driver.IsKnown() && n.GPUsBound.IsKnown():
			n.GPUs = fact.Of([]fact.GPU{}, n.GPUsBound.At)
		}
	}()
	if r.m.Runner == nil {
		return
	}
	p, err := r.m.Runner.LookPath("nvidia-smi")
	if err != nil {
		n.SMI = fact.None[fact.SMI](fact.EnvVarAt("PATH", r.m.Getenv("PATH")))
		return
	}
	r.smiPath = p
	fields := slices.Clone(smiFields)
	for {
		res, line, err := r.smi(ctx, fields)
		at := fact.Command(line, firstLine(string(res.Stdout)))
		if err != nil {
			n.SMI = fact.Fail[fact.SMI](err.Error(), at)
			return
		}
		s := fact.SMI{Path: p, Code: res.Code, Millis: int(res.Wall.Milliseconds())}
		if res.TimedOut {
			if errors.Is(ctx.Err(), context.Canceled) {
				n.SMI = fact.Fail[fact.SMI]("interrupted", at)
				return
			}
			s.Hung = true
			s.Error = fmt.Sprintf("did not answer within %s", res.Wall.Round(100*time.Millisecond))
			n.SMI = fact.Of(s, fact.Command(line, s.Error))
			return
		}
		if f := badField(string(res.Stdout) + string(res.Stderr)); f != "" && !slices.Contains(smiNeeds, f) && slices.Contains(fields, f) {
			fields = slices.DeleteFunc(fields, func(x string) bool { return x == f })
			continue
		}
		if res.Code != 0 {
			s.Error = smiError(res)
			at.Excerpt = firstLine(s.Error)
			n.SMI = fact.Of(s, at)
			if strings.Contains(s.Error, "No devices were found") {
				n.GPUs = fact.Of([]fact.GPU{}, at)
			}
			return
		}
		gpus, drv, trouble, err := parseSMI(string(res.Stdout), fields)
		if err != nil {
			n.SMI = fact.Fail[fact.SMI](err.Error(), at)
			return
		}
		s.Driver, s.Error = drv, trouble
		n.SMI = fact.Of(s, at)
		n.GPUs = fact.Of(gpus, at)
		if drv != "" && !n.Driver.IsKnown() && !r.b.Host.Board.IsKnown() {
			// The container hides /proc/driver/nvidia, or this is WSL.
			n.Driver = fact.Of(fact.Driver{Version: drv}, at)
		}
		r.smiVersion(ctx)
		return
	}
}

func (r *reader) smi(ctx context.Context, fields []string) (source.Result, string, error) {
	args := []string{"--query-gpu=" + strings.Join(fields, ","), "--format=csv,noheader,nounits"}
	res, err := r.m.Runner.Run(ctx, source.Cmd{Path: r.smiPath, Args: args, Timeout: SMILimit, MaxOut: 256 << 10})
	return res, "nvidia-smi " + strings.Join(args, " "), err
}

var badFieldLine = lazyre.New(`Field "([a-z_.]{1,80})" is not a valid field to query`)

func badField(out string) string {
	if m := badFieldLine.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return ""
}

// smiError is what nvidia-smi said when it failed, at most four lines. It
// writes most of its errors to standard output.
func smiError(res source.Result) string {
	for _, out := range [][]byte{res.Stdout, res.Stderr} {
		var lines []string
		for _, l := range strings.Split(string(out), "\n") {
			if l = firstLine(l); l != "" && len(lines) < 4 {
				lines = append(lines, l)
			}
		}
		if len(lines) > 0 {
			return strings.Join(lines, "\n")
		}
	}
	return fmt.Sprintf("exit status %d, no output", res.Code)
}

var busForm = lazyre.New(`^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$`)

// parseSMI reads the CSV. Any line that is not a GPU makes the whole answer
// nonsense: half an answer would be taken for "the other GPUs are gone".
// trouble is what a field says instead of a value: [Unknown Error], [GPU is lost].
func parseSMI(out string, fields []string) (gpus []fact.GPU, driver, trouble string, err error) {
	gpus = []fact.GPU{}
	for _, line := range strings.Split(out, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		cols := strings.Split(line, ",")
		if len(cols) != len(fields) || len(gpus) >= maxGPUs {
			return nil, "", "", fmt.Errorf("its output is not the CSV that was asked for: %q", fact.Clip(printable(line), 120))
		}
		var g fact.GPU
		for i, f := range fields {
			v := printable(strings.TrimSpace(cols[i]))
			if strings.HasPrefix(v, "[") {
				if strings.Contains(v, "Error") || strings.Contains(v, "lost") {
					trouble = fmt.Sprintf("%s: %s", f, v)
				}
				v = "" // [N/A], [Not Supported], [Insufficient Permissions]
			}
			if v == "N/A" {
				v = ""
			}
			switch f {
			case "index":
				if g.Index, err = strconv.Atoi(v); err != nil || g.Index < 0 || g.Index > 1024 {
					return nil, "", "", fmt.Errorf("its output has no index: %q", fact.Clip(printable(line), 120))
				}
			case "name":
				g.Name = v
			case "pci.bus_id":
				if v != "" && !busForm.MatchString(v) {
					return nil, "", "", fmt.Errorf("its output has no bus address: %q", fact.Clip(printable(line), 120))
				}
				g.Bus = busID(v)
			case "uuid":
				g.UUID = v
			case "driver_version":
				if driverVersion.MatchString(v) {
					driver = v
				}
			case "memory.total":
				g.MemMiB = max(number(v), 0)
			case "memory.used":
				g.UsedMiB = max(number(v), 0)
			case "compute_mode":
				g.Mode = v
			case "compute_cap":
				if capForm.MatchString(v) {
					g.Cap, g.CapFrom = v, "nvidia-smi"
				}
			case "mig.mode.current":
				g.MIG = v
			case "ecc.errors.uncorrected.volatile.total":
				g.ECC = v
			}
		}
		capFromName(&g)
		gpus = append(gpus, g)
	}
	if len(gpus) == 0 { // without a GPU it says "No devices were found" and fails
		return nil, "", "", errors.New("it printed nothing")
	}
	return gpus, driver, trouble, nil
}

var capForm = lazyre.New(`^\d{1,2}\.\d$`)

var smiVersionLine = lazyre.New(`(?m)^(NVML version|CUDA Version)\s*: ([\d.]{1,20})\s*$`)

// smiVersion asks for the CUDA version that the driver supports. Old drivers
// do not have the option; then nothing is known.
func (r *reader) smiVersion(ctx context.Context) {
	if major, _, _ := strings.Cut(r.b.Node.SMI.V.Driver, "."); number(major) < 525 {
		return // saves a call that would only print its usage
	}
	res, err := r.m.Runner.Run(ctx, source.Cmd{Path: r.smiPath, Args: []string{"--version"}, Timeout: SMILimit / 2, MaxOut: 16 << 10})
	if err != nil || res.Code != 0 {
		return
	}
	for _, m := range smiVersionLine.FindAllStringSubmatch(string(res.Stdout), -1) {
		if m[1] == "CUDA Version" {
			r.b.Node.SMI.V.CUDA = m[2]
		} else {
			r.b.Node.SMI.V.NVML = m[2]
		}
	}
}

// fabric asks for the state of the NVSwitch fabric. Hopper and later tell it;
// A100 does not, and there the state stays unknown. Where the switches are not
// in the node (GB200 NVL72) the GPUs tell all the same.
func (r *reader) fabric(ctx context.Context) {
	n := &r.b.Node
	switches := n.NVSwitches.Or(0)
	rack := false
	for _, g := range n.GPUs.Or(nil) {
		rack = rack || strings.Contains(g.Name, "GB200") || strings.Contains(g.Name, "GB300") || strings.Contains(g.Name, "B200") || strings.Contains(g.Name, "B300")
	}
	if switches == 0 && !rack {
		if n.NVSwitches.IsKnown() {
			n.Fabric = fact.None[string](n.NVSwitches.At)
		}
		return
	}
	if !n.SMI.IsKnown() || n.SMI.V.Hung || n.SMI.V.Code != 0 || len(n.GPUs.Or(nil)) == 0 {
		return
	}
	res, line, err := r.smi(ctx, []string{"index", "fabric.state", "fabric.status"})
	at := fact.Command(line, firstLine(string(res.Stdout)))
	switch {
	case err != nil:
		n.Fabric = fact.Fail[string](err.Error(), at)
	case res.TimedOut:
		n.Fabric = fact.Fail[string]("nvidia-smi did not answer in time", at)
	case res.Code != 0:
		n.Fabric = fact.Fail[string](firstLine(smiError(res)), at)
	default:
		n.Fabric = parseFabric(string(res.Stdout), at)
	}
}

// parseFabric sums up: the state of the first GPU that is not ready, else Completed.
func parseFabric(out string, at fact.Evidence) fact.Val[string] {
	done, untold := 0, 0
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		cols := strings.Split(line, ",")
		if i >= maxGPUs || len(cols) != 3 {
			return fact.Fail[string]("nvidia-smi printed something else than was asked for", at)
		}
		state, status := fact.Clip(printable(strings.TrimSpace(cols[1])), 60), fact.Clip(printable(strings.TrimSpace(cols[2])), 60)
		switch state {
		case "Completed":
			if status != "Success" && status != "N/A" && status != "[N/A]" && status != "" {
				return fact.Of("Completed: "+status, at.WithExcerpt(fact.Clip(printable(line), 120)))
			}
			done++
		case "N/A", "[N/A]", "[Not Supported]", "Not Supported", "":
			untold++
		default:
			return fact.Of(state, at.WithExcerpt(fact.Clip(printable(line), 120)))
		}
	}
	if done > 0 {
		return fact.Of("Completed", at)
	}
	return fact.Fail[string]("this GPU or driver does not tell the state of its fabric", at)
}
