package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ncclinic/ncclinic/internal/fact"
)

// Limits of the test whether nodes reach each other.
const (
	dialLimit   = 3 * time.Second // of one connection, tried twice
	reachLimit  = 8 * time.Second // of all connections of one node
	answerLimit = 2 * time.Second // of a peer that connected
	maxGreeting = 64
)

// strides returns the positions to which position i of n connects: the next
// one, so that all make a ring, and those 2, 4, 8 … further.
func strides(i, n int) []int {
	var out []int
	for d := 1; d < n; d *= 2 {
		out = append(out, (i+d)%n)
	}
	return out
}

// reachResult is whom a node reached.
type reachResult struct {
	Tested int           `json:"n"`
	Faults []reachedNone `json:"f,omitempty"`
}

// reachedNone is one connection that failed.
type reachedNone struct {
	Task  int    `json:"t"`
	Way   string `json:"w"`
	Error string `json:"e"`
}

func decodeReach(raw []byte) (*reachResult, error) {
	var r reachResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	r.Faults = r.Faults[:min(len(r.Faults), 64)]
	return &r, nil
}

// answering is the side that is connected to: it shows by the token that the
// probe of that task answers, and no other machine with the same address.
type answering struct {
	task  int
	token chan struct{} // closed when known
	text  string
	ls    []net.Listener

	onMaster net.Listener // one of ls: MASTER_PORT of the first node
	wg       sync.WaitGroup
}

func newAnswering(task int) *answering { return &answering{task: task, token: make(chan struct{})} }

// know sets the token; before that nobody is answered.
func (a *answering) know(token string) { a.text = token; close(a.token) }

// listen answers on a port of all addresses; 0 takes any. It returns the port.
func (a *answering) listen(port int) (int, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	lc.SetMultipathTCP(false) // neither Gloo nor NCCL does
	l, err := lc.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return 0, err
	}
	a.ls = append(a.ls, l)
	a.wg.Add(1)
	go func() {
		defer a.wg.Done()
		slots := make(chan struct{}, 256) // the first node hears from all
		for {
			c, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // out of file descriptors for a moment
				continue
			}
			slots <- struct{}{}
			go func() { a.answer(c); <-slots }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (a *answering) answer(c net.Conn) {
	defer c.Close()
	select {
	case <-a.token:
	case <-time.After(reachLimit): // peers start when the plan is out, and we have it soon
		return
	}
	_ = c.SetDeadline(time.Now().Add(answerLimit))
	line, err := bufio.NewReaderSize(c, maxGreeting).ReadSlice('\n')
	if err != nil || strings.TrimSpace(string(line)) != a.text {
		return // a scanner, or another run
	}
	_, _ = fmt.Fprintf(c, "%s %d\n", a.text, a.task)
}

func (a *answering) close() {
	for _, l := range a.ls {
		l.Close()
	}
	a.wg.Wait()
}

// reachAll connects to the peers that the strides name, all at once, and
// returns within reachLimit.
func reachAll(ctx context.Context, self int, token string, p *reachPlan, master string) *reachResult {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	at := -1
	for i, n := range p.Nodes {
		if n.task == self {
			at = i
		}
	}
	res := &reachResult{}
	if at < 0 {
		return res
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	try := func(task int, way, addr string) {
		res.Tested++
		wg.Add(1)
		go func() {
			defer wg.Done()
			if e := reachOne(ctx, addr, token, task); e != "" {
				mu.Lock()
				defer mu.Unlock()
				res.Faults = append(res.Faults, reachedNone{task, way, e})
			}
		}()
	}
	for _, i := range strides(at, len(p.Nodes)) {
		for _, e := range p.Nodes[i].ends {
			way, addr, _ := strings.Cut(e, " ")
			try(p.Nodes[i].task, way, addr)
		}
	}
	if p.Master && at > 0 && master != "" {
		try(p.Nodes[0].task, fact.WayMaster, master)
	}
	wg.Wait()
	return res
}

// reachOne tries one address, a second time after a time-out: a busy node is no
// broken network.
func reachOne(ctx context.Context, addr, token string, task int) string {
	e := connect(ctx, addr, token, task)
	if e == fact.ReachTimeout || e == fact.ReachClosed {
		e = connect(ctx, addr, token, task)
	}
	return e
}

func connect(ctx context.Context, addr, token string, task int) string {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fact.Clip(err.Error(), 80)
	}
	d := net.Dialer{Timeout: dialLimit, KeepAlive: -1} // no connection lives that long
	c, err := d.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return dialError(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialLimit))
	if _, err := fmt.Fprintf(c, "%s\n", token); err != nil {
		return fact.ReachClosed
	}
	line, err := bufio.NewReaderSize(c, maxGreeting).ReadSlice('\n')
	var ne net.Error
	switch got, num, _ := strings.Cut(strings.TrimSpace(string(line)), " "); {
	case errors.As(err, &ne) && ne.Timeout():
		return fact.ReachTimeout
	case err != nil && len(line) == 0:
		return fact.ReachClosed
	case got != token || num != fmt.Sprint(task):
		return fact.ReachOther
	}
	return ""
}

func dialError(err error) string {
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fact.ReachRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fact.ReachNoRoute
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fact.ReachTimeout
	}
	var oe *net.OpError
	if errors.As(err, &oe) {
		err = oe.Err
	}
	return fact.Clip(err.Error(), 80)
}
