// Package nodes looks at all nodes of a Slurm allocation at once: one probe on
// each node through a single srun, whose reports are merged as they arrive,
// equal nodes once, so that ten thousand of them fit into little memory.
//
// What srun does to output was measured on 22.05 and read in its sources
// (slurmstepd/io.c, MAX_MSG_LEN): a line of more than 1024 bytes is cut into
// messages of that size; with --label each of them becomes a line of its own,
// and without it the pieces of several tasks mix. So a report is one line of
// JSON that travels in frames, each a line shorter than that, with srun's own
// label to say which task it is from.
package nodes

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// MaxLine is the longest report: what one node sends over the wire.
const MaxLine = 8 << 10

const (
	mark      = "@ncclinic"
	frameBody = 900 // bytes of payload in a frame; with its head below srun's 1024
	maxFrames = (MaxLine + frameBody - 1) / frameBody
	maxPlain  = 1 << 20 // of a report's unpacked part
)

// Kinds of message.
const (
	kindReport = "n" // what the node is
	kindReach  = "r" // whom it reached
	kindGroup  = "g" // how its ranks of the process group fared
)

// writeMessage sends a payload (no line breaks in it) as frames. The first line
// break ends what somebody else may have left on the line.
func writeMessage(w io.Writer, nonce, kind string, payload []byte) error {
	if len(payload) > MaxLine {
		return fmt.Errorf("%d bytes, %d are allowed", len(payload), MaxLine)
	}
	n := max(1, (len(payload)+frameBody-1)/frameBody)
	var b bytes.Buffer
	b.WriteByte('\n')
	for i := range n {
		part := payload[i*frameBody : min(len(payload), (i+1)*frameBody)]
		fmt.Fprintf(&b, "%s %s %s %d/%d ", mark, nonce, kind, i+1, n)
		b.Write(part)
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// frame is one line of a message.
type frame struct {
	kind    string
	seq, of int
	body    []byte
}

// errForeign is a line that looks like a frame and does not know the nonce.
var errForeign = errors.New("imitates a report")

// parseFrame reads a line without its label. ok is false for lines of others.
func parseFrame(line []byte, nonce string) (f frame, ok bool, err error) {
	i := bytes.Index(line, []byte(mark+" "))
	if i < 0 {
		return f, false, nil
	}
	rest, ok := bytes.CutPrefix(line[i+len(mark)+1:], []byte(nonce+" "))
	if !ok {
		return f, true, errForeign
	}
	head := bytes.SplitN(rest, []byte(" "), 3)
	if len(head) != 3 {
		return f, true, errors.New("a frame is cut off")
	}
	a, b, _ := bytes.Cut(head[1], []byte("/"))
	f.kind = string(head[0])
	f.seq, err = strconv.Atoi(string(a))
	if err == nil {
		f.of, err = strconv.Atoi(string(b))
	}
	if err != nil || f.seq < 1 || f.seq > f.of || f.of > maxFrames || len(head[2]) > frameBody {
		return f, true, errors.New("the head of a frame is damaged")
	}
	if f.seq < f.of && len(head[2]) < frameBody || f.seq == f.of && len(head[2]) == 0 {
		return f, true, errors.New("a frame is cut off")
	}
	f.body = head[2]
	return f, true, nil
}

// label cuts srun's "12: " off and returns the task's number, -1 when there is none.
func label(line []byte) (task int, rest []byte) {
	line = bytes.TrimLeft(line, " ")
	i := 0
	for i < len(line) && i < 9 && line[i] >= '0' && line[i] <= '9' {
		i++
	}
	if i == 0 || len(line) < i+2 || line[i] != ':' || line[i+1] != ' ' {
		return -1, line
	}
	task, _ = strconv.Atoi(string(line[:i]))
	return task, line[i+2:]
}

// packer deflates; the result is text. One is used for all parts of a report. The
// fastest level makes reports a seventh longer and touches less memory, which was a
// twentieth of a probe's time.
type packer struct{ z *flate.Writer }

func (p *packer) pack(plain []byte) (string, error) {
	var b bytes.Buffer
	if p.z == nil {
		var err error
		if p.z, err = flate.NewWriter(&b, flate.BestSpeed); err != nil {
			return "", err
		}
	} else {
		p.z.Reset(&b)
	}
	if _, err := p.z.Write(plain); err != nil {
		return "", err
	}
	err := p.z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes()), err
}

// unpack inflates what a packer made, or something hostile.
func unpack(s string, limit int) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, err
	}
	z := flate.NewReader(bytes.NewReader(raw))
	defer z.Close()
	plain, err := io.ReadAll(io.LimitReader(z, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > limit {
		return nil, fmt.Errorf("unpacks to more than %d bytes", limit)
	}
	return plain, nil
}

// wireVersion changes when a report cannot be read by others.
const wireVersion = 1

// report is the line of one node.
type report struct {
	V     int    `json:"v"`
	Node  string `json:"n"`           // SLURMD_NODENAME
	List  string `json:"l,omitempty"` // SLURM_STEP_NODELIST
	Job   string `json:"j,omitempty"`
	Step  string `json:"s,omitempty"`
	Time  int64  `json:"t"`           // milliseconds since 1970 when it was sent
	Took  int64  `json:"d,omitempty"` // milliseconds that looking took
	Avail int64  `json:"m,omitempty"` // memory that is available, MiB
	Total int64  `json:"M,omitempty"` // of that many
	Ranks int    `json:"k,omitempty"` // GPUs that a process here would see

	Addrs    []string   `json:"A,omitempty"` // of the first node: its addresses
	Ends     []endpoint `json:"e,omitempty"` // where it listens
	Master   *resolved  `json:"a,omitempty"`
	Port     string     `json:"p,omitempty"` // of the first node: free, busy, or why it is not known
	LivePort int        `json:"q,omitempty"` // of the first node: a port that was free

	// Common is packed: what equal nodes send byte for byte the same.
	Common string `json:"z"`
	// Own is packed: the facts that are each node's own.
	Own string `json:"o,omitempty"`
}

// endpoint is an address on which a probe answers, on the interface that NCCL
// or Gloo would choose.
type endpoint struct {
	Way   string `json:"w"` // nccl, gloo or both
	Iface string `json:"i,omitempty"`
	Addr  string `json:"a"` // address and prefix length: 10.1.2.3/16
	Port  int    `json:"p"`
}

// resolved is what a node makes of MASTER_ADDR.
type resolved struct {
	Name    string   `json:"n"`
	Addrs   []string `json:"a,omitempty"`
	Error   string   `json:"e,omitempty"`
	Default bool     `json:"d,omitempty"`
}

func encodeReport(r *report) ([]byte, error) {
	r.V = wireVersion
	return json.Marshal(r)
}

func decodeReport(raw []byte) (*report, error) {
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r.V != wireVersion {
		return nil, fmt.Errorf("form %d, this version reads %d", r.V, wireVersion)
	}
	return &r, nil
}
