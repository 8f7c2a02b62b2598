package nodes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// plan is what the parent sends to all probes when the answers so far are in: a
// line of JSON on their standard input, packed when it is long: srun cuts it into
// messages of 1 KB and sends each of them to every node.
type plan struct {
	Token string     `json:"token,omitempty"`
	Reach *reachPlan `json:"reach,omitempty"`
	Group *groupPlan `json:"group,omitempty"`
	Stop  bool       `json:"stop,omitempty"` // end the ranks: another one has failed
}

// reachPlan names the nodes that reported, in the order of their tasks.
type reachPlan struct {
	Nodes peers `json:"nodes"`
	// Master says that the first one listens on that port of MASTER_ADDR.
	Master bool `json:"master,omitempty"`
}

// peer is a node to connect to.
type peer struct {
	task int
	ends []string // nccl 10.0.0.1:4000
}

// peers travel as one text, a line for each: of a thousand, a probe wants ten.
type peers []peer

func (p peers) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	for _, x := range p {
		fmt.Fprintf(&b, "%d\t%s\n", x.task, strings.Join(x.ends, "\t"))
	}
	return b.Bytes(), nil
}

func (p *peers) UnmarshalText(text []byte) error {
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		id, err := strconv.Atoi(f[0])
		if err != nil {
			return errors.New("a peer without a task")
		}
		x := peer{task: id, ends: f[1:]}
		if len(x.ends) == 1 && x.ends[0] == "" {
			x.ends = nil
		}
		*p = append(*p, x)
	}
	return nil
}

const (
	planMark   = mark + " plan "
	packedMark = mark + " packed "
	packAbove  = 1000     // bytes: one message of srun's
	maxPlan    = 64 << 20 // of what a probe reads on its standard input
	maxPeers   = 16 << 20 // of an unpacked plan: 200,000 nodes
)

func writePlan(w io.Writer, p *plan) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	line := planMark + string(raw)
	if len(raw) > packAbove {
		var z packer
		packed, err := z.pack(raw)
		if err != nil {
			return err
		}
		line = packedMark + packed
	}
	_, err = io.WriteString(w, line+"\n")
	return err
}

// readPlan waits for the parent's line; nil at the end of the input.
func readPlan(in *bufio.Reader) (*plan, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				return nil, nil
			}
			return nil, err
		}
		raw := []byte(nil)
		if rest, ok := strings.CutPrefix(line, planMark); ok {
			raw = []byte(rest)
		} else if rest, ok := strings.CutPrefix(line, packedMark); !ok {
			continue
		} else if raw, err = unpack(strings.TrimSpace(rest), maxPeers); err != nil {
			return nil, err
		}
		p := new(plan)
		return p, json.Unmarshal(raw, p)
	}
}
