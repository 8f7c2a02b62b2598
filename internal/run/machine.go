package run

import (
	"os"
	"strings"

	"github.com/ncclinic/ncclinic/internal/source"
)

// NewMachine returns the machine that this process runs on.
func NewMachine() (*source.Machine, error) {
	m := &source.Machine{FS: rootFS(), Env: map[string]string{}, UID: os.Getuid(), Runner: Real{}, OS: newOS()}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && k != "" {
			m.Env[k] = v
		}
	}
	m.Home = m.Env["HOME"]
	if m.Home == "" {
		// As NCCL and Python do: from the passwd file.
		m.Home = passwdHome()
	}
	return m, nil
}
