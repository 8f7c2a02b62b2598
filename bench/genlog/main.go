// Command genlog writes a training log of a given size with a failure at its
// end, for benchmarks; -literals writes the literals of all log rules instead.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"

	"github.com/ncclinic/ncclinic/rules"
)

func main() {
	mb := flag.Int("mb", 1024, "size in MiB")
	lits := flag.Bool("literals", false, "write the literals of the log rules")
	flag.Parse()
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer w.Flush()
	if *lits {
		if err := literals(w); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	block := training(20000)
	for n := 0; n < *mb<<20; n += len(block) {
		w.Write(block)
	}
	w.WriteString(`[rank13]: Traceback (most recent call last):
[rank13]:   File "/srv/pt/pt.py", line 418, in <module>
[rank13]:     main()
[rank13]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 640.00 MiB. GPU 5 has a total capacity of 79.10 GiB of which 301.25 MiB is free.
srun: error: b12: task 13: Exited with exit code 1
`)
}

// training returns n lines as three kinds of programs write them.
func training(n int) []byte {
	r := rand.New(rand.NewSource(1))
	var b []byte
	for range n {
		switch k := r.Float64(); {
		case k < .7:
			b = fmt.Appendf(b, " [2025-07-30 18:%02d:%02d] iteration %8d/  500000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: 1.498630E-04 | global batch size:   512 | lm loss: %.6fE+00 | loss scale: 1.0 | grad norm: %.3f |\n",
				r.Intn(60), r.Intn(60), r.Intn(500000), r.Intn(1e8), r.Float64()*9000, r.Float64()*300, r.Float64()*9, r.Float64())
		case k < .9:
			b = fmt.Appendf(b, "%d: step %d loss %.4f lr %.2e tok/s %d\n", r.Intn(64), r.Intn(1e6), r.Float64(), r.Float64(), r.Intn(1e5))
		default:
			b = fmt.Appendf(b, "2025-10-08 11:%02d:34,041 INFO [rank %d] data loader: shard %d opened, %d samples waiting in the queue\n", r.Intn(60), r.Intn(64), r.Intn(1e4), r.Intn(1000))
		}
	}
	return b
}

func literals(w *bufio.Writer) error {
	lb, err := rules.LoadLog(rules.EmbeddedLog())
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var all []string
	for i := range lb.Rules {
		for _, l := range lb.Rules[i].Literals {
			if !seen[l] {
				seen[l] = true
				all = append(all, l)
			}
		}
	}
	sort.Strings(all)
	for _, l := range all {
		fmt.Fprintln(w, l)
	}
	return nil
}
